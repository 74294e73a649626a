/* Role Lens: the views of one study, drawn from plain JSON data. No dependency, no network.
   A page calls mount(root, data); a notebook widget calls render(el, data, state).
   All text from data reaches the page through text nodes and attributes, never as markup. */

const SVG = "http://www.w3.org/2000/svg";
const ROLES = ["generator", "evaluator"];
const WHEN = { generator: "when answering", evaluator: "when judging" };
const NB = "\u00a0";

/* --- words and numbers ------------------------------------------------------------------ */

const known = (x) => x != null && !Number.isNaN(x);
const minus = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "\u2212"));
const fixed = (x, digits = 2) => (known(x) ? minus(x.toFixed(digits)) : "\u2013");
function percent(x) {
  if (!known(x)) return "\u2013";
  const p = 100 * x;
  return minus(p.toFixed(Math.abs(p) >= 9.95 || Math.abs(p) < 0.005 ? 0 : 1)) + NB + "%";
}
const points = (x) => (known(x) ? minus((100 * x).toFixed(Math.abs(x) >= 0.0995 ? 0 : 1)) : "\u2013");
const times = (x) => (known(x) ? x.toFixed(x < 0.995 ? 2 : x < 9.95 ? 1 : 0) + NB + "\u00d7" : "\u2013");
const chance = (q) => (q < 0.001 ? "q < .001" : "q = " + q.toFixed(3).replace(/^0/, ""));
const range = (low, high, format) => (known(low) ? ` [${format(low)}, ${format(high)}]` : "");
const largestAt = (values) => values.reduce((best, x, i) => (Math.abs(x) > Math.abs(values[best]) ? i : best), 0);
const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/* --- elements --------------------------------------------------------------------------- */

const maker = (create) => (tag, attributes = {}, ...children) => {
  const node = create(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
};
const h = maker((tag) => document.createElement(tag));
const s = maker((tag) => document.createElementNS(SVG, tag));

/** A small state container: views listen to the keys they show, so linked views stay in step. */
export function createStore(initial) {
  let state = { ...initial };
  const listeners = [];
  return {
    get: (key) => state[key],
    set(patch) {
      const changed = Object.keys(patch).filter((key) => state[key] !== patch[key]);
      if (!changed.length) return;
      state = { ...state, ...patch };
      for (const { keys, draw } of listeners) if (keys.some((key) => changed.includes(key))) draw();
    },
    on(keys, draw) {
      listeners.push({ keys, draw });
      draw();
    },
  };
}

const readoutLine = () => h("p", { class: "rl-readout", role: "status", "aria-live": "polite" });
const absent = (el, what) => void el.append(h("p", { class: "rl-note" }, what));

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

function tooltip(root) {
  const box = h("div", { class: "rl-tip", "aria-hidden": "true" });
  root.append(box);
  return {
    show(event, text) {
      if (!text) return this.hide();
      box.textContent = text;
      box.classList.add("on");
      const { width, height } = box.getBoundingClientRect();
      const left = Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8));
      const below = event.clientY + 18;
      box.style.left = left + "px";
      box.style.top = (below + height > innerHeight - 8 ? event.clientY - height - 12 : below) + "px";
    },
    hide: () => box.classList.remove("on"),
  };
}

/** A row of buttons of which one is pressed. options: [value, label, hint]. */
function choice(label, options, store, key) {
  const group = h("div", { class: "rl-choice", role: "group", "aria-label": label });
  group.append(h("span", { class: "rl-choice-label" }, label));
  const buttons = options.map(([value, text, hint]) =>
    h("button", { type: "button", title: hint, onclick: () => store.set({ [key]: value }) }, text));
  group.append(...buttons);
  store.on([key], () => buttons.forEach((button, i) =>
    button.setAttribute("aria-pressed", String(options[i][0] === store.get(key)))));
  return group;
}

function legend(items) {
  const entry = ([css, label]) =>
    h("span", {}, h("i", { style: `background:var(--${css})`, "aria-hidden": "true" }), label);
  return h("div", { class: "rl-legend" }, ...items.map(entry));
}

/* --- the layer axis: the same in every figure, layer 0 at the bottom --------------------- */

const AXIS = 36;
const rowHeight = (layers) => Math.max(7, Math.min(15, 400 / layers));
const layerTop = (layers, layer) => (layers - 1 - layer) * rowHeight(layers);

function ticks(n, most = 8) {
  const step = [1, 2, 4, 5, 10, 20, 25, 50, 100].find((size) => n / size <= most) || 200;
  return Array.from({ length: Math.ceil(n / step) }, (_, i) => i * step);
}

function layerAxis(layers) {
  const labels = ticks(layers, 9).map((layer) =>
    s("text", { x: AXIS - 7, y: layerTop(layers, layer) + rowHeight(layers) / 2 + 4, "text-anchor": "end" }, String(layer)));
  const middle = (layers * rowHeight(layers)) / 2;
  return s("g", { class: "rl-axis" }, ...labels,
    s("text", { transform: `translate(9 ${middle}) rotate(-90)`, "text-anchor": "middle" }, "layer"));
}

/** Shows say(layer) while the pointer is over a layer of a figure. */
function hoverLayers(svg, { data: { layers }, tip }, say) {
  svg.addEventListener("pointermove", (event) => {
    const layer = layers - 1 - Math.floor((event.clientY - svg.getBoundingClientRect().top) / rowHeight(layers));
    tip.show(event, layer >= 0 && layer < layers && say(layer));
  });
  svg.addEventListener("pointerleave", () => tip.hide());
}

const rect = (x, y, width, height, attributes) =>
  s("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...attributes });
