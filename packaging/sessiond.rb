# The formula of a release, for a tap: packaging/formula fills in version and checksum.
class Sessiond < Formula
  include Language::Python::Virtualenv

  desc "Index every coding-agent transcript on this machine, and search it"
  homepage "https://github.com/sessiond/sessiond"
  url "https://github.com/sessiond/sessiond/releases/download/vVERSION/sessiond-VERSION.tar.gz"
  sha256 "CHECKSUM"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    # Dependencies come as wheels, as for everybody else: none has to be compiled here.
    venv = virtualenv_create(libexec, "python3.13", without_pip: false)
    system libexec/"bin/python", "-m", "pip", "install", "--no-compile", buildpath.to_s
    bin.install_symlink venv.root/"bin/sess", venv.root/"bin/sessiond"
    man1.install Dir["man/*.1"]
    %w[sess sessiond].each do |program|
      { "bash" => bash_completion/program, "zsh" => zsh_completion/"_#{program}",
        "fish" => fish_completion/"#{program}.fish" }.each do |shell, path|
        path.dirname.mkpath
        path.write Utils.safe_popen_read(bin/program, "--show-completion", shell)
      end
    end
  end

  service do
    run [opt_bin/"sessiond", "start"]
    keep_alive crashed: true
    process_type :background
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sess --version")
    assert_match "teapot", shell_output("#{bin}/sess demo")
  end
end
