"use strict";
(() => {
  const root = document.documentElement;
  const tip = document.getElementById("tip");
  const button = document.getElementById("theme");

  // The theme: the system's until one is chosen. A stored choice is already set by early.js.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("sess-theme", root.dataset.theme); } catch { /* browsers may deny storage to local files */ }
    show();
  });
  system.addEventListener("change", show);
  show();
  button.hidden = false;

  // Texts of marks move from <title>, which works without a script, into our own tooltip.
  const said = new WeakMap();
  for (const mark of document.querySelectorAll(".mark")) {
    const title = mark.querySelector("title");
    if (!title) continue;
    said.set(mark, title.textContent);
    mark.querySelectorAll("title").forEach((one) => one.remove());
  }

  let current = null;
  const hide = () => {
    current?.classList.remove("on");
    current = null;
    tip.hidden = true;
  };
  const place = (x, y) => {
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x + 14), innerWidth - box.width - 8);
    const above = y - box.height - 14;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : Math.min(y + 18, innerHeight - box.height - 8)}px`;
  };
  const tell = (mark, x, y) => {
    if (mark !== current) {
      current?.classList.remove("on");
      current = mark;
      mark.classList.add("on");
      const [head, ...lines] = (said.get(mark) ?? "").split("\n");
      const title = document.createElement("b");
      title.textContent = head;
      const rows = lines.flatMap((line) => {
        const [name, value = ""] = line.split("\t");
        const left = document.createElement("i");
        const right = document.createElement("span");
        left.textContent = name;
        right.textContent = value;
        return [left, right];
      });
      tip.replaceChildren(title, ...rows);
      tip.hidden = false;
    }
    place(x, y);
  };
  const middle = (mark) => {
    const box = (mark.querySelector(":scope > .hit") ?? mark).getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };

  for (const chart of document.querySelectorAll(".chart")) {
    const marks = [...chart.querySelectorAll(".mark")];
    const scroll = chart.querySelector(".scroll");
    if (scroll) {
      const more = () => { // edges behind which there is more fade, and with them names that are cut
        scroll.classList.toggle("before", scroll.scrollLeft > 1);
        scroll.classList.toggle("after", scroll.scrollLeft < scroll.scrollWidth - scroll.clientWidth - 1);
      };
      scroll.scrollLeft = scroll.scrollWidth; // show the newest first
      scroll.addEventListener("scroll", more, { passive: true });
      new ResizeObserver(more).observe(scroll);
    }
    chart.addEventListener("pointermove", (event) => {
      const mark = event.target.closest(".mark");
      if (mark) tell(mark, event.clientX, event.clientY);
      else hide();
    });
    chart.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") hide(); // on touch, the tooltip stays after the finger is lifted
    });
    chart.addEventListener("focusout", hide);
    const walk = (mark) => {
      mark.scrollIntoView({ block: "nearest", inline: "nearest" });
      tell(mark, ...middle(mark));
    };
    // The nearest mark in the direction of the key.
    const next = (key) => {
      const [x, y] = middle(current);
      const flat = key === "ArrowLeft" || key === "ArrowRight";
      const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
      let best = null;
      let least = Infinity;
      for (const mark of marks) {
        const [a, b] = middle(mark);
        const along = sign * (flat ? a - x : b - y);
        const across = Math.abs(flat ? b - y : a - x);
        if (along > 1 && along + 8 * across < least) {
          least = along + 8 * across;
          best = mark;
        }
      }
      return best;
    };
    chart.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      if (!marks.length || event.ctrlKey || event.metaKey || event.altKey) return;
      const here = current && marks.includes(current);
      if (event.key === "Home" || event.key === "End") {
        event.preventDefault();
        walk(event.key === "Home" ? marks[0] : marks[marks.length - 1]);
      } else if (event.key.startsWith("Arrow")) {
        const mark = here ? next(event.key) : chart.classList.contains("plot") ? marks[marks.length - 1] : marks[0];
        if (mark) {
          event.preventDefault();
          walk(mark);
        }
      }
    });
  }
  addEventListener("pointerdown", (event) => {
    const mark = event.target.closest(".chart .mark");
    if (mark) tell(mark, event.clientX, event.clientY);
    else hide();
  });
  addEventListener("scroll", (event) => {
    if (current && !event.target.contains?.(current)) hide();
  }, { passive: true });
})();
