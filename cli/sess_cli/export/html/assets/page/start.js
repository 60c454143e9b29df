// Starts when the first screen, which is plain HTML, has been painted; an encrypted page waits for its passphrase.

let started = false;

function start() {
  if (started) return;
  started = true;
  document.documentElement.classList.remove("first");
  startStore();
  startFolds();
  startList();
  startOutline();
  startStrip();
  startSearch();
  startFilters();
  startKeys();
  applyFilters({ stay: false });
  follow(location.hash);
  document.documentElement.dataset.ready = "";
}

const sealed = document.querySelector('script[data-what="sealed"]');
if (sealed) askPassphrase(sealed.textContent, () => { start(); startPrinting(); });
else {
  window.addEventListener("beforeprint", start);
  startPrinting();
  // A tab in the background paints nothing; a link or a reload should not show another place first.
  const returning = performance.getEntriesByType("navigation")[0]?.type !== "navigate";
  if (document.hidden || location.hash || returning) start();
  else requestAnimationFrame(() => setTimeout(start));
}
