"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const MARKS = ["·", "*", "**", "‡", "–"];
  const SAID = ["not significant", "significant", "significant after correction", "too few words", "not measured"];
  const PAGE = 25, MODELS = 50, MOST_PRINTED = 2000;

  function make(tag, content, attributes) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...[].concat(content === undefined || content === null ? [] : content));
    return element;
  }

  function number(text) {
    const found = /^-?(?:\d[\d,]*\.?\d*(?:e-?\d+)?)/.exec(String(text).trim());
    if (!found) return NaN;
    const tiny = /^(\d\.\d)e-(\d+)$/.exec(found[0]);
    // Smaller than a float can be, and still to be ordered.
    if (tiny && Number(tiny[2]) > 300) return -Number(tiny[2]) * 1e-12 + Number(tiny[1]) * 1e-14 - 1e-6;
    return Number(found[0].replace(/,/g, ""));
  }

  function compare(a, b) {
    const x = number(a), y = number(b);
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  // Rows that hold nothing to compare stay at the end, whichever way the others are turned.
  function sorted(rows, key, direction) {
    const empty = (value) => value === undefined || value === "" || value === "–" || /^(refused|failed|NaN)/.test(value);
    return rows.map((row, place) => ({ row, place, value: key(row) })).sort((a, b) => {
      if (empty(a.value) !== empty(b.value)) return empty(a.value) ? 1 : -1;
      return direction * compare(a.value, b.value) || a.place - b.place;
    }).map((one) => one.row);
  }

  function turned(header, headers) {
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    return down ? -1 : 1;
  }

  function sortButton(text, action) {
    const button = make("button", text, { type: "button", class: "sort" });
    button.addEventListener("click", action);
    return button;
  }

  // Headers that stand over one column, with its place.
  function columnsOf(table) {
    const taken = [], found = [];
    [...table.tHead.rows].forEach((row, r) => {
      let place = 0;
      for (const cell of row.cells) {
        while (taken[r] && taken[r][place]) place += 1;
        for (let down = 0; down < cell.rowSpan; down += 1) {
          taken[r + down] = taken[r + down] || [];
          for (let across = 0; across < cell.colSpan; across += 1) taken[r + down][place + across] = true;
        }
        if (cell.colSpan === 1) found.push([cell, place]);
        place += cell.colSpan;
      }
    });
    return found;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const columns = columnsOf(table);
    for (const [header, place] of columns) {
      const label = [...header.childNodes];
      header.append(sortButton(label, () => {
        const direction = turned(header, columns.map((one) => one[0]));
        // Each part of a table by itself, below its title.
        for (const body of table.tBodies) body.append(...sorted([...body.rows].filter((row) => !row.matches(".group")), (row) => {
          const cell = row.cells[place];
          return cell ? cell.firstChild ? cell.firstChild.textContent.trim() : "" : "";
        }, direction));
      }));
    }
  }

  const tip = document.getElementById("tip");
  function tell(text, x, y) {
    if (!text) { tip.hidden = true; return; }
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 16 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 16) + "px";
  }
  const saying = (target) => (target.closest ? target.closest("[data-tip], .strip") : null);
  const meant = (mark) => mark.dataset.tip || mark.getAttribute("aria-label");
  const pointer = { x: -1, y: -1 };
  function pointed(target) {
    const mark = target && saying(target);
    if (mark) tell(meant(mark), pointer.x, pointer.y); else if (!saying(document.activeElement)) tell("");
  }
  document.addEventListener("pointermove", (event) => {
    pointer.x = event.clientX;
    pointer.y = event.clientY;
    pointed(event.target);
  });
  document.addEventListener("click", (event) => {
    pointer.x = event.clientX;
    pointer.y = event.clientY;
    if (pointer.x || pointer.y) pointed(event.target);
  });
  document.addEventListener("focusin", (event) => {
    const mark = saying(event.target);
    if (!mark) { tell(""); return; }
    const box = mark.getBoundingClientRect();
    tell(meant(mark), box.left, box.bottom - 8);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tell(""); });
  document.addEventListener("scroll", () => pointed(document.elementFromPoint(pointer.x, pointer.y)), { passive: true });

  // One stop for the keyboard in every figure; the arrow keys go on from there.
  for (const figure of document.querySelectorAll(".effects, .panels")) {
    const strips = () => [...figure.querySelectorAll(".strip")].filter((strip) => strip.checkVisibility());
    const [first] = strips();
    if (first) first.setAttribute("tabindex", 0);
    figure.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], shown = strips(), at = shown.indexOf(event.target);
      if (!step || at < 0 || !shown[at + step]) return;
      event.target.setAttribute("tabindex", -1);
      shown[at + step].setAttribute("tabindex", 0);
      shown[at + step].focus();
      event.preventDefault();
    });
  }

  // A link to what is folded opens it.
  function unfold() {
    const place = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    const folded = place.querySelector(":scope > details");
    if (folded) folded.open = true;
    place.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();

  const theme = document.getElementById("theme"), themes = ["as the system", "light", "dark"];
  function useTheme(name) {
    if (name === themes[0]) document.documentElement.removeAttribute("data-theme"); else document.documentElement.dataset.theme = name;
    theme.textContent = "Theme: " + name;
    theme.dataset.now = name;
  }
  useTheme(themes[0]);
  theme.hidden = false;
  theme.addEventListener("click", () => useTheme(themes[(themes.indexOf(theme.dataset.now) + 1) % themes.length]));

  function labelled(text, control) { return make("label", [text + " ", control]); }
  function choice(options) { return make("select", options.map((text, i) => make("option", text, { value: i }))); }
  function pager(show) {
    const before = make("button", "Previous", { type: "button" }), after = make("button", "Next", { type: "button" });
    const where = make("span", "", { role: "status" });
    const state = { from: 0, size: 1, total: 0 };
    before.addEventListener("click", () => { state.from = Math.max(0, state.from - state.size); show(); });
    after.addEventListener("click", () => { state.from += state.size; show(); });
    state.update = (total, noun) => {
      state.total = total;
      if (state.from >= total) state.from = 0;
      const to = Math.min(total, state.from + state.size);
      where.textContent = total ? `${(state.from + 1).toLocaleString("en")} to ${to.toLocaleString("en")} of ${total.toLocaleString("en")} ${noun}` : `no ${noun}`;
      before.disabled = state.from === 0;
      after.disabled = to >= total;
      before.hidden = after.hidden = total <= state.size;
      return to;
    };
    state.controls = [where, before, after];
    return state;
  }
  const redraws = [];
  // The numbers that lead, or why there are none.
  function leading(part, r) {
    return r.length === 5 ? r[4] : part.columns.slice(0, part.groups[0][1]).map(([name], i) => `${name} ${r[i + 4]}`).join("; ");
  }

  function numbers(place, part) {
    const { models, tests, columns, rows, groups } = part;
    const words = make("input", [], { type: "search", placeholder: "model or test" });
    const which = choice(["all results", "significant", "after correction", "for these words only", "not measured"]);
    const keep = [() => true, (r) => r[2] === 1 || r[2] === 2, (r) => r[2] === 2, (r) => r[3] === 1, (r) => r[2] === 4];
    const sets = choice([...groups.map((group) => group[0]), "all"]);
    // Where the columns of a group begin; behind the last, where they end.
    const starts = groups.reduce((found, group) => [...found, found[found.length - 1] + group[1]], [0]);
    const isShown = (i) => !groups[sets.value] || (i >= starts[sets.value] && i < starts[Number(sets.value) + 1]);
    const texts = rows.map((r) => (models[r[0]] + " " + tests[r[1]][0] + " " + tests[r[1]][1]).toLowerCase());
    const body = make("tbody"), pages = pager(show);
    pages.size = PAGE;
    let order = rows.map((_, i) => i);
    const names = [["test"], ["model"], ...columns];
    const headers = names.map(([name, help], i) => {
      const header = make("th", [], { scope: "col", "data-tip": help, class: i > 1 ? "number" : null });
      header.append(sortButton(name, () => {
        const direction = turned(header, headers);
        const value = (r) => (i === 0 ? tests[r[1]][0] : i === 1 ? models[r[0]] : r[i + 2]);
        order = sorted(order, (at) => value(rows[at]), direction);
        show();
      }));
      return header;
    });
    function show() {
      const sought = words.value.toLowerCase().split(/\s+/);
      const kept = order.filter((at) => keep[which.value](rows[at]) && sought.every((word) => texts[at].includes(word)));
      const to = pages.update(kept.length, "results");
      headers.forEach((header, i) => { header.hidden = i > 1 && !isShown(i - 2); });
      body.replaceChildren(...kept.slice(pages.from, to).map((at) => {
        const r = rows[at];
        const cells = columns.map((_, i) => i).filter(isShown).map((i, nth) => make("td", r.length > 5 ? r[i + 4] : nth ? "–" : r[4], { class: "number" }));
        if (part.reasons[at]) cells[0].dataset.tip = part.reasons[at];
        return make("tr", [make("th", [tests[r[1]][1] + " ", make("small", tests[r[1]][0])], { scope: "row" }), make("td", models[r[0]]), ...cells]);
      }));
    }
    for (const control of [words, which, sets]) control.addEventListener("input", () => { pages.from = 0; show(); });
    const table = make("table", [make("thead", make("tr", headers)), body]);
    place.replaceChildren(
      make("div", [labelled("Find", words), labelled("Show", which), ...(groups.length > 1 ? [labelled("Columns", sets)] : []), ...pages.controls], { class: "controls" }),
      make("div", table, { class: "scroll", role: "region", "aria-label": "All numbers", tabindex: 0 }),
    );
    show();
    redraws.push((all) => { pages.size = all ? MOST_PRINTED : PAGE; if (all) pages.from = 0; show(); });
  }

  function matrix(place, part) {
    const { models, tests, rows } = part;
    const cells = models.map(() => []);
    rows.forEach((r, at) => { cells[r[0]][r[1]] = at; });
    const ordering = choice(["as given", "most significant first", "by name"]);
    const words = make("input", [], { type: "search", placeholder: "model" });
    const body = make("tbody"), pages = pager(show);
    pages.size = MODELS;
    const count = (model) => cells[model].reduce((sum, at) => sum + [0, 1, 1000, 0, 0][rows[at][2]], 0);
    function said(at) {
      const r = rows[at];
      return `${tests[r[1]][0]} on ${models[r[0]]}: ${SAID[r[2]]}. ${leading(part, r)}. ${tests[r[1]][1]}.${part.reasons[at] ? " " + part.reasons[at] : ""}`;
    }
    function show() {
      const sought = words.value.trim().toLowerCase();
      let kept = models.map((_, i) => i).filter((i) => models[i].toLowerCase().includes(sought));
      if (ordering.value === "1") kept = kept.map((i) => [count(i), i]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).map((one) => one[1]);
      if (ordering.value === "2") kept.sort((a, b) => models[a].localeCompare(models[b], "en", { numeric: true }));
      const to = pages.update(kept.length, "models");
      body.replaceChildren(...kept.slice(pages.from, to).map((model) => make("tr", [
        make("th", models[model], { scope: "row" }),
        ...tests.map((_, test) => {
          const at = cells[model][test];
          if (at === undefined) return make("td", "");
          const code = rows[at][2];
          return make("td", MARKS[code], { class: "m" + code, "data-tip": said(at), tabindex: -1 });
        }),
      ])));
      const first = body.querySelector("td[data-tip]");
      if (first) first.tabIndex = 0;
    }
    body.addEventListener("focusin", (event) => {
      if (!event.target.matches("td")) return;
      for (const other of body.querySelectorAll('td[tabindex="0"]')) other.tabIndex = -1;
      event.target.tabIndex = 0;
    });
    body.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td");
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (!cell || !step) return;
      const row = body.rows[cell.parentNode.sectionRowIndex + step[0]];
      const next = row && row.cells[cell.cellIndex + step[1]];
      if (next && next.matches("td[data-tip]")) { next.focus(); event.preventDefault(); }
    });
    for (const control of [ordering, words]) control.addEventListener("input", () => { pages.from = 0; show(); });
    const head = make("tr", [make("th", "model", { scope: "col" }), ...tests.map((test) => make("th", make("span", test[0]), { scope: "col", "data-tip": `${test[0]}: ${test[1]}` }))]);
    place.replaceChildren(
      make("div", [labelled("Order", ordering), labelled("Find", words), ...pages.controls], { class: "controls" }),
      make("div", make("table", [make("thead", head), body]), { class: "scroll", role: "region", "aria-label": "Significance of all tests on all models", tabindex: 0 }),
    );
    show();
    redraws.push((all) => { pages.size = all ? MOST_PRINTED : MODELS; if (all) pages.from = 0; show(); });
  }

  function words(place, part) {
    const { models, tests, rows } = part;
    const known = rows.map((_, at) => at).filter((at) => part.shares[at]);
    const ofTest = choice([]), ofModel = choice([]), bars = make("div", [], { class: "bars" }), chosen = make("p", "", { class: "chosen" }), told = make("p", "", { class: "soft" });
    for (const test of [...new Set(known.map((at) => rows[at][1]))].sort((a, b) => a - b)) ofTest.append(make("option", `${tests[test][1]} (${tests[test][0]})`, { value: test }));
    function fill() {
      const before = ofModel.value;
      const options = known.filter((at) => rows[at][1] === Number(ofTest.value)).map((at) => make("option", models[rows[at][0]], { value: rows[at][0] }));
      ofModel.replaceChildren(...options);
      if (options.some((option) => option.value === before)) ofModel.value = before;
      show();
    }
    function show() {
      const at = known.find((one) => rows[one][1] === Number(ofTest.value) && rows[one][0] === Number(ofModel.value));
      if (at === undefined) return;
      const test = Number(ofTest.value), shares = part.shares[at];
      chosen.textContent = `${tests[test][1]} (${tests[test][0]}) on ${models[Number(ofModel.value)]}`;
      told.textContent = leading(part, rows[at]);
      bars.replaceChildren(...[0, 1, 2, 3].map((role) => {
        const pairs = part.words[test][role].map((word, i) => [word, shares[role][i]]).filter((pair) => pair[1] !== null).sort((a, b) => b[1] - a[1]);
        const across = role < 2 ? [0, 1] : [2, 3];
        const most = Math.max(1e-9, ...across.flatMap((one) => shares[one].map((share) => Math.abs(share || 0))));
        const lines = pairs.map(([word, share]) => {
          // Of targets what adds to the effect, of attributes what lies on its own side.
          const supports = role === 3 ? share < 0 : share >= 0;
          const bar = make("i", [], { class: supports ? "plus" : "minus" });
          bar.style.width = (50 * Math.abs(share)) / most + "%";
          bar.style.left = share < 0 ? 50 - (50 * Math.abs(share)) / most + "%" : "50%";
          return make("tr", [make("th", word, { scope: "row" }), make("td", make("span", bar, { class: "track" }), { class: "bar" }), make("td", share.toFixed(3), { class: "number" })]);
        });
        return make("table", [make("caption", tests[test][2 + role] + (role < 2 ? ` (adds ${pairs.reduce((sum, pair) => sum + pair[1], 0).toFixed(2)})` : "")), make("tbody", lines)]);
      }));
    }
    ofTest.addEventListener("input", fill);
    ofModel.addEventListener("input", show);
    place.replaceChildren(make("div", [labelled("Test", ofTest), labelled("Model", ofModel)], { class: "controls" }), chosen, told, bars);
    fill();
  }

  for (const [kind, draw] of [["numbers", numbers], ["matrix", matrix], ["words", words]]) {
    for (const place of document.querySelectorAll("." + kind + "[data-part]")) draw(place, data[place.dataset.part]);
  }
  addEventListener("beforeprint", () => { for (const redraw of redraws) redraw(true); for (const one of document.querySelectorAll("details")) one.open = true; });
  addEventListener("afterprint", () => { for (const redraw of redraws) redraw(false); });
})();
