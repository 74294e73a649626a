"""All tables of a study at once."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import xarray as xr

from lab.instruments.summaries import behaviour, patching, reading
from lab.instruments.summaries.reading import HeadOverlap

FOR_READERS = ("attention", "token_span", "token_mark", "tokens")
"""Variables that no table needs: token by token attention, much the largest part of a study."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a study; empty ones where something was not measured.

    Each field is made by the function of the same name in ``behaviour``, ``reading`` or
    ``patching``, whose docstring explains its columns (``overlap`` by ``reading.reading_heads``,
    ``head_effects`` and ``layer_effects`` by ``patching.heads`` and ``patching.layers``).
    ``rule`` says when a candidate counts as right, see ``behaviour.RULES``.
    """

    rule: str
    agreement: pd.DataFrame
    balanced: pd.DataFrame
    controls: pd.DataFrame
    label_mass: pd.DataFrame
    by_region: pd.DataFrame
    by_layer: pd.DataFrame
    ratios: pd.DataFrame
    candidate_to_context: pd.DataFrame
    head_differences: pd.DataFrame
    overlap: HeadOverlap
    where_instead: pd.DataFrame
    head_effects: pd.DataFrame
    layer_effects: pd.DataFrame
    windows: pd.DataFrame
    top_heads: pd.DataFrame


def tabulate(ds: xr.Dataset, rule: str = "f1_50", k: int = 10) -> Tables:
    """Every table of a study.

    ``rule`` says when a candidate is right (``behaviour.RULES``), ``k`` how many heads are listed.
    """
    ds = ds.drop_vars([name for name in FOR_READERS if name in ds]).compute()
    head_effects, layer_effects = patching.heads(ds), patching.layers(ds)
    return Tables(
        rule=rule,
        agreement=behaviour.agreement(ds, rule),
        balanced=behaviour.balanced(ds, rule),
        controls=behaviour.controls(ds),
        label_mass=behaviour.label_mass(ds),
        by_region=reading.by_region(ds),
        by_layer=reading.by_layer(ds),
        ratios=reading.ratios(ds),
        candidate_to_context=reading.candidate_to_context(ds),
        head_differences=reading.head_differences(ds),
        overlap=reading.reading_heads(ds, k),
        where_instead=reading.where_instead(ds, k),
        head_effects=head_effects,
        layer_effects=layer_effects,
        windows=patching.windows(layer_effects),
        top_heads=patching.top_heads(head_effects, k),
    )
