/* --- putting the views in place ---------------------------------------------------------------- */

const VIEWS = { norm: normChoice, spans: spanMass, maps: threeMaps, heads: headsView, flow: spanFlow, patching, picker, reader, bench },
  SHARED = ["example", "layer", "head", "heads", "scope", "role", "norm", "quantity"];

/** The keys of a selection that views share; Python checks the values. */
const selection = state => Object.fromEntries(SHARED.filter(key => state && state[key] != null).map(key => [key, state[key]]));

function initialState({ norms, start, quantities, reader: { examples }, patching: [patch] }) {
  const quantity = quantities.find(({ name }) => name === "difference") || quantities[0];
  return { norm: norms[0].name, ...start, heads: [], scope: "head", role: "generator", quantity: quantity ? quantity.name : "",
    example: Math.max(0, examples.findIndex(e => e.roles)), scaling: "same", template: true, blanks: false,
    patch: patch ? patch.key : "", loaded: 0, asked: -1, failed: "" };
}

/** Draws every view for which root holds an element with data-view, linked through one store.
    live, in a notebook: what reaches the model. kept: what is set in the views beside the selection, by
    name; given again, it is as it was. */
export function mount(root, data, state = {}, live = null, kept = {}) {
  const keep = (name, values) => (kept[name] = createStore({ ...values, ...(kept[name] && kept[name].all()) }));
  const store = keep("views", initialState(data));
  store.set({ asked: -1, failed: "", ...selection(state) });
  const ctx = { data, store, live, keep, words: data.words, tip: tooltip(root.body || root), sides: opener(data, store), id: "rl" + Math.random().toString(36).slice(2),
    example: () => data.reader.examples[store.get("example")], headAt: i => [Math.floor(i / data.heads), i % data.heads] };
  for (const el of [...root.querySelectorAll("[data-view]")]) VIEWS[el.dataset.view](el, ctx);
  for (const button of root.querySelectorAll("button[data-head]")) store.on(["layer", "head"], choosesHead(button, store, ...button.dataset.head.split(".").map(Number)));
  return store;
}

/** Draws one or more views (names of VIEWS) into an element, whose content they replace. */
export function renderViews(el, data, state = {}, views = ["picker", "norm", "heads", "flow", "reader"], live = null, kept = {}) {
  el.classList.add("rl");
  el.dataset.lmSuppressShortcuts = true; // JupyterLab leaves the keys to the views
  el.replaceChildren(...views.filter(name => VIEWS[name]).map(name => h("div", { "data-view": name })));
  return mount(el, data, state, live, kept);
}

/** One display of a widget; returns how to let go of its model. */
function display(model, el, kept) {
  const off = [];
  const listen = (name, call) => { model.on(name, call); off.push(() => model.off(name, call)); };
  // Each display has examples of its own: tokens that arrive later are put into them.
  const data = structuredClone(model.get("data"));
  let store;
  const tell = () => {
    const state = store && selection(store.all());
    if (!state || same(selection(model.get("state")), state)) return;
    model.set("state", state);
    model.save_changes();
  };
  const send = message => { tell(); model.send(message); };
  const bench = () => model.get("bench");
  const live = bench() && bench().live ? {
    bench, watch(draw) { listen("change:bench", draw); draw(); },
    run: request => send({ kind: "run", request }), stop: () => send({ kind: "stop" }),
    read(example) { store.set({ asked: example, failed: "" }); send({ kind: "read", example }); },
  } : null;
  store = renderViews(el, data, model.get("state"), model.get("views"), live, kept);
  store.on(SHARED, tell);
  listen("change:state", () => store.set(selection(model.get("state"))));
  listen("msg:custom", ({ kind, example, error, ...read }) => {
    if (kind !== "read" || !data.reader.examples[example]) return;
    const { roles } = Object.assign(data.reader.examples[example], read);
    store.set({ asked: -1, failed: roles ? "" : error || data.words.failed, loaded: store.get("loaded") + 1 });
  });
  return () => off.forEach(undo => undo());
}

/** What anywidget calls: draws anew when Python changes the data or the views. */
export default {
  render({ model, el }) {
    const kept = {};
    let leave = display(model, el, kept);
    const again = () => { leave(); leave = display(model, el, kept); };
    const events = ["change:data", "change:views"];
    events.forEach(name => model.on(name, again));
    return () => {
      events.forEach(name => model.off(name, again));
      leave();
      el.replaceChildren();
    };
  },
};
