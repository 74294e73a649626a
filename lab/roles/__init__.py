"""How it is asked: roles render an Example and a candidate into a Prompt with named spans.

No torch, and transformers only as the tokenizer that is passed in.
"""

from lab.roles.align import PositionMap, align
from lab.roles.controls import CONTROLS, MASK, Control, apply_control
from lab.roles.demonstrations import DEMONSTRATIONS, Demonstration
from lab.roles.prompt import MARKS, SPANS, Prompt
from lab.roles.prompter import Prompter, render
from lab.roles.roles import LAYOUTS, REFUSAL, ROLES, TASKS, VERDICT_WORDS, Role, Task
from lab.roles.verdict import VerdictTokens, label_mass, log_odds, verdict_tokens

__all__ = [
    "CONTROLS",
    "DEMONSTRATIONS",
    "LAYOUTS",
    "MARKS",
    "MASK",
    "REFUSAL",
    "ROLES",
    "SPANS",
    "TASKS",
    "VERDICT_WORDS",
    "Control",
    "Demonstration",
    "PositionMap",
    "Prompt",
    "Prompter",
    "Role",
    "Task",
    "VerdictTokens",
    "align",
    "apply_control",
    "label_mass",
    "log_odds",
    "render",
    "verdict_tokens",
]
