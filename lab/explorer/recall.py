"""From stored arrays back to what was measured: behaviour, prompts and recipes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from itertools import accumulate
from typing import Any

import xarray as xr

from lab.data import Score
from lab.errors import LabError
from lab.instruments.behaviour import Behaviour, Judgement
from lab.roles import MARKS, SPANS, Prompt
from lab.studies.recipe import Recipe
from lab.studies.tokens import Token, unpack_tokens


def behaviour(one: xr.Dataset) -> Behaviour:
    """The behaviour of one example of a study, from its variables without ``example``.

    The answer without passages is known as it was scored, not as it was generated.
    """
    given = [str(r) for r in one["rung"].values if bool(one["candidate_given"].sel(rung=r))]
    rung = {name: one.sel(rung=name) for name in given}
    return Behaviour(
        answer_raw=_text(one, "answer_raw"),
        closed_book_raw=_text(one, "closed_book_answer"),
        answer=_text(one, "answer"),
        closed_book=_text(one, "closed_book_answer"),
        score=Score(float(one["em"]), float(one["f1"])),
        closed_book_score=Score(float(one["closed_book_em"]), float(one["closed_book_f1"])),
        candidates={name: _text(item, "candidate") for name, item in rung.items()},
        candidate_scores={
            name: Score(float(item["candidate_em"]), float(item["candidate_f1"]))
            for name, item in rung.items()
        },
        verdicts={
            name: Judgement(float(item["log_odds"]), float(item["label_mass"]))
            for name, item in rung.items()
        },
        controls={},
    )


def tokens(one: xr.Dataset, role: str) -> list[Token]:
    """The tokens of one example's prompt in a role; empty where they were not kept."""
    if "tokens" not in one or role not in one["role2"].values:
        return []
    return unpack_tokens(str(one["tokens"].sel(role2=role).item()))


def prompt(one: xr.Dataset, role: str) -> Prompt:
    """The prompt of one example as it was stored: tokens, spans and marks.

    Its text is that of its tokens, put together.
    """
    stored = tokens(one, role)
    texts = [text for text, _ in stored]
    ends = list(accumulate(map(len, texts)))
    of_role = one.sel(role2=role)
    spans = of_role["token_span"].values[: len(texts)]
    bits = of_role["token_mark"].values[: len(texts)]
    names = [str(name) for name in one["span"].values] if "span" in one.coords else list(SPANS)
    return Prompt(
        role=role,
        example_id=str(one["example"].item()),
        text="".join(texts),
        token_ids=tuple(number for _, number in stored),
        offsets=tuple(zip([0, *ends[:-1]], ends, strict=True)) if texts else (),
        spans=tuple(names[int(i)] for i in spans),
        marks={
            mark: tuple(i for i, value in enumerate(bits) if int(value) >> bit & 1)
            for bit, mark in enumerate(MARKS)
        },
    )


def recipe(provenance: Mapping[str, Any]) -> Recipe:
    """The recipe that a study was run with, its prompts as they were: defaults may have changed.

    Raises:
        LabError: the provenance holds none, or one that this version does not understand.
    """
    stored = {**(provenance.get("recipe") or {}), **(provenance.get("prompting") or {})}
    known = {f.name for f in fields(Recipe)}
    values = {name: value for name, value in stored.items() if name in known}
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    if not {"model", "data"} <= set(values):
        raise LabError(
            "The provenance of this study does not say with which model and data it was made. "
            "Give its folder, or both parts of what lab.read_study returns."
        )
    return Recipe(**values)


def _text(one: xr.Dataset, name: str) -> str:
    return str(one[name].item())
