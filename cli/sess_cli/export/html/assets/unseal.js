// An encrypted page: asks for the passphrase, and starts the page when it is right.

async function derived(passphrase, rounds, salt) {
  const given = await crypto.subtle.importKey(
    "raw", new TextEncoder().encode(passphrase), "PBKDF2", false, ["deriveBits"]);
  return new Uint8Array(await crypto.subtle.deriveBits(
    { name: "PBKDF2", hash: "SHA-256", salt: fromBase64(salt), iterations: Number(rounds) }, given, 256));
}

async function unseal(raw, nonce, data) {
  const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["decrypt"]);
  const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv: fromBase64(nonce) }, key, fromBase64(data));
  return unsqueezed(new Uint8Array(plain));
}

// Pages of one directory share a key, kept in this tab so that it is asked for once. Not on hosts of
// gists, where pages of strangers have the same origin.
const kept = {
  shared: /^gist(preview|host)\.github\.io$/.test(location.hostname),
  read(name) {
    try {
      const value = this.shared ? null : sessionStorage.getItem(name);
      return value && fromBase64(value);
    } catch { return null; /* browsers may deny storage to local files */ }
  },
  write(name, raw) {
    try {
      if (!this.shared) sessionStorage.setItem(name, btoa(String.fromCharCode(...raw)));
    } catch { /* asked for again */ }
  },
};

function askPassphrase(sealed, start, several = false) {
  const [rounds, salt, nonce, data] = sealed.split(" ");
  const name = `sess-key-${salt}`;
  const field = document.getElementById("passphrase");
  const refused = document.getElementById("refused");
  const button = document.querySelector("#unseal button");
  field.focus();
  if (!globalThis.crypto?.subtle) {
    refused.textContent = "This browser cannot decrypt here. Open the file from disk or over HTTPS.";
    return;
  }
  async function open(raw) {
    const [title, ...content] = (await unseal(raw, nonce, data)).split("\0");
    document.title = title;
    document.body.innerHTML = content.join("\0");
  }
  document.getElementById("unseal").addEventListener("submit", async (event) => {
    event.preventDefault();
    refused.textContent = "";
    button.disabled = true;
    try {
      const raw = await derived(field.value, rounds, salt);
      await open(raw);
      if (several) kept.write(name, raw);
    } catch {
      button.disabled = false;
      refused.textContent = "Wrong passphrase.";
      field.select();
      return;
    }
    start();
  });
  const before = several && kept.read(name);
  if (before) open(before).then(start, () => field.focus());
}
