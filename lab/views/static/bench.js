/* --- the patch bench: put one role's activations into the other, while a model is there ------- */

/** The heads that a request is about: the set, or the one head. */
function benchHeads(store, what) {
  const { layer, head, heads } = store.all();
  if (what === "set" && heads.length) return heads;
  return what === "set" || what === "head" ? [[layer, head]] : [];
}

/** A run before or after the patch: its verdict, text, and likeliest next tokens. */
function runPanel(title, { text, top, verdict }) {
  const line = ([token, p]) => h("tr", h("th", { scope: "row" }, shownText(token, true, true)), h("td", bar(0, p / top[0][1])), h("td.num", percent(p)));
  return panel(title,
    verdict && h("p", h("b.evaluator", verdictOf(verdict.log_odds)), ` (log-odds ${fixed(verdict.log_odds)}, accepts with probability ${percent(verdict.p_accept)})`),
    h("p.rl-said", { dir: "auto" }, text ? cut(text) : "(no text)"),
    h("table.rl-table", h("caption.rl-note", "Likeliest next tokens"), h("tbody", ...top.map(line))));
}

/** The result's map of heads or lines over layers; nothing for a set. */
function benchFigure(ctx, { kind, map, lines, title }) {
  if (kind === "set") return null;
  const box = panel(EACH[kind]),
    patch = { contrast_label: title, direction_label: "this example", head: { value: (map || []).flat(), low: [], high: [], flip: [] } };
  if (kind === "heads") quantityMap(box, ctx, title, () => patch)();
  else restorationCurves(box, ctx, lines.map(({ name, values }, i) => [name, i ? "less" : "more", () => ({ value: values, low: [], high: [], flip: [] })]));
  return box;
}

function bench(el, ctx) {
  const { store, live, words } = ctx,
    state = () => (live && live.bench()) || {};
  if (!state().live) return el.remove();
  const { direction, what } = state().options,
    pick = ctx.keep("bench", { direction: direction[0][0], what: what[0][0] }),
    heads = () => benchHeads(store, pick.get("what")),
    target = h("p.rl-note"),
    run = h("button.rl-go", { onclick: () => live.run({ ...pick.all(), heads: heads() }) }, "Run the patch"),
    stop = h("button", { onclick: () => live.stop() }, "Stop"),
    progress = h("progress", { "aria-label": "Progress of the patch" }),
    status = said("rl-note"),
    error = h("p.rl-error", { role: "alert" }),
    other = h("p"), result = h("div");
  el.append(h("div.rl-controls", menu("Put activations", direction, pick, "direction"), choice("What", what, pick, "what")),
    target, h("div.rl-controls", run, stop, progress), status, error, other, result);
  /* A result stays until the next one, to be compared; what it is of is said where that changes. */
  const owner = () => {
    const found = state().result,
      of = found && found.example !== ctx.example().id && ctx.data.reader.examples.find(e => e.id === found.example);
    other.hidden = !of;
    if (of) other.replaceChildren(h("b", words.other), " ", quoted(of.question));
  };
  const aim = () => {
    const patched = heads().length ? ` Patched: ${namesOf(heads())}.` : "";
    target.textContent = `Example: ${quoted(ctx.example().question)}${patched}`;
  };
  store.on(["example", "heads", "layer", "head"], aim);
  store.on(["example"], owner);
  pick.on(["what"], aim);

  let drawn;
  const show = found => {
    if (same(drawn, found)) return;
    drawn = found;
    result.replaceChildren();
    if (!found) return;
    const { title, clean, note, seconds, before, after } = found,
      parts = h("div.rl-two");
    result.append(h("h3.rl-question", title), h("p", found.words),
      h("p.rl-note", `Clean runs: source ${fixed(clean.source)}, target ${fixed(clean.target)} logits. ${words.restoration} ${note || ""} Took ${fixed(seconds, 1)} s.`), parts);
    const figure = benchFigure(ctx, found);
    parts.append(...[figure, before && runPanel("before", before), after && runPanel("after the patch", after)].filter(Boolean));
  };
  live.watch(() => {
    const { running, done, total, step, error: failed, result: found } = state();
    run.disabled = running;
    stop.disabled = !running;
    progress.hidden = !running;
    progress.max = total || 1;
    progress.value = done;
    const part = total ? `, ${done} of ${total}` : "";
    status.textContent = running ? `${step || "Running"}${part}\u2026` : failed || !found ? "" : "Done.";
    error.textContent = failed || "";
    show(found);
    owner();
  });
}
