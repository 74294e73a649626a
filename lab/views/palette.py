"""The colours of every view: one per role, one per span, for light and dark pages.

The hues follow Okabe and Ito's colour-blind safe set (2008): blue and vermilion for the roles;
green, amber and purple for passage, question and candidate; greys that differ in lightness for
the scaffolding of the prompt. Demonstrations have the darkest tone of the light page and the palest
of the dark one, so that lightness alone sets them apart whatever hues a reader sees.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Theme = Literal["light", "dark"]


class Tone(NamedTuple):
    """One colour on a light and on a dark page, as ``#rrggbb``."""

    light: str
    dark: str

    def on(self, theme: Theme) -> str:
        """The colour on a page of that theme."""
        return self.light if theme == "light" else self.dark


PAGE: dict[str, Tone] = {
    "bg": Tone("#fbfaf7", "#161513"),
    "card": Tone("#ffffff", "#1f1e1b"),
    "well": Tone("#f4f1ea", "#292724"),
    "ink": Tone("#1c1b19", "#edeae3"),
    "dim": Tone("#635f58", "#aba699"),
    "line": Tone("#e3ded4", "#3a3731"),
    "cell": Tone("#f3f0e9", "#2a2824"),
    "more": Tone("#5f3f9e", "#b79bf0"),
    "less": Tone("#8a6a00", "#d9b44a"),
}
"""Surfaces and text; ``more`` and ``less`` colour restoration above and below zero."""

ROLES: dict[str, Tone] = {
    "generator": Tone("#0b66b3", "#6cb2f5"),
    "evaluator": Tone("#bd3f0a", "#f59a66"),
}
"""The roles as text, dots and map cells."""

HIGHLIGHTS: dict[str, Tone] = {
    "generator": Tone("#8cc1f2", "#1d5c99"),
    "evaluator": Tone("#f7ad80", "#9c4317"),
}
"""The roles as a background behind text, so that the text stays readable on them."""

RUNS: dict[str, Tone] = {
    "generator": ROLES["generator"],
    "evaluator": ROLES["evaluator"],
    "both": PAGE["more"],
    "verdict-only": PAGE["less"],
}
"""Models by what was trained: a role's own colour, where it was one role."""

SPANS: dict[str, Tone] = {
    "sink": Tone("#8d877c", "#6f6a61"),
    "template": Tone("#dcd7cc", "#3f3c36"),
    "demonstrations": Tone("#46405c", "#cdd6e4"),
    "instruction": Tone("#a9b8c6", "#56646f"),
    "context": Tone("#1f9e78", "#2fae87"),
    "question": Tone("#e2a31b", "#d39a22"),
    "candidate": Tone("#b565a7", "#c078b3"),
    "cue": Tone("#bfb5a4", "#5c554a"),
}
"""The base spans of a prompt, in the order of ``lab.roles.prompt.SPANS``."""

SPAN_LABELS: dict[str, str] = {
    "sink": "first token (sink)",
    "template": "template",
    "demonstrations": "demonstrations",
    "instruction": "instruction",
    "context": "passage",
    "question": "question",
    "candidate": "candidate",
    "cue": "cue",
}
"""What a reader is told a span is called."""

MARK_LABELS: dict[str, str] = {
    "evidence": "evidence",
    "answer": "gold answer",
    "labels": "verdict word",
    "mention": "candidate's text",
}
"""What a reader is told a mark is called."""


def css_variables(theme: Theme) -> str:
    """CSS custom properties (``--gen:#0b66b3;...``) for one theme."""
    named = {
        **PAGE,
        **{role[:3]: tone for role, tone in ROLES.items()},
        **{f"{role[:3]}-hl": tone for role, tone in HIGHLIGHTS.items()},
        **{f"span-{span}": tone for span, tone in SPANS.items()},
    }
    return "".join(f"--{name}:{tone.on(theme)};" for name, tone in named.items())


def stylesheet() -> str:
    """The CSS rules that set the colours: by the reader's system, unless the page says which.

    Paper is always light.
    """
    light, dark = css_variables("light"), css_variables("dark")
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light])"
        f"{{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
    )


def widget_stylesheet() -> str:
    """The CSS rules that set the colours of elements of the class ``rl`` inside another page.

    Light, unless a notebook around them says that it is dark (as JupyterLab and VS Code do).
    """
    return (
        f".rl{{color-scheme:light;{css_variables('light')}}}\n"
        "[data-jp-theme-light=false] .rl,[data-vscode-theme-kind*=dark] .rl"
        f"{{color-scheme:dark;{css_variables('dark')}}}\n"
    )


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` (0 to 1), as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (1 to 21), as WCAG 2 defines it; AA text needs 4.5."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)
