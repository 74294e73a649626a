/* --- a map of layers x heads -------------------------------------------------------------- */

const inside = (x, n) => Math.max(0, Math.min(n - 1, x)),
  inSet = (heads, layer, head) => heads.some(([l, k]) => l === layer && k === head);

/** All heads of the rectangle with these two corners. */
function rectangle([l1, h1], [l2, h2]) {
  const out = [];
  for (let l = Math.min(l1, l2); l <= Math.max(l1, l2); l++)
    for (let k = Math.min(h1, h2); k <= Math.max(h1, h2); k++) out.push([l, k]);
  return out;
}

/** Adds the chosen head to the set, or takes it out. */
function toggleHead(store, [layer, head] = chosenHead({ store })) {
  const heads = store.get("heads"),
    next = inSet(heads, layer, head) ? heads.filter(([l, k]) => l !== layer || k !== head) : [...heads, [layer, head]];
  store.set({ layer, head, heads: next, scope: next.length ? "set" : "head" });
}

/* spec: value(layer, head), paint(value) -> [css colour name, strength 0..1], describe(layer, head),
   label, summary() (text for screen readers). A click or an arrow key chooses a head in the store;
   dragging, shift with a click or an arrow, and the key s choose a set. */
function headMap(el, ctx, spec) {
  const { layers, heads } = ctx.data,
    { store, tip } = ctx,
    row = rowHeight(layers),
    height = layers * row,
    picture = h("div");
  const frame = h("div.rl-map", keyed(`${spec.label}. ${ctx.words.map_help}`), picture);
  el.append(frame);
  let cells = [], mark = null, set = null, brush = null, step = 1, size = {}, from = null, to = null, anchor = null;
  const place = (node, layer, head) => {
    node.setAttribute("x", AXIS + head * step);
    node.setAttribute("y", layerTop(layers, layer));
    return node;
  };
  const paint = () => {
    for (let i = 0; i < layers * heads; i++) {
      const value = spec.value(Math.floor(i / heads), i % heads),
        [colour, strength] = known(value) ? spec.paint(value) : ["line", 1];
      cells[i].style.fill = `var(--${colour})`;
      cells[i].style.fillOpacity = Math.min(1, Math.max(0, strength)).toFixed(3);
    }
    picture.firstChild.setAttribute("aria-label", spec.summary());
  };
  const select = () => {
    if (!mark) return;
    place(mark, ...chosenHead(ctx));
    set.replaceChildren(...store.get("heads").map(([layer, head]) => place(s("rect", size), layer, head)));
  };
  const draw = width => {
    step = (width - AXIS - 2) / heads;
    const gap = Math.min(2, step * 0.14, row * 0.18);
    size = { width: Math.max(1, step - gap), height: Math.max(1, row - gap), rx: Math.min(2.5, step / 5) };
    cells = upTo(layers * heads, i => place(s("rect", size), Math.floor(i / heads), i % heads));
    const base = cells.map(cell => cell.cloneNode());
    mark = s("rect", { ...size, class: "rl-mark" });
    set = s("g.rl-set");
    brush = s("rect.rl-brush");
    const labels = ticks(heads, Math.min(10, width / 34)).map(head => axisText(AXIS + head * step + step / 2, height + 15, head));
    picture.replaceChildren(drawing(width, height + 36, "",
      layerAxis(layers), s("g.rl-base", ...base), s("g", ...cells),
      s("g.rl-axis", ...labels, axisText(AXIS + (heads * step) / 2, height + 31, "head")), set, mark, brush));
    paint();
    select();
  };
  const at = (event, near) => {
    const box = picture.firstChild.getBoundingClientRect(),
      head = Math.floor((event.clientX - box.left - AXIS) / step),
      layer = layerAt(event, picture, layers);
    if (near) return [inside(layer, layers), inside(head, heads)];
    return head >= 0 && head < heads && layer >= 0 && layer < layers ? [layer, head] : null;
  };
  const choose = (layer, head, patch = { scope: "head" }) =>
    store.set({ layer: inside(layer, layers), head: inside(head, heads), ...patch });
  const outline = () => {
    const all = rectangle(from, to),
      [low, left] = all[0],
      [top, right] = all[all.length - 1];
    place(brush, top, left);
    brush.setAttribute("width", (right - left + 1) * step);
    brush.setAttribute("height", (top - low + 1) * row);
  };
  const leave = () => {
    from = to = null;
    if (brush) brush.setAttribute("width", 0);
  };

  const moves = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  listen(frame, {
    keydown(event) {
      if (forBrowser(event)) return;
      const move = moves[event.key],
        here = chosenHead(ctx);
      if (move) {
        const next = [inside(here[0] + move[0], layers), inside(here[1] + move[1], heads)];
        anchor = event.shiftKey ? anchor || here : null;
        choose(...next, anchor ? { heads: rectangle(anchor, next), scope: "set" } : undefined);
      } else if (event.key === "s") toggleHead(store);
      else if (event.key === "Escape") store.set({ heads: [], scope: "head" });
      else return;
      event.preventDefault();
    },
    blur() { anchor = null; },
  });
  const touch = event => event.pointerType === "touch";
  listen(picture, {
    pointerdown(event) {
      if (event.button) return;
      from = to = at(event);
      if (from && !touch(event)) picture.setPointerCapture(event.pointerId);
    },
    pointermove(event) {
      const cell = at(event);
      picture.style.cursor = cell ? "" : "default";
      if (from && !touch(event)) {
        const now = at(event, true);
        if (same(now, to)) return;
        to = now;
        outline();
      }
      if (cell && !touch(event)) tip.show(event, spec.describe(...cell)); else tip.hide();
    },
    pointerup(event) {
      if (from && !same(from, to)) choose(...from, { heads: rectangle(from, to), scope: "set" });
      else if (from && event.shiftKey) toggleHead(store, from);
      else if (from) choose(...from);
      leave();
    },
    pointercancel: leave,
    pointerleave: () => tip.hide(),
  });
  responsive(picture, draw);
  store.on(["layer", "head", "heads"], select);
  return { repaint: () => cells.length && paint() };
}

/** A colour scale as a labelled bar; stops: [css name, strength] from left to right. */
function scale(stops, labels) {
  const colours = stops.map(([name, strength]) => `color-mix(in srgb, var(--${name}) ${Math.round(100 * strength)}%, var(--cell))`);
  return h("div.rl-scale", { "aria-hidden": "true" },
    h("i", { style: `background:linear-gradient(90deg, ${colours.join(", ")})` }),
    h("div", ...labels.map(label => h("span", label))));
}

/** The set of heads in words, with buttons that change it: for touch, and to see what is in it. */
function setBar(el, ctx) {
  const { store } = ctx,
    list = h("span"),
    toggle = h("button", { onclick: () => toggleHead(store) }),
    clear = h("button", { onclick: () => store.set({ heads: [], scope: "head" }) }, "empty the set");
  el.append(h("div.rl-setbar", toggle, clear, list));
  store.on(["heads", "layer", "head"], () => {
    const heads = store.get("heads"),
      [layer, head] = chosenHead(ctx),
      there = inSet(heads, layer, head);
    toggle.textContent = `${there ? "take" : "add"} ${layer}.${head} ${there ? "out" : "to a set"}`;
    clear.hidden = !heads.length;
    list.textContent = heads.length ? `${count(heads.length, "head")} in the set: ${namesOf(heads)}` : ctx.words.drag;
  });
}

const namesOf = (heads, most = 12) => heads.slice(0, most).map(([l, k]) => `${l}.${k}`).join(", ") + (heads.length > most ? ", \u2026" : "");
