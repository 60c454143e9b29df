// Starts when the page has loaded; an encrypted one waits for its passphrase.

function start() {
  startStore();
  startFolds();
  startList();
  startOutline();
  startStrip();
  startSearch();
  startFilters();
  startKeys();
  startPrinting();
  applyFilters({ stay: false });
  follow(location.hash);
  document.documentElement.dataset.ready = "";
}

async function unseal(sealed, passphrase) {
  const [rounds, salt, nonce, data] = sealed.split(" ");
  const given = await crypto.subtle.importKey(
    "raw", new TextEncoder().encode(passphrase), "PBKDF2", false, ["deriveKey"]);
  const key = await crypto.subtle.deriveKey(
    { name: "PBKDF2", hash: "SHA-256", salt: fromBase64(salt), iterations: Number(rounds) },
    given, { name: "AES-GCM", length: 256 }, false, ["decrypt"]);
  const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv: fromBase64(nonce) }, key, fromBase64(data));
  return unsqueezed(new Uint8Array(plain));
}

function askPassphrase(sealed) {
  document.getElementById("passphrase").focus();
  const refused = document.getElementById("refused");
  const button = document.querySelector("#unseal button");
  if (!globalThis.crypto?.subtle) {
    refused.textContent = "This browser cannot decrypt here. Open the file from disk or over HTTPS.";
    return;
  }
  document.getElementById("unseal").addEventListener("submit", async (event) => {
    event.preventDefault();
    const field = document.getElementById("passphrase");
    refused.textContent = "";
    button.disabled = true;
    try {
      const [title, ...content] = (await unseal(sealed, field.value)).split("\0");
      document.title = title;
      document.body.innerHTML = content.join("\0");
    } catch {
      button.disabled = false;
      refused.textContent = "Wrong passphrase.";
      field.select();
      return;
    }
    start();
  });
}

const sealed = document.querySelector('script[data-what="sealed"]');
if (sealed) askPassphrase(sealed.textContent); else start();
