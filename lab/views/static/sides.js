/* --- the two prompts of an example: unpacked, averaged over heads, normalised ------------------ */

const fromBase64 = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const wide = (text, width) => {
  const raw = fromBase64(text);
  return width === 2 ? new Uint16Array(raw.buffer) : new Uint32Array(raw.buffer);
};

/** Attention rows from bytes: per row a 16-bit count, then (gap, value) pairs; a gap byte of 255
    means "255 further, no value yet". Returns the row starts, token indices and values. */
function decodeRows(bytes, rows) {
  const start = new Uint32Array(rows + 1),
    token = [], value = [];
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

/** One prompt of an example, unpacked. */
function openSide(data, e, packed) {
  const mass = fromBase64(packed.mass), norm = packed.norm ? fromBase64(packed.norm) : mass,
    span = fromBase64(packed.span),
    tokens = data.spans.map((_, k) => span.reduce((sum, x) => sum + (x === k), 0));
  return {
    ids: wide(packed.tokens, e.width || data.reader.width), vocab: e.vocab || data.reader.vocab, tokenIds: e.token_ids || data.reader.token_ids || [],
    span, tokens, mass, norm, beyond: fromBase64(packed.beyond), weighted: Boolean(packed.norm),
    mark: fromBase64(packed.mark), rows: decodeRows(fromBase64(packed.rows), data.layers * data.heads),
  };
}

/** Gives both prompts of the chosen example, or null where this page does not hold them. */
function opener(data, store) {
  let last = null, sides = null;
  return () => {
    const e = data.reader.examples[store.get("example")],
      roles = e && e.roles;
    if (roles !== last) {
      last = roles;
      sides = roles && Object.fromEntries(ROLES.map(role => [role, openSide(data, e, roles[role])]));
    }
    return sides || null;
  };
}

/** Rows (layer * heads + head) over which the reader averages, by scope. */
function rowsOf(data, store) {
  const [layer, head, heads] = [store.get("layer"), store.get("head"), store.get("heads")],
    all = (n, from = 0) => upTo(n, i => from + i),
    one = [layer * data.heads + head];
  return { head: () => one, set: () => (heads.length ? heads.map(([l, k]) => l * data.heads + k) : one),
    layer: () => all(data.heads, layer * data.heads), all: () => all(data.layers * data.heads) }[store.get("scope")]();
}

/** Mean token weights of these rows, each over rest(row) where that is given. */
function weights(side, rows, rest) {
  const out = new Float32Array(side.ids.length),
    { start, token, value } = side.rows;
  for (const row of rows) {
    const whole = 255 * rows.length * (rest ? rest(row) || Infinity : 1);
    for (let k = start[row]; k < start[row + 1]; k++) out[token[k]] += value[k] / whole;
  }
  return out;
}

function masses(mass, rows, spans) {
  const out = Array(spans).fill(0);
  for (const row of rows) for (let k = 0; k < spans; k++) out[k] += mass[row * spans + k] / 255 / rows.length;
  return out;
}

const sinkOf = data => data.spans.findIndex(span => span.name === "sink");

/** The mean of these rows on every span, in the chosen normalisation; null where a span is absent. */
function spanValues(ctx, side, rows) {
  const { data } = ctx,
    norm = ctx.store.get("norm"),
    sink = norm === "sink_excluded" ? sinkOf(data) : -1,
    mean = masses(side[{ sink_excluded: "beyond", norm_weighted: "norm" }[norm] || "mass"], rows, data.spans.length);
  return mean.map((x, k) => {
    if (!side.tokens[k] || k === sink) return null;
    return norm === "enrichment" ? (x * side.ids.length) / side.tokens[k] : x;
  });
}

/** Token weights in the chosen normalisation: what is coloured. Each head is taken without its sink. */
function tokenValues(ctx, side, rows) {
  const norm = ctx.store.get("norm"),
    sink = sinkOf(ctx.data);
  if (norm !== "sink_excluded") return weights(side, rows).map(x => (norm === "enrichment" ? x * side.ids.length : x));
  const rest = row => total(masses(side.mass, [row], ctx.data.spans.length).filter((_, k) => k !== sink));
  return weights(side, rows, rest).map((x, i) => (side.span[i] === sink ? 0 : Math.min(1, x)));
}
