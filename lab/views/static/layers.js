/* --- where each role looks, layer by layer ------------------------------------------------- */

/* Two panels of bars (shares) or lines (times), a row for each layer. spec: table(role) -> a list of
   spans for each layer, or null; norm(); keys. A click or the arrow keys choose a layer. */
function layerPanels(el, ctx, spec) {
  const { data, store } = ctx,
    { layers, spans } = data,
    row = rowHeight(layers),
    height = layers * row,
    panels = h("div.rl-two.rl-tight");
  el.append(panels, legend(spans.map(span => ["span-" + span.name, span.label])));
  for (const role of ROLES) {
    const picture = h("div.rl-layers", keyed(`${role}, by layer. ${ctx.words.layer_help}`));
    let band = null;
    const bars = (table, x) => table.flatMap((values, layer) => {
      let left = 0;
      return spans.map((span, i) => {
        const value = values[i] || 0;
        left += value;
        return rect(x(left - value), layerTop(layers, layer), x(left) - x(left - value), row - Math.min(1.5, row / 6), { fill: `var(--span-${span.name})`, stroke: "var(--card)", "stroke-width": 0.5 });
      });
    });
    const lines = (table, x) => spans.map((span, i) => curve(byLayer(table.map(values => values[i] || null), x), "span-" + span.name));
    const mark = () => band && band.setAttribute("y", layerTop(layers, store.get("layer")) - 1);
    const draw = width => {
      const norm = spec.norm(),
        table = spec.table(role);
      if (!table) return picture.replaceChildren();
      const share = norm.unit === "share",
        right = width - 12,
        log = value => (Math.log10(Math.max(0.01, Math.min(100, value))) + 2) / 4,
        x = value => AXIS + (right - AXIS) * (share ? value : log(value)),
        stops = share ? [[0, "0"], [0.5, "50"], [1, "100\u00a0%"]] : [[0.01, "0.01"], [0.1, "0.1"], [1, "1\u00a0\u00d7"], [10, "10"], [100, "100"]],
        guides = stops.map(([value]) => guide(x(value), height, value === 1 && !share)),
        labels = stops.map(([value, text], i) => axisText(x(value), height + 15, text, stops[i + 1] ? "middle" : "end"));
      band = rect(AXIS - 2, 0, right - AXIS + 4, row + 0.5, { class: "rl-mark", rx: 2 });
      const svg = drawing(width, height + 20, describeLook(ctx, role, norm, table),
        layerAxis(layers), ...guides, ...(share ? bars(table, x) : lines(table, x)), s("g.rl-axis", ...labels), band);
      hoverLayers(svg, ctx, layer => `Layer ${layer}, ${WHEN[role]}: ${ranked(spans, i => table[layer][i], formatOf(norm)).join(", ")}.`);
      picture.replaceChildren(svg);
      mark();
    };
    const choose = layer => store.set({ layer: inside(layer, layers), scope: "layer" });
    picture.onclick = event => {
      const layer = layerAt(event, picture, layers);
      if (layer >= 0) choose(layer);
    };
    onKeys(picture, { ArrowUp: 1, ArrowDown: -1 }, by => choose(store.get("layer") + by));
    panels.append(h("div.rl-panel", h("h4." + role, role), picture));
    store.on(spec.keys, responsive(picture, draw));
    store.on(["layer"], mark);
  }
}

function describeLook(ctx, role, norm, table) {
  const i = ctx.data.spans.findIndex(span => span.name === "context"),
    values = table.map(row => row[i]),
    top = largestAt(values);
  return `${role}, ${norm.label}, layer by layer: ${formatOf(norm)(total(values) / values.length)} on the passage on average, most in layer ${top} (${formatOf(norm)(values[top])}).`;
}

/** Mean over the study. */
function spanMass(el, ctx) {
  if (!ctx.data.look.raw.generator.length) return absent(el, ctx.words.no_attention);
  layerPanels(el, ctx, { norm: () => normOf(ctx), table: role => ctx.data.look[ctx.store.get("norm")][role], keys: ["norm"] });
}

/** The chosen example, mean over the heads of each layer. */
function spanFlow(el, ctx) {
  const { data, store } = ctx;
  if (!data.reader.held && !ctx.live) return absent(el, ctx.words.no_tokens);
  const about = h("p.rl-note");
  el.append(about);
  layerPanels(el, ctx, {
    norm: () => normOf(ctx), keys: ["example", "loaded", "norm"],
    table(role) {
      const sides = ctx.sides(),
        rows = layer => upTo(data.heads, head => layer * data.heads + head);
      return sides && upTo(data.layers, layer => spanValues(ctx, sides[role], rows(layer)));
    },
  });
  store.on(["example", "loaded", "norm"], () => {
    about.textContent = ctx.sides() ? `${quoted(ctx.example().question)} ${ctx.words.flow}` : ctx.words.not_here;
  });
}
