(() => {
  const PER_BLOCK = 100;
  const BODY = '<div class="event-body">';
  const list = document.getElementById("events");
  const rest = document.getElementById("rest");
  const box = document.getElementById("text");
  const kind = document.getElementById("kind");
  const count = document.getElementById("count");

  // Rows are kept as text, as in the file; only those near the window become elements.
  const rows = Array.from(list.querySelectorAll(":scope > .event"), (row) => row.outerHTML);
  if (rest) rows.push(...rest.textContent.trim().split(/\n(?=<details class="event)/));
  const facts = rows.map(read);
  const numbers = new Map(facts.map((fact, number) => [fact.id, number]));
  const open = new Set();
  let texts = null;
  let blocks = [];

  function plain(html) {
    return html.replace(/&(lt|gt|quot|#x27|#39|amp);/g, (all, name) =>
      ({ lt: "<", gt: ">", quot: '"', amp: "&" })[name] || "'");
  }

  function read(html) {
    const head = html.slice(0, html.indexOf("<summary"));
    const value = (name) => plain((head.match(new RegExp(` ${name}="([^"]*)"`)) || ["", ""])[1]);
    return {
      id: value("id"), type: value("data-type"), tool: value("data-tool"),
      kind: value("data-kind"),
      failed: /^event error\b/.test(value("class")),
    };
  }

  function wanted(fact) {
    switch (kind.value) {
      case "all": return true;
      case "errors": return fact.failed;
      case "tool_use": case "user": return fact.type === kind.value;
      case "shell": return fact.kind === "shell";
      default: return fact.type === "tool_use" && fact.tool === kind.value.replace(/^tool:/, "");
    }
  }

  function sought() {
    return box.value.trim().toLowerCase();
  }

  function filter() {
    const query = sought();
    if (query && !texts) {
      texts = rows.map((row) => plain(row.replace(/<[^>]*>/g, " ")).toLowerCase());
    }
    const shown = [];
    facts.forEach((fact, number) => {
      if (wanted(fact) && (!query || texts[number].includes(query))) shown.push(number);
    });
    const all = rows.length.toLocaleString("en");
    count.value = shown.length === rows.length
      ? `${all} event${rows.length === 1 ? "" : "s"}` : `${shown.length.toLocaleString("en")} of ${all}`;
    lay(shown);
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) draw(entry.target);
      else erase(entry.target);
    }
    mark();
  }, { rootMargin: "500px 0px" });

  function lay(shown) {
    near.disconnect();
    blocks = [];
    for (let at = 0; at < shown.length; at += PER_BLOCK) {
      const block = document.createElement("div");
      block.numbers = shown.slice(at, at + PER_BLOCK);
      block.style.height = `${block.numbers.length * 30.5}px`;
      blocks.push(block);
    }
    if (shown.length) list.replaceChildren(...blocks);
    else {
      const none = document.createElement("p");
      none.className = "empty";
      none.textContent = rows.length ? "No events match." : "This session has no events.";
      list.replaceChildren(none);
    }
    if (blocks.length) draw(blocks[0]);
    blocks.forEach((block) => near.observe(block));
    mark();
  }

  function draw(block) {
    if (block.drawn) return;
    block.drawn = true;
    block.innerHTML = block.numbers.map((number) => {
      const row = rows[number];
      return `${row.slice(0, row.indexOf(BODY))}</details>`;
    }).join("");
    block.style.height = "";
    Array.from(block.children).forEach((row, at) => {
      row.number = block.numbers[at];
      if (open.has(row.number)) show(row);
    });
  }

  function erase(block) {
    if (!block.drawn || block.contains(document.activeElement)) return;
    block.style.height = `${block.offsetHeight}px`;
    block.drawn = false;
    block.replaceChildren();
  }

  function show(row) {
    if (row.childElementCount === 1) {
      const html = rows[row.number];
      row.insertAdjacentHTML("beforeend", html.slice(html.indexOf(BODY), -"</details>".length));
    }
    row.open = true;
  }

  list.addEventListener("toggle", (event) => {
    const row = event.target;
    if (row.number === undefined) return;
    if (row.open) {
      open.add(row.number);
      show(row);
    } else open.delete(row.number);
    mark();
  }, true);

  function mark() {
    if (!window.CSS || !CSS.highlights) return;
    const query = sought();
    CSS.highlights.delete("found");
    if (!query) return;
    const found = new Highlight();
    const walk = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const text = walk.currentNode.data.toLowerCase();
      if (text.length !== walk.currentNode.length) continue;
      for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) {
        const range = new Range();
        range.setStart(walk.currentNode, at);
        range.setEnd(walk.currentNode, at + query.length);
        found.add(range);
        if (found.size > 5000) break;
      }
    }
    CSS.highlights.set("found", found);
  }

  function go() {
    const number = numbers.get(decodeURIComponent(location.hash.slice(1)));
    if (number === undefined) return;
    if (!blocks.some((block) => block.numbers.includes(number))) {
      box.value = "";
      kind.value = "all";
      filter();
    }
    const block = blocks.find((one) => one.numbers.includes(number));
    draw(block);
    const row = block.children[block.numbers.indexOf(number)];
    show(row);
    row.scrollIntoView();
    // Blocks above get their real height only when they are drawn.
    requestAnimationFrame(() => requestAnimationFrame(() => row.scrollIntoView()));
  }

  function again() {
    filter();
    scrollTo(0, 0);
  }

  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(again, 60);
  });
  kind.addEventListener("change", again);
  addEventListener("hashchange", go);
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (event.key === "Escape" && document.activeElement === box) {
      box.value = "";
      box.blur();
      again();
    }
  });
  let unopened = []; // rows that are open only while the page is printed
  addEventListener("beforeprint", () => {
    blocks.forEach(draw);
    unopened = Array.from(list.querySelectorAll(".event:not([open])"));
    unopened.forEach(show);
  });
  addEventListener("afterprint", () => {
    for (const row of unopened) row.open = false;
    unopened = [];
  });

  if (rest) rest.remove();
  document.getElementById("filters").hidden = false;
  filter();
  go();
})();
