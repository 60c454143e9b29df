// Folding of long content, subagent sessions drawn when opened, enlarged images.

const FOLDED = 250; // pixels
const SLACK = 60; // pixels; hiding less than this is not worth a button
const unfolded = new Set(); // remembered when a card is redrawn
const opened = new Map();
const stowed = new WeakMap();
const trimmed = new WeakMap();
const MANY = 100; // elements
const LONG = 12000; // characters
const KEPT_LINES = 40; // more than a folded block shows

const nameOf = (element) => {
  const card = element.closest("article.card");
  const same = [...card.querySelectorAll(element.tagName === "DETAILS" ? "details" : ".fold")];
  return `${card.id}/${element.tagName}/${same.indexOf(element)}`;
};

/** Prepares a card that enters the document: no more nodes than are visible. */
function prepare(card) {
  if (printing) return;
  for (const talk of card.querySelectorAll("section.agent > details > .conversation")) stow(talk);
  for (const details of card.querySelectorAll("details")) {
    const state = opened.get(nameOf(details));
    if (state !== undefined) details.open = state;
    if (details.open) unstow(details);
  }
  trimAll(card);
}

function stow(talk) {
  if (talk.parentElement.open || !talk.firstElementChild) return;
  stowed.set(talk, talk.innerHTML);
  talk.replaceChildren();
}

function unstow(details) {
  const talk = details.lastElementChild;
  if (!stowed.has(talk)) return;
  talk.innerHTML = stowed.get(talk);
  stowed.delete(talk);
  for (const inner of talk.querySelectorAll("section.agent > details > .conversation")) stow(inner);
  trimAll(talk);
}

/** Restores everything inside a card, to search in it. */
function unstowAll(card) {
  for (let found = 1; found;) {
    found = 0;
    for (const talk of card.querySelectorAll("section.agent > details > .conversation")) {
      if (stowed.has(talk)) { unstow(talk.parentElement); found++; }
    }
  }
  for (const fold of card.querySelectorAll(".fold")) untrim(fold);
}

/** Highlighted code is thousands of nodes, output may be megabytes; folded, both need only a few lines. */
function trimAll(within) {
  for (const fold of within.querySelectorAll(".fold:not([data-fold])")) {
    const many = fold.getElementsByTagName("*").length > MANY || fold.textContent.length > LONG;
    if (!many || unfolded.has(nameOf(fold))) continue;
    const whole = fold.innerHTML;
    const cut = fold.classList.contains("tail") ? trimToEnd : trim;
    const removed = [...fold.querySelectorAll("pre:not(:has(> code)), pre > code, .diff")].filter(cut);
    if (removed.length) trimmed.set(fold, whole);
  }
}

function trim(code) {
  let lines = 0, length = 0, node = code.firstChild;
  while (node && lines < KEPT_LINES && length < LONG) {
    const text = node.textContent;
    length += text.length;
    if (node.nodeType === Node.TEXT_NODE && text.length > LONG) node.splitText(LONG);
    for (let at = node.textContent.indexOf("\n"); at >= 0; at = node.textContent.indexOf("\n", at + 1)) {
      if (++lines === KEPT_LINES && node.nodeType === Node.TEXT_NODE) { node.splitText(at); break; }
    }
    node = node.nextSibling;
  }
  const removed = Boolean(node);
  while (node) { const next = node.nextSibling; node.remove(); node = next; }
  return removed;
}

/** The same for what is folded to its end. */
function trimToEnd(code) {
  let lines = 0, length = 0, node = code.lastChild;
  while (node && lines < KEPT_LINES && length < LONG) {
    if (node.nodeType === Node.TEXT_NODE && node.length > LONG) node = node.splitText(node.length - LONG);
    const text = node.textContent;
    length += text.length;
    for (let at = text.lastIndexOf("\n"); at >= 0; at = at ? text.lastIndexOf("\n", at - 1) : -1) {
      if (++lines === KEPT_LINES && node.nodeType === Node.TEXT_NODE) { node = node.splitText(at + 1); break; }
    }
    node = node.previousSibling;
  }
  const removed = Boolean(node);
  while (node) { const next = node.previousSibling; node.remove(); node = next; }
  return removed;
}

function untrim(fold) {
  if (!trimmed.has(fold)) return;
  fold.innerHTML = trimmed.get(fold);
  trimmed.delete(fold);
}

/** Reads all heights before writing, so that the page is laid out once. */
function foldAll(...within) {
  if (printing) return;
  const long = within.flatMap((each) => [...each.querySelectorAll(".fold:not([data-fold])")])
    .map((element) => [element, element.scrollHeight])
    .filter(([, height]) => height > 0);
  for (const [element, height] of long) {
    if (height <= FOLDED + SLACK) { element.dataset.fold = "short"; continue; }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "unfold";
    element.after(button);
    setFold(element, button, unfolded.has(nameOf(element)));
  }
}

function setFold(element, button, open) {
  if (open) untrim(element);
  element.dataset.fold = open ? "open" : "closed";
  button.textContent = open ? "Show less" : "Show more";
  button.setAttribute("aria-expanded", String(open));
}

function unfold(element) {
  if (element.dataset.fold !== "closed") return;
  unfolded.add(nameOf(element));
  setFold(element, element.nextElementSibling, true);
}

/** Opens whatever hides a node. */
function uncover(node) {
  for (let at = node.parentElement; at && at !== main; at = at.parentElement) {
    if (at.tagName === "DETAILS") { at.open = true; foldAll(at); }
    if (at.classList.contains("fold")) unfold(at);
  }
}

function startFolds() {
  main.addEventListener("click", (event) => {
    const button = event.target.closest("button.unfold");
    if (button) {
      const element = button.previousElementSibling;
      const open = element.dataset.fold === "closed";
      if (open) unfolded.add(nameOf(element)); else unfolded.delete(nameOf(element));
      setFold(element, button, open);
      if (!open && button.getBoundingClientRect().top < 0) button.scrollIntoView({ block: "center" });
      return;
    }
    const image = event.target.closest(".zoom");
    if (image) enlarge(image);
  });
  main.addEventListener("toggle", (event) => {
    const details = event.target;
    if (printing || !details.closest("article.card")) return;
    opened.set(nameOf(details), details.open);
    if (details.open) { unstow(details); foldAll(details); listChanged(); }
  }, true);
}

function enlarge(zoomed) {
  const image = zoomed.tagName === "IMG" ? zoomed : zoomed.querySelector("img");
  if (!image) return;
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", image.alt || "Image");
  const large = document.createElement("img");
  large.src = image.src;
  large.alt = image.alt;
  dialog.append(large);
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
