"use strict";
// Texts of the report come from programs and files that nobody has to trust. They are set as text, never as markup, and
// no address is made from them.
(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const { labels, topics, clauses, cases, results, pools } = DATA;
  const VERDICTS = ["PASS", "FAIL", "ERROR", "SKIP", "INFO"];
  const SIGNS = ["✓", "✗", "!", "–", "i"];
  const MARKS = { pass: "✓", partial: "◐", fail: "✗", error: "!", untested: "○" };
  const FAIL = 1, ERROR = 2;
  const CHUNK = 30;
  const [ID, TITLE, TOPIC, ROLE, CLAUSES, NEEDS, EXHIBIT] = [0, 1, 2, 3, 4, 5, 6];
  const $ = (id) => document.getElementById(id);

  // -- making nodes -------------------------------------------------------------------------------------------------

  // Characters that are not seen, or that turn the direction of others, are written out.
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
  const seen = (text) => String(text).replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

  function el(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "class") node.className = value;
      else if (key === "hidden" || key === "open") node[key] = value;
      else node.setAttribute(key, value);
    }
    add(node, children);
    return node;
  }
  function add(node, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : seen(child));
    }
    return node;
  }
  function svg(name, attributes, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    return add(node, children);
  }
  // Backticks of the specification's sentences.
  const prose = (text) => text.split("`").map((part, i) => (i % 2 ? el("code", null, part) : part));
  const number = (n) => n.toLocaleString("en");
  const verdictBadge = (v, run) =>
    el("span", { class: "badge " + VERDICTS[v] }, el("span", { "aria-hidden": "true" }, SIGNS[v]), " " + VERDICTS[v].toLowerCase(),
      labels.length > 1 && el("span", { class: "who" }, " " + labels[run]));

  // -- what is asked for --------------------------------------------------------------------------------------------

  const hay = cases.map((c, i) => {
    const parts = [c[ID], c[TITLE], ...c[CLAUSES].map((n) => (typeof n === "number" ? clauses[n][0] : n))];
    for (const run of results) {
      const r = run[i];
      if (r && r[1] >= 0) parts.push(pools.texts[r[1]]);
    }
    return parts.join("\n").toLowerCase();
  });
  const rank = cases.map((_, i) => (results.some((run) => run[i] && run[i][4] === 2) ? 0 : 1));
  const byId = new Map(cases.map((c, i) => [c[ID], i]));
  const profilesOf = cases.map((c) => new Set(c[CLAUSES].map((n) => typeof n === "number" && clauses[n][4])));
  const clauseNumbers = new Map(clauses.map((c, i) => [c[0], i]));

  const CHOICES = ["run", "topic", "role", "profile", "feature", "known"];
  const KEYS = ["q", "v", "run", "topic", "role", "profile", "feature", "clause", "differ", "known", "case"];
  const bad = results.some((run) => run.some((r) => r && (r[0] === FAIL || r[0] === ERROR)));
  // Where nothing fails, what was judged comes before what was not.
  const skips = results.some((run) => run.some((r) => r && r[0] === 3)) && results.some((run) => run.some((r) => r && r[0] !== 3));
  const start = { q: "", v: bad ? "12" : skips ? "04" : "", run: "", topic: "", role: "", profile: "", feature: "", clause: "", differ: "", known: "", case: "" };
  let state = { ...start };
  let found = [];
  let shown = 0;

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (![...given.keys()].some((key) => KEYS.includes(key))) return false;
    state = { ...start, ...(given.has("v") || !given.has("case") ? { v: "" } : {}) };
    for (const key of KEYS) if (given.has(key)) state[key] = given.get(key);
    return true;
  }
  function write(push) {
    const out = new URLSearchParams();
    for (const key of KEYS) if (state[key] || (key === "v" && state.v !== start.v)) out.set(key, state[key]);
    const hash = "#" + out.toString();
    try {
      history[push ? "pushState" : "replaceState"](null, "", hash);
    } catch {
      // Some viewers do not let a page name its state; it works without.
    }
  }

  function fits(i, terms, wanted, runs) {
    const c = cases[i];
    if (state.topic !== "" && c[TOPIC] !== Number(state.topic)) return false;
    if (state.role && c[ROLE] !== state.role) return false;
    if (state.feature && !c[NEEDS].includes(state.feature)) return false;
    if (state.profile && !profilesOf[i].has(state.profile)) return false;
    if (state.clause && !c[CLAUSES].some((n) => (typeof n === "number" ? clauses[n][0] : n) === state.clause)) return false;
    if (state.differ) {
      const seenVerdicts = new Set(results.map((run) => run[i] && run[i][0]).filter((v) => v !== null && v !== 3));
      if (seenVerdicts.size < 2) return false;
    }
    if (!terms.every((term) => hay[i].includes(term))) return false;
    return true;
  }
  function select() {
    const begun = performance.now();
    const terms = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const runs = state.run === "" ? results : [results[Number(state.run)]].filter(Boolean);
    const counts = [0, 0, 0, 0, 0];
    found = [];
    for (let i = 0; i < cases.length; i++) {
      if (!fits(i, terms)) continue;
      let any = false, there = false;
      const counted = new Set();
      for (const run of runs) {
        const r = run[i];
        if (!r || (state.known === "odd" ? r[4] !== 2 : state.known && r[4] === 1)) continue;
        there = true;
        counted.add(r[0]);
        if (!state.v || state.v.includes(String(r[0]))) any = true;
      }
      for (const v of counted) counts[v]++;
      if (there && any) found.push(i);
    }
    // What is not as recorded comes first.
    found.sort((a, b) => rank[a] - rank[b] || a - b);
    shown = 0;
    $("list").replaceChildren();
    moreRows();
    for (const button of document.querySelectorAll("#verdicts .toggle")) {
      const v = button.dataset.verdict;
      button.setAttribute("aria-pressed", String(state.v.includes(v)));
      button.querySelector(".n").textContent = number(counts[v]);
    }
    $("count").textContent = `${number(found.length)} of ${number(cases.length)} cases`;
    $("nothing").hidden = found.length > 0;
    const inside = ["run", "topic", "role", "profile", "feature", "differ", "known"].filter((key) => state[key] !== "");
    $("active").textContent = inside.length ? ` (${inside.length} set)` : "";
    $("clear").hidden = !inside.length && !state.q && !state.clause && state.v === start.v;
    $("clause-chip").hidden = !state.clause;
    $("clause-chip").textContent = seen(state.clause) + " ×";
    $("clause-chip").setAttribute("aria-label", `No longer only clause ${seen(state.clause)}`);
    measure();
    // Read by whoever wants to know how long filtering takes; layout is part of it.
    void document.body.offsetHeight;
    window.lastFilter = performance.now() - begun;
  }
  function show() {
    $("q").value = state.q;
    for (const key of CHOICES) if ($("f-" + key)) $("f-" + key).value = state[key];
    if ($("f-differ")) $("f-differ").checked = Boolean(state.differ);
    if (["run", "topic", "role", "profile", "feature", "differ", "known"].some((key) => state[key] !== "")) $("more").open = true;
    select();
  }
  function change(values, push) {
    Object.assign(state, values);
    write(push);
    show();
  }

  // -- the list -----------------------------------------------------------------------------------------------------

  function row(i, place) {
    const c = cases[i];
    const badges = [], why = [];
    results.forEach((run, n) => {
      const r = run[i];
      if (!r || (state.run !== "" && Number(state.run) !== n)) return;
      badges.push(verdictBadge(r[0], n));
      if (r[4]) badges.push(el("span", { class: r[4] === 2 ? "tag odd" : "tag" }, r[4] === 2 ? "deviates" : "known"));
      if ((r[0] === FAIL || r[0] === ERROR) && r[1] >= 0) why.push(pools.texts[r[1]].slice(0, 240));
    });
    const button = el("button", { type: "button", class: "row" + (labels.length === 1 ? " one" : ""), "data-case": i, tabindex: place ? "-1" : "0" },
      el("span", { class: "badges" }, badges),
      el("span", { class: "title" }, c[TITLE]),
      el("span", { class: "case-id" }, c[ID]),
      why.length > 0 && el("span", { class: "why" }, why.join(" · ")));
    if (c[ID] === state.case) button.setAttribute("aria-current", "true");
    return el("li", null, button);
  }
  function moreRows() {
    const next = found.slice(shown, shown + CHUNK);
    const rows = document.createDocumentFragment();
    next.forEach((i, n) => rows.append(row(i, shown + n)));
    $("list").append(rows);
    shown += next.length;
    $("more-rows").hidden = shown >= found.length;
    $("more-rows").textContent = `Show more (${number(found.length - shown)} left)`;
  }
  const rowsNow = () => [...$("list").querySelectorAll(".row")];
  function focusRow(at) {
    while (at >= shown && shown < found.length) moreRows();
    const rows = rowsNow();
    if (!rows.length) return;
    at = Math.max(0, Math.min(at, rows.length - 1));
    for (const r of rows) r.tabIndex = -1;
    rows[at].tabIndex = 0;
    rows[at].focus();
  }
  $("list").addEventListener("keydown", (event) => {
    const at = rowsNow().indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9, j: 1, k: -1 }[event.key];
    if (at < 0 || step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    focusRow(event.key === "End" ? shown - 1 : at + step);
  });
  $("list").addEventListener("click", (event) => {
    const button = event.target.closest(".row");
    if (button) open(Number(button.dataset.case));
  });
  $("more-rows").addEventListener("click", () => {
    const first = shown;
    moreRows();
    focusRow(first);
  });
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && shown < found.length && shown > 0) moreRows();
  }, { rootMargin: "600px" }).observe($("more-rows"));

  // -- filters ------------------------------------------------------------------------------------------------------

  topics.forEach(([format, topic, title], i) => {
    if (cases.some((c) => c[TOPIC] === i)) $("f-topic").append(el("option", { value: i }, `${format}/${topic}`));
  });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("q").addEventListener("input", () => change({ q: $("q").value }));
  $("q").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      focusRow(0);
    }
  });
  $("verdicts").addEventListener("click", (event) => {
    const button = event.target.closest(".toggle");
    if (!button) return;
    const v = button.dataset.verdict;
    change({ v: state.v.includes(v) ? state.v.replace(v, "") : [...state.v + v].sort().join("") });
  });
  for (const key of CHOICES) {
    if ($("f-" + key)) $("f-" + key).addEventListener("change", (event) => change({ [key]: event.target.value }));
  }
  if ($("f-differ")) $("f-differ").addEventListener("change", (event) => change({ differ: event.target.checked ? "1" : "" }));
  $("clear").addEventListener("click", () => {
    change({ ...start, case: state.case });
    $("q").focus();
  });
  $("clause-chip").addEventListener("click", () => {
    change({ clause: "" });
    $("q").focus();
  });

  // -- the matrix ---------------------------------------------------------------------------------------------------

  function toCases(values) {
    change({ ...start, v: "", case: state.case, ...values });
    $("cases").scrollIntoView();
    focusRow(0);
  }
  const table = document.querySelector(".matrix");
  function expand(topic, button) {
    const opened = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!opened));
    if (opened) {
      for (const r of table.querySelectorAll(`.clause-row[data-topic="${topic}"]`)) r.remove();
      return;
    }
    // On a phone a clause beside several columns would be a word wide.
    const apart = labels.length > 1 && matchMedia("(max-width: 40rem)").matches;
    let after = button.closest("tr");
    clauses.forEach((c) => {
      if (c[1] !== topic || !c[6].some(Boolean)) return;
      const line = el("tr", { class: "clause-row", "data-topic": topic },
        el("th", { scope: "row" },
          el("button", { type: "button", class: "clause-link", "data-clause": c[0], title: "Show the cases of this clause" }, c[0]),
          el("span", { class: "soft" }, ` ${c[2]}, ${c[3]}${c[4] === "companion" ? ", companion" : ""}`),
          !apart && el("p", null, prose(c[5]))),
        c[6].map((s, n) => {
          const counts = Object.entries(c[7][n] || {}).map(([v, many]) => `${many} ${v.toLowerCase()}`).join(", ");
          return el("td", null, s ? [el("span", { class: "state " + s }, el("span", { "aria-hidden": "true" }, MARKS[s]), " " + s), el("div", { class: "soft" }, counts || "no case")] : el("span", { class: "soft" }, "·"));
        }));
      after.after(line);
      after = line;
      if (apart) {
        const words = el("tr", { class: "clause-row words", "data-topic": topic }, el("td", { colspan: labels.length + 1 }, el("p", null, prose(c[5]))));
        after.after(words);
        after = words;
      }
    });
  }
  table.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.classList.contains("open")) expand(Number(button.dataset.topic), button);
    else if (button.classList.contains("clause-link")) toCases({ clause: button.dataset.clause });
    else if (button.classList.contains("cell")) {
      const failing = button.classList.contains("fail") || button.classList.contains("error");
      toCases({ topic: button.dataset.topic, run: labels.length > 1 ? button.dataset.run : "", v: failing ? "12" : "" });
      if (!found.length) toCases({ topic: button.dataset.topic });
    }
  });

  // A case that is not as recorded, from the card of its implementation.
  for (const button of document.querySelectorAll(".case-link")) {
    const i = byId.get(button.dataset.name);
    if (i === undefined) button.disabled = true;
    else button.addEventListener("click", () => {
      change({ ...start, known: "odd", v: "" });
      $("cases").scrollIntoView();
      open(i);
    });
  }

  // -- a case -------------------------------------------------------------------------------------------------------

  let opener = null;
  const narrow = matchMedia("(max-width: 69.99rem)");
  function place() {
    const detail = $("detail");
    if (narrow.matches) {
      if (detail.parentNode !== document.body) document.body.append(detail);
      $("page").inert = !detail.hidden;
    } else {
      $("page").inert = false;
      if (detail.parentNode !== $("place")) $("place").append(detail);
    }
    document.querySelector("#place .hint").hidden = !detail.hidden;
  }
  narrow.addEventListener("change", place);

  function open(i, quietly) {
    opener = document.activeElement && document.activeElement.closest(".row") ? i : opener;
    state.case = cases[i][ID];
    if (!quietly) write(true);
    for (const r of rowsNow()) {
      if (Number(r.dataset.case) === i) r.setAttribute("aria-current", "true");
      else r.removeAttribute("aria-current");
    }
    const detail = $("detail");
    detail.replaceChildren();
    add(detail, page(i));
    detail.hidden = false;
    place();
    detail.scrollTop = 0;
    detail.focus({ preventScroll: true });
  }
  function close() {
    if ($("detail").hidden) return;
    $("detail").hidden = true;
    const i = byId.get(state.case);
    state.case = "";
    write(false);
    place();
    for (const r of rowsNow()) r.removeAttribute("aria-current");
    const at = found.indexOf(opener === null ? i : opener);
    focusRow(at < 0 ? 0 : at);
  }
  function turn(by) {
    const at = found.indexOf(byId.get(state.case));
    const next = found[at < 0 ? 0 : at + by];
    if (next === undefined) return;
    opener = next;
    open(next);
    const button = $("detail").querySelector(by > 0 ? ".next" : ".before");
    if (button && !button.disabled) button.focus({ preventScroll: true });
  }

  function page(i) {
    const c = cases[i], x = c[EXHIBIT];
    const at = found.indexOf(i);
    const button = (cls, text, label, act) => {
      const b = el("button", { type: "button", class: "plain " + cls, "aria-label": label }, text);
      b.addEventListener("click", act);
      return b;
    };
    const before = button("before", "↑", "Case before", () => turn(-1)), next = button("next", "↓", "Next case", () => turn(1));
    before.disabled = at <= 0;
    next.disabled = at < 0 || at + 1 >= found.length;
    const out = [
      el("div", { class: "bar-top" }, button("back", "← Back", "Back to the list", close), el("span", { class: "case-id" }, c[ID]), before, next, button("close", "×", "Close", close)),
      el("h3", { id: "detail-title" }, c[TITLE]),
      el("p", { class: "soft" }, `${topics[c[TOPIC]][0]}/${topics[c[TOPIC]][1]}, ${c[ROLE]}`, c[NEEDS].length > 0 && `, needs ${c[NEEDS].join(", ")}`),
    ];
    const judged = results.map((run) => run[i]).filter(Boolean)[0];
    const blamed = judged && judged[3];
    for (const n of c[CLAUSES]) {
      const clause = typeof n === "number" ? clauses[n] : [n, 0, "", "", "", "(not in the specification at hand)"];
      const counts = !blamed || blamed.includes(n);
      out.push(el("div", { class: "clause-card" + (counts ? " judged" : "") },
        el("div", { class: "head" }, el("button", { type: "button", class: "clause-link", "data-clause": clause[0] }, clause[0]), ` ${[clause[2], clause[3], clause[4]].filter(Boolean).join(", ")}`, !counts && el("span", { class: "tag" }, "see also")),
        el("p", null, prose(clause[5]))));
    }
    const order = [FAIL, ERROR, 4, 0, 3];
    const judgedBy = results.map((_, n) => n).filter((n) => results[n][i]).sort((a, b) => order.indexOf(results[a][i][0]) - order.indexOf(results[b][i][0]) || a - b);
    for (const n of judgedBy) out.push(outcome(i, n));
    if (!x) return [...out, el("p", { class: "soft" }, "The kit that wrote this page does not have this case; its input cannot be shown.")];
    const T = pools.texts;
    if (x.about !== undefined) {
      out.push(el("h4", null, "Input"), el("p", null, T[x.about], x.packed !== undefined && `; ${T[x.packed]}`, x.range && `; frames ${x.range[0]} to ${x.range[1] - 1} are asked for`));
      if (x.defects) out.push(el("ul", { class: "defects" }, x.defects.map((d) => el("li", null, el("code", null, T[d])))));
      if (x.bytes) out.push(hexView(x.bytes));
      if (x.tree) out.push(treeView(x.tree));
    }
    if (x.script) {
      const calls = () => el("div", null, el("ol", { class: "calls" }, x.script.map((s, n) => el("li", null, el("span", { class: "no" }, n + 1), el("code", null, T[s])))), x.script_more && el("p", { class: "soft" }, `... ${x.script_more} more calls`));
      // Where calls are shown with their answers already, the script is at hand for who wants it.
      const answered = results.some((run) => run[i] && run[i][5] && run[i][5].calls);
      out.push(el("h4", null, "Calls"), answered ? fold(`The script, ${number(x.script.length + (x.script_more || 0))} calls`, calls) : calls());
    }
    if (x.states) out.push(el("h4", null, "Blocks over the frames, ", T[x.of]), statesView(x.states));
    out.push(el("h4", null, "Expected"), el("p", null, T[x.expect]));
    if (x.written) out.push(hexView(x.written, x.free));
    if (x.reply) out.push(fold(`The expected reply, ${number(x.reply.length + (x.reply_more || 0))} lines`, () => linesView(x.reply.map((n) => pools.lines[n]), x.reply_more), x.reply.length < 30));
    return out;
  }
  // A part that is made when it is first opened.
  function fold(title, make, opened) {
    const box = el("details", null, el("summary", null, title));
    box.addEventListener("toggle", () => box.open && box.children.length === 1 && box.append(make()));
    if (opened) box.open = true;
    return box;
  }

  function outcome(i, n) {
    const r = results[n][i], c = cases[i], x = c[EXHIBIT], d = r[5] || {};
    const box = el("section", { class: "run " + VERDICTS[r[0]], "aria-label": labels[n] },
      el("h4", null, verdictBadge(r[0], n), " ", r[4] ? el("span", { class: r[4] === 2 ? "tag odd" : "tag" }, r[4] === 2 ? "not as recorded" : "known failure") : "", " ", el("span", { class: "tag" }, `${(1000 * r[2]).toFixed(r[2] < 0.1 ? 1 : 0)} ms`)));
    const first = (d.differences || [])[0];
    // A message that only tells the first difference is told below, with its bits.
    if (r[1] >= 0 && !(first && pools.texts[r[1]].startsWith(first[0] + ": expected "))) box.append(el("p", { class: "message" }, pools.texts[r[1]]));
    else if (r[0] === 0) box.append(el("p", { class: "soft" }, "As expected, bit for bit."));
    for (const difference of d.differences || []) box.append(differenceView(difference));
    if (d.differences_more) box.append(el("p", { class: "soft" }, `... ${d.differences_more} more differences`));
    if (d.compared) box.append(comparedView(d.compared, d.lines_more));
    if (d.answer) {
      const said = x && x.expect !== undefined ? pools.texts[x.expect] : "a refusal";
      box.append(el("h5", null, "Expected beside actual"), el("div", { class: "sides" }, el("span", null, "expected"), el("span", null, said), el("span", null, "got"), el("span", null, "this reply")));
      box.append(fold(`The reply, ${number(d.answer.length + (d.lines_more || 0))} lines`, () => linesView(d.answer.map((l) => [l[0], l[3], [l[4].join("")]]), d.lines_more)));
    }
    if (!d.compared && !d.answer && !d.differences && (r[0] === FAIL || r[0] === ERROR) && x && x.expect !== undefined) {
      box.append(el("h5", null, "Expected beside actual"), el("div", { class: "sides" }, el("span", null, "expected"), el("span", null, pools.texts[x.expect]), el("span", null, "got"), d.said ? el("code", null, d.said) : el("span", null, "no usable answer")));
    } else if (d.said) box.append(el("h5", null, "It said"), el("pre", null, d.said));
    if (d.states) box.append(el("h5", null, "Blocks over the frames, as handed back"), statesView(d.states, x && x.states));
    if (d.calls && d.calls.length) {
      box.append(el("h5", null, "Calls and answers"), el("ol", { class: "calls" }, d.calls.map(([no, call, answer, decisive]) =>
        el("li", { class: decisive ? "decisive" : null }, el("span", { class: "no" }, no), el("code", null, call), el("span", { class: "answer mono" }, "→ ", answer)))));
    }
    if (d.log) box.append(el("h5", null, "Its log"), el("pre", null, d.log));
    if (d.kept) box.append(el("h5", null, "Evidence kept in"), el("pre", null, d.kept));
    const command = d.repeat || `${pools.texts[DATA.commands[n]]} ${quoted(c[ID])}`;
    const copy = el("button", { type: "button", class: "plain" }, "Copy");
    const text = el("pre", null, command);
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        copy.textContent = "Selected";
      }
    });
    const repeat = el("div", { class: "command" }, text, copy);
    if (r[0] === FAIL || r[0] === ERROR) box.append(el("h5", null, "Repeat"), repeat);
    else box.append(el("details", { class: "repeat" }, el("summary", null, "Repeat"), repeat));
    return box;
  }
  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\"'\"'") + "'");

  // -- differences --------------------------------------------------------------------------------------------------

  function differenceView([path, expected, actual, note, left, right]) {
    const box = el("div", { class: "difference" }, el("div", { class: "place mono" }, path, note && el("span", { class: "soft" }, `  ${note}`)),
      el("div", { class: "sides" }, el("span", null, "expected"), el("code", null, expected), el("span", null, "got"), el("code", null, actual)));
    if (left && left.length === right.length) box.append(bitsView(left, right, expected.includes("(0x")));
    return box;
  }
  function bitsView(left, right, float, sides = "expected above, got below") {
    const bytes = [];
    let differ = 0;
    const where = new Set();
    for (let at = 0; at < left.length; at += 2) {
      const [a, b] = [left, right].map((hex) => parseInt(hex.slice(at, at + 2), 16).toString(2).padStart(8, "0"));
      const line = (bits, other) => [...bits].map((bit, k) => (bit === other[k] ? bit : el("mark", null, bit)));
      [...a].forEach((bit, k) => {
        if (bit === b[k]) return;
        differ++;
        const place = at * 4 + k, exponent = left.length === 8 ? 8 : 11;
        where.add(place === 0 ? "sign" : place <= exponent ? "exponent" : "fraction");
      });
      bytes.push(el("span", { class: "byte mono" }, el("span", { class: "hex" }, left.slice(at, at + 2)), el("span", null, line(a, b)), el("span", null, line(b, a)), el("span", { class: "hex" }, right.slice(at, at + 2))));
    }
    const named = float && (left.length === 16 || left.length === 8) ? `: ${[...where].join(", ")}` : "";
    return el("div", null, el("div", { class: "bits", role: "img", "aria-label": `${differ} of ${left.length * 4} bits differ${named}` }, bytes), el("div", { class: "soft" }, `${differ} of ${left.length * 4} bits differ${named}; ${sides}`));
  }
  const frameOf = (path) => (/^frames\[(\d+)\]\.?/.exec(path) || [""])[0];
  function grouped(rows, make) {
    const box = el("div", { class: "lines" });
    let last = "";
    for (const r of rows) {
      const frame = frameOf(r[0]);
      if (frame !== last && frame) box.append(el("div", { class: "frame" }, `frame ${frame.slice(7, frame.indexOf("]"))}`));
      last = frame;
      box.append(make(r, r[0].slice(frame.length) || r[0]));
    }
    return box;
  }
  function linesView(lines, more) {
    const box = grouped(lines, ([, type, values], name) =>
      el("div", { class: "pair two" }, el("span", { class: "mono" }, name, type && el("span", { class: "type" }, type)), el("code", null, values.length === 1 ? values[0] : values.join(", "))));
    if (more) box.append(el("p", { class: "soft" }, `... ${number(more)} more lines`));
    return box;
  }
  function comparedView(rows, more) {
    const differs = (r) => r[1] !== r[3] || r[2].length > 1 || r[4].length > 1;
    const only = rows.filter(differs);
    const pieces = (list) => list.map((text, k) => (k % 2 ? el("mark", null, text) : text));
    const side = (label, type, list, other) => el("span", null, el("span", { class: "label" }, label), type === null ? el("span", { class: "soft" }, "nothing") : [el("code", null, pieces(list)), type !== other && el("span", { class: "type" }, type)]);
    const make = (r, name) => el("div", { class: "pair" + (differs(r) ? " differs" : "") }, el("span", { class: "mono" }, name, r[1] && el("span", { class: "type" }, r[1])), side("expected", r[1], r[2], r[1]), side("got", r[3], r[4], r[1]));
    const heads = () => el("div", { class: "pair heads" }, el("span", null, "part"), el("span", null, "expected"), el("span", null, "got"));
    const box = el("div", null, el("h5", null, "Expected beside actual"));
    if (only.length) box.append(heads(), grouped(only, make));
    else box.append(el("p", { class: "soft" }, "The lines that are shown are the same; see the differences above."));
    if (more) box.append(el("p", { class: "soft" }, `... ${number(more)} more lines`));
    if (only.length < rows.length) box.append(fold(`All ${number(rows.length)} lines`, () => el("div", null, heads(), grouped(rows, make))));
    return box;
  }

  // -- states -------------------------------------------------------------------------------------------------------

  function statesView(numbers, against) {
    const rows = numbers.map((n) => pools.states[n]);
    const other = new Map((against || []).map((n) => [pools.states[n][0], pools.states[n]]));
    const total = Math.max(...rows.map((r) => r[2].reduce((sum, run) => sum + run[0], 0)), 1);
    const first = Math.min(...rows.map((r) => r[1]));
    const unit = Math.max(4, Math.min(44, Math.floor(560 / total)));
    const left = 8 + 7 * Math.min(18, Math.max(...rows.map((r) => r[0].length))), high = 22, top = 4;
    const width = left + total * unit + 8, height = top + rows.length * (high + 8) + 16;
    const told = [], drawn = new Set();
    const draw = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
    rows.forEach(([name, from, runs, updates], k) => {
      const y = top + k * (high + 8);
      draw.append(svg("text", { x: left - 8, y: y + 15, "text-anchor": "end" }, name.length > 18 ? name.slice(0, 17) + "…" : name));
      const mine = [], theirs = other.has(name) ? other.get(name)[2].flatMap(([long, r]) => Array(long).fill(r)) : null;
      let at = 0;
      for (const [long, r] of runs) {
        const what = r === null ? "absent" : r === 0 ? "empty" : "present";
        const x = left + at * unit, w = long * unit;
        drawn.add(what);
        draw.append(svg("rect", { class: "s-" + what, x: x + 1, y, width: Math.max(1, w - 2), height: high, rx: 2 }, svg("title", {}, `${name}, ${span(from + at, from + at + long - 1)}: ${what}${r ? `, ${r} rows` : ""}`)));
        const label = r === null ? "" : String(r);
        if (label && w > 7 * label.length + 3) draw.append(svg("text", { class: r === 0 ? "zero" : "in", x: x + w / 2, y: y + 15 }, label));
        told.push(`${name} ${span(from + at, from + at + long - 1)} ${what}${r ? ` ${r} rows` : ""}`);
        for (let j = 0; j < long; j++) mine.push(r);
        at += long;
      }
      if (theirs) {
        for (let j = 0; j < Math.max(mine.length, theirs.length); j++) {
          if (mine[j] === theirs[j]) continue;
          drawn.add("differs");
          draw.append(svg("rect", { class: "s-differs", x: left + j * unit + 1, y: y - 1, width: unit - 2, height: high + 2, rx: 2 }));
        }
      }
      for (const u of updates || []) draw.append(svg("rect", { class: "s-update", x: left + (u - from) * unit + 1, y: y + high + 1, width: Math.min(10, unit - 2), height: 3 }));
    });
    const every = Math.ceil(28 / unit);
    for (let j = 0; j < total; j += every) draw.append(svg("text", { class: "axis", x: left + (j + 0.5) * unit, y: height - 4, "text-anchor": "middle" }, first + j));
    draw.setAttribute("aria-label", seen(told.slice(0, 60).join("; ")));
    const key = (cls, text) => el("span", null, svg("svg", { viewBox: "0 0 18 12", "aria-hidden": "true" }, svg("rect", { class: cls, x: 1, y: 1, width: 16, height: 10, rx: 2 })), text);
    return el("div", null, el("div", { class: "states", tabindex: "0", role: "group", "aria-label": "Timeline" }, draw),
      el("div", { class: "legend" }, drawn.has("present") && key("s-present", "present, with its rows"), drawn.has("empty") && key("s-empty", "empty"), drawn.has("absent") && key("s-absent", "absent"), rows.some((r) => r[3] && r[3].length) && key("s-update", "an update; carried forward without one"), drawn.has("differs") && key("s-differs", "not as expected")));
  }
  const span = (a, b) => (a === b ? `frame ${a}` : `frames ${a} to ${b}`);

  // -- inputs -------------------------------------------------------------------------------------------------------

  function treeView(numbers) {
    const marks = ["", "changed", "added", "removed"];
    return el("ul", { class: "tree" }, numbers.map((n) => {
      const [path, kind, parts, mark] = pools.nodes[n];
      const depth = path ? Math.min(4, path.split("/").length) : 0;
      return el("li", { class: `d${depth}${mark ? " changed" : ""}` },
        el("span", { class: "name mono" }, path ? path.split("/").pop() : "/"), " ", el("span", { class: "soft mono" }, kind === "removed" ? "" : kind), mark ? [" ", el("span", { class: "tag" }, marks[mark])] : null,
        parts.map(([name, text]) => el("div", { class: "part" + (name === "stored" ? " stored" : "") }, name === "stored" ? null : el("span", { class: "soft mono" }, name === "=" ? "= " : name + ": "), el("code", null, text))));
    }));
  }
  const bytesOf = (hex) => Uint8Array.from({ length: hex.length / 2 }, (_, i) => parseInt(hex.slice(2 * i, 2 * i + 2), 16));
  // The fields of an otj file, by the layout that the golden's own header announces.
  function fieldsOf(golden, end) {
    const view = new DataView(golden.buffer);
    const out = [];
    if (golden.length < 24) return out;
    const flags = view.getUint32(12, true), count = Number(view.getBigUint64(16, true));
    const single = Boolean(flags & 1), size = single ? 4 : 8, real = single ? "f32" : "f64";
    let at = 0;
    const field = (name, type, bytes, group) => { out.push({ name, type, at, bytes, group }); at += bytes; };
    const reals = (name, group) => {
      const per = single ? 2 : 1;
      for (let k = 0; k < count; k += per) field(per === 1 || k + 1 >= count ? `${name}[${k}]` : `${name}[${k}..${k + 1}]`, real, size * Math.min(per, count - k), group);
    };
    field("magic", "text", 8, "header"); field("version", "u32", 4, "header"); field("flags", "u32", 4, "header"); field("particles", "u64", 8, "header");
    field("timestep", real, size, "header"); reals("mass", "header"); field("checksum", "hex", 8, "header");
    for (let frame = 0; at < end; frame++) {
      const group = `frame ${frame}`;
      field("step", "u64", 8, group); field("time", real, size, group);
      for (const name of flags & 2 ? ["x", "y", "z", "vx", "vy", "vz"] : ["x", "y", "z"]) reals(name, group);
      field("checksum", "hex", 8, group);
    }
    return out;
  }
  function valueOf(bytes, type) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    if (type === "text") return [...bytes].map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : "·")).join("");
    if (type === "u32" && bytes.length === 4) return String(view.getUint32(0, true));
    if (type === "u64" && bytes.length === 8) return String(view.getBigUint64(0, true));
    if (type === "f64" && bytes.length === 8) return real(view.getFloat64(0, true));
    if (type === "f32" && bytes.length % 4 === 0) return Array.from({ length: bytes.length / 4 }, (_, k) => real(view.getFloat32(4 * k, true))).join(", ");
    return "";
  }
  const real = (value) => (Object.is(value, -0) ? "-0" : Number.isFinite(value) ? String(Number(value.toPrecision(9))) : String(value));
  function hexView(told, free) {
    const golden = bytesOf(pools.files[told.golden]);
    const size = Math.min(told.size, 4096);
    const data = new Uint8Array(size);
    data.set(golden.subarray(0, size));
    const changed = new Set();
    for (const [at, hex] of told.patches || []) bytesOf(hex).forEach((byte, k) => { data[at + k] = byte; changed.add(at + k); });
    const box = el("div", null);
    const few = [...changed].filter((at) => at < golden.length);
    if (few.length && few.length <= 4 && told.size === told.was) {
      for (const at of few) {
        const hex = (byte) => byte.toString(16).padStart(2, "0");
        box.append(bitsView(hex(golden[at]), hex(data[at]), false, `byte ${at}: the golden above, this file below`));
      }
    }
    const rows = el("tbody", null);
    let group = "", ended = false;
    const isFree = (at) => (free || []).some(([a, b]) => at >= a && at < b);
    const hexOf = (from, to) => {
      const out = [];
      for (let at = from; at < to; at++) {
        const text = data[at].toString(16).padStart(2, "0");
        out.push(at > from ? " " : "", changed.has(at) || isFree(at) ? el("mark", { title: isFree(at) ? "free: any bits" : "not as in the golden" }, text) : text);
      }
      return out;
    };
    let last = 0;
    for (const f of fieldsOf(golden, Math.max(Math.min(told.was, 4096), Math.min(size, told.was)))) {
      if (ended || f.at + f.bytes > Math.max(size, Math.min(told.was, 4096))) break;
      if (f.group !== group) rows.append(el("tr", null, el("th", { colspan: 4, scope: "colgroup" }, (group = f.group))));
      const to = Math.min(f.at + f.bytes, size);
      if (to > f.at) {
        rows.append(el("tr", null, el("td", { class: "mono" }, f.at), el("td", { class: "mono" }, hexOf(f.at, to)), el("td", null, f.name), el("td", { class: "mono" }, valueOf(data.subarray(f.at, to), f.type))));
        last = to;
      }
      if (to < f.at + f.bytes) {
        rows.append(el("tr", { class: "cut" }, el("td", null, to), el("td", { colspan: 3 }, `the file ends here, ${number(told.size)} of ${number(told.was)} bytes`)));
        ended = true;
      }
    }
    if (!ended && last < size) {
      rows.append(el("tr", null, el("th", { colspan: 4, scope: "colgroup" }, "beyond the golden")));
      for (let at = last; at < size; at += 8) rows.append(el("tr", null, el("td", { class: "mono" }, at), el("td", { class: "mono" }, hexOf(at, Math.min(at + 8, size))), el("td", null, ""), el("td", null, "")));
    }
    box.append(el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Bytes" }, el("table", { class: "hex" }, rows)));
    if (told.size > 4096) box.append(el("p", { class: "soft" }, `... ${number(told.size - 4096)} more bytes`));
    return box;
  }

  // -- the whole ----------------------------------------------------------------------------------------------------

  document.addEventListener("click", (event) => {
    const button = event.target.closest("#detail .clause-link");
    if (button) {
      if (narrow.matches) close();
      toCases({ clause: button.dataset.clause });
    }
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName || "");
    if (event.key === "Escape") {
      if (!$("detail").hidden) close();
      else if (event.target === $("q") && state.q) change({ q: "" });
    } else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (narrow.matches && !$("detail").hidden) close();
      $("q").focus();
      $("q").select();
    }
  });
  const themes = ["auto", "light", "dark"];
  function theme(name) {
    document.documentElement.dataset.theme = name;
    $("theme").textContent = `Theme: ${name}`;
  }
  try {
    const kept = localStorage.getItem("trajconform-theme");
    if (themes.includes(kept)) theme(kept);
  } catch {
    // A page from a disk may have no storage.
  }
  $("theme").addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length];
    theme(next);
    try {
      localStorage.setItem("trajconform-theme", next);
    } catch {
      // The choice holds until the page is left.
    }
  });
  function measure() {
    document.documentElement.style.setProperty("--bar", `${Math.round($("filters").offsetHeight) + 8}px`);
  }
  addEventListener("resize", measure);
  function arrive() {
    const asked = read();
    show();
    const i = byId.get(state.case);
    if (asked && i !== undefined) open(i, true);
    else if (!$("detail").hidden) {
      $("detail").hidden = true;
      place();
    }
  }
  addEventListener("popstate", arrive);
  place();
  arrive();
})();
