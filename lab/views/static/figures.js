function ladder(el, { data }) {
  if (!data.ladder.length) return absent(el, "No candidates were judged in this study.");
  const rows = data.ladder.map((r) => ({ ...r, cells: [r.auroc, r.accept] }));
  dotRows(el, [
    { label: "told apart from the gold answer (AUROC)", domain: [0, 1], guides: [0.5], colour: "eva", ends: ["0", "chance", "1"] },
    { label: "share accepted", domain: [0, 1], guides: [], colour: "dim", ends: ["0", "", "1"] },
  ], rows, "Candidate ladder");
}

function controls(el, { data }) {
  if (!data.controls.length) return absent(el, "No controls were run in this study.");
  const ends = data.controls.flatMap((c) => (c.shift ? [c.shift.low, c.shift.high, c.shift.value] : [])).filter(known);
  const most = Math.max(1, Math.ceil(2 * Math.max(0, ...ends.map(Math.abs))) / 2);
  const rows = data.controls.map((c) => ({ ...c, cells: [c.flip, c.shift] }));
  dotRows(el, [
    { label: "share of verdicts that flip", domain: [0, 1], guides: [], colour: "eva", ends: ["0", "", "1"] },
    { label: "shift of the verdict\u2019s log-odds", domain: [-most, most], guides: [0], colour: "dim", ends: [`\u2190 reject \u2212${most}`, "0", `+${most} accept \u2192`] },
  ], rows, "Controls");
}

function transfer(el, { data }) {
  const { columns, rows, of } = data.transfer;
  dotRows(el, columns, rows, "Differences from " + of);
}

/* --- where each role looks, layer by layer ------------------------------------------------- */

const normOf = (ctx) => ctx.data.norms.find((norm) => norm.name === ctx.store.get("norm"));
const formatOf = (norm) => (norm.unit === "share" ? percent : times);

function normChoice(el, ctx) {
  const note = h("p", { class: "rl-note" });
  el.append(choice("Measure", ctx.data.norms.map((n) => [n.name, n.label, n.note]), ctx.store, "norm"), note);
  ctx.store.on(["norm"], () => { note.textContent = normOf(ctx).note; });
}

function spanMass(el, ctx) {
  const { data, store } = ctx;
  const { layers, spans } = data;
  if (!data.look.raw.generator.length) return absent(el, "This study measured no attention.");
  const row = rowHeight(layers);
  const height = layers * row;
  const panels = h("div", { class: "rl-two rl-tight" });
  el.append(panels, legend(spans.map((span) => ["span-" + span.name, span.label])));
  for (const role of ROLES) {
    const picture = h("div", {});
    const bars = (table, x) => {
      const out = [];
      for (let layer = 0; layer < layers; layer++) {
        let left = 0;
        for (const [i, span] of spans.entries()) {
          const value = table[layer][i] || 0;
          out.push(rect(x(left), layerTop(layers, layer), x(left + value) - x(left), row - Math.min(1.5, row / 6), { fill: `var(--span-${span.name})`, stroke: "var(--card)", "stroke-width": 0.5 }));
          left += value;
        }
      }
      return out;
    };
    const lines = (table, x) => spans.flatMap((span, i) => {
      const path = table.map((values, layer) => [values[i], layer]).filter(([value]) => known(value) && value > 0)
        .map(([value, layer], k) => `${k ? "L" : "M"}${x(value).toFixed(1)} ${(layerTop(layers, layer) + row / 2).toFixed(1)}`).join("");
      return path ? [s("path", { d: path, class: "rl-line", stroke: `var(--span-${span.name})` })] : [];
    });
    const draw = (width) => {
      const norm = normOf(ctx);
      const table = data.look[norm.name][role];
      const share = norm.unit === "share";
      const right = width - 12;
      const log = (value) => (Math.log10(Math.max(0.01, Math.min(100, value))) + 2) / 4;
      const x = (value) => AXIS + (right - AXIS) * (share ? value : log(value));
      const stops = share ? [[0, "0"], [0.5, "50"], [1, "100\u00a0%"]] : [[0.01, "0.01"], [0.1, "0.1"], [1, "1\u00a0\u00d7"], [10, "10"], [100, "100"]];
      const guides = stops.map(([value]) => s("path", { d: `M${x(value)} 0V${height}`, class: value === 1 && !share ? "rl-grid rl-strong" : "rl-grid" }));
      const labels = stops.map(([value, text]) => s("text", { x: x(value), y: height + 15, "text-anchor": value === stops[stops.length - 1][0] ? "end" : "middle" }, text));
      const svg = s("svg", { role: "img", width, height: height + 20, viewBox: `0 0 ${width} ${height + 20}`,
        "aria-label": describeLook(ctx, role) },
        layerAxis(layers), ...guides, ...(share ? bars(table, x) : lines(table, x)), s("g", { class: "rl-axis" }, ...labels));
      hoverLayers(svg, ctx, (layer) => {
        const parts = spans.map((span, i) => [span.label, table[layer][i]]).filter(([, value]) => known(value))
          .sort((a, b) => b[1] - a[1]).map(([label, value]) => `${label} ${formatOf(norm)(value)}`);
        return `Layer ${layer}, ${WHEN[role]}: ${parts.join(", ")}.`;
      });
      picture.replaceChildren(svg);
    };
    panels.append(h("div", { class: "rl-panel" }, h("h4", { class: role }, role), picture));
    store.on(["norm"], responsive(picture, draw));
  }
}

function describeLook(ctx, role) {
  const norm = normOf(ctx);
  const i = ctx.data.spans.findIndex((span) => span.name === "context");
  const values = ctx.data.look[norm.name][role].map((row) => row[i]);
  const top = largestAt(values);
  const mean = values.reduce((sum, value) => sum + (value || 0), 0) / values.length;
  return `${role}, ${norm.label}, layer by layer: ${formatOf(norm)(mean)} on the passage on average, most in layer ${top} (${formatOf(norm)(values[top])}).`;
}

/* --- head by head ---------------------------------------------------------------------------- */

function headWords(ctx, layer, head, long = false) {
  const norm = normOf(ctx);
  const maps = ctx.data.maps[norm.name];
  const i = layer * ctx.data.heads + head;
  const share = norm.unit === "share";
  const form = formatOf(norm);
  const amount = (role) => (share ? `${form(maps[role][i])} of its ${norm.of} on the passage` : `${form(maps[role][i])} its even share on the passage`);
  const difference = share ? `${points(maps.difference[i])} points` : minus(maps.difference[i].toFixed(1));
  const interval = long && maps.low ? range(maps.low[i], maps.high[i], share ? points : (x) => minus(x.toFixed(1))) : "";
  const q = maps.q && known(maps.q[i]) ? `, ${chance(maps.q[i])}` : "";
  return `Layer ${layer}, head ${head}: ${amount("generator")} when answering, ${form(maps.evaluator[i])} when judging; difference ${difference}${interval}${q}.`;
}

function elsewhere(ctx, layer, head) {
  const i = layer * ctx.data.heads + head;
  const say = (role) => {
    const parts = ctx.data.spans.map((span, k) => [span.label, ctx.data.where[role][i * ctx.data.spans.length + k]])
      .sort((a, b) => b[1] - a[1]).slice(0, 3).map(([label, value]) => `${label} ${percent(value)}`);
    return `${WHEN[role]}: ${parts.join(", ")}`;
  };
  return `Where its attention is, ${ROLES.map(say).join("; ")}.`;
}

function headMaps(el, ctx) {
  const { data, store } = ctx;
  if (!data.maps.raw.generator.length) return absent(el, "This study measured no attention.");
  const maps = () => data.maps[store.get("norm")];
  const largest = (values) => values.reduce((top, value) => (known(value) ? Math.max(top, Math.abs(value)) : top), 1e-9);
  const limits = () => ({ both: Math.max(largest(maps().generator), largest(maps().evaluator)), difference: largest(maps().difference) });
  let limit = limits();
  const grid = h("div", { class: "rl-maps" });
  const said = readoutLine();
  el.append(grid, said);
  const panels = [
    ["generator", "generator", "gen"], ["evaluator", "evaluator", "eva"],
    ["difference", "generator minus evaluator", null],
  ].map(([name, title, colour]) => {
    const bar = h("div", {});
    const panel = h("div", { class: "rl-panel rl-map-" + name }, h("h4", { class: name }, title));
    grid.append(panel);
    const signed = (value) => [value >= 0 ? "gen" : "eva", Math.abs(value) / limit.difference];
    const map = headMap(panel, ctx, {
      value: (layer, head) => maps()[name][layer * data.heads + head],
      paint: (value) => (colour ? [colour, value / limit.both] : signed(value)),
      describe: (layer, head) => headWords(ctx, layer, head),
      label: `Map of layers and heads, attention on the passage: ${title}`,
      summary: () => summarise(ctx, name, title),
    });
    panel.append(bar);
    return () => {
      const form = formatOf(normOf(ctx));
      const top = normOf(ctx).unit === "share" ? `${points(limit.difference)} points` : limit.difference.toFixed(1);
      bar.replaceChildren(colour ? scale([[colour, 0], [colour, 1]], ["0", form(limit.both)])
        : scale([["eva", 1], ["cell", 0], ["gen", 1]], ["\u2212" + top, "0", "+" + top]));
      map.repaint();
    };
  });
  store.on(["norm"], () => { limit = limits(); panels.forEach((update) => update()); });
  store.on(["layer", "head", "norm"], () => {
    const [layer, head] = [store.get("layer"), store.get("head")];
    said.replaceChildren(h("b", {}, headWords(ctx, layer, head, true)), " ", elsewhere(ctx, layer, head));
  });
}

function summarise(ctx, name, title) {
  const values = ctx.data.maps[ctx.store.get("norm")][name];
  const top = largestAt(values);
  return `${title}: ${values.length} heads; the strongest is ${headWords(ctx, Math.floor(top / ctx.data.heads), top % ctx.data.heads)}`;
}

/* --- patching ---------------------------------------------------------------------------------- */

function patching(el, ctx) {
  const { data, store } = ctx;
  if (!data.patching.length) return absent(el, "No patching was run in this study.");
  const { layers, heads } = data;
  const row = rowHeight(layers);
  const height = layers * row;
  const current = () => data.patching.find((p) => p.key === store.get("patch"));
  const contrasts = [...new Map(data.patching.map((p) => [p.contrast, p])).values()];
  const pick = createStore({ contrast: current().contrast, direction: current().direction });
  const sync = () => {
    const found = data.patching.find((p) => p.contrast === pick.get("contrast") && p.direction === pick.get("direction"));
    if (found) store.set({ patch: found.key });
  };
  const direction = h("div", {});
  el.append(h("div", { class: "rl-controls" },
    choice("Contrast", contrasts.map((p) => [p.contrast, p.contrast_label]), pick, "contrast"), direction));
  const said = h("p", { class: "rl-note" });
  const readout = readoutLine();
  const map = h("div", { class: "rl-panel" }, h("h4", {}, "one head at a time"));
  const curves = h("div", { class: "rl-panel" }, h("h4", {}, "a whole layer at a time"));
  el.append(said, h("div", { class: "rl-two" }, map, curves), readout);
  pick.on(["contrast", "direction"], sync);
  pick.on(["contrast"], () => {
    const options = data.patching.filter((p) => p.contrast === pick.get("contrast"));
    direction.replaceChildren(choice("Direction", options.map((p) => [p.direction, p.direction_label]), pick, "direction"));
  });

  const limit = () => Math.max(0.05, ...current().head.value.filter(known).map(Math.abs));
  const words = (layer, head, long = false) => {
    const p = current();
    const i = layer * heads + head;
    const q = p.head.q && known(p.head.q[i]) ? `, ${chance(p.head.q[i])}` : "";
    const flips = known(p.head.flip[i]) ? `; the first choice changes in ${percent(p.head.flip[i])} of the runs` : "";
    const interval = long ? range(p.head.low[i], p.head.high[i], fixed) : "";
    return `Layer ${layer}, head ${head}: R = ${fixed(p.head.value[i])}${interval}${q}${flips}.`;
  };
  const strongest = () => {
    const top = largestAt(current().head.value);
    return "Strongest: " + words(Math.floor(top / heads), top % heads, true).replace("Layer", "layer");
  };
  const drawn = headMap(map, ctx, {
    value: (layer, head) => current().head.value[layer * heads + head],
    paint: (value) => [value >= 0 ? "more" : "less", Math.abs(value) / limit()],
    describe: (layer, head) => words(layer, head),
    label: "Map of restoration by layer and head",
    summary: () => `Restoration when one head is patched, ${current().contrast_label}, ${current().direction_label}. ${strongest()}`,
  });
  const bar = h("div", {});
  map.append(bar);

  const picture = h("div", {});
  curves.append(picture, legend([["more", "residual stream"], ["less", "MLP output"]]));
  const sites = [["resid", "more", "residual stream"], ["mlp", "less", "MLP output"]];
  const drawCurves = (width) => {
    const p = current();
    const all = sites.flatMap(([site]) => [p.layers[site].low, p.layers[site].high, p.layers[site].value]).flat().filter(known);
    const from = Math.min(-0.1, ...all), to = Math.max(1.1, ...all);
    const x = (value) => AXIS + 6 + ((width - AXIS - 24) * (value - from)) / (to - from);
    const y = (layer) => layerTop(layers, layer) + row / 2;
    const path = (values) => values.map((value, layer) => [value, layer]).filter(([value]) => known(value));
    const line = (pairs) => pairs.map(([value, layer], i) => `${i ? "L" : "M"}${x(value).toFixed(1)} ${y(layer).toFixed(1)}`).join("");
    const band = (site) => {
      const low = path(p.layers[site].low), high = path(p.layers[site].high).reverse();
      return low.length ? line(low) + line(high).replace("M", "L") + "Z" : "";
    };
    const guides = [0, 0.5, 1].map((value) => [
      s("path", { d: `M${x(value)} 0V${height}`, class: value === 0.5 ? "rl-grid" : "rl-grid rl-strong" }),
      s("text", { x: x(value), y: height + 15, "text-anchor": "middle" }, `R${NB}=${NB}${value}`)]);
    const shapes = sites.flatMap(([site, colour]) => [
      s("path", { d: band(site), fill: `var(--${colour})`, "fill-opacity": 0.18 }),
      s("path", { d: line(path(p.layers[site].value)), class: "rl-line", stroke: `var(--${colour})` })]);
    const half = p.layers.resid.value.findIndex((value) => value >= 0.5);
    const svg = s("svg", { role: "img", width, height: height + 36, viewBox: `0 0 ${width} ${height + 36}`,
      "aria-label": `Restoration by layer. ${half >= 0 ? `The residual stream carries half of the difference from layer ${half} on.` : "The residual stream never carries half of the difference."}` },
      layerAxis(layers), ...guides.map(([g]) => g), ...shapes, s("g", { class: "rl-axis" }, ...guides.map(([, t]) => t)));
    hoverLayers(svg, ctx, (layer) => {
      const say = ([site, , label]) => `${label} R = ${fixed(p.layers[site].value[layer])}${range(p.layers[site].low[layer], p.layers[site].high[layer], fixed)}, first choice changes in ${percent(p.layers[site].flip[layer])}`;
      return `Layer ${layer}: ${sites.map(say).join("; ")}.`;
    });
    picture.replaceChildren(svg);
  };
  const redraw = responsive(picture, drawCurves);
  store.on(["patch"], () => {
    const p = current();
    said.textContent = `${p.note} ${p.used}`;
    const top = limit().toFixed(2);
    bar.replaceChildren(scale([["less", 1], ["cell", 0], ["more", 1]], [`R = \u2212${top}`, "0", `+${top}`]));
    drawn.repaint();
    redraw();
  });
  store.on(["patch", "layer", "head"], () => { readout.replaceChildren(h("b", {}, words(store.get("layer"), store.get("head"), true)), " ", strongest()); });
}
