document.documentElement.classList.add("js");
try {
  const theme = localStorage.getItem("sess-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* browsers may deny storage to local files */ }
