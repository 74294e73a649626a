/* --- choosing an example -------------------------------------------------------------------- */

const LONGEST = 300,
  cut = text => (text.length > LONGEST ? `${text.slice(0, LONGEST)}\u2026 (${text.length} characters)` : text),
  RIGHT = { true: "right", false: "wrong", null: "\u2013" },
  TICK = { true: "\u2713 ", false: "\u2715 ", null: "" },
  EXTRA = 4;

/** A table of all examples of which only the rows in sight are elements, so that thousands are no
    burden. Filters narrow it, column heads sort it, arrow keys and clicks choose. */
function picker(el, ctx) {
  const { words } = ctx,
    { examples, measures } = ctx.data.reader,
    text = examples.map(e => [e.question, e.gold, e.answer, e.id].map(part => part.slice(0, 2000)).join("\n").toLowerCase()),
    filter = ctx.keep("filter", { text: "", sort: "", up: false }),
    tests = [(i, { text: wanted }) => text[i].includes(wanted.toLowerCase())],
    body = h("div.rl-sheet", { role: "presentation" }),
    view = h("div.rl-rows", { role: "rowgroup", tabindex: "-1" }, body),
    tally = said("rl-note");
  const filters = h("div.rl-filters", h("input", { type: "search", placeholder: words.search, "aria-label": "Search examples", value: filter.get("text"),
    oninput: event => filter.set({ text: event.target.value }),
    onkeydown(event) { if (event.key === "Enter") choose(0); else if (event.key === "ArrowDown") grid.focus(); else return; event.preventDefault(); } }));
  /* A menu of what of(example) is in the data, where there is a choice; names: value -> words. */
  const offer = (label, key, every, of, names) => {
    const values = examples.map(e => String(of(e))),
      found = [...new Set(values)].filter(value => !names || names[value]).sort();
    if (found.length < 2) return;
    filters.append(menu(label, [["", every], ...found.map(value => [value, names ? names[value] : cut(value)])], filter, key));
    tests.push((i, { [key]: wanted }) => !wanted || values[i] === wanted);
  };
  offer("Dataset", "dataset", "every dataset", e => e.dataset);
  offer("Kind of question", "family", "every kind", e => e.family);
  offer("Answer in the passage", "answerable", "answerable or not", e => e.answerable, { true: "answerable", false: "unanswerable" });
  offer("Outcome", "outcome", "every outcome", e => [e.right, e.judged_right], words.outcomes);
  offer("Texts", "here", "text here or not", e => Boolean(e.roles), { true: "text here", false: "text not here" });

  const sorter = m => h("button", { title: m.note, onclick: () => {
    const [name, up] = [filter.get("sort"), filter.get("up")];
    filter.set(name !== m.name ? { sort: m.name, up: false } : up ? { sort: "", up: false } : { up: true });
  } }, m.label);
  const heads = measures.map(m => h("div", { role: "columnheader", class: "num" }, sorter(m))),
    columns = ["question", "kind", "answered", "judged"];
  const head = h("div.rl-head", { role: "row", "aria-rowindex": "1" },
    ...columns.map(label => h("div", { role: "columnheader" }, label)), ...heads);
  const grid = h("div.rl-examples", { role: "grid", tabindex: "0", "aria-label": "Examples", style: `--measures:${measures.length}` }, head, view),
    step = (by, label) => h("button", { onclick: () => move(by) }, label);
  el.append(h("div.rl-picker", filters, grid, h("div.rl-steps", step(-1, "\u2039 previous"), step(1, "next \u203a"), tally),
    h("details", h("summary", words.columns), ...measures.map(m => h("p.rl-note", h("b", m.label), ": " + m.note)))));

  let shown = [], height = 38;
  const here = () => shown.indexOf(ctx.store.get("example")),
    choose = at => shown.length && ctx.store.set({ example: shown[inside(at, shown.length)] }),
    move = by => choose(here() < 0 ? 0 : here() + by),
    cell = (names, text, label) => h("div." + names, { role: "gridcell", dir: "auto", "data-label": label }, text),
    ok = (flag, role, label) => cell(role, TICK[flag] + RIGHT[flag], label);
  const entry = at => {
    const e = examples[shown[at]],
      sorted = filter.get("sort");
    return h("div", { class: `rl-option${e.roles || ctx.live ? "" : " rl-faint"}`, role: "row", id: `${ctx.id}-ex-${shown[at]}`, "data-i": shown[at], "aria-rowindex": at + 2,
      "aria-selected": String(shown[at] === ctx.store.get("example")), style: `top:${at * height}px` },
    cell("rl-q", cut(e.question)), cell("rl-kind", cut(e.family)), ok(e.right, "generator", "answers"), ok(e.judged_right, "evaluator", "judges"),
    ...measures.map(({ name, label, digits, signed }) =>
      cell(name === sorted ? "num.rl-sorted" : "num", (signed && e.measures[name] > 0 ? "+" : "") + fixed(e.measures[name], digits), label)));
  };
  const draw = () => {
    const first = Math.max(0, Math.floor(view.scrollTop / height) - EXTRA),
      last = Math.min(shown.length, Math.ceil((view.scrollTop + view.clientHeight) / height) + EXTRA);
    body.replaceChildren(...upTo(Math.max(0, last - first), k => entry(first + k)));
    const now = body.querySelector("[aria-selected=true]");
    grid.setAttribute("aria-activedescendant", now ? now.id : "");
  };
  const reveal = () => {
    const at = here();
    if (at >= 0 && at * height < view.scrollTop) view.scrollTop = at * height;
    else if ((at + 1) * height > view.scrollTop + view.clientHeight) view.scrollTop = (at + 1) * height - view.clientHeight;
    draw();
  };
  const say = () => {
    const lost = here() < 0 ? words.lost : "";
    tally.textContent = shown.length ? `${shown.length} of ${count(examples.length, "example")}${lost}` : words.no_fit;
  };
  const resize = () => {
    view.style.height = `${Math.min(9, Math.max(1, shown.length)) * height}px`;
    body.style.height = `${shown.length * height}px`;
  };
  const fill = () => {
    shown = [...examples.keys()].filter(i => tests.every(fits => fits(i, filter.all())));
    const [name, sign] = [filter.get("sort"), filter.get("up") ? 1 : -1],
      by = i => examples[i].measures[name];
    if (name) shown.sort((a, b) => !known(by(a)) - !known(by(b)) || sign * (by(a) - by(b)) || a - b);
    heads.forEach((node, k) => {
      const on = measures[k].name === name;
      node.setAttribute("aria-sort", on ? (sign > 0 ? "ascending" : "descending") : "none");
    });
    grid.setAttribute("aria-rowcount", shown.length + 1);
    say();
    resize();
    view.scrollTop = 0;
    draw();
  };
  view.onscroll = draw;
  view.onclick = event => {
    const node = event.target.closest(".rl-option");
    if (node) ctx.store.set({ example: Number(node.dataset.i) });
  };
  onKeys(grid, { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -1e9, End: 1e9 }, move);
  responsive(grid, width => {
    height = width < 719 ? 58 : 38; // as the rules have it
    resize();
    reveal();
  });
  filter.on(["text", "dataset", "family", "answerable", "outcome", "here", "sort", "up"], fill);
  ctx.store.on(["example", "loaded"], () => {
    reveal();
    say();
  });
}
