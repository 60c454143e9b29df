// All cards by number: facts about each, and its HTML, unpacked on demand.

const KEY = 12; // characters
const UNPACKED = 24; // packs kept as text
let facts; // as `Facts.as_json` writes them
let packs; // [{ first, count, block, cards }]
let plainArticles; // the cards that are in the file as plain HTML
const plainCards = []; // their HTML, kept before they are changed
let numberOfKey;
let main;

function startStore() {
  main = document.getElementById("talk");
  const block = document.querySelector('script[data-what="facts"]');
  facts = JSON.parse(unsqueezed(fromBase64(block.textContent)));
  facts.count = facts.kinds.length;
  let time = 0;
  facts.times = facts.times.map((step) => (step === null ? null : (time += step)));
  plainArticles = [...main.querySelectorAll(":scope > article")];
  const blocks = document.querySelectorAll('script[data-what="pack"]');
  let first = plainArticles.length;
  packs = facts.packs.map((count, at) => {
    const pack = { first, count, block: blocks[at], cards: null };
    first += count;
    return pack;
  });
  numberOfKey = new Map();
  for (let number = facts.count - 1; number >= 0; number--) numberOfKey.set(keyOf(number), number);
}

const isWhole = () => packs.length === 0; // every card is in the file as plain HTML
const keyOf = (number) => facts.keys.slice(number * KEY, number * KEY + KEY);
const kindOf = (number) => facts.kindNames[facts.kinds[number]];
const toolOf = (number) => facts.toolNames[facts.tools[number]];

const recent = [];
let firstPack; // its bytes, to which the other packs refer
function unpacked(pack) {
  const bytes = fromBase64(pack.block.textContent);
  firstPack ??= unframed(pack === packs[0] ? bytes : fromBase64(packs[0].block.textContent));
  return new TextDecoder().decode(pack === packs[0] ? firstPack : unframed(bytes, firstPack));
}

function cardsOf(pack) {
  if (!pack.cards) {
    pack.cards = unpacked(pack).split("\0");
    recent.push(pack);
    if (recent.length > UNPACKED) recent.shift().cards = null;
  }
  return pack.cards;
}

function packOf(number) {
  let low = 0, high = packs.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (packs[middle].first <= number) low = middle; else high = middle - 1;
  }
  return packs[low];
}

const keepHtml = (number) => { plainCards[number] ??= plainArticles[number].outerHTML; };

function cardHtml(number) {
  if (number < plainArticles.length) return plainCards[number] ?? plainArticles[number].outerHTML;
  const pack = packOf(number);
  return cardsOf(pack)[number - pack.first];
}

function cardCopy(number) {
  const holder = document.createElement("template");
  holder.innerHTML = cardHtml(number);
  return holder.content.firstElementChild;
}

/** The card of an address: a key, `evt-N` or `msg-<epoch ms>`; `inner` is a card inside it. */
function resolve(address) {
  let name;
  try { name = decodeURIComponent(address.replace(/^#/, "")); } catch { return null; }
  if (numberOfKey.has(name)) return { number: numberOfKey.get(name) };
  if (Object.hasOwn(facts.inner, name)) return { number: facts.inner[name], inner: name };
  const event = /^evt-(\d+)$/.exec(name);
  if (event && +event[1] < facts.count) return { number: +event[1] };
  const message = /^msg-(\d+)$/.exec(name);
  const number = message ? facts.times.indexOf(+message[1]) : -1;
  return number < 0 ? null : { number };
}
