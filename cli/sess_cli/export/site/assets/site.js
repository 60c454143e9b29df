// Search over every session of the site. Texts are in bundles, each a script loaded on the first search.

const MOST_HITS = 200;
const PER_SESSION = 5;
const AROUND = 70; // characters on each side of a match
const WAIT = 160; // milliseconds after the last key

const loaded = []; // [{ file, packed, columns, lower }]
let waiting = null; // bundles not yet loaded, or null before the first search
let asked = 0; // number of the latest search; older ones stop

globalThis.sessTexts = (file, packed) => loaded.push({ file, packed, columns: null, lower: null });

function texts(session) {
  if (!session.columns) {
    session.columns = JSON.parse(unsqueezed(fromBase64(session.packed)));
    session.packed = null;
    session.lower = session.columns[2].map((text) => text.toLowerCase());
  }
  return session;
}

function load(name) {
  return new Promise((done) => {
    const script = document.createElement("script");
    script.src = name;
    script.addEventListener("load", () => done(true));
    script.addEventListener("error", () => done(false));
    document.head.append(script);
  });
}

/** Words that must all occur in one event; "quoted words" must occur together. */
function termsOf(query) {
  const found = query.toLowerCase().match(/"[^"]+"|\S+/g) || [];
  return found.map((term) => term.replace(/^"(.+)"$/, "$1")).filter((term) => term !== '"');
}

const pause = () => new Promise((done) => setTimeout(done));

async function search(query) {
  const mine = ++asked;
  const terms = termsOf(query);
  const hits = document.getElementById("hits");
  const lists = document.getElementById("lists");
  hits.replaceChildren();
  lists.hidden = terms.length > 0;
  if (!terms.length) { say(""); return; }
  const box = document.querySelector(".finder");
  waiting ??= box.dataset.bundles.split(" ").filter(Boolean);
  let at = 0, events = 0, sessions = 0, shown = 0, failed = 0;
  for (;;) {
    for (; at < loaded.length; at++) {
      const found = matches(texts(loaded[at]), terms);
      if (found.length) {
        sessions++;
        events += found.length;
        if (shown < MOST_HITS) {
          hits.append(group(loaded[at], found, terms));
          shown += Math.min(found.length, PER_SESSION);
        }
      }
      if (at % 8 === 7) {
        say(`${count(events, "event")} in ${count(sessions, "session")} so far`);
        await pause();
        if (mine !== asked) return;
      }
    }
    if (!waiting.length) break;
    if (!(await load(waiting.shift()))) failed++;
    if (mine !== asked) return;
  }
  const missing = failed ? `; could not load ${count(failed, "search file")}` : "";
  say((events ? `${count(events, "event")} in ${count(sessions, "session")}` : "No matches") + missing);
}

function matches(session, terms) {
  const found = [];
  session.lower.forEach((text, number) => {
    if (terms.every((term) => text.includes(term))) found.push(number);
  });
  return found;
}

function group(session, found, terms) {
  const item = document.createElement("li");
  const known = document.querySelector(`[data-file="${CSS.escape(session.file)}"] a`);
  const title = document.createElement("a");
  const carried = `?find=${encodeURIComponent(terms[0])}`;
  title.href = `${session.file}#${carried}`;
  title.dir = "auto";
  title.textContent = known ? known.textContent : titles.get(session.file) || session.file;
  item.append(title);
  for (const number of found.slice(0, PER_SESSION)) {
    const [keys, kinds, whole] = session.columns;
    const line = document.createElement("p");
    const link = document.createElement("a");
    link.href = `${session.file}#${keys[number]}${carried}`;
    link.textContent = kinds[number];
    line.append(link, " ", ...snippet(whole[number], session.lower[number], terms));
    item.append(line);
  }
  if (found.length > PER_SESSION) {
    const more = document.createElement("p");
    more.className = "more";
    more.textContent = `and ${found.length - PER_SESSION} more in this session`;
    item.append(more);
  }
  return item;
}

function snippet(text, lower, terms) {
  const first = lower.indexOf(terms[0]);
  const start = Math.max(0, first - AROUND);
  const shown = text.slice(start, first + terms[0].length + AROUND);
  const pieces = [start ? "…" : ""];
  let at = 0;
  const small = shown.toLowerCase();
  while (at < shown.length) {
    let next = -1, length = 0;
    for (const term of terms) {
      const place = small.indexOf(term, at);
      if (place >= 0 && (next < 0 || place < next)) { next = place; length = term.length; }
    }
    if (next < 0) break;
    const mark = document.createElement("mark");
    mark.textContent = shown.slice(next, next + length);
    pieces.push(shown.slice(at, next), mark);
    at = next + length;
  }
  pieces.push(shown.slice(at), start + shown.length < text.length ? "…" : "");
  return pieces;
}

const count = (number, name) => `${number.toLocaleString("en")} ${name}${number === 1 ? "" : "s"}`;
const say = (words) => { document.getElementById("status").textContent = words; };

const titles = new Map();
const query = document.getElementById("query");
if (query) {
  const packedTitles = document.querySelector('script[data-what="titles"]');
  for (const [file, title] of JSON.parse(unsqueezed(fromBase64(packedTitles.textContent)))) titles.set(file, title);
  let timer;
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => search(query.value), WAIT);
    const address = query.value ? `#search=${encodeURIComponent(query.value)}` : location.pathname;
    history.replaceState(null, "", address);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input")) { event.preventDefault(); query.focus(); }
    if (event.key === "Escape" && event.target === query) {
      query.value = "";
      query.dispatchEvent(new Event("input"));
    }
  });
  const given = /^#search=(.*)$/.exec(location.hash);
  if (given) {
    try { query.value = decodeURIComponent(given[1]); } catch { /* not an address of this page */ }
    search(query.value);
  }
}
