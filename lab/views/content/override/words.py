"""The words of the section on override heads: what each thing is called, for a newcomer."""

from __future__ import annotations

CONTESTS: dict[str, tuple[str, str]] = {
    "instruction": (
        "By the passage, or from memory?",
        "The passage is altered. Run a is told to follow it, run b to answer from its own "
        "knowledge: heads that tell these runs apart decide which of the two is heeded.",
    ),
    "passage": (
        "Which heads carry the passage’s answer?",
        "Both runs are told to follow the passage. In run a it is altered, in run b it is true; "
        "only one word differs.",
    ),
    "candidate": (
        "Which heads read the candidate?",
        "Both runs judge, on the same passage: in run a the right candidate, in run b a wrong one.",
    ),
    "checked": (
        "Which heads check the passage?",
        "Both runs judge the same candidate: in run a the passage says the same, in run b it says "
        "something else.",
    ),
}
"""Name of a contest: (the question that it asks, its two runs)."""

STATES = {
    "found": "heads found",
    "none": "no heads found",
    "too few": "too few pairs",
}

ROLES = {"generator": "answering", "evaluator": "judging"}

HOWS = {"zero": "put out nothing", "mean": "put out their mean", "resample": "of another pair"}
"""What ablated heads put out, as column headers."""

MEASURES: dict[str, tuple[str, str]] = {
    "to_other": ("turn to the other answer", "share of the pairs first answered as asked"),
    "damage": ("turn to anything else", "damage, of the same pairs"),
    "two_token": ("sign of the log-odds turns", "share; only the two answers are looked at"),
    "shift": ("shift towards the other answer", "mean, in logits, all pairs"),
    "changed": ("most likely token changes", "share of the prompts"),
    "divergence": ("divergence of the next token", "mean, in nats"),
    "rise": ("rise of the loss on plain text", "nats a token"),
    "balanced_accuracy": ("balanced accuracy", "0.50 is a coin"),
    "auroc": ("AUROC", "ranks right above wrong, whatever the lean"),
    "log_odds": ("log-odds of accepting", "mean, in logits"),
}
"""Measures: (label, what it is of)."""

SHARES = ("to_other", "damage", "two_token", "changed")
"""Measures that are shares, told in per cent."""

RUNS = {"a": "run a", "b": "run b"}

KINDS = {"writing": "writes", "routing": "routes", "unassigned": "cannot be told"}

SPANS = {"context": "passage", "candidate": "candidate", "question": "question",
         "instruction": "instruction", "decision": "decision", "cue": "cue"}  # fmt: skip

LEAD = (
    "A passage says one thing and the model remembers another; a judge is shown a right candidate "
    "or a wrong one. Does the outcome hang on a few heads? Heads are looked for by a test and the "
    "smallest set that has 90 % of the effect, on one part of the subjects. Every effect below was "
    "measured on the others, beside random sets of as many heads in the same layers."
)

TEXTS = {
    "conflicts": "A conflict is a question with two passages: the true one states the true answer, "
    "the altered one another answer of the same kind in its place. The model is told either to "
    "follow the passage or to answer from its own knowledge. What it says is the most likely next "
    "token.",
    "verdicts": "The same conflicts, judged: a candidate is right if it is what the passage says. "
    "A judge that reads only the candidate gives it the same log-odds on both passages.",
    "contests": "A contest sets two runs against each other that call for different answers. A "
    "conflict can be used only if the model does as asked in both; otherwise there is nothing to "
    "explain. With fewer than some 16 pairs no head could pass the test, and none is named.",
    "crossing": "Two contests compared. Shared heads: Jaccard index of the sets that were found, "
    "beside its mean for random sets of these sizes. Rank correlation: of the effects of all "
    "heads, found or not; noise pulls it towards zero.",
    "across": "The heads of one contest, putting out nothing, in the runs of another, on pairs "
    "whose subjects they were not chosen on. If the judge used the heads that carry the passage’s "
    "answer, it would change its verdict without them.",
    "restored": "What the found heads put out when the model answers is put into the same heads "
    "when it judges the same passage. If a judge fails because these heads are silent then, its "
    "accuracy should come back. Difference: after minus before, paired.",
}

CAPTIONS = {
    "maps": "Mean shift of the log-odds on held-out pairs when one head’s output is carried over "
    "at the decision, towards the answer of the run that it comes from, in logits. Framed: the "
    "heads that decide. Dotted: labelled by the published rule. Layers run upwards, heads to the "
    "right, both from 0. Numbers are in the table.",
    "curve": "Line and band: mean shift towards the competing answer on held-out pairs when the "
    "first k heads put out nothing, with its 95 % interval, in logits. Grey: the middle 95 % of "
    "random sets with as many heads in the same layers, dashed their mean. Heads are ranked by "
    "their own effect on the pairs that heads were chosen on.",
    "flips": "Small print: 95 % interval and number of pairs. Below it: mean of the random sets "
    "with the middle 95 % of them; the share of them that does less (ties "
    "count half); and p, the share that does at least as much (the set itself counted).",
    "kinds": "Dots: estimates on held-out pairs; bars: 95 % intervals. Left: share of pairs in "
    "which the head’s own write has an answer among its top 20 tokens and moves the decision. "
    "Middle: what this write moves by itself. Right: what later layers make of it.",
}

HELP = (
    "Held-out pairs are of other subjects than those on which heads were chosen, so that nothing "
    "is scored where it was picked. Intervals resample subjects. They say how far other conflicts "
    "like these could change a number, not what holds for other models or wordings.",
    "Turning to the other answer is counted apart from damage. A set that makes the model say "
    "something else altogether has broken it, not decided for it.",
    "Random sets answer the objection that switching anything off changes something. With 100 of "
    "them p cannot be below .0099.",
    "Putting out nothing is furthest from what a model ever sees. An effect that is there with "
    "zeros only, and not with the mean or another pair’s values, may be one of that.",
    "The published rule calls every head more than two standard deviations out along the first "
    "principal component an override head. It labels about 4.6 % of any cloud of points, also of "
    "pure noise; so its labels are shown for comparison only.",
    "Writing: in at least half of the pairs the head’s own write has an answer among its top 20 "
    "tokens and moves the decision. Routing: in less than a tenth, but what later layers make of "
    "it matters, or the head looks elsewhere in the two runs. All else cannot be told.",
    "The largest numbers of a table with many rows are overstated, as they are picked for being "
    "large; that holds for knockouts by layers and for the rank of heads.",
)

LIMITS = (
    "Heads are changed at the decision only, the last token of the prompt. What earlier tokens do "
    "is seen by cutting attention, not by the sets.",
    "A set is the smallest in that no head of it can be dropped. A smaller one of other heads may "
    "exist, and several sets may do the same.",
    "Conflicts on which the model does not do as asked are left out. What was found holds for "
    "those that remain, and for facts, passages and instructions like these.",
    "A head that is on in neither run, and takes over when another is off, is in no set.",
    "One model. What heads of a small model do need not hold for a larger one.",
)
"""What holds for every study of this kind."""

INTERVALS = (
    "95 %, over subjects where several conflicts share one: bootstrap for means, Wilson’s for "
    "plain shares. Random sets: the middle 95 % of them. p over heads is corrected "
    "(Benjamini-Hochberg)."
)
