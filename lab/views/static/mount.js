/* --- putting the views in place ---------------------------------------------------------------- */

const VIEWS = { norm: normChoice, spans: spanMass, heads: headMaps, ladder, controls, patching, transfer, reader };
let mounted = 0;

export function initialState(data) {
  return { norm: data.norms[0].name, layer: data.start.layer, head: data.start.head, scope: "head", scaling: "same",
    example: 0, template: true, blanks: false, patch: data.patching.length ? data.patching[0].key : "" };
}

/** Draws every view for which root holds an element with data-view, linked through one store. */
export function mount(root, data, state = {}) {
  const store = createStore({ ...initialState(data), ...state });
  const layer = root.body || root;
  const ctx = { data, store, tip: tooltip(layer), id: `rl${mounted++}` };
  for (const el of root.querySelectorAll("[data-view]")) VIEWS[el.dataset.view](el, ctx);
  for (const button of root.querySelectorAll("button[data-head]")) {
    const [l, head] = button.dataset.head.split(".").map(Number);
    button.addEventListener("click", () => store.set({ layer: l, head, scope: "head" }));
    store.on(["layer", "head"], () => button.setAttribute("aria-pressed", String(store.get("layer") === l && store.get("head") === head)));
  }
  return store;
}

/** Draws one or more views (names of VIEWS) into an empty element: for notebooks. */
export function render(el, data, state = {}, views = ["norm", "heads", "reader"]) {
  el.classList.add("rl");
  el.replaceChildren(...views.map((name) => h("div", { "data-view": name })));
  return mount(el, data, state);
}

export default {
  render({ model, el }) {
    const store = render(el, model.get("data"), model.get("state") || {}, model.get("views") || undefined);
    const shared = ["layer", "head", "example", "norm", "scope"];
    store.on(shared, () => {
      model.set("state", Object.fromEntries(shared.map((key) => [key, store.get(key)])));
      model.save_changes();
    });
    model.on("change:state", () => store.set(model.get("state")));
  },
};
