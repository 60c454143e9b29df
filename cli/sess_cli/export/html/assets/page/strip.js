// The timeline strip: a click or an arrow key jumps to that moment.

let strip, needle, bubble;
const STRIP_WIDTH = 1000;

function startStrip() {
  strip = document.getElementById("strip");
  if (!strip) return;
  needle = document.getElementById("here");
  bubble = document.createElement("p");
  bubble.className = "bubble";
  bubble.hidden = true;
  strip.append(bubble);
  strip.addEventListener("click", (event) => {
    const number = nearest(placeAt(event));
    if (number !== undefined) goTo(number);
  });
  strip.addEventListener("pointermove", (event) => tell(placeAt(event)));
  strip.addEventListener("pointerleave", () => { bubble.hidden = true; });
  strip.addEventListener("keydown", onStripKey);
}

function placeAt(event) {
  const box = strip.getBoundingClientRect();
  return Math.round(((event.clientX - box.left) / box.width) * STRIP_WIDTH);
}

/** The shown card closest to a position. */
function nearest(place) {
  let best, distance = Infinity;
  for (const number of shown) {
    const away = Math.abs(facts.places[number] - place);
    if (away < distance) { best = number; distance = away; }
  }
  return best;
}

function saidAt(number) {
  const prompt = facts.prompts[number];
  const link = outlineLinks[prompt];
  const failed = facts.failed[number] ? ", failed" : "";
  const what = toolOf(number) ? ` · ${toolOf(number)}${failed}` : "";
  return link ? `${prompt + 1}. ${link.firstChild.data}${what}` : `Before the first prompt${what}`;
}

function tell(place) {
  const number = nearest(place);
  if (number === undefined) return;
  bubble.hidden = false;
  bubble.textContent = saidAt(number);
  const most = strip.clientWidth - bubble.offsetWidth;
  bubble.style.left = `${Math.max(0, Math.min(most, (place / STRIP_WIDTH) * strip.clientWidth - 20))}px`;
}

function onStripKey(event) {
  const moves = {
    ArrowRight: () => step(promptNumbers, 1),
    ArrowLeft: () => step(promptNumbers, -1),
    ArrowUp: () => step(promptNumbers, -1),
    ArrowDown: () => step(promptNumbers, 1),
    Home: () => shown[0],
    End: () => shown[shown.length - 1],
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  const number = moves[event.key]();
  if (number !== undefined) goTo(number, { focus: false });
}

function placeOnStrip(number) {
  if (!strip || number === undefined) return;
  const place = facts.places[number] ?? 0;
  needle.setAttribute("x1", place);
  needle.setAttribute("x2", place);
  strip.setAttribute("aria-valuenow", place);
  strip.setAttribute("aria-valuetext", saidAt(number));
}
