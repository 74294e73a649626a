"""Colours: readable text, and neighbours that can be told apart without seeing hue."""

from __future__ import annotations

import itertools

import pytest

from lab.roles.prompt import MARKS, SPANS
from lab.views import palette

THEMES = ("light", "dark")
AA_TEXT = 4.5
AA_LARGE_TEXT = 3.0


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("surface", ["bg", "card", "well"])
def test_text_colours_are_readable_on_every_surface(theme, surface):
    ground = palette.PAGE[surface].on(theme)
    texts = [palette.PAGE["ink"], palette.PAGE["dim"], *palette.ROLES.values()]
    for tone in texts:
        assert palette.contrast(tone.on(theme), ground) >= AA_TEXT


@pytest.mark.parametrize("theme", THEMES)
def test_text_stays_readable_on_the_strongest_highlight(theme):
    for tone in palette.HIGHLIGHTS.values():
        assert palette.contrast(palette.PAGE["ink"].on(theme), tone.on(theme)) >= AA_TEXT


@pytest.mark.parametrize("theme", THEMES)
def test_large_numbers_in_the_colour_of_the_passage_are_readable(theme):
    tone, ground = palette.SPANS["context"], palette.PAGE["bg"]
    assert palette.contrast(tone.on(theme), ground.on(theme)) >= AA_LARGE_TEXT


def test_every_span_and_mark_has_a_colour_and_a_name():
    assert tuple(palette.SPANS) == SPANS == tuple(palette.SPAN_LABELS)
    assert tuple(palette.MARK_LABELS) == MARKS


@pytest.mark.parametrize("theme", THEMES)
def test_no_two_spans_or_roles_share_a_colour(theme):
    tones = [*palette.SPANS.values(), *palette.ROLES.values()]
    for one, other in itertools.combinations(tones, 2):
        assert one.on(theme) != other.on(theme)


def test_contrast_of_black_on_white_is_the_largest_there_is():
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#ffffff", "#ffffff") == pytest.approx(1)


def test_the_stylesheet_holds_both_themes_and_prints_in_light():
    rules = palette.stylesheet()
    assert "prefers-color-scheme:dark" in rules
    assert palette.ROLES["generator"].dark in rules
    for rule in rules.split("\n"):
        if palette.ROLES["generator"].dark in rule:
            assert rule.startswith("@media screen")
