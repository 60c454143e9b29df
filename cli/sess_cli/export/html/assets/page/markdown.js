// A card, or a whole turn, as Markdown.

const SKIPPED = ".act, .unfold, .gutter, .unseen, [aria-hidden=true]";

function markdownOfCard(card) {
  const head = card.querySelector(":scope > header");
  const said = (name) => inline(head?.querySelector(name)).trim();
  const facts_ = [".status", ".took"].map(said).filter(Boolean).join(", ");
  const title = [`**${said(".who")}**`, said(".gist"), facts_ && `(${facts_})`].filter(Boolean).join(" ");
  const body = card.querySelector(":scope > .body") || card.querySelector(":scope > section");
  return `${title}\n\n${body ? blocks(body) : ""}`.trim() + "\n";
}

function markdownOfPrompt(number) {
  const prompt = facts.prompts[number];
  const pieces = [];
  for (let at = 0; at < facts.count; at++) {
    if (facts.prompts[at] === prompt && facts.levels[at] < 3) pieces.push(markdownOfCard(cardCopy(at)));
  }
  return pieces.join("\n---\n\n");
}

function blocks(node) {
  let out = "";
  let line = "";
  const end = () => { if (line.trim()) out += `${line.trim()}\n\n`; line = ""; };
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) { line += child.data.replace(/\s+/g, " "); continue; }
    if (child.nodeType !== Node.ELEMENT_NODE || child.matches(SKIPPED)) continue;
    const written = block(child);
    if (written === null) { line += inline(child); continue; }
    end();
    out += written;
  }
  end();
  return out;
}

/** Null for inline elements. */
function block(element) {
  const tag = element.tagName;
  if (element.matches(".diff")) return fenced(diffText(element), "diff");
  if (tag === "PRE") return fenced(element.textContent.replace(/\n$/, ""), "");
  if (/^H[1-6]$/.test(tag)) return `${"#".repeat(+tag[1])} ${inline(element).trim()}\n\n`;
  if (tag === "P") return `${inline(element).trim()}\n\n`;
  if (tag === "UL" || tag === "OL") return listed(element);
  if (tag === "BLOCKQUOTE") return quoted(blocks(element));
  if (tag === "TABLE") return tabled(element);
  if (tag === "HR") return "---\n\n";
  if (tag === "DL") {
    return [...element.querySelectorAll(":scope > dt")]
      .map((term) => `- ${term.textContent}: ${blocks(term.nextElementSibling).trim()}\n`).join("") + "\n";
  }
  if (tag === "DETAILS") {
    const summary = element.querySelector(":scope > summary");
    const inside = [...element.children].filter((child) => child !== summary).map(blocks).join("");
    return `<details><summary>${inline(summary).trim()}</summary>\n\n${inside}</details>\n\n`;
  }
  if (tag === "ARTICLE") return quoted(markdownOfCard(element));
  return ["DIV", "SECTION", "FIGURE", "HEADER"].includes(tag) ? blocks(element) : null;
}

function inline(node) {
  if (!node) return "";
  if (node.nodeType === Node.TEXT_NODE) return node.data.replace(/\s+/g, " ");
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches(SKIPPED)) return "";
  const inside = [...node.childNodes].map(inline).join("");
  switch (node.tagName) {
    case "CODE": {
      const ticks = "`".repeat(longestRun(node.textContent) + 1);
      return `${ticks}${ticks.length > 1 ? ` ${node.textContent} ` : node.textContent}${ticks}`;
    }
    case "STRONG": case "B": return inside.trim() ? `**${inside.trim()}**` : "";
    case "EM": return inside.trim() ? `*${inside.trim()}*` : "";
    case "DEL": return `~~${inside}~~`;
    case "BR": return "\n";
    case "IMG": return `(${node.alt || "image"})`;
    case "INPUT": return node.checked ? "[x] " : "[ ] ";
    case "A": return node.getAttribute("href")?.startsWith("#") ? inside : `[${inside}](${node.href})`;
    default: return inside;
  }
}

const longestRun = (text) => Math.max(0, ...(text.match(/`+/g) || []).map((run) => run.length));

function fenced(text, language) {
  const fence = "`".repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}${language}\n${text}\n${fence}\n\n`;
}

const diffText = (diff) => [...diff.children]
  .map((row) => `${row.dataset.l?.at(-1) ?? ""}${row.textContent.replace(/\n$/, "")}`).join("\n");

const quoted = (text) => text.trim().replace(/^/gm, "> ") + "\n\n";

function listed(list) {
  return [...list.children].map((item, at) => {
    const state = item.classList.contains("done") ? "[x] " : item.classList.contains("open") ? "[ ] " : "";
    const mark = list.tagName === "OL" ? `${at + 1}. ` : "- ";
    return mark + state + blocks(item).trim().replace(/\n+/g, "\n").replace(/\n/g, "\n  ");
  }).join("\n") + "\n\n";
}

function tabled(table) {
  const rows = [...table.rows].map((row) => `| ${[...row.cells]
    .map((cell) => inline(cell).trim().replace(/\|/g, "\\|")).join(" | ")} |`);
  const columns = table.rows[0]?.cells.length || 1;
  rows.splice(1, 0, `|${" --- |".repeat(columns)}`);
  return `${rows.join("\n")}\n\n`;
}
