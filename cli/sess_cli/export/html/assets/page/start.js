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

const sealed = document.querySelector('script[data-what="sealed"]');
if (sealed) askPassphrase(sealed.textContent, start); else start();
