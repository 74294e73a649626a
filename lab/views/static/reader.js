/* --- watch it read: one example, both roles side by side ----------------------------------- */

const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const wide = (text, width) => {
  const raw = fromBase64(text);
  return width === 2 ? new Uint16Array(raw.buffer) : new Uint32Array(raw.buffer);
};

/** Attention rows from bytes: per row a 16-bit count, then (gap, value) pairs; a gap byte of 255
    means "255 further, no value yet". Returns the row starts, token indices and values. */
export function decodeRows(bytes, rows) {
  const start = new Uint32Array(rows + 1);
  const token = [], value = [];
  let at = 0;
  for (let row = 0; row < rows; row++) {
    let left = bytes[at] | (bytes[at + 1] << 8);
    at += 2;
    let index = -1;
    while (left-- > 0) {
      while (bytes[at] === 255) { index += 255; at += 1; }
      index += bytes[at] + 1;
      token.push(index);
      value.push(bytes[at + 1]);
      at += 2;
    }
    start[row + 1] = token.length;
  }
  return { start, token, value };
}

function openSide(data, packed) {
  return {
    ids: wide(packed.tokens, data.reader.width),
    span: fromBase64(packed.span),
    mark: fromBase64(packed.mark),
    mass: fromBase64(packed.mass),
    rows: decodeRows(fromBase64(packed.rows), data.layers * data.heads),
  };
}

/** Rows (layer * heads + head) over which the reader averages, by scope. */
function rowsOf(data, store) {
  const [layer, head] = [store.get("layer"), store.get("head")];
  const all = (n, from = 0) => Array.from({ length: n }, (_, i) => from + i);
  return { head: () => [layer * data.heads + head], layer: () => all(data.heads, layer * data.heads),
    all: () => all(data.layers * data.heads) }[store.get("scope")]();
}

function weights(side, rows) {
  const out = new Float32Array(side.ids.length);
  const { start, token, value } = side.rows;
  for (const row of rows)
    for (let k = start[row]; k < start[row + 1]; k++) out[token[k]] += value[k] / 255 / rows.length;
  return out;
}

function masses(side, rows, spans) {
  const out = new Float32Array(spans);
  for (const row of rows) for (let k = 0; k < spans; k++) out[k] += side.mass[row * spans + k] / 255 / rows.length;
  return out;
}

const LONGEST = 300;
const QUIET = new Set(["sink", "template", "cue"]);
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}\u2026 (${text.length} characters)` : text);
const visible = (text) => text.replace(/ /g, "\u00b7").replace(/\t/g, "\u2192") || "\u2205";

/** Token text as it is shown: quiet spans never break the line; white space on request. */
function shownText(text, quiet, blanks) {
  const kept = cut(text);
  if (!blanks) return quiet ? kept.replace(/\n/g, "\u21b5") : kept;
  return visible(kept).replace(/\n/g, quiet ? "\u21b5" : "\u21b5\n");
}

/** Consecutive indices that share a key, as [key, first, end]. */
function runs(n, key) {
  const out = [];
  for (let i = 0; i < n; i++) {
    const last = out[out.length - 1];
    if (last && last[0] === key(i)) last[2] = i + 1; else out.push([key(i), i, i + 1]);
  }
  return out;
}

function textOf(data, side, blanks) {
  const nodes = [];
  const token = (i, quiet) => (nodes[i] = h("span", { class: "t", "data-i": i }, shownText(data.reader.vocab[side.ids[i]], quiet, blanks)));
  const marked = (from, to, quiet) => runs(to - from, (k) => side.mark[from + k]).map(([bits, a, b]) => {
    const names = data.marks.filter((_, bit) => bits & (1 << bit)).map((mark) => "m-" + mark.name);
    return h("span", { class: names.join(" ") || null }, ...Array.from({ length: b - a }, (_, k) => token(from + a + k, quiet)));
  });
  const blocks = runs(side.ids.length, (i) => side.span[i]).map(([index, from, to]) => {
    const span = data.spans[index] || { name: "template", label: "template" };
    const quiet = QUIET.has(span.name);
    return h("div", { class: `rl-block ${quiet ? "quiet" : ""} s-${span.name}`, style: `--tint:var(--span-${span.name})` },
      quiet ? null : h("span", { class: "rl-tag" }, span.label), h("div", { class: "rl-text" }, ...marked(from, to, quiet)));
  });
  return { nodes, blocks };
}

const RIGHT = { true: "right", false: "wrong" };
const outcome = (e) => `${e.right ? 1 : 0}${e.judged_right ? 1 : 0}`;
const OUTCOMES = [["", "every outcome"], ["11", "answered right, judged right"], ["10", "answered right, judged wrong"],
  ["01", "answered wrong, judged right"], ["00", "answered wrong, judged wrong"]];

function picker(el, ctx) {
  const { examples } = ctx.data.reader;
  const families = [...new Set(examples.map((e) => e.family))].sort();
  const filter = createStore({ text: "", family: "", outcome: "" });
  const list = h("div", { class: "rl-list", role: "listbox", tabindex: "0", "aria-label": "Examples" });
  const tally = h("p", { class: "rl-note", "aria-live": "polite" });
  const listen = (key) => (event) => filter.set({ [key]: event.target.value });
  const menu = (label, key, options) => h("label", {}, h("span", { class: "rl-sr" }, label),
    h("select", { onchange: listen(key) }, ...options.map(([value, text]) => h("option", { value }, text))));
  const search = h("input", { type: "search", placeholder: "Search questions and answers", "aria-label": "Search examples", oninput: listen("text") });
  const step = (by, label) => h("button", { type: "button", onclick: () => move(by) }, label);
  let shown = [];
  const move = (by) => {
    const now = shown.indexOf(ctx.store.get("example"));
    const next = shown[Math.max(0, Math.min(shown.length - 1, now < 0 ? 0 : now + by))];
    if (next !== undefined) ctx.store.set({ example: next });
  };
  const entry = (i) => {
    const e = examples[i];
    const dot = (ok, role) => h("span", { class: `rl-outcome ${role} ${ok ? "ok" : "no"}` }, `${role === "generator" ? "answered" : "judged"} ${RIGHT[Boolean(ok)]}`);
    return h("div", { class: "rl-option", role: "option", id: `${ctx.id}-ex-${i}`, "data-i": i },
      h("span", { class: "rl-q" }, cut(e.question)),
      h("span", { class: "rl-meta" }, h("span", {}, cut(e.family)), dot(e.right, "generator"), e.judged_right === null ? null : dot(e.judged_right, "evaluator")));
  };
  const fill = () => {
    const wanted = filter.get("text").toLowerCase();
    const fits = (e) => (!filter.get("family") || e.family === filter.get("family"))
      && (!filter.get("outcome") || (e.judged_right !== null && outcome(e) === filter.get("outcome")))
      && (!wanted || [e.question, e.gold, e.answer, e.id].some((text) => text.toLowerCase().includes(wanted)));
    shown = examples.map((_, i) => i).filter((i) => fits(examples[i]));
    list.replaceChildren(...shown.map(entry));
    tally.textContent = shown.length ? `${shown.length} of ${count(examples.length, "example")}` : "No example fits these filters.";
    if (shown.length && !shown.includes(ctx.store.get("example"))) ctx.store.set({ example: shown[0] });
    mark();
  };
  const mark = () => {
    const chosen = ctx.store.get("example");
    for (const node of list.children) {
      const on = Number(node.dataset.i) === chosen;
      node.setAttribute("aria-selected", String(on));
      if (!on) continue;
      list.setAttribute("aria-activedescendant", node.id);
      const top = node.offsetTop - list.offsetTop;
      if (top < list.scrollTop || top + node.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - 8;
    }
  };
  list.addEventListener("click", (event) => {
    const node = event.target.closest(".rl-option");
    if (node) ctx.store.set({ example: Number(node.dataset.i) });
  });
  list.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -1e6, End: 1e6 }[event.key];
    if (by) { event.preventDefault(); move(by); }
  });
  el.append(h("div", { class: "rl-filters" }, search,
    menu("Kind of question", "family", [["", "every kind"], ...families.map((f) => [f, cut(f)])]),
    menu("Outcome", "outcome", OUTCOMES)), list,
  h("div", { class: "rl-steps" }, step(-1, "\u2039 previous"), step(1, "next \u203a"), tally));
  filter.on(["text", "family", "outcome"], fill);
  ctx.store.on(["example"], mark);
}

function facts(e) {
  const pair = (term, ...description) => [h("dt", {}, term), h("dd", {}, ...description)];
  const verdict = e.rungs.find((rung) => rung.name === "own");
  return h("dl", { class: "rl-facts" },
    ...pair("gold answer", e.answerable ? h("b", {}, cut(e.gold)) : "none: the passage does not answer it"),
    ...pair("it answered", h("b", { class: "generator" }, cut(e.answer) || "it declined to answer"), ` (${RIGHT[Boolean(e.right)]}; F1 ${fixed(e.f1)})`),
    ...pair("it judged that", verdict && known(verdict.log_odds)
      ? h("b", { class: "evaluator" }, verdict.log_odds > 0 ? "accept" : "reject") : "not asked",
    verdict && known(verdict.log_odds) ? ` (log-odds ${fixed(verdict.log_odds)})` : ""),
    ...pair("without the passage", e.closed_book ? cut(e.closed_book) : "\u2013"));
}

function rungTable(e) {
  const most = Math.max(1, ...e.rungs.map((rung) => Math.abs(rung.log_odds || 0)));
  const bar = (x) => h("span", { class: "rl-bar", "aria-hidden": "true" }, h("i", {
    style: `${x < 0 ? "right" : "left"}:50%;width:${(50 * Math.abs(x)) / most}%`, class: x < 0 ? "no" : "ok" }));
  const line = (rung) => h("tr", {}, h("th", { scope: "row" }, rung.label),
    h("td", { class: "rl-words" }, cut(rung.candidate) || "(empty)"), h("td", {}, RIGHT[rung.right]),
    h("td", { class: "num" }, fixed(rung.log_odds)), h("td", {}, bar(rung.log_odds)),
    h("td", {}, rung.log_odds > 0 ? "accept" : "reject"));
  return h("details", { open: true }, h("summary", {}, "Every candidate it judged for this question"),
    h("div", { class: "rl-scroll", tabindex: "0", role: "region", "aria-label": "Candidates of this example" }, h("table", { class: "rl-table rl-rungs" },
      h("thead", {}, h("tr", {}, ...["candidate", "text", "in truth", "log-odds", "", "verdict"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...e.rungs.filter((rung) => known(rung.log_odds)).map(line)))));
}

function headChooser(ctx) {
  const { data, store } = ctx;
  const menu = (key, n) => {
    const node = h("select", { "aria-label": key, onchange: (event) => store.set({ [key]: Number(event.target.value) }) },
      ...Array.from({ length: n }, (_, i) => h("option", { value: i }, `${key} ${i}`)));
    store.on([key], () => { node.value = String(store.get(key)); });
    return node;
  };
  const layer = menu("layer", data.layers), head = menu("head", data.heads);
  store.on(["scope"], () => {
    head.disabled = store.get("scope") !== "head";
    layer.disabled = store.get("scope") === "all";
  });
  const toggle = (key, label) => h("label", { class: "rl-check" },
    h("input", { type: "checkbox", checked: store.get(key), onchange: (event) => store.set({ [key]: event.target.checked }) }), label);
  return h("div", { class: "rl-controls" },
    choice("Attention of", [["head", "one head"], ["layer", "layer mean"], ["all", "mean of all heads"]], store, "scope"),
    h("div", { class: "rl-selects" }, layer, head),
    choice("Colour scale", [["same", "same for both", "The strongest token of both texts is full colour"], ["own", "own for each", "The strongest token of each text is full colour"]], store, "scaling"),
    toggle("template", "template and special tokens"), toggle("blanks", "white space"));
}

function spanBar(data, mass) {
  const parts = data.spans.map((span, i) => [span, mass[i]]);
  const total = Math.max(1e-6, mass.reduce((sum, x) => sum + x, 0));
  const said = parts.filter(([, x]) => x >= 0.005).sort((a, b) => b[1] - a[1]).map(([span, x]) => `${span.label} ${percent(x)}`);
  return [h("div", { class: "rl-spanbar", role: "img", "aria-label": said.join(", ") },
    ...parts.map(([span, x]) => h("i", { style: `width:${(100 * x) / total}%;background:var(--span-${span.name})`, title: `${span.label} ${percent(x)}` }))),
  h("p", { class: "rl-note" }, said.slice(0, 4).join(" \u00b7 "))];
}

function tokenWords(ctx, side, i, weight) {
  const { data } = ctx;
  const n = side.ids.length;
  const marks = data.marks.filter((_, bit) => side.mark[i] & (1 << bit)).map((mark) => mark.label);
  const where = [(data.spans[side.span[i]] || {}).label, ...marks].filter(Boolean).join(", ");
  const amount = weight > 0 ? `${percent(weight)} of the attention, ${times(weight * n)} its even share` : `less than ${percent(data.reader.error)} of the attention`;
  return `\u201c${cut(data.reader.vocab[side.ids[i]]).replace(/\n/g, "\u21b5")}\u201d (token ${i} of ${n}, ${where}): ${amount}`;
}

function reading(el, ctx) {
  const { data, store } = ctx;
  const open = (index) => Object.fromEntries(ROLES.map((role) => [role, openSide(data, data.reader.examples[index].roles[role])]));
  let sides = null, texts = {}, shown = {}, chosen = null;
  const about = h("div", {});
  const legendLine = h("div", { class: "rl-legend rl-reader-legend" });
  const readout = readoutLine();
  const panels = Object.fromEntries(ROLES.map((role) => {
    const top = h("div", { class: "rl-side-head" });
    const text = h("div", { class: `rl-prompt r-${role}`, tabindex: "0", role: "group", "aria-label": `The prompt of the ${role}, token by token. Left and right arrow keys move along the tokens.` });
    return [role, { top, text, box: h("div", { class: "rl-panel" }, top, text) }];
  }));
  const contextOf = (side) => Array.from(side.span.keys()).filter((i) => data.spans[side.span[i]].name === "context");
  const counterpart = (role, i) => {
    const other = ROLES.find((name) => name !== role);
    const [from, to] = [contextOf(sides[role]), contextOf(sides[other])];
    const k = from.indexOf(i);
    return k >= 0 && from.length === to.length ? [other, to[k]] : null;
  };
  const point = (role, i) => {
    for (const node of el.querySelectorAll(".t.on")) node.classList.remove("on");
    chosen = [role, i];
    readout.classList.add("stuck");
    const twin = counterpart(role, i);
    for (const [name, k] of [[role, i], ...(twin ? [twin] : [])]) texts[name].nodes[k].classList.add("on");
    const also = twin ? `; ${WHEN[twin[0]]} ${shown[twin[0]][twin[1]] > 0 ? percent(shown[twin[0]][twin[1]]) : `less than ${percent(data.reader.error)}`}` : "";
    readout.textContent = `W${WHEN[role].slice(1)}: ${tokenWords(ctx, sides[role], i, shown[role][i])}${also}.`;
  };
  for (const role of ROLES) {
    const { text } = panels[role];
    text.addEventListener("pointermove", (event) => {
      const node = event.target.closest(".t");
      if (!node) return ctx.tip.hide();
      const i = Number(node.dataset.i);
      if (!chosen || chosen[0] !== role || chosen[1] !== i) point(role, i);
      if (event.pointerType !== "touch") ctx.tip.show(event, tokenWords(ctx, sides[role], i, shown[role][i]));
    });
    text.addEventListener("pointerleave", () => ctx.tip.hide());
    text.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const { nodes } = texts[role];
      let i = chosen && chosen[0] === role ? chosen[1] + by : by > 0 ? 0 : nodes.length - 1;
      while (nodes[i] && !nodes[i].offsetParent) i += by;
      if (!nodes[i]) return;
      point(role, i);
      nodes[i].scrollIntoView({ block: "nearest" });
    });
  }
  const strongest = (role) => {
    const { ids, span } = sides[role];
    const order = Array.from(ids.keys()).filter((i) => span[i] !== sinkAt && shown[role][i] > 0).sort((a, b) => shown[role][b] - shown[role][a]);
    const go = (i) => () => { point(role, i); texts[role].nodes[i].scrollIntoView({ block: "nearest" }); };
    return h("div", { class: "rl-tops" }, ...order.slice(0, 4).map((i) =>
      h("button", { type: "button", onclick: go(i) }, `${data.reader.vocab[ids[i]].slice(0, 40).trim().replace(/\n/g, "\u21b5") || "\u21b5"} ${percent(shown[role][i])}`)));
  };
  const build = () => {
    for (const role of ROLES) {
      texts[role] = textOf(data, sides[role], store.get("blanks"));
      panels[role].text.replaceChildren(...texts[role].blocks);
      panels[role].text.classList.toggle("bare", !store.get("template"));
    }
    chosen = null;
    readout.classList.remove("stuck");
    readout.textContent = "Point at a token, or move along a text with the arrow keys, to read its numbers.";
  };
  const sinkAt = data.spans.findIndex((span) => span.name === "sink");
  const colour = () => {
    const rows = rowsOf(data, store);
    const e = data.reader.examples[store.get("example")];
    const top = {};
    for (const role of ROLES) {
      shown[role] = weights(sides[role], rows);
      top[role] = shown[role].reduce((best, x, i) => (sides[role].span[i] === sinkAt ? best : Math.max(best, x)), 0);
    }
    const most = Math.max(...Object.values(top), 1e-6);
    for (const role of ROLES) {
      const limit = store.get("scaling") === "own" ? Math.max(top[role], 1e-6) : most;
      const name = `var(--${role.slice(0, 3)}-hl)`;
      texts[role].nodes.forEach((node, i) => {
        const strength = sides[role].span[i] === sinkAt ? 0 : Math.sqrt(Math.min(1, shown[role][i] / limit));
        node.style.background = strength > 0.07 ? `color-mix(in srgb, ${name} ${Math.round(100 * strength)}%, transparent)` : "";
        node.classList.toggle("hot", strength > 0.3);
      });
      const mass = masses(sides[role], rows, data.spans.length);
      const unseen = Math.max(0, 1 - shown[role].reduce((sum, x) => sum + x, 0));
      const verdict = e.rungs.find((rung) => rung.name === "own");
      const says = role === "generator" ? `generator says ${e.answer ? `\u201c${cut(e.answer)}\u201d` : "that there is no answer"}`
        : verdict && known(verdict.log_odds) ? `evaluator says ${verdict.log_odds > 0 ? "accept" : "reject"}` : "evaluator";
      panels[role].top.replaceChildren(h("h4", { class: role }, says), ...spanBar(data, mass),
        strongest(role), unseen > 0.1 ? h("p", { class: "rl-note" }, `${percent(unseen)} is spread over tokens too faint to show (below ${percent(data.reader.error)} each in a head).`) : "");
    }
    const range = store.get("scaling") === "own" ? ROLES.map((role) => [role, top[role]]) : ROLES.map((role) => [role, most]);
    legendLine.replaceChildren(...range.map(([role, x]) => h("span", {},
      h("i", { class: "rl-ramp", style: `background:linear-gradient(90deg,transparent,var(--${role.slice(0, 3)}-hl))` }), `0 to ${percent(x)} of the attention, ${role}`)),
    h("span", {}, h("span", { class: "m-evidence" }, "evidence")), h("span", {}, h("span", { class: "m-answer" }, "gold answer")),
    h("span", {}, h("span", { class: "m-mention" }, "candidate\u2019s text")), h("span", {}, h("span", { class: "m-labels" }, "verdict word")),
    h("span", {}, "The first token (sink) is never coloured; the bar above each text has its share."));
  };
  el.append(about, headChooser(ctx), h("div", { class: "rl-two" }, panels.generator.box, panels.evaluator.box), readout, legendLine);
  store.on(["example"], () => {
    const e = data.reader.examples[store.get("example")];
    sides = open(store.get("example"));
    about.replaceChildren(h("h3", { class: "rl-question" }, cut(e.question)),
      h("p", { class: "rl-note" }, `${e.dataset} \u00b7 ${e.family} \u00b7 ${e.id}`), facts(e), rungTable(e));
  });
  store.on(["example", "blanks"], build);
  store.on(["template"], () => ROLES.forEach((role) => panels[role].text.classList.toggle("bare", !store.get("template"))));
  store.on(["example", "blanks", "layer", "head", "scope", "scaling"], colour);
}

function reader(el, ctx) {
  if (!ctx.data.reader.examples.length) return absent(el, "This study kept no attention on single tokens.");
  const side = h("div", { class: "rl-picker" }), main = h("div", { class: "rl-reading" });
  el.append(h("div", { class: "rl-reader" }, side, main));
  picker(side, ctx);
  reading(main, ctx);
}
