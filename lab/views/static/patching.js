/* --- patching: what moves the decision when it is put from one run into another --------------- */

const EACH = { heads: "one head at a time", layers: "a whole layer at a time" };

/** The study's sweeps: one head at a time, and a whole layer at a time. */
function patching(el, ctx) {
  const { data, store } = ctx;
  if (!data.patching.length) return absent(el, ctx.words.no_patching);
  const now = () => patchOf(ctx, store.get("patch")),
    note = h("p.rl-note"), readout = said("rl-readout"),
    map = panel(EACH.heads), curves = panel(EACH.layers);
  el.append(h("div.rl-controls", menu("Put activations", data.patching.map(p => [p.key, sweepOf(p)]), store, "patch")),
    note, h("div.rl-two", map, curves), readout);
  const update = quantityMap(map, ctx, "Restoration", () => store.get("patch")),
    site = name => () => now().layers[name],
    redraw = restorationCurves(curves, ctx, [["residual stream", "more", site("resid")], ["MLP output", "less", site("mlp")]]);
  store.on(["patch"], () => {
    note.dataset.sweep = sweepOf(now());
    note.textContent = update().note;
    redraw();
  });
  store.on(["patch", "layer", "head"], () => {
    const [layer, head] = ctx.headAt(largestAt(now().head.value)),
      words = (...at) => patchWords(now(), data.heads, ...at, true);
    readout.replaceChildren(h("b", words(...chosenHead(ctx))), " Strongest: ", words(layer, head));
  });
}

const sweepOf = p => `${p.contrast_label}: ${p.direction_label}`;

/** R against the layer. sites: [label, colour, now() -> {value, low, high, flip}]; returns redraw. */
function restorationCurves(box, ctx, sites) {
  const { layers } = ctx.data,
    height = layers * rowHeight(layers),
    picture = h("div");
  box.append(picture, legend(sites.map(([label, colour]) => [colour, label])));
  return responsive(picture, width => {
    const shown = sites.map(([label, colour, now]) => ({ label, colour, ...now() })),
      all = shown.flatMap(({ value, low, high }) => [...value, ...low, ...high]).filter(known),
      from = Math.min(-0.1, ...all), to = Math.max(1.1, ...all),
      x = value => AXIS + 6 + ((width - AXIS - 24) * (value - from)) / (to - from),
      band = ({ low, high }) => (low.some(known) ? linePath([...byLayer(low, x), ...byLayer(high, x).reverse()]) + "Z" : ""),
      stops = [0, 0.5, 1];
    const say = layer => `Layer ${layer}: ` + shown.map(({ label, value, low, high, flip }) =>
      `${label} R = ${fixed(value[layer])}${range(low[layer], high[layer], fixed)}${flips(flip[layer])}`).join("; ") + ".";
    const half = shown[0].value.findIndex(value => value >= 0.5);
    const svg = drawing(width, height + 20, `Restoration by layer. ${shown[0].label} ${half < 0 ? "stays below a half" : "first carries half of the difference at layer " + half}. ${say(layers - 1)}`,
      layerAxis(layers), ...stops.map(value => guide(x(value), height, value !== 0.5)),
      ...shown.flatMap(site => [s("path", { d: band(site), fill: `var(--${site.colour})`, "fill-opacity": 0.18 }),
        curve(byLayer(site.value, x), site.colour)]),
      s("g.rl-axis", ...stops.map(value => axisText(x(value), height + 15, `R${NB}=${NB}${value}`))));
    hoverLayers(svg, ctx, say);
    picture.replaceChildren(svg);
  });
}
