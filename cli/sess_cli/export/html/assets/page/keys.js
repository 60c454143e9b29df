// Keyboard shortcuts, addresses, and copying.

function say(text) {
  document.getElementById("said").textContent = text;
}

function goTo(number, options) {
  reveal(number);
  go(number, options);
}

/** `#KEY`, or `#KEY?find=WORDS` where another page has found them. */
function follow(address) {
  const [place, words] = address.split("?find=");
  const found = resolve(place);
  if (found) goTo(found.number, { inner: found.inner });
  if (!words) return;
  const query = document.getElementById("query");
  try { query.value = decodeURIComponent(words); } catch { return; }
  search(query.value, found?.number);
}

function startKeys() {
  window.addEventListener("hashchange", () => follow(location.hash));
  document.getElementById("theme").addEventListener("click", changeTheme);
  document.getElementById("show-help").addEventListener("click", help);
  document.addEventListener("click", onCopy);
  document.addEventListener("keydown", onKey);
  showTheme();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select")) return;
  const acts = {
    "/": () => { const query = document.getElementById("query"); query.focus(); query.select(); },
    n: () => showMatch(at + 1),
    N: () => showMatch(at - 1),
    j: () => jump(promptNumbers, 1),
    k: () => jump(promptNumbers, -1),
    e: () => jump(failures(), 1),
    E: () => jump(failures(), -1),
    g: toBeginning,
    G: toEnd,
    o: () => document.getElementById("show-outline").click(),
    t: changeTheme,
    "?": help,
    Escape: () => { if (wanted) endSearch(); },
    1: () => setLevel(0), 2: () => setLevel(1), 3: () => setLevel(2), 4: () => setLevel(3),
  };
  if (!Object.hasOwn(acts, event.key)) return;
  event.preventDefault();
  acts[event.key]();
}

const failures = () => facts.failed.flatMap((failed, number) => (failed ? [number] : []));

function jump(numbers, direction) {
  const number = step(numbers, direction);
  if (number === undefined) { say("No more"); return; }
  history.replaceState(null, "", `#${keyOf(number)}`);
  go(number);
}

function toBeginning() {
  pin(null);
  window.scrollTo({ top: 0, behavior: "instant" });
}

function toEnd() {
  const last = shown[shown.length - 1];
  if (last === undefined) return;
  const card = cardOf(last);
  pin(card);
  card.scrollIntoView({ block: "end", behavior: "instant" });
}

function changeTheme() {
  say(`Theme: ${nextTheme()}`);
}

function help() {
  document.getElementById("help").showModal();
}

// -- copying

const ACTIONS = [["link", "Copy link", "Copy a link to this event"], ["card", "Copy Markdown", "Copy this event as Markdown"]];
const OF_PROMPT = ["prompt", "Copy turn", "Copy this prompt and everything up to the next one as Markdown"];

function addActions(card) {
  if (card.querySelector(":scope > .act")) return;
  const holder = document.createElement("span");
  holder.className = "act";
  for (const [what, name, title] of card.dataset.kind === "user" ? [...ACTIONS, OF_PROMPT] : ACTIONS) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.act = what;
    button.textContent = name;
    button.title = title;
    button.setAttribute("aria-label", title);
    holder.append(button);
  }
  card.append(holder);
}

function onCopy(event) {
  const button = event.target.closest("button[data-act], button[data-copy]");
  if (!button) return;
  const card = button.closest("article.card");
  const number = card ? Number(card.dataset.n) : -1;
  const texts_ = {
    link: () => location.href.replace(/#.*$/, "") + `#${card.id}`,
    card: () => markdownOfCard(cardCopy(number)),
    prompt: () => markdownOfPrompt(number),
  };
  const text = button.dataset.copy
    ? document.getElementById(button.dataset.copy).textContent : texts_[button.dataset.act]();
  copy(text).then((done) => {
    const name = button.textContent;
    button.textContent = done ? "Copied" : "Copy failed";
    say(done ? "Copied" : "The browser did not allow copying");
    setTimeout(() => { button.textContent = name; }, 1200);
  });
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* no permission, or no clipboard for local files: use the old way */ }
  const holder = document.createElement("textarea");
  holder.value = text;
  holder.className = "unseen";
  document.body.append(holder);
  holder.select();
  const done = document.execCommand("copy");
  holder.remove();
  return done;
}
