{
  const button = document.getElementById("theme");
  button.addEventListener("click", nextTheme);
  button.hidden = false;
  showTheme();
}
