(() => {
  const FOLD_ABOVE = 250;
  // As in the style: answers and images are never cut.
  const WHOLE = ".k-assistant > .body > .fold, .fold .fold, :has(img)";
  const MOST = 500;

  // -- long blocks

  function shorten(block) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "more-button";
    const set = (short) => {
      block.classList.toggle("short", short);
      block.classList.toggle("open", !short);
      button.textContent = short ? "Show more" : "Show less";
      button.setAttribute("aria-expanded", String(!short));
    };
    button.addEventListener("click", () => {
      const short = !block.classList.contains("short");
      set(short);
      if (short) block.scrollIntoView({ block: "nearest" });
    });
    block.addEventListener("focusin", () => set(false));
    block.after(button);
    set(true);
  }

  // The style already cuts long blocks; those near the window get a button.
  const folds = new IntersectionObserver((entries) => {
    const seen = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
    seen.forEach((block) => folds.unobserve(block));
    const heights = seen.map((block) => block.scrollHeight);
    seen.forEach((block, at) => {
      if (heights[at] > FOLD_ABOVE && !block.matches(WHOLE)) shorten(block);
    });
  }, { rootMargin: "100% 0px" });

  function enlargeable(button) {
    const image = button.firstElementChild;
    button.setAttribute("aria-label", `Enlarge ${image.alt}`);
    button.addEventListener("click", () => {
      const box = document.createElement("dialog");
      box.className = "picture";
      box.append(image.cloneNode());
      box.addEventListener("click", () => box.close());
      box.addEventListener("close", () => box.remove());
      document.body.append(box);
      box.showModal();
    });
  }

  // -- links to folded messages

  function reveal() {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name && document.getElementById(name);
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  }

  // -- search: the index has the packed texts of all pages; other pages open it there

  const modal = document.getElementById("modal");
  const term = document.getElementById("term");
  const asked = document.getElementById("asked");
  const status = document.getElementById("status");
  const results = document.getElementById("results");
  const packs = Array.from(document.querySelectorAll("script[data-page]"));
  const texts = new Map();
  let run = 0;

  async function unpacked(pack) {
    if (!texts.has(pack)) {
      const bytes = Uint8Array.from(atob(pack.textContent), (one) => one.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      texts.set(pack, JSON.parse(await new Response(stream).text()));
    }
    return texts.get(pack);
  }

  const counted = (count, name) => `${count.toLocaleString()} ${name}${count === 1 ? "" : "s"}`;

  function hit(page, anchor, name, text, at, length) {
    const link = document.createElement("a");
    link.href = `${page}#${anchor}`;
    const where = document.createElement("b");
    where.textContent = `${page.replace(/^page-0*|\.html$/g, "").replace(/^/, "Page ")} · ${name}`;
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + length);
    const from = Math.max(0, at - 80);
    const to = at + length + 160;
    link.append(where, (from ? "…" : "") + text.slice(from, at), mark,
      text.slice(at + length, to) + (to < text.length ? "…" : ""));
    return link;
  }

  async function search() {
    const mine = ++run;
    const words = asked.value.trim();
    results.replaceChildren();
    if (!words) {
      status.textContent = "Enter a search term.";
      return;
    }
    history.replaceState(null, "", `#search=${encodeURIComponent(words)}`);
    // Compared ignoring case, without changing the text, so that offsets stay valid.
    const pattern = new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"), "iu");
    let found = 0;
    let searched = 0;
    for (const pack of packs) {
      let said;
      try {
        said = await unpacked(pack);
      } catch {
        continue;
      }
      if (mine !== run) return;
      const shown = document.createDocumentFragment();
      for (const [anchor, name, text] of said) {
        const match = pattern.exec(text);
        if (match && ++found <= MOST) {
          shown.append(hit(pack.dataset.page, anchor, name, text, match.index, match[0].length));
        }
      }
      results.append(shown);
      searched += 1;
      status.textContent = `${counted(found, "message")} found in ${searched} of ${counted(packs.length, "page")}`
        + (found > MOST ? `; showing the first ${MOST}` : "");
    }
    if (searched < packs.length) status.textContent += "; this browser could not read the rest";
    if (!packs.length) status.textContent = "Nothing to search.";
  }

  function openSearch(words) {
    if (!modal) {
      location.href = `index.html#search=${encodeURIComponent(words)}`;
      return;
    }
    asked.value = words;
    if (!modal.open) modal.showModal();
    asked.focus();
    search();
  }

  function fromAddress() {
    if (modal && location.hash.startsWith("#search=")) {
      openSearch(decodeURIComponent(location.hash.slice("#search=".length)));
    } else reveal();
  }

  function listenInDialog() {
    let waiting = 0;
    asked.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, 150);
    });
    asked.addEventListener("keydown", (event) => {
      if (event.key === "Enter") search();
      if (event.key === "Escape") modal.close(); // the browser would only clear the box
    });
    document.getElementById("close").addEventListener("click", () => modal.close());
    modal.addEventListener("click", (event) => {
      if (event.target === modal) modal.close();
    });
    modal.addEventListener("close", () => {
      run += 1;
      if (location.hash.startsWith("#search=")) history.replaceState(null, "", location.pathname);
    });
  }

  function listen() {
    if (modal) listenInDialog();
    document.getElementById("find").addEventListener("click", () => openSearch(term.value.trim()));
    term.addEventListener("keydown", (event) => {
      if (event.key === "Enter") openSearch(term.value.trim());
    });
    addEventListener("keydown", (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        if (modal) openSearch("");
        else term.focus();
      }
    });
    addEventListener("hashchange", fromAddress);
  }

  // Gist previews put the file name after a question mark; relative links would lose it.
  function keepInGist() {
    const gist = /^\?([0-9a-f]{6,})/.exec(location.search);
    if (gist && /^gist(preview|host)\.github\.io$/.test(location.hostname)) {
      addEventListener("click", (event) => {
        const link = event.target.closest("a[href]");
        const file = link && /^((?:index|page-\d+)\.html)(#.*)?$/.exec(link.getAttribute("href"));
        if (!file) return;
        event.preventDefault();
        location.assign(`?${gist[1]}/${file[1]}${file[2] || ""}`);
      });
    }
  }

  function start() {
    document.querySelectorAll(".fold").forEach((block) => folds.observe(block));
    document.querySelectorAll(".zoom").forEach(enlargeable);
    listen();
    keepInGist();
    document.documentElement.classList.add("scripted");
    fromAddress();
  }

  // The first screen is painted without waiting for this. A tab in the background paints nothing; a
  // link or a reload should not show another place first.
  const returning = performance.getEntriesByType("navigation")[0]?.type !== "navigate";
  if (document.hidden || location.hash || returning) start();
  else requestAnimationFrame(() => setTimeout(start));
})();
