// What every part of a page has: sorting, tips, figures, theme. tables.js follows in the same function.
  const data = JSON.parse(document.getElementById("data").textContent);
  const MARKS = ["·", "*", "**", "‡", "–"];
  const SAID = ["inconclusive", "before correction only", "significant", "too few words", "not measured"];
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
    const empty = (value) => value === undefined || value === "" || value === "–" || /^(skipped|refused|failed|NaN)/.test(value);
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
  function tell(text, x, y, mark) {
    const told = document.querySelector('[aria-describedby="tip"]');
    if (told) told.removeAttribute("aria-describedby");
    if (!text) { tip.hidden = true; return; }
    if (mark && mark.matches("button")) mark.setAttribute("aria-describedby", "tip");
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
    tell(meant(mark), box.left, box.bottom - 8, mark);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tell(""); });
  document.addEventListener("scroll", () => pointed(document.elementFromPoint(pointer.x, pointer.y)), { passive: true });

  // One stop for the keyboard in every figure; the arrow keys go on from there.
  for (const figure of document.querySelectorAll(".effects, .panels")) {
    const strips = () => [...figure.querySelectorAll(".strip")].filter((strip) => strip.checkVisibility());
    const stop = () => {
      const shown = strips();
      for (const hidden of figure.querySelectorAll('.strip[tabindex="0"]')) if (!shown.includes(hidden)) hidden.setAttribute("tabindex", -1);
      if (shown.length && !shown.some((strip) => strip.getAttribute("tabindex") === "0")) shown[0].setAttribute("tabindex", 0);
    };
    stop();
    for (const group of figure.querySelectorAll("details")) group.addEventListener("toggle", stop);
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

  const theme = document.getElementById("theme"), themes = ["as the system", "light", "dark"], icons = { "as the system": "◐", light: "☀", dark: "☾" };
  function useTheme(name) {
    if (name === themes[0]) document.documentElement.removeAttribute("data-theme"); else document.documentElement.dataset.theme = name;
    theme.textContent = icons[name];
    theme.setAttribute("aria-label", "Theme: " + name);
    theme.title = "Theme: " + name;
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
