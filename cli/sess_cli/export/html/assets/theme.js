// The theme: the system's, dark or light, remembered for all pages.

const THEMES = ["system", "dark", "light"];

/** Returns the name of the theme that is shown now. */
function nextTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme || "system") + 1) % THEMES.length];
  if (next === "system") delete root.dataset.theme; else root.dataset.theme = next;
  try {
    if (next === "system") localStorage.removeItem("sess-theme"); else localStorage.setItem("sess-theme", next);
  } catch { /* browsers may deny storage to local files */ }
  showTheme();
  return next;
}

function showTheme() {
  const theme = document.documentElement.dataset.theme || "system";
  const button = document.getElementById("theme");
  button.textContent = { system: "◐", dark: "☾", light: "☀" }[theme];
  button.setAttribute("aria-label", `Theme: ${theme}`);
  button.title = `Theme: ${theme}`;
}
