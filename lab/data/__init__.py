"""What is asked: examples, benchmark readers, official metrics and the built-in set. No torch."""

from lab.data.distractors import altered, candidate_rungs, hard_wrongs, is_wrong
from lab.data.example import Example, Mark, Passage
from lab.data.examples import Examples
from lab.data.metrics import Score, is_refusal, map_refusal, score
from lab.data.sources import licence, load_examples
from lab.data.world import make_examples
from lab.data.writing import write_jsonl

__all__ = [
    "Example",
    "Examples",
    "Mark",
    "Passage",
    "Score",
    "altered",
    "candidate_rungs",
    "hard_wrongs",
    "is_refusal",
    "is_wrong",
    "licence",
    "load_examples",
    "make_examples",
    "map_refusal",
    "score",
    "write_jsonl",
]
