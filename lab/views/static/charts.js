/* --- a map of layers x heads -------------------------------------------------------------- */

/* spec: value(layer, head), paint(value) -> [css colour name, strength 0..1], describe(layer, head),
   label, summary() (text for screen readers). Clicks and arrow keys choose a head in the store. */
function headMap(el, ctx, spec) {
  const { layers, heads } = ctx.data;
  const { store, tip } = ctx;
  const row = rowHeight(layers);
  const height = layers * row;
  const picture = h("div", { class: "rl-map-picture" });
  const frame = h("div", {
    class: "rl-map", tabindex: "0", role: "group",
    "aria-label": spec.label + ". Arrow keys choose a head.",
  }, picture);
  el.append(frame);
  let cells = [];
  let mark = null;
  let step = 1;
  const place = (node, layer, head) => {
    node.setAttribute("x", AXIS + head * step);
    node.setAttribute("y", layerTop(layers, layer));
  };
  const paint = () => {
    for (let layer = 0; layer < layers; layer++)
      for (let head = 0; head < heads; head++) {
        const value = spec.value(layer, head);
        const [colour, strength] = known(value) ? spec.paint(value) : ["line", 1];
        const cell = cells[layer * heads + head];
        cell.style.fill = `var(--${colour})`;
        cell.style.fillOpacity = Math.min(1, Math.max(0, strength)).toFixed(3);
      }
    const svg = picture.firstChild;
    if (svg) svg.setAttribute("aria-label", spec.summary());
  };
  const select = () => mark && place(mark, store.get("layer"), store.get("head"));
  const draw = (width) => {
    step = (width - AXIS - 2) / heads;
    const gap = Math.min(2, step * 0.14, row * 0.18);
    const size = { width: Math.max(1, step - gap), height: Math.max(1, row - gap), rx: Math.min(2.5, step / 5) };
    cells = Array.from({ length: layers * heads }, (_, i) => s("rect", size));
    cells.forEach((cell, i) => place(cell, Math.floor(i / heads), i % heads));
    const base = cells.map((cell) => cell.cloneNode());
    mark = s("rect", { ...size, class: "rl-mark" });
    const labels = ticks(heads, Math.min(10, width / 34)).map((head) =>
      s("text", { x: AXIS + head * step + step / 2, y: height + 15, "text-anchor": "middle" }, String(head)));
    const word = s("text", { x: AXIS + (heads * step) / 2, y: height + 31, "text-anchor": "middle" }, "head");
    picture.replaceChildren(s("svg", { role: "img", width, height: height + 36, viewBox: `0 0 ${width} ${height + 36}` },
      layerAxis(layers), s("g", { class: "rl-base" }, ...base), s("g", {}, ...cells),
      s("g", { class: "rl-axis" }, ...labels, word), mark));
    paint();
    select();
  };
  const at = (event) => {
    const box = picture.firstChild.getBoundingClientRect();
    const head = Math.floor((event.clientX - box.left - AXIS) / step);
    const layer = layers - 1 - Math.floor((event.clientY - box.top) / row);
    return head >= 0 && head < heads && layer >= 0 && layer < layers ? [layer, head] : null;
  };
  const choose = (layer, head) => store.set({
    layer: Math.max(0, Math.min(layers - 1, layer)), head: Math.max(0, Math.min(heads - 1, head)), scope: "head",
  });
  const moves = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  frame.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    choose(store.get("layer") + move[0], store.get("head") + move[1]);
  });
  picture.addEventListener("click", (event) => { const cell = at(event); if (cell) choose(...cell); });
  picture.addEventListener("pointermove", (event) => {
    const cell = at(event);
    picture.style.cursor = cell ? "pointer" : "";
    if (cell && event.pointerType !== "touch") tip.show(event, spec.describe(...cell)); else tip.hide();
  });
  picture.addEventListener("pointerleave", () => tip.hide());
  responsive(picture, draw);
  store.on(["layer", "head"], select);
  return { repaint: () => cells.length && paint() };
}

/** A colour scale as a labelled bar; stops: [css name, strength] from left to right. */
function scale(stops, labels) {
  const colours = stops.map(([name, strength]) => `color-mix(in srgb, var(--${name}) ${Math.round(100 * strength)}%, var(--cell))`);
  return h("div", { class: "rl-scale", "aria-hidden": "true" },
    h("i", { style: `background:linear-gradient(90deg, ${colours.join(", ")})` }),
    h("div", {}, ...labels.map((label) => h("span", {}, label))));
}

/* --- dots with intervals ------------------------------------------------------------------ */

/* One track: estimate {value, low, high, n} on [from, to], with guide lines. */
function track(estimate, { domain: [from, to], guides, colour }) {
  const at = (x) => (100 * (Math.max(from, Math.min(to, x)) - from)) / (to - from);
  const lines = guides.map((x) => h("i", { class: "rl-guide", style: `left:${at(x)}%` }));
  const box = h("div", { class: "rl-track" }, ...lines);
  if (estimate && known(estimate.value)) {
    if (known(estimate.low)) {
      const [low, high] = [at(estimate.low), at(estimate.high)];
      box.append(h("i", { class: "rl-ci", style: `left:${low}%;width:${high - low}%;background:var(--${colour})` }));
    }
    box.append(h("i", { class: "rl-dot", style: `left:${at(estimate.value)}%;background:var(--${colour})` }));
  }
  const text = estimate && known(estimate.value)
    ? h("div", { class: "rl-num" }, fixed(estimate.value), h("small", {}, range(estimate.low, estimate.high, fixed)))
    : h("div", { class: "rl-num" }, "\u2013");
  return h("div", { class: "rl-cell" }, box, text);
}

/* columns: {label, domain, guides, colour, ends}; rows: {label, note, n, cells}. */
function dotRows(el, columns, rows, title) {
  const said = (row) => columns.map((column, i) => `${column.label} ${fixed(row.cells[i]?.value)}`);
  const summary = rows.map((row) => `${row.label}: ${said(row).join(", ")}`).join("; ");
  const head = h("div", { class: "rl-row rl-row-head", "aria-hidden": "true" }, h("div", {}),
    ...columns.map((column) => h("div", {}, h("b", {}, column.label),
      h("div", { class: "rl-ends" }, ...column.ends.map((end) => h("span", {}, end))))));
  const body = rows.map((row) => h("div", { class: "rl-row" },
    h("div", { class: "rl-row-label" }, h("b", {}, row.label), h("small", {}, `${row.note} n${NB}=${NB}${row.n}`)),
    ...columns.map((column, i) => h("div", { "data-label": column.label }, track(row.cells[i], column)))));
  el.append(h("div", { class: columns.length > 2 ? "rl-many" : null, role: "img", "aria-label": `${title}. ${summary}.`, style: `--columns:${columns.length}` }, head, ...body));
}
