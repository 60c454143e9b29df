// Which cards are shown: those of a level, or only the chosen types and tools.

const LEVELS = ["conversation", "tools", "thinking", "everything"];
const KIND_NAMES = {
  user: "Prompts", assistant: "Answers", thinking: "Thinking", tool_use: "All tools",
  system: "System", summary: "Summaries",
};
const chosen = { level: 1, kinds: new Set(), tools: new Set(), errors: false };

const isFiltered = () => chosen.kinds.size + chosen.tools.size > 0 || chosen.errors;

function passes(number) {
  if (!isFiltered()) return facts.levels[number] <= chosen.level;
  if (chosen.errors && !facts.failed[number]) return false;
  if (!chosen.kinds.size && !chosen.tools.size) return true;
  return chosen.kinds.has(kindOf(number)) || (toolOf(number) !== "" && chosen.tools.has(toolOf(number)));
}

/** Redraws the list and keeps the reading position. */
function applyFilters({ stay = true } = {}) {
  const current = stay && window.scrollY > main.offsetTop - topEdge() ? currentNumber() : null;
  const numbers = [];
  for (let number = 0; number < facts.count; number++) if (passes(number)) numbers.push(number);
  arrange(numbers);
  const filtered = document.getElementById("filtered");
  filtered.textContent = isFiltered() ? ` ${numbers.length.toLocaleString()}` : "";
  say(`${numbers.length.toLocaleString()} of ${facts.count.toLocaleString()} events shown`);
  main.classList.toggle("nothing", !numbers.length);
  if (current !== null && numbers.length) {
    const next = numbers.find((number) => number >= current) ?? numbers[numbers.length - 1];
    go(next, { focus: false });
    cardOf(next).classList.remove("here");
  }
  if (wanted) search(document.getElementById("query").value);
}

function setLevel(level) {
  chosen.level = level;
  document.documentElement.dataset.level = LEVELS[level];
  document.querySelector(`input[name=level][value=${LEVELS[level]}]`).checked = true;
  clearChoices();
  applyFilters();
}

/** Removes whatever hides a card. */
function reveal(number) {
  if (passes(number)) return;
  clearChoices();
  if (facts.levels[number] > chosen.level) setLevel(facts.levels[number]);
  else applyFilters();
}

function clearChoices() {
  chosen.kinds.clear();
  chosen.tools.clear();
  chosen.errors = false;
  for (const box of document.querySelectorAll("#filters input")) box.checked = false;
}

function startFilters() {
  chosen.level = Math.max(0, LEVELS.indexOf(document.documentElement.dataset.level));
  document.querySelector(".levels").addEventListener("change", (event) => {
    setLevel(LEVELS.indexOf(event.target.value));
  });
  const panel = document.querySelector("#filters .panel");
  const failures = facts.failed.reduce((sum, failed) => sum + failed, 0);
  panel.append(
    chips("Only", [["Errors", "errors", failures]], (_, on) => { chosen.errors = on; }),
    chips("Types", counted(facts.kindNames, facts.kinds).map(([name, count]) =>
      [KIND_NAMES[name] || name, name, count]).sort(byKind), (name, on) => toggle(chosen.kinds, name, on)),
    chips("Tools", counted(facts.toolNames, facts.tools).map(([name, count]) =>
      [name, name, count]), (name, on) => toggle(chosen.tools, name, on)),
  );
  const clear = document.createElement("button");
  clear.type = "button";
  clear.textContent = "Clear filters";
  clear.addEventListener("click", () => { clearChoices(); applyFilters(); });
  panel.append(clear);
  const filters = document.getElementById("filters");
  document.addEventListener("click", (event) => { if (!filters.contains(event.target)) filters.open = false; });
  filters.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { filters.open = false; filters.querySelector("summary").focus(); }
  });
}

const byKind = (one, other) => {
  const kinds = Object.keys(KIND_NAMES);
  return kinds.indexOf(one[1]) - kinds.indexOf(other[1]);
};

const toggle = (set, name, on) => { if (on) set.add(name); else set.delete(name); };

function counted(names, numbers) {
  const counts = names.map(() => 0);
  for (const number of numbers) counts[number]++;
  return names.map((name, number) => [name, counts[number]]).filter(([name]) => name !== "")
    .sort((one, other) => other[1] - one[1]);
}

function chips(title, entries, change) {
  const set = document.createElement("fieldset");
  const legend = document.createElement("legend");
  legend.textContent = title;
  set.append(legend);
  set.hidden = !entries.length;
  for (const [shownName, name, count] of entries) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    const text = document.createElement("span");
    box.type = "checkbox";
    box.value = name;
    text.textContent = shownName;
    const number = document.createElement("small");
    number.textContent = count.toLocaleString();
    text.append(" ", number);
    label.append(box, text);
    box.addEventListener("change", () => { change(name, box.checked); applyFilters(); });
    set.append(label);
  }
  return set;
}
