// The list of cards: groups near the window are drawn, others are empty boxes of the same height.

const GROUP_CARDS = 14;
const GROUP_NODES = 360;
const MARGIN = 600; // pixels above and below the window
const AT_ONCE = 60; // cards of a page without packs that are prepared at the start
const equipped = new WeakSet();
const painted = new Map(); // cards in plain HTML before a list of groups, by number; each is used once
const dayStarts = new Map(); // names of days by the number of their first card
let shown = []; // numbers of the cards that pass the filters
let groups = []; // [{ numbers, element, drawn }]
let groupOfCard = new Map();
let watcher;
let pinned = null; // the card that must not move while its neighbours are drawn
const onListChange = [];

// Long code is trimmed when it is drawn.
const weight = (number) => Math.min(facts.nodes[number], 150);
const listChanged = () => { for (const tell of onListChange) tell(); };

function startList() {
  if (isWhole()) {
    const first = plainArticles.slice(0, AT_ONCE);
    for (const article of first) equip(article);
    foldAll(...first);
    watcher = new IntersectionObserver(onNearWhole, { rootMargin: `${MARGIN}px 0px` });
    for (const article of plainArticles.slice(AT_ONCE)) watcher.observe(article);
    return;
  }
  watcher = new IntersectionObserver(onNear, { rootMargin: `${MARGIN}px 0px` });
  plainArticles.forEach((article, number) => { keepHtml(number); painted.set(number, article); article.remove(); });
  main.querySelector(":scope > noscript")?.remove();
}

/** Prepares a card of a page without packs; true if it was not. */
function equip(card) {
  if (equipped.has(card)) return false;
  equipped.add(card);
  keepHtml(Number(card.dataset.n));
  prepare(card);
  addActions(card);
  return true;
}

function onNearWhole(entries) {
  const near = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target).filter(equip);
  if (near.length) anchored(() => foldAll(...near));
}

/** Marks a card that is the first of a day among the shown ones. */
function markDay(card) {
  const day = dayStarts.get(Number(card.dataset.n));
  if (day === undefined) delete card.dataset.day; else card.dataset.day = day;
}

function findDays() {
  dayStarts.clear();
  if (facts.dayNames.length < 2) return;
  let last = -1;
  for (const number of shown) {
    const day = facts.days[number];
    if (day >= 0 && day !== last) { dayStarts.set(number, facts.dayNames[day]); last = day; }
  }
}

/** Shows these cards and no others. */
function arrange(numbers) {
  shown = numbers;
  findDays();
  if (isWhole()) {
    const wanted = new Set(numbers);
    plainArticles.forEach((article, number) => { article.hidden = !wanted.has(number); markDay(article); });
    listChanged();
    return;
  }
  watcher.disconnect();
  for (const group of groups) group.element.remove();
  groups = [];
  groupOfCard = new Map();
  let group = null, nodes = 0;
  for (const number of numbers) {
    if (!group || group.numbers.length >= GROUP_CARDS || nodes + weight(number) > GROUP_NODES) {
      group = { numbers: [], element: document.createElement("section"), drawn: false };
      group.element.className = "group";
      groups.push(group);
      nodes = 0;
    }
    group.numbers.push(number);
    groupOfCard.set(number, group);
    nodes += weight(number);
  }
  for (const each of groups) {
    const height = each.numbers.reduce((sum, number) => sum + facts.heights[number] + 12, 0);
    each.element.style.height = `${height}px`;
    each.element.group = each;
  }
  main.append(...groups.map((each) => each.element));
  let filled = 0;
  for (const each of groups) {
    if (filled > window.innerHeight + MARGIN) break;
    filled += parseFloat(each.element.style.height);
    draw(each);
  }
  for (const each of groups) watcher.observe(each.element);
  listChanged();
}

function onNear(entries) {
  anchored(() => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) draw(target.group); else undraw(target.group);
    }
  });
}

function draw(group) {
  if (group.drawn) return false;
  group.drawn = true;
  const holder = document.createElement("template");
  holder.innerHTML = group.numbers.map((number) => (painted.has(number) ? "" : cardHtml(number))).join("");
  const made = [...holder.content.children];
  const cards = group.numbers.map((number) => painted.get(number) ?? made.shift());
  for (const number of group.numbers) painted.delete(number);
  for (const card of cards) { prepare(card); addActions(card); markDay(card); }
  group.element.append(...cards);
  group.element.style.height = "";
  foldAll(group.element);
  return true;
}

function undraw(group) {
  if (!group.drawn || group.element.contains(document.activeElement) || printing) return;
  group.element.style.height = `${group.element.getBoundingClientRect().height}px`;
  group.element.replaceChildren();
  group.drawn = false;
}

/** Keeps what is at the top of the window in place. */
function anchored(change) {
  const anchor = pinned?.isConnected ? pinned : window.scrollY > 0 ? atTop() : null;
  const before = anchor?.getBoundingClientRect().top;
  change();
  if (anchor?.isConnected) {
    const moved = anchor.getBoundingClientRect().top - before;
    if (Math.abs(moved) >= 1) window.scrollBy({ top: moved, behavior: "instant" });
  }
  listChanged();
}

const topEdge = () => document.querySelector(".toolbar").getBoundingClientRect().bottom;

/** The card at the top of the window; between two cards, the next one; else the group. */
function atTop() {
  const box = main.getBoundingClientRect();
  const top = Math.max(0, topEdge());
  let group = null;
  for (const below of [4, 16, 32, 64]) {
    const found = document.elementFromPoint(box.left + box.width / 2, top + below);
    const card = found?.closest("section.group > article, #talk > article");
    if (card) return card;
    group ||= found?.closest("section.group") || null;
  }
  return group;
}

/** The number of the card that is being read. */
function currentNumber() {
  const found = atTop();
  if (!found) return window.scrollY < main.offsetTop ? shown[0] ?? 0 : shown[shown.length - 1] ?? 0;
  return found.group ? found.group.numbers[0] : Number(found.dataset.n);
}

/** A card in the document, drawn if it was not. */
function cardOf(number) {
  if (isWhole()) {
    const card = plainArticles[number];
    if (card && equip(card)) foldAll(card);
    return card;
  }
  const group = groupOfCard.get(number);
  if (!group) return null;
  if (draw(group)) listChanged();
  return group.element.children[group.numbers.indexOf(number)];
}

function drawnCards() {
  if (isWhole()) return plainArticles.filter((article) => !article.hidden);
  return groups.filter((group) => group.drawn).flatMap((group) => [...group.element.children]);
}

let released;
function pin(element) {
  pinned = element;
  clearTimeout(released);
  released = setTimeout(() => { pinned = null; }, 600);
}

/** Scrolls to a card and marks it. */
function go(number, { inner = null, focus = true } = {}) {
  let card = cardOf(number);
  if (!card) return;
  if (inner) {
    unstowAll(card);
    card = card.querySelector(`#${CSS.escape(inner)}`) || card;
    uncover(card);
  }
  for (const marked of document.querySelectorAll("article.here")) marked.classList.remove("here");
  card.classList.add("here");
  pin(card);
  card.scrollIntoView({ block: "start", behavior: "instant" });
  if (focus) { card.tabIndex = -1; card.focus({ preventScroll: true }); }
}

// -- printing: everything, unfolded

let printing = false;
let closedBefore = [];
let readBefore = 0;

function startPrinting() {
  window.addEventListener("beforeprint", () => {
    readBefore = currentNumber();
    printing = true;
    for (const card of drawnCards()) unstowAll(card);
    groups.forEach(draw);
    closedBefore = [...main.querySelectorAll("details:not([open])")];
    for (const details of closedBefore) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    for (const details of closedBefore) details.open = false;
    closedBefore = [];
    if (isWhole()) return;
    arrange(shown);
    if (window.scrollY > 0) go(readBefore, { focus: false });
  });
}
