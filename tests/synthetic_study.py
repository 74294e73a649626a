"""A made-up study: the same arrays that a real one stores, built in a moment and without a model.

Everything in it is invented: passages, answers, log-odds, attention. It is consistent (span masses
are the sums of the token attention, and add up to one) and it has the shape of what small models
do: the evaluator reads the passage several times less than the generator, looks at the verdict
words instead, and rejects most candidates whether they are right or wrong.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

ROLES = (
    "generator",
    "evaluator",
    "generator_filler",
    "evaluator_candidate_first",
    "evaluator_repeat",
)
SPANS = (
    "sink", "template", "demonstrations", "instruction", "context", "question", "candidate", "cue",
)  # fmt: skip
MARKS = ("evidence", "answer", "labels", "mention")
RUNGS = ("own", "gold", "same_type", "same_passage", "other_passage", "closed_book", "empty")
CONTROLS = (
    "candidate_masked",
    "candidate_swapped",
    "context_masked",
    "context_swapped",
    "question_masked",
    "candidate_first",
    "filler",
    "labels_swapped",
)
CONTRASTS = ("role", "candidate", "passage")
DIRECTIONS = ("a_into_b", "b_into_a")
SITES = ("mlp", "resid")


@dataclass(frozen=True, slots=True)
class Item:
    """One invented question: an empty gold means that the passage does not answer it."""

    dataset: str
    family: str
    cluster: str
    passage: str
    evidence: str
    question: str
    gold: str
    same_type: str
    same_passage: str


# (dataset, title, passage, [(family, evidence, question, gold, same type, same passage)])
PASSAGES: tuple[tuple[str, str, str, tuple[tuple[str, str, str, str, str, str], ...]], ...] = (
    (
        "builtin",
        "harbour",
        "The harbour of Ostrevel was dug in 1874 by Marta Klint. Her brother Anton Klint kept the "
        "lighthouse for 31 years. Three ferries cross to Isle Brann every morning.",
        (
            ("person", "was dug in 1874 by Marta Klint", "Who dug the harbour of Ostrevel?",
             "Marta Klint", "Josef Arden", "Anton Klint"),
            ("number", "kept the lighthouse for 31 years",
             "How many years did Anton Klint keep the lighthouse?", "31", "27", "1874"),
            ("number", "Three ferries cross to Isle Brann",
             "How many ferries cross every morning?", "Three", "Five", "31"),
        ),
    ),
    (
        "builtin",
        "orchestra",
        "The Velden Orchestra first played in Torvik in 1951. It was led by Ilse Marrow, who had "
        "studied under Paul Hetling in Danneburg. Its oldest cello was built by Rosa Quint.",
        (
            ("place", "first played in Torvik", "Where did the Velden Orchestra first play?",
             "Torvik", "Sandmoor", "Danneburg"),
            ("two_step", "who had studied under Paul Hetling",
             "Who taught the leader of the Velden Orchestra?", "Paul Hetling", "Karl Vost",
             "Rosa Quint"),
            ("date", "in Torvik in 1951", "When did the orchestra first play?", "1951", "1938", ""),
        ),
    ),
    (
        "builtin",
        "mill",
        "Two mills stand on the river Lenn. The upper mill grinds rye and belongs to the Oster "
        "family; the lower mill, rebuilt after the fire of 1903, makes paper for the town of Brae.",
        (
            ("thing", "The upper mill grinds rye", "What does the upper mill grind?", "rye",
             "barley", "paper"),
            ("date", "rebuilt after the fire of 1903",
             "In which year did the lower mill burn?", "1903", "1911", ""),
            ("place", "makes paper for the town of Brae",
             "For which town does the lower mill make paper?", "Brae", "Holm", "Lenn"),
        ),
    ),
    (
        "squad2",
        "moss",
        "Silver moss grows only above 2,100 metres on the slopes of Mount Kavel. Botanist Edda "
        "Rowe described it in 1926 & named it after her teacher, the chemist Jonas Fyle.",
        (
            ("answerable", "only above 2,100 metres", "Above which height does silver moss grow?",
             "2,100 metres", "1,400 metres", "1926"),
            ("answerable", "named it after her teacher, the chemist Jonas Fyle",
             "After whom is silver moss named?", "Jonas Fyle", "Otto Brand", "Edda Rowe"),
            ("unanswerable", "", "Who painted silver moss?", "", "Nora Vale", "Edda Rowe"),
        ),
    ),
    (
        "squad2",
        "page",
        "The page ended with <script>alert('read me')</script> and a <b>bold</b> notice: \"the "
        "archive of Tarn & Sons opens on Monday\". Clerk Hana Bode removed the tag at noon.",
        (
            ("answerable", "Clerk Hana Bode removed the tag", "Who removed the tag?", "Hana Bode",
             "Lena Ruiz", "Tarn & Sons"),
            ("answerable", "<script>alert('read me')</script>",
             "With which tag did the page end?", "<script>", "<style>", "<b>"),
            ("unanswerable", "", "Who wrote the notice?", "", "Per Aldo", "Hana Bode"),
        ),
    ),
    (
        "squad2",
        "bridge",
        "Korr Bridge spans 412 metres between Old Town and the Linden quarter. It opened in May "
        "1988, two years late, after engineer Sven Ambry had replaced eleven cables.",
        (
            ("answerable", "Korr Bridge spans 412 metres", "How long is Korr Bridge?",
             "412 metres", "380 metres", "eleven"),
            ("answerable", "engineer Sven Ambry had replaced eleven cables",
             "Who replaced the cables?", "engineer Sven Ambry", "Thea Moll", "Linden"),
            ("unanswerable", "", "Who paid for Korr Bridge?", "", "the city of Ulm", "Sven Ambry"),
        ),
    ),
    (
        "drop",
        "match",
        "Calder scored 14 points in the first half and 9 in the second. Wend answered with 6 and "
        "17. The crowd of 1,204 stayed until the end, although it rained for 40 minutes.",
        (
            ("sum", "14 points in the first half and 9 in the second",
             "How many points did Calder score in all?", "23", "21", "14"),
            ("sum", "Wend answered with 6 and 17", "How many points did Wend score in all?", "23",
             "25", "17"),
            ("span", "The crowd of 1,204", "How large was the crowd?", "1,204", "1,310", "40"),
        ),
    ),
    (
        "drop",
        "census",
        "In the census of Aldmoor, 212 people farmed, 87 fished and 35 worked in the quarry. "
        "Another 19 were children, teachers or priests; the mayor, Ruth Kell, counted herself "
        "twice.",
        (
            ("difference", "212 people farmed, 87 fished",
             "How many more people farmed than fished?", "125", "115", "212"),
            ("span", "the mayor, Ruth Kell, counted herself twice", "Who was counted twice?",
             "Ruth Kell", "Ida Wren", "teachers"),
            ("difference", "87 fished and 35 worked in the quarry",
             "How many more people fished than worked in the quarry?", "52", "48", "35"),
        ),
    ),
)  # fmt: skip

TITLES = {
    "harbour": "Ostrevel harbour", "orchestra": "The Velden Orchestra", "mill": "Mills of the Lenn",
    "moss": "Silver moss", "page": "A <b>web</b> page", "bridge": "Korr Bridge",
    "match": "Calder v Wend", "census": "Census of Aldmoor",
}  # fmt: skip


def synthetic_study(
    n: int = 24, layers: int = 6, heads: int = 4, seed: int = 0
) -> tuple[xr.Dataset, dict[str, Any]]:
    """A Dataset and its provenance as a study of ``n`` examples stores them, all invented."""
    rng = np.random.default_rng(seed)
    items = _items(n)
    words = _answers(items, rng)
    dataset = xr.Dataset(
        {
            **_behaviour(items, words, rng),
            **_reading(items, words["own"], layers, heads, rng),
            **_patching(n, layers, heads, rng),
        },
        coords=_coordinates(items, layers, heads),
    )
    return dataset, _provenance(items, layers, heads, seed)


def _items(n: int) -> list[Item]:
    facts = [
        (dataset, title, passage, fact)
        for dataset, title, passage, fact_list in PASSAGES
        for fact in fact_list
    ]
    items = []
    for i in range(n):
        dataset, title, passage, fact = facts[i % len(facts)]
        family, evidence, question, gold, same_type, same_passage = fact
        cluster = f"{title}-{i // len(facts)}"
        items.append(
            Item(
                dataset, family, cluster, passage, evidence, question, gold, same_type, same_passage
            )
        )
    return items


def _coordinates(items: list[Item], layers: int, heads: int) -> dict[str, Any]:
    return {
        "example": _text(
            [f"{item.dataset}/{item.cluster}/{i:03d}" for i, item in enumerate(items)]
        ),
        "dataset": ("example", _text([item.dataset for item in items])),
        "family": ("example", _text([item.family for item in items])),
        "cluster": ("example", _text([item.cluster for item in items])),
        "question": ("example", _text([item.question for item in items])),
        "gold": ("example", _text([item.gold for item in items])),
        "answerable": ("example", np.array([bool(item.gold) for item in items], dtype=bool)),
        "role": _text(ROLES),
        "role2": _text(ROLES[:2]),
        "layer": np.arange(layers),
        "head": np.arange(heads),
        "span": _text(SPANS),
        "mark": _text(MARKS),
        "rung": _text(RUNGS),
        "control": _text(CONTROLS),
        "contrast": _text(CONTRASTS),
        "run": _text(("a", "b")),
        "direction": _text(DIRECTIONS),
        "site": _text(SITES),
    }


# --- answers and verdicts ---------------------------------------------------------------------


def _answers(items: list[Item], rng: np.random.Generator) -> dict[str, list[str]]:
    """The candidate text of each rung (None where a rung has none), and what the model said."""
    n = len(items)
    right = rng.random(n) < 0.45
    own, raw, closed = [], [], []
    for item, is_right, u in zip(items, right, rng.random(n), strict=True):
        if not item.gold:
            said = "" if is_right else item.same_passage
        elif is_right:
            said = item.gold
        elif u < 0.3:
            said = f"{item.gold} {item.same_passage or item.same_type}"
        else:
            said = item.same_passage or item.same_type
        own.append(said)
        raw.append(said or "The passage does not say.")
        closed.append(item.gold if u > 0.9 and item.gold else item.same_type)
    others = [items[(i + 7) % n].same_type for i in range(n)]
    return {
        "own": own,
        "raw": raw,
        "gold": [item.gold for item in items],
        "same_type": [item.same_type for item in items],
        "same_passage": [item.same_passage for item in items],
        "other_passage": others,
        "closed_book": closed,
        "empty": ["" for _ in items],
    }


def _behaviour(
    items: list[Item], words: dict[str, list[str]], rng: np.random.Generator
) -> dict[str, Any]:
    n = len(items)
    candidate = np.full((n, len(RUNGS)), "", dtype=object)
    em, f1, log_odds, label_mass = (np.full((n, len(RUNGS)), np.nan) for _ in range(4))
    given = np.zeros((n, len(RUNGS)), dtype=bool)
    for r, rung in enumerate(RUNGS):
        for i, item in enumerate(items):
            text = words[rung][i]
            given[i, r] = rung in ("own", "empty") or bool(text)
            if rung == "closed_book" and text == item.gold:
                given[i, r] = False
            if not given[i, r]:
                continue
            candidate[i, r] = text
            em[i, r], f1[i, r] = _score(text, item.gold)
            # Leans to reject by 1.2 logits, whatever it is shown; knows a little of what is right.
            log_odds[i, r] = -1.2 + 0.9 * f1[i, r] + rng.normal(0, 0.9) - (rung == "empty")
            label_mass[i, r] = rng.beta(30, 6)
    shift = {"candidate_swapped": -0.4, "context_masked": -0.8, "labels_swapped": 0.7}
    control = np.stack(
        [log_odds[:, 0] + shift.get(name, -0.1) + rng.normal(0, 0.5, n) for name in CONTROLS],
        axis=1,
    )
    swapped_from = [CONTROLS.index("candidate_swapped"), CONTROLS.index("context_swapped")]
    if n > 3:
        control[3, swapped_from] = np.nan
    own_em, own_f1 = em[:, 0], f1[:, 0]
    closed = [
        _score(text, item.gold) for text, item in zip(words["closed_book"], items, strict=True)
    ]
    return {
        "answer": ("example", _text(words["own"])),
        "answer_raw": ("example", _text(words["raw"])),
        "em": ("example", own_em.copy()),
        "f1": ("example", own_f1.copy()),
        "closed_book_answer": ("example", _text(words["closed_book"])),
        "closed_book_em": ("example", np.array([pair[0] for pair in closed], dtype=float)),
        "closed_book_f1": ("example", np.array([pair[1] for pair in closed], dtype=float)),
        "candidate": (("example", "rung"), candidate),
        "candidate_em": (("example", "rung"), em),
        "candidate_f1": (("example", "rung"), f1),
        "candidate_given": (("example", "rung"), given),
        "log_odds": (("example", "rung"), log_odds),
        "label_mass": (("example", "rung"), label_mass),
        "control_log_odds": (("example", "control"), control),
        "control_label_mass": (
            ("example", "control"),
            np.where(np.isnan(control), np.nan, rng.beta(30, 6, control.shape)),
        ),
    }


def _score(text: str, gold: str) -> tuple[float, float]:
    """Exact match and bag-of-words F1, close enough to the official ones for invented data."""
    said, wanted = Counter(text.lower().split()), Counter(gold.lower().split())
    common = (said & wanted).total()
    if not said or not wanted:
        return float(said == wanted), float(said == wanted)
    return float(said == wanted), 2 * common / (said.total() + wanted.total())


# --- attention ----------------------------------------------------------------------------------

Piece = tuple[str, str, tuple[str, ...]]
"""Text, span, marks that all its tokens carry."""


def _reading(
    items: list[Item], own: list[str], layers: int, heads: int, rng: np.random.Generator
) -> dict[str, Any]:
    n, shape = len(items), (len(ROLES), layers, heads)
    mass, norm_mass = (np.full((n, *shape, len(SPANS)), np.nan) for _ in range(2))
    mark_mass, norm_mark_mass = (np.full((n, *shape, len(MARKS)), np.nan) for _ in range(2))
    span_tokens = np.full((n, len(ROLES), len(SPANS)), -1, dtype=np.int32)
    mark_tokens = np.full((n, len(ROLES), len(MARKS)), -1, dtype=np.int32)
    to_context = np.full((n, *shape), np.nan)
    texts = np.full((n, 2), "", dtype=object)
    rows: dict[tuple[int, int], tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = {}
    reads = _context_readers(layers, heads, rng)
    for i, item in enumerate(items):
        for r, role in enumerate(ROLES):
            if i == 1 and role == "generator_filler":
                continue  # one prompt that could not be made: its row stays empty
            tokens, span, marks = _tokens(_pieces(role, item, own[i]))
            attention = _attention(role, span, marks, reads, rng)
            norms = rng.gamma(4.0, 0.25, attention.shape) * np.where(span == 0, 0.15, 1.0)
            weighted = attention * norms
            weighted /= weighted.sum(axis=-1, keepdims=True)
            member = span[:, None] == np.arange(len(SPANS))
            for array, source in ((mass, attention), (norm_mass, weighted)):
                array[i, r] = source @ member
            for array, source in ((mark_mass, attention), (norm_mark_mass, weighted)):
                array[i, r] = source @ marks
            span_tokens[i, r], mark_tokens[i, r] = member.sum(axis=0), marks.sum(axis=0)
            if role == "evaluator":
                to_context[i, r] = rng.beta(3, 9, (layers, heads))
            if r < 2:
                texts[i, r] = json.dumps(tokens, ensure_ascii=False)
                rows[i, r] = (np.round(255 * attention).astype(np.uint8), span, marks)
    width = max((row[1].size for row in rows.values()), default=0)
    stored = np.zeros((n, 2, layers, heads, width), dtype=np.uint8)
    token_span = np.full((n, 2, width), -1, dtype=np.int8)
    token_mark = np.zeros((n, 2, width), dtype=np.uint8)
    for (i, r), (attention, span, marks) in rows.items():
        stored[i, r, ..., : span.size] = attention
        token_span[i, r, : span.size] = span
        token_mark[i, r, : span.size] = marks @ (1 << np.arange(len(MARKS)))
    by_head = ("example", "role", "layer", "head")
    return {
        "mass": ((*by_head, "span"), mass),
        "norm_mass": ((*by_head, "span"), norm_mass),
        "mark_mass": ((*by_head, "mark"), mark_mass),
        "norm_mark_mass": ((*by_head, "mark"), norm_mark_mass),
        "span_tokens": (("example", "role", "span"), span_tokens),
        "mark_tokens": (("example", "role", "mark"), mark_tokens),
        "candidate_to_context": (by_head, to_context),
        "attention": (("example", "role2", "layer", "head", "token"), stored),
        "token_span": (("example", "role2", "token"), token_span),
        "token_mark": (("example", "role2", "token"), token_mark),
        "tokens": (("example", "role2"), texts),
    }


def _pieces(role: str, item: Item, answer: str) -> list[Piece]:
    """A prompt as pieces of text, each with its span and its marks."""
    title = TITLES[item.cluster.split("-")[0]]
    context: list[Piece] = [("\nContext:", "template", ()), (f" {title}\n", "template", ())]
    before, found, after = item.passage.partition(item.evidence) if item.evidence else (
        item.passage, "", "")  # fmt: skip
    for part, marks in ((before, ()), (found, ("evidence",)), (after, ())):
        context += _split_at(part, item.gold, answer if "evaluator" in role else "", marks)
    question: list[Piece] = [("\nQuestion:", "template", ()), (f" {item.question}", "question", ())]
    candidate: list[Piece] = [
        ("\nCandidate:", "template", ()),
        (f" {answer or '(no answer)'}", "candidate", ()),
    ]
    start: list[Piece] = [("<s>", "sink", ())]
    ask = (" Answer only from the passage, as briefly as possible.", "instruction", ())
    judge: list[Piece] = [
        (" Is the candidate correct according to the passage? Say", "instruction", ()),
        (" Yes", "instruction", ("labels",)),
        (" or", "instruction", ()),
        (" No", "instruction", ("labels",)),
        (".", "instruction", ()),
    ]
    repeat = (" Repeat the candidate word for word.", "instruction", ())
    filler = ("\n. . . . . . .", "cue", ())
    return {
        "generator": [*start, ask, *context, *question, ("\nAnswer:", "cue", ())],
        "evaluator": [*start, *judge, *context, *question, *candidate, ("\nVerdict:", "cue", ())],
        "generator_filler": [*start, ask, *context, *question, filler, ("\nAnswer:", "cue", ())],
        "evaluator_candidate_first": [
            *start, *judge, *question, *candidate, *context, ("\nVerdict:", "cue", ())],
        "evaluator_repeat": [
            *start, repeat, *context, *question, *candidate, ("\nRepeat:", "cue", ())],
    }[role]  # fmt: skip


def _split_at(text: str, gold: str, mention: str, marks: tuple[str, ...]) -> list[Piece]:
    wanted = [word for word in {gold, mention} if word]
    if not wanted or not text:
        return [(text, "context", marks)] if text else []
    pattern = "(" + "|".join(re.escape(word) for word in sorted(wanted, key=len)[::-1]) + ")"
    pieces: list[Piece] = []
    for part in re.split(pattern, text):
        extra = (("answer",) if part == gold else ()) + (("mention",) if part == mention else ())
        if part:
            pieces.append((part, "context", marks + (extra if part in wanted else ())))
    return pieces


def _tokens(pieces: list[Piece]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Token texts, span index of each, and a token x mark table of zeros and ones."""
    tokens: list[str] = []
    spans: list[int] = []
    marks: list[list[int]] = []
    for text, span, names in pieces:
        # Like a byte-pair tokeniser: a space belongs to the word after it, long words are cut.
        cut = ["<s>"] if text == "<s>" else re.findall(r"\n|\s?\w{1,6}|\s?[^\w\s]|\s", text)
        tokens += cut
        spans += [SPANS.index(span)] * len(cut)
        marks += [[int(mark in names) for mark in MARKS]] * len(cut)
    return tokens, np.array(spans), np.array(marks).reshape(len(tokens), len(MARKS))


# Share of attention by span: template, demonstrations (there are none), instruction, context,
# question, candidate, cue.
APPETITE = {
    "generator": (0.06, 0.0, 0.05, 0.24, 0.10, 0.0, 0.10),
    "evaluator": (0.08, 0.0, 0.14, 0.06, 0.06, 0.05, 0.15),
    "generator_filler": (0.06, 0.0, 0.05, 0.20, 0.09, 0.0, 0.16),
    "evaluator_candidate_first": (0.08, 0.0, 0.13, 0.09, 0.05, 0.04, 0.15),
    "evaluator_repeat": (0.05, 0.0, 0.05, 0.05, 0.05, 0.35, 0.10),
}


def _context_readers(layers: int, heads: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How much more each head reads the passage than others do: a few heads a lot."""
    reads = rng.lognormal(-0.5, 0.5, (layers, heads))
    flat = reads.reshape(-1)
    chosen = rng.permutation(flat.size)[: max(1, flat.size // 8)]
    flat[chosen] *= 5
    return reads


def _attention(
    role: str,
    span: NDArray[np.int64],
    marks: NDArray[np.int64],
    reads: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """An attention row for each head: layer x head x token, rows sum to one."""
    appetite = np.array([0.52, *APPETITE[role]])
    by_head = np.broadcast_to(appetite, (*reads.shape, len(SPANS))).copy()
    by_head[..., SPANS.index("context")] *= reads
    by_head *= rng.lognormal(0, 0.25, by_head.shape)
    weight = rng.gamma(0.7, 1.0, (*reads.shape, span.size)) + 1e-3
    weight *= np.where(marks[:, MARKS.index("evidence")] > 0, 3.0, 1.0)
    weight *= np.where(marks[:, MARKS.index("labels")] > 0, 4.0, 1.0)
    member = span[:, None] == np.arange(len(SPANS))
    weight /= (weight @ member) @ member.T  # each span's tokens share one unit
    row = weight * (by_head @ member.T)
    return np.asarray(row / row.sum(axis=-1, keepdims=True))


# --- patching -----------------------------------------------------------------------------------


def _patching(n: int, layers: int, heads: int, rng: np.random.Generator) -> dict[str, Any]:
    clean = np.full((n, len(CONTRASTS), 2), np.nan)
    clean[:, 0] = np.stack([rng.gamma(6, 0.8, n), -rng.gamma(6, 0.8, n)], axis=1)
    clean[:, 1] = np.stack([rng.normal(-0.5, 0.9, n), rng.normal(-1.4, 0.9, n)], axis=1)
    clean[:, 2] = np.stack([rng.gamma(5, 0.7, n), rng.normal(-1.5, 1.2, n)], axis=1)
    clean[::9, 1] = np.nan  # no gold candidate, or no distractor, for these
    clean[4::9, 2] = np.nan
    share = rng.normal(0, 0.01, (len(CONTRASTS), len(DIRECTIONS), layers, heads))
    late = max(layers // 2, 0)
    for c in range(len(CONTRASTS)):
        for layer, head, effect in zip(
            rng.integers(late, layers, 3),
            rng.integers(0, heads, 3),
            (0.45, 0.25, -0.12),
            strict=True,
        ):
            share[c, :, layer, head] += effect * rng.uniform(0.7, 1.0, len(DIRECTIONS))
    curve = np.zeros((len(CONTRASTS), len(DIRECTIONS), len(SITES), layers))
    depth = (np.arange(layers) + 1) / layers
    step = 1 / (1 + np.exp(-18 * (depth - 0.62)))
    curve[:, :, 1] = np.where(depth == 1, 1.0, step)
    curve[:, :, 0] = rng.normal(0.03, 0.03, curve[:, :, 0].shape)
    # a_into_b: the source is run a, the target run b.
    source, target = clean, clean[..., ::-1]
    gap = source - target
    patch_head = _effect(target[..., None, None], gap[..., None, None], share, 0.05, rng)
    patch_layer = _effect(target[..., None, None], gap[..., None, None], curve, 0.03, rng)
    patch_layer[:, :, :, 1, -1] = source
    by_layer = ("example", "contrast", "direction", "site", "layer")
    by_head = ("example", "contrast", "direction", "layer", "head")
    return {
        "patch_clean": (("example", "contrast", "run"), clean),
        "patch_head": (by_head, patch_head),
        "patch_head_flip": (by_head, _flips(patch_head, target[..., None, None])),
        "patch_layer": (by_layer, patch_layer),
        "patch_layer_flip": (by_layer, _flips(patch_layer, target[..., None, None])),
    }


def _effect(
    target: NDArray[np.float64],
    gap: NDArray[np.float64],
    share: NDArray[np.float64],
    noise: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    effect = target + gap * share
    return np.asarray(effect + rng.normal(0, noise, effect.shape) * np.abs(gap))


def _flips(patched: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.int8]:
    flips = (np.sign(patched) != np.sign(target)).astype(np.int8)
    return np.where(np.isnan(patched), np.int8(-1), flips)


# --- provenance ---------------------------------------------------------------------------------


def _text(values: Any) -> NDArray[np.object_]:
    return np.array(list(values), dtype=object)


def _provenance(items: list[Item], layers: int, heads: int, seed: int) -> dict[str, Any]:
    return {
        "title": "Who reads the passage? (invented data)",
        "model": {
            "name": "invented/tiny-1M",
            "source": "synthetic",
            "sha256": "0" * 64,
            "architecture": "LlamaForCausalLM",
            "n_layers": layers,
            "n_heads": heads,
            "parameters": 1_000_000,
            "dtype": "float32",
        },
        "recipe": {"data": ["builtin", "squad2", "drop"], "limit": len(items), "chat": False},
        "templates": {role: "".join(p[0] for p in _pieces(role, items[0], "Anton Klint"))
                      for role in ROLES} if items else {},
        "verdict_words": ["Yes", "No"],
        "versions": {"rolelens": "0.1.0", "python": "3.11.7", "torch": "2.13.0",
                     "transformers": "5.0.0", "transformer-lens": "4.3.0"},
        "seed": seed,
        "started": "2026-01-05T09:00:00+00:00",
        "finished": "2026-01-05T09:02:31+00:00",
        "command": "lab study invented/tiny-1M --data builtin --limit 24",
        "excluded": [{"example": "squad2/lost", "why": "Its passage is too long."}],
        "notes": ["Invented data: no model has seen any of it.",
                  "One prompt of the role generator_filler could not be made."],
        "data": [{"spec": "builtin", "licence": "CC0-1.0"},
                 {"spec": "squad2", "licence": "CC-BY-SA-4.0"},
                 {"spec": "drop", "licence": "CC-BY-SA-4.0"}],
    }  # fmt: skip
