// Search over every card, drawn or not. Texts are extracted from the packs once, a few at a time.

const BLOCKS = new Set(("address article aside blockquote br button dd details div dl dt figure footer"
  + " h1 h2 h3 h4 h5 h6 header hr img li main nav ol p pre section summary table tbody td th thead tr ul")
  .split(" "));
const ENTITIES = { lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'", "#x27": "'", nbsp: "\u00a0" };
const UNFOUND = ".act, .unfold";
let texts; // lowercase, by number
let looking = 0; // number of the latest search; older ones stop
let wanted = "";
let hits = []; // [{ number, count }] among the shown cards
let before = []; // matches before each hit
let total = 0;
let elsewhere = 0; // matches in cards that filters hide
let at = -1; // index of the current match

/** Lowercase without changing the length. */
function low(text) {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return lower;
  return Array.from(text, (c) => (c.toLowerCase().length === c.length ? c.toLowerCase() : c)).join("");
}

function textOf(number) {
  texts[number] ??= low(cardHtml(number)
    .replace(/<\/?([a-z0-9]+)[^>]*>/gi, (_, tag) => (BLOCKS.has(tag) ? "\n" : ""))
    .replace(/&([a-z]+|#\w+);/gi, (whole, name) => ENTITIES[name] ?? decoded(whole)));
  return texts[number];
}

function decoded(entity) {
  const number = /^&#(x?)([0-9a-f]+);$/i.exec(entity);
  return number ? String.fromCodePoint(parseInt(number[2], number[1] ? 16 : 10) || 0xfffd) : entity;
}

function countIn(text) {
  let count = 0;
  for (let from = text.indexOf(wanted); from >= 0; from = text.indexOf(wanted, from + wanted.length)) count++;
  return count;
}

async function search(query, from = currentNumber()) {
  const mine = ++looking;
  wanted = low(query.trim());
  hits = []; before = []; total = 0; elsewhere = 0; at = -1;
  if (!wanted) { showFound(); highlight(); return; }
  const visible = new Set(shown);
  let rested = performance.now();
  for (let number = 0; number < facts.count; number++) {
    const count = countIn(textOf(number));
    if (count && visible.has(number)) { hits.push({ number, count }); before.push(total); total += count; }
    else elsewhere += count;
    if (performance.now() - rested > 24) {
      showFound(number / facts.count);
      await new Promise((resume) => setTimeout(resume));
      if (mine !== looking) return;
      rested = performance.now();
    }
  }
  showFound();
  const first = hits.findIndex((hit) => hit.number >= from);
  if (hits.length) showMatch(before[Math.max(0, first)]); else highlight();
}

function showMatch(match) {
  if (!total) return;
  at = (match + total) % total;
  let index = before.findLastIndex((count) => count <= at);
  const { number } = hits[index];
  const card = cardOf(number);
  unstowAll(card);
  const ranges = rangesIn(card);
  const range = ranges[Math.min(at - before[index], ranges.length - 1)];
  pin(card);
  if (range) {
    uncover(range.startContainer);
    const box = range.getBoundingClientRect();
    const middle = (topEdge() + window.innerHeight) / 2;
    window.scrollBy({ top: box.top - middle, behavior: "instant" });
    scrollSideways(range);
  } else card.scrollIntoView({ block: "center" });
  showFound();
  highlight(range);
}

/** Long lines have a scroll box of their own. */
function scrollSideways(range) {
  const box = range.startContainer.parentElement.closest("pre, .diff, .lines");
  if (!box || box.scrollWidth <= box.clientWidth) return;
  const inside = range.getBoundingClientRect(), around = box.getBoundingClientRect();
  if (inside.left < around.left || inside.right > around.right) box.scrollLeft += inside.left - around.left - 60;
}

function rangesIn(card) {
  const walker = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
  const nodes = [], starts = [];
  let text = "", last = null;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest(UNFOUND)) continue;
    let around = node.parentElement;
    while (!BLOCKS.has(around.localName)) around = around.parentElement;
    if (last && around !== last) text += "\n";
    last = around;
    nodes.push(node);
    starts.push(text.length);
    text += low(node.data);
  }
  const place = (offset) => {
    const index = starts.findLastIndex((start) => start <= offset);
    return [nodes[index], Math.min(offset - starts[index], nodes[index].length)];
  };
  const ranges = [];
  for (let from = text.indexOf(wanted); from >= 0; from = text.indexOf(wanted, from + wanted.length)) {
    const range = new Range();
    range.setStart(...place(from));
    const [node, end] = place(from + wanted.length - 1);
    range.setEnd(node, Math.min(end + 1, node.length));
    ranges.push(range);
  }
  return ranges;
}

function highlight(current = null) {
  if (!globalThis.CSS?.highlights) {
    if (current) getSelection().setBaseAndExtent(
      current.startContainer, current.startOffset, current.endContainer, current.endOffset);
    return;
  }
  CSS.highlights.delete("found");
  if (!wanted || !total) { CSS.highlights.delete("current"); return; }
  const hit = new Set(hits.map(({ number }) => number));
  const ranges = drawnCards().filter((card) => hit.has(Number(card.dataset.n))).flatMap(rangesIn);
  CSS.highlights.set("found", new Highlight(...ranges));
  if (current) {
    const mark = new Highlight(current);
    mark.priority = 1;
    CSS.highlights.set("current", mark);
  }
}

function showFound(progress) {
  const found = document.getElementById("found");
  const more = document.getElementById("elsewhere");
  more.hidden = !elsewhere || !wanted || progress !== undefined;
  more.textContent = `${elsewhere.toLocaleString()} more hidden`;
  const counted = total.toLocaleString();
  found.classList.toggle("none", Boolean(wanted) && !total && progress === undefined);
  if (!wanted) found.textContent = "";
  else if (progress !== undefined) found.textContent = `${counted}… ${Math.round(100 * progress)}%`;
  else if (!total) found.textContent = "No matches";
  else found.textContent = `${at < 0 ? "" : `${(at + 1).toLocaleString()} of `}${counted}`;
  for (const id of ["previous", "next"]) document.getElementById(id).disabled = !total;
}

function startSearch() {
  texts = new Array(facts.count);
  const query = document.getElementById("query");
  const form = document.getElementById("search");
  let typed;
  query.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => search(query.value), 120);
  });
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (low(query.value.trim()) !== wanted) { clearTimeout(typed); search(query.value); }
      else showMatch(at + (event.shiftKey ? -1 : 1));
    } else if (event.key === "Escape") { endSearch(); }
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("elsewhere").addEventListener("click", () => setLevel(LEVELS.length - 1));
  document.getElementById("next").addEventListener("click", () => showMatch(at + 1));
  document.getElementById("previous").addEventListener("click", () => showMatch(at - 1));
  let waiting = false;
  onListChange.push(() => {
    if (!wanted || waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; highlight(); });
  });
}

function endSearch() {
  const query = document.getElementById("query");
  query.value = "";
  query.blur();
  search("");
}
