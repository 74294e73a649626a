/* --- watch it read: one example, both roles side by side ----------------------------------- */

const QUIET = new Set(["sink", "template", "cue"]),
  visible = text => text.replace(/ /g, "\u00b7").replace(/\t/g, "\u2192") || "\u2205";

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

const marksOf = (data, bits) => data.marks.filter((_, bit) => bits & (1 << bit));

function textOf(data, side, blanks) {
  const nodes = [],
    token = (i, quiet) => (nodes[i] = h("span.t", { "data-i": i }, shownText(side.vocab[side.ids[i]], quiet, blanks)));
  const marked = (from, to, quiet) => runs(to - from, k => side.mark[from + k]).map(([bits, a, b]) => {
    return h(["span", ...marksOf(data, bits).map(mark => "m-" + mark.name)].join("."), ...upTo(b - a, k => token(from + a + k, quiet)));
  });
  const blocks = runs(side.ids.length, i => side.span[i]).map(([index, from, to]) => {
    const span = data.spans[index] || { name: "template", label: "template" },
      quiet = QUIET.has(span.name);
    return h(`div.rl-block.s-${span.name}${quiet ? ".quiet" : ""}`, { style: `--tint:var(--span-${span.name})` },
      quiet ? null : h("span.rl-tag", span.label), h("div.rl-text", { dir: "auto" }, ...marked(from, to, quiet)));
  });
  return { nodes, blocks };
}

const ownVerdict = e => e.rungs.find(rung => rung.name === "own");

function facts(e) {
  const pair = (term, ...description) => [h("dt", term), h("dd", ...description)],
    verdict = ownVerdict(e),
    { f1 } = e.measures;
  return h("dl.rl-facts",
    ...pair("gold answer", e.answerable ? h("b", { dir: "auto" }, cut(e.gold)) : "none: the passage does not answer it"),
    ...pair("it answered", e.right === null ? "not asked" : h("b.generator", { dir: "auto" }, cut(e.answer) || "it declined to answer"), e.right === null ? "" : ` (${RIGHT[e.right]}; F1 ${fixed(f1)})`),
    ...pair("its verdict", verdict ? h("b.evaluator", verdictOf(verdict.log_odds)) : "not asked", verdict ? ` (log-odds ${fixed(verdict.log_odds)})` : ""),
    ...pair("without the passage", h("bdi", cut(e.closed_book) || "\u2013")));
}

function rungTable(e, labels, words) {
  if (!e.rungs.length) return "";
  const most = 2 * Math.max(1, ...e.rungs.map(rung => Math.abs(rung.log_odds)));
  const line = rung => h("tr", h("th", { scope: "row" }, labels[rung.name] || rung.name),
    h("td.rl-words", { dir: "auto" }, cut(rung.candidate) || "(empty)"), h("td", RIGHT[rung.right]),
    h("td.num", fixed(rung.log_odds)), h("td", bar(0.5, rung.log_odds / most, rung.log_odds < 0 && "no")),
    h("td", verdictOf(rung.log_odds)));
  return h("details", { open: true }, h("summary", words.candidates),
    h("div.rl-scroll", { tabindex: "0", role: "region", "aria-label": words.candidates }, h("table.rl-table",
      columnHeads(["candidate", "text", "in truth", "log-odds", "", "verdict"]),
      h("tbody", ...e.rungs.map(line)))));
}

function headChooser(ctx) {
  const { data, store } = ctx;
  const numbers = (key, n) => {
    const node = h("select", { "aria-label": key, onchange: event => store.set({ [key]: Number(event.target.value) }) },
      ...upTo(n, i => h("option", { value: i }, `${key} ${i}`)));
    store.on([key], () => { node.value = store.get(key); });
    return node;
  };
  const layer = numbers("layer", data.layers), head = numbers("head", data.heads);
  const toggle = (key, label) => h("label.rl-check",
    h("input", { type: "checkbox", checked: store.get(key), onchange: event => store.set({ [key]: event.target.checked }) }), label);
  const scope = choice("Attention of", [["head", "one head"], ["set", "set of heads", ctx.words.set], ["layer", "layer mean"], ["all", "mean of all heads"]], store, "scope");
  store.on(["scope", "heads"], () => {
    head.disabled = store.get("scope") !== "head";
    layer.disabled = !["head", "layer"].includes(store.get("scope"));
    scope.children[2].disabled = !store.get("heads").length;
  });
  return h("div.rl-controls",
    scope, h("div.rl-selects", layer, head),
    measureChoice(ctx),
    choice("Colour scale", [["same", "same for both", ctx.words.same], ["own", "own for each", ctx.words.own]], store, "scaling"),
    toggle("template", "template and special tokens"), toggle("blanks", "white space"));
}

/** Whose attention the texts show. */
function whoseWords(store) {
  const { layer, head, heads, scope } = store.all();
  return { head: `Layer ${layer}, head ${head}`, set: "Mean of " + namesOf(heads), layer: `Layer ${layer}, mean of its heads`, all: "Mean of all heads" }[scope];
}

/** The shares of the spans as a bar, and below it the largest in the chosen normalisation. */
function spanBar(ctx, side, rows) {
  const { spans } = ctx.data,
    norm = normOf(ctx),
    values = spanValues(ctx, side, rows),
    shares = norm.unit === "share" ? values : masses(side.mass, rows, spans.length),
    whole = Math.max(1e-6, total(shares));
  const parts = ranked(spans, i => values[i], formatOf(norm), 0.005);
  const label = `${whoseWords(ctx.store)}, ${norm.label}: `;
  return [h("div.rl-spanbar", { role: "img", "aria-label": label + (parts.join(", ") || "nothing") },
    ...spans.map((span, i) => h("i", { style: `width:${(100 * (shares[i] || 0)) / whole}%;background:var(--span-${span.name})` }))),
  h("p.rl-note", label + parts.slice(0, 4).join(" \u00b7 "))];
}

const quoted = text => `\u201c${cut(text).replace(/\n/g, "\u21b5")}\u201d`;

const amountOf = (data, x) => (x > 0 ? percent(x) : "less than " + percent(data.reader.error));

/** A token in words: text, place, attention, and how many times its even share that is. */
function tokenWords(ctx, side, i, raw, value) {
  const { data } = ctx,
    n = side.ids.length,
    where = [data.spans[side.span[i]], ...marksOf(data, side.mark[i])].filter(Boolean).map(place => place.label).join(", "),
    beyond = ctx.store.get("norm") === "sink_excluded" && value ? `, ${percent(value)} of that beyond the first token` : "",
    amount = `${amountOf(data, raw)} of the attention` + (raw > 0 ? `${beyond}, ${times(raw * n)} its even share` : "");
  const id = side.tokenIds[side.ids[i]];
  return `${quoted(side.vocab[side.ids[i]])} (token ${i} of ${n}${id >= 0 ? ", id " + id : ""}, ${where}): ${amount}`;
}

function reader(el, ctx) {
  const { data, store, words } = ctx;
  if (!data.reader.examples.length) return absent(el, words.no_tokens);
  let sides = null, texts = {}, raw = {}, shown = {}, chosen = null;
  const about = h("div"), missing = h("div.rl-panel", { hidden: true }),
    legendLine = h("div.rl-legend"),
    readout = said("rl-readout");
  const panels = Object.fromEntries(ROLES.map(role => {
    const top = h("div.rl-side-head"),
      text = h("div.rl-prompt.r-" + role, keyed(`The prompt of the ${role}, token by token. ${words.text_help}`));
    return [role, { top, text, box: h("div.rl-panel", top, text) }];
  }));
  const contextOf = side => [...side.span.keys()].filter(i => (data.spans[side.span[i]] || {}).name === "context");
  const counterpart = (role, i) => {
    const other = ROLES.find(name => name !== role),
      [from, to] = [contextOf(sides[role]), contextOf(sides[other])],
      k = from.indexOf(i);
    return k >= 0 && from.length === to.length ? [other, to[k]] : null;
  };
  const say = (role, i) => tokenWords(ctx, sides[role], i, raw[role][i], shown[role][i]);
  const point = (role, i) => {
    for (const node of el.querySelectorAll(".t.on")) node.classList.remove("on");
    chosen = [role, i];
    readout.classList.add("stuck");
    const twin = counterpart(role, i);
    for (const [name, k] of [[role, i], ...(twin ? [twin] : [])]) texts[name].nodes[k].classList.add("on");
    const also = twin ? `; ${WHEN[twin[0]]} ${amountOf(data, raw[twin[0]][twin[1]])}` : "";
    readout.textContent = `W${WHEN[role].slice(1)}: ${say(role, i)}${also}.`;
  };
  const go = (role, i) => {
    point(role, i);
    texts[role].nodes[i].scrollIntoView({ block: "nearest" });
  };
  for (const role of ROLES) {
    const { text } = panels[role];
    const aim = event => {
      const node = event.target.closest(".t");
      if (!node) return ctx.tip.hide();
      const i = Number(node.dataset.i);
      if (!same(chosen, [role, i])) point(role, i);
      if (event.pointerType === "mouse") ctx.tip.show(event, say(role, i));
    };
    listen(text, { pointermove: aim, click: aim, pointerleave: () => ctx.tip.hide(), focusin: () => store.set({ role }) });
    onKeys(text, { ArrowRight: 1, ArrowLeft: -1 }, by => {
      const { nodes } = texts[role];
      let i = chosen && chosen[0] === role ? chosen[1] + by : by > 0 ? 0 : nodes.length - 1;
      while (nodes[i] && !nodes[i].offsetParent) i += by;
      if (nodes[i]) go(role, i);
    });
  }
  const sinkAt = sinkOf(data);
  const strongest = role => {
    const { ids, span, vocab } = sides[role],
      order = [...ids.keys()].filter(i => span[i] !== sinkAt && shown[role][i] > 0).sort((a, b) => shown[role][b] - shown[role][a]);
    return h("div.rl-tops", ...order.slice(0, 4).map(i =>
      h("button", { onclick: () => go(role, i) }, h("bdi", vocab[ids[i]].slice(0, 40).trim().replace(/\n/g, "\u21b5") || "\u21b5"), " " + formatOf(normOf(ctx))(shown[role][i]))));
  };
  const bare = () => ROLES.forEach(role => panels[role].text.classList.toggle("bare", !store.get("template")));
  const build = () => {
    sides = ctx.sides();
    both.hidden = readout.hidden = legendLine.hidden = !sides;
    if (!sides) return;
    for (const role of ROLES) {
      texts[role] = textOf(data, sides[role], store.get("blanks"));
      panels[role].text.replaceChildren(...texts[role].blocks);
    }
    chosen = null;
    readout.classList.remove("stuck");
    readout.textContent = words.point;
  };
  const saysOf = (role, e) => {
    const verdict = ownVerdict(e);
    if (role === "generator") return e.right === null ? role : "generator says " + (e.answer ? quoted(e.answer) : "that there is no answer");
    return verdict ? "evaluator says " + verdictOf(verdict.log_odds) : role;
  };
  const colour = () => {
    if (!sides) return;
    const rows = rowsOf(data, store),
      form = formatOf(normOf(ctx)),
      e = ctx.example(),
      top = {};
    for (const role of ROLES) {
      raw[role] = weights(sides[role], rows);
      shown[role] = tokenValues(ctx, sides[role], rows);
      top[role] = shown[role].reduce((best, x, i) => (sides[role].span[i] === sinkAt ? best : Math.max(best, x)), 0);
    }
    const own = store.get("scaling") === "own",
      limitOf = role => Math.max(1e-6, ...(own ? [top[role]] : Object.values(top)));
    for (const role of ROLES) {
      const limit = limitOf(role),
        name = `var(--${role.slice(0, 3)}-hl)`;
      texts[role].nodes.forEach((node, i) => {
        const strength = sides[role].span[i] === sinkAt ? 0 : Math.sqrt(Math.min(1, shown[role][i] / limit));
        node.style.background = strength > 0.07 ? `color-mix(in srgb, ${name} ${Math.round(100 * strength)}%, transparent)` : "";
        node.classList.toggle("hot", strength > 0.3);
      });
      const unseen = Math.max(0, 1 - total(raw[role])),
        missed = store.get("norm") === "norm_weighted" && !sides[role].weighted ? words.no_norms + " " : "",
        faint = unseen > 0.1 ? `${percent(unseen)} ${words.faint}` : "";
      panels[role].top.replaceChildren(h("h4", { class: role }, saysOf(role, e)), ...spanBar(ctx, sides[role], rows),
        strongest(role), missed || faint ? h("p.rl-note", missed + faint) : "");
    }
    legendLine.replaceChildren(...ROLES.map(role => h("span",
      h("i.rl-ramp", { style: `background:linear-gradient(90deg,transparent,var(--${role.slice(0, 3)}-hl))` }), `0 to ${form(limitOf(role))}, ${role}`)),
    ...data.marks.map(mark => h("span", h("span.m-" + mark.name, mark.label))),
    h("span", `${normOf(ctx).colour} ${words.sink}`));
  };
  const ask = () => {
    const index = store.get("example"),
      e = data.reader.examples[index];
    missing.hidden = Boolean(e.roles);
    if (e.roles) return;
    const waiting = store.get("asked") === index,
      line = h("p.rl-note", { role: "status" }, store.get("failed") || (waiting ? "Reading\u2026" : ctx.live ? words.not_read : e.measured ? words.not_held : words.not_measured));
    missing.replaceChildren(line, ctx.live ? h("button", { disabled: waiting, onclick: () => ctx.live.read(index) }, "Read it now") : "");
  };
  const both = h("div.rl-two", panels.generator.box, panels.evaluator.box);
  el.append(about, data.reader.held || ctx.live ? headChooser(ctx) : "", missing, both, readout, legendLine);
  store.on(["example"], () => {
    const e = ctx.example();
    about.replaceChildren(h("h3.rl-question", { dir: "auto" }, cut(e.question)),
      h("p.rl-note", [e.dataset, e.family, e.id].filter(Boolean).join(" \u00b7 ")), facts(e), rungTable(e, data.reader.rungs, words));
  });
  store.on(["example", "loaded", "blanks"], build);
  store.on(["example", "loaded", "asked", "failed"], ask);
  store.on(["template"], bare);
  store.on(["example", "loaded", "blanks", "layer", "head", "heads", "scope", "norm", "scaling"], colour);
}
