"""How far prompting alone takes a model: wordings, formats, layouts, demonstrations, verdict words.

    python benchmarks/wordings.py --data builtin --data squad2:FILE [--n 24] [--ways 1,9]

All ways of asking answer and judge the same questions; the judge sees the gold answer and a wrong
one from the same passage. Prints a table as it grows, and writes it as Markdown to --out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Way:
    """One way of asking."""

    wording: str = "as shipped"
    layout: str = "instruction_first"
    format: str = "chat"
    demonstrations: int = 0
    words: tuple[str, str] = ("Yes", "No")

    def __str__(self) -> str:
        number = str(self.demonstrations or "no")
        shown = f"{number} demonstration{'s' if self.demonstrations > 1 else ''}"
        return ", ".join(
            (self.wording, self.layout.replace("_", " "), self.format, shown, "/".join(self.words))
        )


WAYS = (
    Way(),
    Way(layout="context_first"),
    Way(format="plain"),
    Way(demonstrations=1),
    Way(demonstrations=2),
    Way(demonstrations=4),
    Way(format="plain", demonstrations=1),
    Way(format="plain", demonstrations=2),
    Way(format="plain", demonstrations=4),
    Way(format="plain", demonstrations=4, layout="context_first"),
    Way(words=("Correct", "Incorrect")),
    Way(words=("True", "False")),
    Way(format="plain", demonstrations=4, words=("Correct", "Incorrect")),
    Way(format="plain", demonstrations=4, words=("True", "False")),
    Way(wording="brief"),
    Way(wording="brief", format="plain", demonstrations=4),
    Way(wording="copy the words"),
    Way(wording="copy the words", format="plain", demonstrations=4),
    Way(wording="bare", format="plain", demonstrations=2),
    Way(wording="bare", format="plain", demonstrations=4),
    Way(wording="bare", format="plain", demonstrations=4, layout="context_first"),
)


def wordings() -> dict[str, Any]:
    """Instruction tables by name; the first is what the lab ships."""
    from lab.roles import REFUSAL, TASKS, Task

    brief = {
        "answer": Task(f'Answer in a few words, or "{REFUSAL}".', "Answer:"),
        "judge": Task(
            "Is the proposed answer right? {first} or {second}?", "Right? ({first} or {second}):"
        ),
    }
    bare = {
        "answer": Task("Answer.", "Answer:"),
        "judge": Task("Judge.", "Right? ({first} or {second}):"),
    }
    copying = {
        "answer": Task(
            "Find the words of the passage that answer the question and copy them, nothing else. "
            f'If there are none, write "{REFUSAL}".',
            "Answer:",
        ),
        "judge": Task(
            "Compare the proposed answer with what the passage says about the question. Write "
            "{first} if they agree and {second} if they do not.",
            "Verdict ({first} or {second}):",
        ),
    }
    return {
        "as shipped": TASKS,
        "brief": {**TASKS, **brief},
        "bare": {**TASKS, **bare},
        "copy the words": {**TASKS, **copying},
    }


def main() -> None:
    """Try all ways and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", action="append", required=True, help="sources of questions")
    parser.add_argument("--n", type=int, default=24, help="answerable questions per source")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of questions")
    parser.add_argument("--ways", help="numbers of the ways to try, from 1, with commas")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--adapter")
    parser.add_argument("--out", type=Path, default=Path("out/wordings.md"))
    args = parser.parse_args()
    import lab

    lens = lab.load_lens(args.model, adapter=args.adapter)
    sources = {
        spec: lab.load_examples(spec, n=args.n, seed=args.seed, answerable=True, others=0)
        for spec in args.data
    }
    lines = [heading(list(sources)), rule(len(sources))]
    chosen = [int(number) - 1 for number in args.ways.split(",")] if args.ways else range(len(WAYS))
    for way in (WAYS[i] for i in chosen):
        found = [measure(lens, way, examples) for examples in sources.values()]
        lines.append(row(way, found))
        print(lines[-1], flush=True)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(lens: Any, way: Way, examples: Any) -> dict[str, Any]:
    """EM, F1, share right (GA) of answers; AUROC, balanced accuracy of verdicts; with intervals."""
    import lab
    from lab.data import hard_wrongs, map_refusal, score
    from lab.instruments import statistics as S
    from lab.instruments.behaviour import judge

    prompter = lab.Prompter(
        lens.tokenizer, layout=way.layout, format=way.format, verdict_words=way.words,
        demonstrations=way.demonstrations, tasks=wordings()[way.wording],
    )  # fmt: skip
    em, f1, right, pairs, clusters, paired = [], [], [], [], [], []
    for example in examples:
        case = lab.open_case(lens, example, examples.pool, prompter=prompter)
        got = score(example, map_refusal(lab.answer(lens, case.prompt("generator"))))
        em.append(got.em)
        f1.append(got.f1)
        right.append(got.f1 >= RIGHT)
        clusters.append(example.cluster)
        wrong = next(iter(hard_wrongs(example, examples.pool)), None)
        if wrong is not None:
            prompts = [case.prompt("evaluator", text) for text in (example.gold, wrong)]
            pairs.append([verdict.log_odds for verdict in judge(case, prompts)])
            paired.append(example.cluster)
    odds = np.array(pairs).reshape(-1, 2)
    labels, scores = np.repeat([1, 0], len(odds)), np.concatenate([odds[:, 0], odds[:, 1]])
    return {
        "em": S.proportion(em, clusters),
        "f1": S.mean_estimate(f1, clusters),
        "ga": S.proportion(right, clusters),
        "auroc": S.auroc(scores, labels, [*paired, *paired]),
        "balanced": S.mean_estimate(((odds[:, 0] > 0) + (odds[:, 1] <= 0)) / 2, paired),
    }


COLUMNS = ("em", "f1", "ga", "auroc", "balanced")

RIGHT = 0.5
"""F1 from which an answer counts as right."""


def heading(sources: Sequence[str]) -> str:
    """The head of the Markdown table."""
    names = [source.partition(":")[0] for source in sources]
    columns = ("EM", "F1", "GA", "AUROC", "balanced accuracy")
    cells = (f"{name} {column}" for name in names for column in columns)
    return f"| way of asking | {' | '.join(cells)} |"


def rule(sources: int) -> str:
    """The line below the head."""
    return "|---" * (1 + sources * len(COLUMNS)) + "|"


def row(way: Way, found: Sequence[dict[str, Any]]) -> str:
    """One way's line."""
    cells = (str(numbers[column]) for numbers in found for column in COLUMNS)
    return f"| {way} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
