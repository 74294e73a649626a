"""Views of one example, for notebooks: prompts as tinted text, and maps of plain arrays."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

from lab import LabError, Prompt, figures, text_map
from lab.views import palette

WORDS = ("<s>", "Q: ", "<b>who</b>", " Ida", " Brandt")


def prompt(role: str = "evaluator", tokens: tuple[str, ...] = WORDS) -> Prompt:
    ends = np.cumsum([len(token) for token in tokens]).tolist()
    return Prompt(
        role=role,
        example_id="one",
        text="".join(tokens),
        token_ids=tuple(range(len(tokens))),
        offsets=tuple(zip([0, *ends[:-1]], ends, strict=True)),
        spans=("sink", "template", "question", "context", "context")[: len(tokens)],
        marks={"evidence": (3, 4), "answer": (4,)},
    )


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


class TestTextMap:
    def test_it_shows_the_whole_prompt_with_markup_escaped(self):
        html = text_map(prompt()).html
        assert "".join(WORDS) in text_of(html)
        assert "<b>" not in html and "&lt;b&gt;who&lt;/b&gt;" in html

    def test_each_run_of_tokens_carries_the_tint_and_the_name_of_its_span(self):
        html = text_map(prompt()).html
        tint = palette.SPANS["question"].light
        assert re.search(rf'background:{tint}\w\w;" title="question">&lt;b&gt;who', html)
        assert "5 tokens" in text_of(html) and "passage 2" in text_of(html)

    def test_evidence_is_underlined_and_the_answer_doubly(self):
        html = text_map(prompt()).html
        assert re.search(r"underline solid[^>]*> Ida<", html)
        assert re.search(r"underline double[^>]*> Brandt<", html)

    def test_attention_tints_by_weight_relative_to_the_largest_behind_the_sink(self):
        html = text_map(prompt(), attention=[np.array([0.6, 0, 0, 0.1, 0.3])]).html
        full, third = (palette.HIGHLIGHTS["evaluator"].light + end for end in ("ff", "55"))
        assert re.search(rf'background:{full};[^>]*title="30\s%"> Brandt', html)
        assert re.search(rf'background:{third};[^>]*title="10\s%"> Ida', html)
        assert "the first token gets 60" in text_of(html)

    def test_several_prompts_stand_side_by_side(self):
        html = text_map(prompt("generator"), prompt()).html
        assert html.count("5 tokens") == 2
        assert html.index("generator") < html.index("evaluator")

    @pytest.mark.parametrize("rows", [[], [np.ones(4)], [np.ones(5), np.ones(5)]])
    def test_attention_that_does_not_fit_is_refused(self, rows):
        with pytest.raises(LabError, match="one row of attention for each prompt"):
            text_map(prompt(), attention=rows)

    def test_a_notebook_shows_it_as_html(self):
        shown = text_map(prompt())
        assert shown._repr_html_() == shown.html
        assert repr(shown) == "TextMap()"


class TestLayerHeadMaps:
    def test_roles_have_their_colour_and_share_one_scale(self):
        one, other = np.full((3, 2), 0.2), np.full((3, 2), 0.4)
        figure = figures.layer_head_maps({"generator": one, "evaluator": other}, "Title")
        assert [heat.zmax for heat in figure.data] == [0.4, 0.4]
        assert [heat.zmin for heat in figure.data] == [0, 0]
        assert [heat.colorscale[1][1] for heat in figure.data] == [
            palette.ROLES["generator"].light,
            palette.ROLES["evaluator"].light,
        ]
        assert "40" in figure.layout.annotations[-1].text

    def test_values_stand_at_their_layer_and_head_and_say_so(self):
        values = np.arange(6.0).reshape(3, 2)
        heat = figures.layer_head_maps({"R": values}, "Title", unit="number").data[0]
        assert np.asarray(heat.z, dtype=float) == pytest.approx(values)
        assert heat.text[2][1] == "Layer 2, head 1: 5.00 (R)"

    def test_negative_values_make_the_scale_symmetric(self):
        heat = figures.layer_head_maps({"R": np.array([[-0.5, 0.2]])}, "Title").data[0]
        assert (heat.zmin, heat.zmax) == (-0.5, 0.5)

    @pytest.mark.parametrize("maps", [{}, {"flat": np.ones(4)}])
    def test_anything_but_layers_by_heads_is_refused(self, maps):
        with pytest.raises(LabError, match="two axes"):
            figures.layer_head_maps(maps, "Title")
