/* --- what a head map can show ------------------------------------------------------------------ */

const normOf = ctx => ctx.data.norms.find(norm => norm.name === ctx.store.get("norm")),
  formatOf = norm => (norm.unit === "share" ? percent : times),
  gapOf = norm => (norm.unit === "share" ? points : fixed),
  largest = values => values.reduce((top, value) => (known(value) ? Math.max(top, Math.abs(value)) : top), 1e-9),
  patchOf = (ctx, key) => ctx.data.patching.find(p => p.key === key);

const measureChoice = ({ data, store }) => choice("Measure", data.norms.map(n => [n.name, n.label, n.note]), store, "norm");

function normChoice(el, ctx) {
  const note = h("p.rl-note");
  el.append(measureChoice(ctx), note);
  ctx.store.on(["norm"], () => { note.textContent = normOf(ctx).note; });
}

/** One quantity by head: its map of value, low, high and q; colours and limit of its scale; texts.
    which: a role, "difference", the key of a patching sweep, or a sweep itself. */
function quantityOf(ctx, which) {
  const patch = which.head ? which : patchOf(ctx, which);
  if (patch) {
    const limit = Math.max(0.05, largest(patch.head.value));
    return { map: patch.head, limit, colours: ["less", "more"], form: fixed, label: "restoration R: " + sweepOf(patch),
      ends: ["R = \u2212" + fixed(limit), "0", "+" + fixed(limit)], note: `${patch.note} ${patch.used}`,
      words: (layer, head, long) => patchWords(patch, ctx.data.heads, layer, head, long) };
  }
  const norm = normOf(ctx),
    maps = ctx.data.maps[norm.name],
    share = norm.unit === "share",
    words = (layer, head, long) => headWords(ctx, layer, head, long),
    about = `${norm.of} on the passage, mean over examples, n${NB}=${NB}${ctx.data.n}`;
  if (which === "difference") {
    const limit = largest(maps.difference.value),
      top = share ? `${points(limit)} points` : fixed(limit);
    return { map: maps.difference, limit, colours: ["eva", "gen"], form: gapOf(norm), words, label: "generator minus evaluator",
      ends: ["\u2212" + top, "0", "+" + top], note: `Difference of ${about}${share ? "; in percentage points" : ""}.` };
  }
  const limit = Math.max(...ROLES.map(role => largest(maps[role].value)));
  return { map: maps[which], limit, colours: [null, which.slice(0, 3)], form: formatOf(norm), words, label: which,
    ends: ["0", formatOf(norm)(limit)], note: `Share: ${about}, ${WHEN[which]}.` };
}

function headWords(ctx, layer, head, long = false) {
  const norm = normOf(ctx),
    maps = ctx.data.maps[norm.name],
    i = layer * ctx.data.heads + head,
    share = norm.unit === "share",
    form = formatOf(norm),
    [answering, judging] = ROLES.map(role => maps[role].value[i]),
    { value, low, high, q } = maps.difference,
    amount = `${form(answering)} ${share ? "of its " + norm.of : "its even share"} on the passage`,
    gap = known(value[i]) ? gapOf(norm)(value[i]) + (share ? " points" : "") : "\u2013",
    interval = long ? range(low[i], high[i], gapOf(norm)) : "";
  return `Layer ${layer}, head ${head}: ${amount} when answering, ${form(judging)} when judging; difference ${gap}${interval}${tested(q, i)}.`;
}

function patchWords(patch, heads, layer, head, long = false) {
  const { value, low, high, q, flip } = patch.head,
    i = layer * heads + head;
  return `Layer ${layer}, head ${head}: R = ${fixed(value[i])}${long ? range(low[i], high[i], fixed) : ""}${tested(q, i)}${flips(flip[i])}.`;
}

const flips = share => (known(share) ? `, the first choice changes in ${percent(share)} of the runs` : ""),
  tested = (q, i) => (q && known(q[i]) ? ", " + chance(q[i]) : "");

function elsewhere(ctx, layer, head) {
  const { spans, where, heads } = ctx.data,
    i = layer * heads + head;
  const say = role => `${WHEN[role]}: ${ranked(spans, k => where[role][i * spans.length + k], percent).slice(0, 3).join(", ")}`;
  return `Where its attention is, ${ROLES.map(say).join("; ")}.`;
}

/** A map of the quantity that now() names, with its scale; returns how to draw it anew. */
function quantityMap(box, ctx, label, now) {
  const bar = h("div");
  let shown = quantityOf(ctx, now());
  const summary = () => {
    const top = largestAt(shown.map.value);
    return `${shown.label}: ${count(shown.map.value.length, "head")}; the strongest is ${shown.words(...ctx.headAt(top), true)}`;
  };
  const map = headMap(box, ctx, {
    label, summary,
    value: (layer, head) => shown.map.value[layer * ctx.data.heads + head],
    paint: value => [shown.colours[value < 0 ? 0 : 1] || shown.colours[1], Math.abs(value) / shown.limit],
    describe: (layer, head) => shown.words(layer, head),
  });
  box.append(bar);
  return () => {
    shown = quantityOf(ctx, now());
    const [low, high] = shown.colours;
    bar.replaceChildren(scale(low ? [[low, 1], ["cell", 0], [high, 1]] : [[high, 0], [high, 1]], shown.ends));
    map.repaint();
    return shown;
  };
}

function sayHead(el, ctx, name) {
  const line = said("rl-readout");
  el.append(line);
  ctx.store.on(["layer", "head", "norm", "quantity"], () => {
    const at = chosenHead(ctx);
    line.replaceChildren(h("b", quantityOf(ctx, name()).words(...at, true)), " ", ctx.data.where.generator.length ? elsewhere(ctx, ...at) : "");
  });
}

/** Three maps side by side: attention on the passage in each role, and the difference. */
function threeMaps(el, ctx) {
  if (!ctx.data.maps.raw.generator.value.length) return absent(el, ctx.words.no_attention);
  const grid = h("div.rl-maps");
  el.append(grid);
  const panels = [...ROLES, "difference"].map(name => {
    const { label } = quantityOf(ctx, name),
      box = h("div.rl-panel.rl-map-" + name, h("h4." + name, label));
    grid.append(box);
    return quantityMap(box, ctx, `${ctx.words.map} ${label}`, () => name);
  });
  ctx.store.on(["norm"], () => panels.forEach(update => update()));
  setBar(el, ctx);
  sayHead(el, ctx, () => "difference");
}

/** One map of a quantity of one's choice, and the ten heads in which it is largest. */
function headsView(el, ctx) {
  const { data, store } = ctx;
  if (!data.quantities.length) return absent(el, ctx.words.no_heads);
  const name = () => store.get("quantity"),
    title = h("h4"), note = h("p.rl-note"),
    map = h("div.rl-panel", title), list = h("div.rl-panel.rl-scroll"),
    choose = menu("Show", data.quantities.map(q => [q.name, q.label]), store, "quantity");
  el.append(h("div.rl-controls", choose), h("div.rl-two", map, list), note);
  const update = quantityMap(map, ctx, "Map of layers and heads", name);
  setBar(el, ctx);
  sayHead(el, ctx, name);
  let buttons = [];
  const press = () => buttons.forEach(show => show());
  const entry = shown => i => {
    const { value, low, high, q } = shown.map,
      name = ctx.headAt(i).join("."),
      button = h("button", { "aria-label": "Show head " + name }, name);
    buttons.push(choosesHead(button, store, ...ctx.headAt(i)));
    const cell = text => h("td.num", text || "\u2013");
    return h("tr", h("th", { scope: "row" }, button), cell(shown.form(value[i])), cell(range(low[i], high[i], shown.form)), q && cell(known(q[i]) && chance(q[i])));
  };
  store.on(["quantity", "norm"], () => {
    const shown = update();
    title.textContent = shown.label;
    title.className = ROLES.includes(name()) ? name() : "";
    note.textContent = `${shown.note} ${ctx.words.overstated}`;
    choose.lastChild.value = name();
    const order = shown.map.value.map((_, i) => i).filter(i => known(shown.map.value[i]))
      .sort((a, b) => Math.abs(shown.map.value[b]) - Math.abs(shown.map.value[a])).slice(0, 10);
    buttons = [];
    const columns = ["head", "value", "interval", ...(shown.map.q ? ["corrected p"] : [])];
    list.replaceChildren(h("h4", "the ten largest"), h("table.rl-table.rl-ten", columnHeads(columns), h("tbody", ...order.map(entry(shown)))));
    press();
  });
  store.on(["layer", "head"], press);
}
