/* Role Lens: the views of one study, drawn from plain JSON data. No dependency, no network.
   A page calls mount(root, data); a notebook widget calls the default export's render.
   All text from data reaches the page through text nodes and attributes, never as markup. */

const SVG = "http://www.w3.org/2000/svg",
  ROLES = ["generator", "evaluator"],
  WHEN = { generator: "when answering", evaluator: "when judging" },
  NB = "\u00a0";

/* --- words and numbers ------------------------------------------------------------------ */

const known = x => x != null && !Number.isNaN(x),
  minus = text => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "\u2212")),
  /* The same numbers as in format.py: more decimals where x would round onto none, no difference. */
  apart = (x, digits, none) => {
    let d = digits;
    while (d < 4 && x !== none && Number(x.toFixed(d)) === none) d++;
    return minus(x.toFixed(d < 4 ? d : digits));
  },
  fixed = (x, digits = 2) => (known(x) ? apart(x, digits, 0) : "\u2013"),
  format = text => (x, least = 0) => (known(x) ? text(x, least) : "\u2013"),
  points = format((x, least) => apart(100 * x, Math.max(Math.abs(x) < 0.0995 ? 1 : 0, least), 0)),
  percent = format((x, least) => apart(100 * x, Math.max(Math.abs(x) < 0.0995 && Math.abs(x) >= 0.00005 ? 1 : 0, least)) + NB + "%"),
  times = format((x, least) => apart(x, Math.max(x < 1.995 ? 2 : x < 9.95 ? 1 : 0, least), 1) + NB + "\u00d7"),
  chance = q => (q < 0.001 ? "q < .001" : "q = " + q.toFixed(3).replace(/^0/, "")),
  range = (low, high, form) => {
    if (!known(low) || low === high) return "";
    let least = Math.max(...[low, high].map(x => (form(x).split(NB)[0].split(".")[1] || "").length));
    while (least < 3 && form(low, least) === form(high, least)) least++;
    return ` [${form(low, least)}, ${form(high, least)}]`;
  },
  total = values => values.reduce((sum, x) => sum + (x || 0), 0),
  largestAt = values => values.reduce((best, x, i) => (Math.abs(x) > Math.abs(values[best]) ? i : best), 0),
  /* What value(i) gives of each span, in words, from the largest down. */
  ranked = (spans, value, form, least = 0) => spans.map(({ label }, i) => [label, value(i)])
    .filter(([, x]) => known(x) && x >= least).sort((a, b) => b[1] - a[1]).map(([label, x]) => `${label} ${form(x)}`),
  count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/* --- elements --------------------------------------------------------------------------- */

/* h("p.name", { attributes }, ...children): an element; the attributes may be left out. A child is
   text or a node, or null for nothing; "on..." is a listener. */
const maker = create => (what, ...children) => {
  const [tag, ...names] = what.split("."),
    node = create(tag),
    given = children[0] && children[0].constructor === Object ? children.shift() : {};
  if (names.length) node.setAttribute("class", names.join(" "));
  if (tag === "button") node.type = "button";
  for (const [name, value] of Object.entries(given)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter(child => child != null));
  return node;
};
const h = maker(tag => document.createElement(tag)),
  s = maker(tag => document.createElementNS(SVG, tag));

/** Attributes of what takes the keys: how it is called, and what they do. */
const keyed = label => ({ tabindex: "0", role: "group", "aria-label": label });

/** f(0), f(1), ... f(n - 1). */
const upTo = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** Adds listeners by name. */
const listen = (node, calls) => Object.entries(calls).forEach(([name, call]) => node.addEventListener(name, call));

/** A small state container: views listen to the keys they show, so linked views stay in step. */
function createStore(initial) {
  let state = { ...initial };
  const listeners = [];
  return {
    get: key => state[key],
    all: () => state,
    set(patch) {
      const changed = Object.keys(patch).filter(key => !same(state[key], patch[key]));
      if (!changed.length) return;
      state = { ...state, ...patch };
      for (const { keys, draw } of listeners) if (keys.some(key => changed.includes(key))) draw();
    },
    on(keys, draw) {
      listeners.push({ keys, draw });
      draw();
    },
  };
}

const said = names => h("p." + names, { role: "status" }),
  panel = (title, ...children) => h("div.rl-panel", h("h4", title), ...children),
  columnHeads = labels => h("thead", h("tr", ...labels.map(label => h("th", { scope: "col" }, label)))),
  bar = (from, share, names = "") => h(from ? "span.rl-bar.rl-zero" : "span.rl-bar", { "aria-hidden": "true" }, h("i", { style: `left:${100 * Math.min(from, from + share)}%;width:${100 * Math.abs(share)}%`, class: names })),
  verdictOf = log_odds => (log_odds > 0 ? "accept" : "reject"),
  linePath = points => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""),
  curve = (points, colour) => s("path.rl-line", { d: linePath(points), stroke: `var(--${colour})` }),
  guide = (x, height, strong) => s(strong ? "path.rl-grid.rl-strong" : "path.rl-grid", { d: `M${x} 0V${height}` });

/** Makes a button choose a head; returns how to show it pressed while that head is chosen. */
function choosesHead(button, store, layer, head) {
  button.onclick = () => store.set({ layer, head, scope: "head" });
  return () => button.setAttribute("aria-pressed", store.get("layer") === layer && store.get("head") === head);
}
const chosenHead = ({ store }) => [store.get("layer"), store.get("head")];
const absent = (el, what) => void el.append(h("p.rl-note", what));

const forBrowser = event => event.altKey || event.ctrlKey || event.metaKey; // Alt and an arrow: back

/** Calls act(by) for the keys in moves, unless they are pressed in something inside of the node. */
const onKeys = (node, moves, act) => listen(node, {
  keydown(event) {
    const by = moves[event.key];
    if (!by || event.target !== node || forBrowser(event)) return;
    event.preventDefault();
    act(by);
  },
});

/** Calls draw(width) now and whenever the element's width changes. */
function responsive(el, draw) {
  let width = 0;
  const check = () => {
    const now = Math.floor(el.clientWidth);
    if (now > 0 && now !== width) draw((width = now));
  };
  new ResizeObserver(check).observe(el);
  check();
  return () => width > 0 && draw(width);
}

/** A box at the pointer, in the top layer of the page where nothing around the views cuts it off. */
function tooltip(root) {
  const box = h("div.rl-tip", { popover: "manual", "aria-hidden": "true" });
  root.append(box);
  let on = false;
  return {
    show(event, text) {
      if (!text) return this.hide();
      box.textContent = text;
      if (!on && box.isConnected && box.showPopover) box.showPopover();
      on = true;
      const { width, height } = box.getBoundingClientRect(),
        left = Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8)),
        below = event.clientY + 18;
      box.style.left = left + "px";
      box.style.top = (below + height > innerHeight - 8 ? event.clientY - height - 12 : below) + "px";
    },
    hide() {
      if (on && box.isConnected && box.hidePopover) box.hidePopover();
      on = false;
    },
  };
}

/** A row of buttons of which one is pressed. options: [value, label, hint]. */
function choice(label, options, store, key) {
  const buttons = options.map(([value, text, hint]) =>
    h("button", { title: hint, onclick: () => store.set({ [key]: value }) }, text));
  store.on([key], () => buttons.forEach((button, i) =>
    button.setAttribute("aria-pressed", options[i][0] === store.get(key))));
  return h("div.rl-choice", { role: "group", "aria-label": label }, h("span", label), ...buttons);
}

/** A labelled menu that sets a key of a store. options: [value, text]. */
function menu(label, options, store, key) {
  return h("label.rl-menu", h("span", label),
    h("select", { "aria-label": label, onchange: event => store.set({ [key]: event.target.value }) },
      ...options.map(([value, text]) => h("option", { value, selected: value === store.get(key) }, text))));
}

function legend(items) {
  return h("div.rl-legend", ...items.map(([css, label]) => h("span", h("i", { style: `background:var(--${css})` }), label)));
}

/* --- the layer axis: the same in every figure, layer 0 at the bottom --------------------- */

const AXIS = 36,
  rowHeight = layers => Math.max(7, Math.min(15, 400 / layers)),
  layerTop = (layers, layer) => (layers - 1 - layer) * rowHeight(layers);

function ticks(n, most = 8) {
  const step = [1, 2, 4, 5, 10, 20, 25, 50, 100].find(size => n / size <= most) || 200;
  return upTo(Math.ceil(n / step), i => i * step);
}

/** Values by layer as the points of a line, without those that are not known. */
const byLayer = (values, x) => values.map((value, layer) => [value, layerTop(values.length, layer - 0.5)])
  .filter(([value]) => known(value)).map(([value, middle]) => [x(value), middle]);

const axisText = (x, y, text, anchor = "middle") => s("text", { x, y, "text-anchor": anchor }, text);

function layerAxis(layers) {
  const labels = ticks(layers, 9).map(layer =>
    axisText(AXIS - 7, layerTop(layers, layer) + rowHeight(layers) / 2 + 4, layer, "end"));
  const middle = (layers * rowHeight(layers)) / 2;
  return s("g.rl-axis", ...labels,
    s("text", { transform: `translate(9 ${middle}) rotate(-90)`, "text-anchor": "middle" }, "layer"));
}

/** The layer at which an event points in a figure; none if it is beside the layers. */
const layerAt = (event, figure, layers) =>
  layers - 1 - Math.floor((event.clientY - figure.getBoundingClientRect().top) / rowHeight(layers));

/** Shows say(layer) while the pointer is over a layer of a figure. */
function hoverLayers(svg, { data: { layers }, tip }, say) {
  listen(svg, {
    pointermove(event) {
      const layer = layerAt(event, svg, layers);
      tip.show(event, layer >= 0 && layer < layers && say(layer));
    },
    pointerleave: () => tip.hide(),
  });
}

const drawing = (width, height, label, ...parts) => s("svg", { role: "img", width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": label }, ...parts);
const rect = (x, y, width, height, attributes) =>
  s("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...attributes });
