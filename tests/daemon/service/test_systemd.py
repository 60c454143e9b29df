"""The service under a real systemd, in namespaces of its own: it stays, whatever is done to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SYSTEMD = "/usr/lib/systemd/systemd"
NAMESPACES = ["unshare", "--mount", "--pid", "--cgroup", "--fork", "--mount-proc"]
BIN = Path(sys.executable).parent

# Systemd as the manager of a user. It needs a runtime directory and a group of processes to keep.
BOOT = """
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system "/run/user/$(id -u)"
chmod 700 "/run/user/$(id -u)"
mount -t tmpfs tmpfs /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
group=/sys/fs/cgroup/sessiond-test-$TOKEN
mkdir "$group"
echo 0 >"$group/cgroup.procs"
export XDG_RUNTIME_DIR="/run/user/$(id -u)"
unset DBUS_SESSION_BUS_ADDRESS
/usr/lib/systemd/systemd --user --log-target=null &
until systemctl --user is-system-running 2>/dev/null | grep -qE 'running|degraded'; do
    sleep 0.1
done
"""
DONE = """
kill $!
wait $! || true
rmdir "$group" 2>/dev/null || true
"""


@pytest.fixture
def under_systemd(world):
    """Runs a shell script where systemd is; returns its output."""
    if not os.path.exists(SYSTEMD) or shutil.which("unshare") is None:
        pytest.skip("NO SYSTEMD: THE SERVICE IS NOT TRIED; install systemd and util-linux")
    probe = subprocess.run(
        [*NAMESPACES, "sh", "-c", "mount -t tmpfs tmpfs /run"], capture_output=True, check=False
    )
    if probe.returncode != 0:
        pytest.skip("NO NAMESPACES: THE SERVICE IS NOT TRIED; run this test as root")

    def run(script):
        environment = {
            **world.env,
            "PATH": f"{BIN}{os.pathsep}{world.env['PATH']}",
            "TOKEN": f"{os.getpid()}-{world.root.name}",
        }
        done = subprocess.run(
            [*NAMESPACES, "bash", "-c", BOOT + script + DONE],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    t = world.transcript()
    t.append(t.prompt("hello"))
    return run


STATE = "systemctl --user show sessiond.service --value --property=ActiveState"
PID = "systemctl --user show sessiond.service --value --property=MainPID"


@pytest.mark.slow
def test_restarts_leave_a_service_that_runs(under_systemd):
    """More of them than the unit's limit; a unit that has failed is started again all the same."""
    said = under_systemd(f"""
sessiond install >&2
for number in $(seq 11); do sessiond restart >/dev/null; done
{STATE}
test "$({PID})" = "$(sessiond status --json | sed -n '1s/.*"pid": \\([0-9]*\\).*/\\1/p')"
sessiond status --health || test $? -eq 5
systemctl --user kill --signal=KILL sessiond.service
until test "$({STATE})" = active && test "$({PID})" != 0; do sleep 0.1; done
echo recovered
sessiond uninstall >&2
""")
    assert said.splitlines()[0] == "active"
    assert said.splitlines()[-1] == "recovered"


@pytest.mark.slow
def test_a_failed_service_is_named_and_nothing_starts_beside_it(under_systemd):
    """By status, health and doctor; a daemon beside it is named, too; restart mends both."""
    said = under_systemd(f"""
sessiond install >&2
unit=~/.config/systemd/user/sessiond.service
cp $unit ~/good
sed -i 's/^ExecStart=.*/ExecStart=\\/bin\\/false/; s/^RestartSec=.*/RestartSec=100ms/' $unit
systemctl --user daemon-reload
systemctl --user restart sessiond.service || true
until test "$({STATE})" = failed; do sleep 0.1; done
sessiond status --health || echo "health $?"
sessiond restart || echo "restart $?"
until test "$({STATE})" = failed; do sleep 0.1; done
sessiond start --detach
sessiond status --health || echo "health $?"
sess doctor | grep -E '^warn +daemon' || true
cp ~/good $unit
systemctl --user daemon-reload
sessiond restart
{STATE}
echo '# changed' >>$unit
systemctl --user daemon-reload
sessiond status | grep ^service
sessiond status --health || echo "health $?"
sessiond stop
sessiond uninstall >&2
""")
    health, failed, *rest = said.splitlines()
    assert health.startswith("the service has failed (")
    assert failed == "health 3"
    assert rest[0] == "restart 69"
    assert rest[1].startswith("note: this daemon runs outside the service")
    assert "the service has failed" in said
    assert "a daemon runs outside it" in said
    assert "stopped the daemon that ran outside the service" in said
    assert "\nactive\n" in said
    assert "service  the service is not as this version installs it: `sessiond install`" in said


@pytest.mark.slow
def test_a_hung_daemon_is_unhealthy_and_started_anew(under_systemd):
    """A stopped process is no longer fed to the watchdog, which is impatient here."""
    said = under_systemd(f"""
sessiond install >&2
mkdir -p ~/.config/systemd/user/sessiond.service.d
printf '[Service]\\nWatchdogSec=4\\nTimeoutAbortSec=1\\nRestartSec=100ms\\n' \\
    >~/.config/systemd/user/sessiond.service.d/fast.conf
systemctl --user daemon-reload
sessiond restart >&2
first=$({PID})
kill -STOP $first
sessiond status --health || echo "health $?"
until test "$({STATE})" = active && test "$({PID})" != 0 && test "$({PID})" != $first; do
    sleep 0.1
done
echo recovered
sessiond uninstall >&2
""")
    health, code, recovered = said.splitlines()
    assert health.startswith("a signal has stopped the daemon")
    assert (code, recovered) == ("health 3", "recovered")
