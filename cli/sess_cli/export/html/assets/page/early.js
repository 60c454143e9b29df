{
  const root = document.documentElement;
  root.classList.add("js", "first");
  // The page's script takes "first" away; should it never run, nothing may stay cut off.
  addEventListener("load", () => setTimeout(() => root.classList.remove("first"), 2000));
  try {
    const theme = localStorage.getItem("sess-theme");
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  } catch { /* browsers may deny storage to local files */ }
}
