// Tables that are filled in from the data of the page; it follows page.js in the same function.
  function numbers(place, part) {
    const { models, tests, columns, rows, groups } = part;
    const words = make("input", [], { type: "search", placeholder: "model or test" });
    const which = choice(["all results", "significant", "before correction only", "for these words only", "not measured"]);
    const keep = [() => true, (r) => r[2] === 2, (r) => r[2] === 1, (r) => r[3] === 1, (r) => r[2] === 4];
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
    // Open on the strongest finding.
    const strength = (at) => [0, 1, 2, 0, 0][rows[at][2]] * 100 + Math.abs(parseFloat(String(rows[at][4]).replace("−", "-")) || 0);
    const strongest = known.reduce((best, at) => (strength(at) > strength(best) ? at : best), known[0]);
    ofTest.value = rows[strongest][1];
    ofTest.addEventListener("input", fill);
    ofModel.addEventListener("input", show);
    place.replaceChildren(make("div", [labelled("Test", ofTest), labelled("Model", ofModel)], { class: "controls" }), chosen, told, bars);
    fill();
    ofModel.value = rows[strongest][0];
    show();
  }

  for (const [kind, draw] of [["numbers", numbers], ["matrix", matrix], ["words", words]]) {
    for (const place of document.querySelectorAll("." + kind + "[data-part]")) draw(place, data[place.dataset.part]);
  }
  let unfolded = [];
  addEventListener("beforeprint", () => {
    for (const redraw of redraws) redraw(true);
    unfolded = [...document.querySelectorAll("details:not([open])")];
    for (const one of unfolded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const redraw of redraws) redraw(false);
    for (const one of unfolded) one.open = false;
    unfolded = [];
  });
