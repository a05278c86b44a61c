// What a report does when it may: tables that sort, curves that hide, plots that grow, errors that filter.
// Nothing is fetched and nothing is stored; without it the page is complete.
"use strict";
(() => {
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const make = (name, attributes = {}, ...content) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...content);
    return element;
  };

  // Tables: a button in every head sorts, numbers downwards first.
  const value = (cell) => {
    const text = cell.textContent.trim();
    const number = parseFloat(text.replaceAll(",", "").replace("−", "-").replace(/^[<>≤≥~≈]\s*/, ""));
    return Number.isNaN(number) ? (text === "–" || text === "" ? null : text) : number;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b));
  };
  const sort = (head, column, table) => {
    const rows = all("tbody > tr", table);
    const values = new Map(rows.map((row) => [row, value(row.cells[column])]));
    const numeric = [...values.values()].some((v) => typeof v === "number");
    const now = head.getAttribute("aria-sort");
    const up = now ? now === "descending" : !numeric;
    for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    rows.sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      return x === null || y === null ? compare(x, y) : (up ? 1 : -1) * compare(x, y);
    });
    table.tBodies[0].append(...rows);
  };
  for (const table of all("table.sort")) {
    all("thead th", table).forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      button.addEventListener("click", () => sort(head, column, table));
      head.replaceChildren(button);
    });
  }

  // Curves and bars: a button for each name hides it in all plots of the page.
  const hidden = new Set();
  const named = (name) => all("svg [data-of]").filter((e) => e.dataset.of === name);
  const toggle = (name) => {
    hidden.has(name) ? hidden.delete(name) : hidden.add(name);
    for (const e of named(name)) e.classList.toggle("hf-off", hidden.has(name));
    for (const button of all(".keys button[data-name]"))
      if (button.dataset.name === name) button.setAttribute("aria-pressed", String(!hidden.has(name)));
  };
  const places = all("figure").filter((f) => !f.closest(".figures")).concat(all(".figures"));
  for (const place of places) {
    const names = new Set(all("svg [data-of]", place).map((e) => e.dataset.of));
    if (names.size < 2) continue;
    const bar = make("div", { class: "keys", role: "group", "aria-label": "Show or hide in all plots" });
    for (const name of names) {
      const button = make("button", { type: "button", "aria-pressed": "true", "data-name": name }, name);
      const sample = all("svg g[data-of]", place).find((e) => e.dataset.of === name && e.style.color);
      if (sample) button.style.setProperty("--c", sample.style.color);
      button.addEventListener("click", () => toggle(name));
      bar.append(button);
    }
    place.before(bar);
  }

  // Plots: a button makes one as wide as the page; there a part can be drawn out and zoomed into.
  for (const figure of all("figure")) {
    const svg = figure.querySelector("svg[data-plot]");
    if (!svg) continue;
    const whole = svg.getAttribute("viewBox");
    const button = make("button", { type: "button", class: "grow", "aria-pressed": "false" }, "Enlarge");
    const label = svg.querySelector("title").textContent;
    button.setAttribute("aria-label", `Enlarge ${label}`);
    button.addEventListener("click", () => {
      const large = figure.classList.toggle("large");
      button.setAttribute("aria-pressed", String(large));
      button.textContent = large ? "Reduce" : "Enlarge";
      svg.setAttribute("viewBox", whole);
    });
    figure.append(button);
    let from = null;
    let box = null;
    const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    svg.addEventListener("pointerdown", (event) => {
      if (!figure.classList.contains("large") || event.button) return;
      event.preventDefault();
      from = at(event);
      svg.setPointerCapture(event.pointerId);
      box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      box.setAttribute("class", "hf-box");
      svg.append(box);
    });
    const drop = () => {
      box?.remove();
      from = box = null;
    };
    const size = (event) => {
      const to = at(event);
      return [Math.min(from.x, to.x), Math.min(from.y, to.y), Math.abs(to.x - from.x), Math.abs(to.y - from.y)];
    };
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const [x, y, width, height] = size(event);
      for (const [key, n] of Object.entries({ x, y, width, height })) box.setAttribute(key, n);
    });
    svg.addEventListener("pointerup", (event) => {
      if (!from) return;
      const part = size(event);
      drop();
      svg.setAttribute("viewBox", part[2] > 8 && part[3] > 8 ? part.join(" ") : whole);
    });
    svg.addEventListener("pointercancel", drop);
  }

  // Errors: chosen by kind, label and text, in one of several orders.
  for (const cases of all(".cases")) {
    const controls = cases.querySelector(".controls");
    const articles = all("article", cases);
    const texts = articles.map((a) => a.textContent.toLowerCase());
    const field = (name) => controls.querySelector(`[data-by=${name}]`);
    const orders = {
      p: (a, b) => (b.dataset.p ?? 0) - (a.dataset.p ?? 0),
      place: (a, b) => a.dataset.at - b.dataset.at,
    };
    const output = controls.querySelector("output");
    const show = () => {
      const text = field("text").value.toLowerCase();
      let count = 0;
      articles.forEach((article, k) => {
        const fits = ["who", "kinds", "labels"].every((name) => {
          const wanted = field(name)?.value;
          return !wanted || article.dataset[name].split("\n").includes(wanted);
        });
        article.hidden = !(fits && texts[k].includes(text));
        count += !article.hidden;
      });
      output.textContent = `${count} of ${articles.length} shown`;
    };
    const arrange = () => {
      const order = orders[field("order").value];
      cases.append(...(order ? [...articles].sort(order) : articles));
    };
    field("order").addEventListener("change", arrange);
    for (const name of ["who", "kinds", "labels", "text"]) field(name)?.addEventListener("input", show);
    controls.hidden = false;
    show();
  }
})();
