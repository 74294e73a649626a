"""How it is asked: roles render an Example and a candidate into a Prompt with named spans.

No torch, and transformers only as the tokenizer that is passed in.
"""

from lab.roles.align import PositionMap, align
from lab.roles.controls import CONTROLS, MASK, Control, apply_control
from lab.roles.prompt import MARKS, SPANS, Prompt
from lab.roles.prompter import Prompter, render
from lab.roles.roles import LAYOUTS, REFUSAL, ROLES, VERDICT_WORDS, Role
from lab.roles.verdict import VerdictTokens, label_mass, log_odds, verdict_tokens

__all__ = [
    "CONTROLS",
    "LAYOUTS",
    "MARKS",
    "MASK",
    "REFUSAL",
    "ROLES",
    "SPANS",
    "VERDICT_WORDS",
    "Control",
    "PositionMap",
    "Prompt",
    "Prompter",
    "Role",
    "VerdictTokens",
    "align",
    "apply_control",
    "label_mass",
    "log_odds",
    "render",
    "verdict_tokens",
]
