// The list of prompts: which one is being read, and the drawer on small screens.

let outlineLinks = [];
let promptNumbers = [];

function startOutline() {
  const outline = document.getElementById("outline");
  const button = document.getElementById("show-outline");
  outlineLinks = [...outline.querySelectorAll("a")];
  promptNumbers = outlineLinks.map((link) => numberOfKey.get(link.hash.slice(1)));
  const open = (wanted) => {
    outline.classList.toggle("open", wanted);
    button.setAttribute("aria-expanded", String(wanted));
    if (wanted) (outline.querySelector("[aria-current]") || outlineLinks[0])?.focus();
  };
  button.addEventListener("click", () => open(!outline.classList.contains("open")));
  outline.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    open(false);
    // Clicking the current address again fires no hashchange, but should still scroll there.
    if (link.hash === location.hash) { event.preventDefault(); follow(link.hash); }
  });
  outline.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && outline.classList.contains("open")) { open(false); button.focus(); }
  });
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; markCurrent(); });
  };
  window.addEventListener("scroll", later, { passive: true });
  onListChange.push(later);
}

function markCurrent() {
  const number = currentNumber();
  const link = outlineLinks[facts.prompts[number]];
  const marked = outlineLinks.find((each) => each.hasAttribute("aria-current"));
  if (link !== marked) {
    marked?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    if (link) bringIntoView(link);
  }
  placeOnStrip(number);
}

/** Scrolls only the outline; scrollIntoView would move the page too. */
function bringIntoView(link) {
  const box = link.closest("ol");
  const inside = link.getBoundingClientRect(), around = box.getBoundingClientRect();
  if (inside.top < around.top) box.scrollTop += inside.top - around.top - 40;
  else if (inside.bottom > around.bottom) box.scrollTop += inside.bottom - around.bottom + 40;
}

/** The next shown card of these, after or before the one being read. */
function step(numbers, direction) {
  const current = lastStep(numbers) ?? currentNumber();
  const visible = new Set(shown);
  const candidates = numbers.filter((number) => visible.has(number));
  return direction > 0
    ? candidates.find((number) => number > current)
    : candidates.findLast((number) => number < current);
}

/** The card last jumped to, if the page could not scroll far enough to put it on top. */
function lastStep(numbers) {
  const here = document.querySelector("section.group > article.here, #talk > article.here");
  if (!here) return null;
  const box = here.getBoundingClientRect();
  const number = Number(here.dataset.n);
  return box.bottom > 0 && box.top < window.innerHeight && numbers.includes(number) ? number : null;
}
