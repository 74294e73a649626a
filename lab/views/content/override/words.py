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

MENU = {
    "instruction": "Passage or memory",
    "passage": "Passage’s answer",
    "candidate": "Candidate",
    "checked": "Check",
}
"""Contests as they are called in the page's menu."""

STATES = {
    "found": "heads found",
    "none": "no heads found",
    "too few": "too few pairs",
    "no gap": "runs do not differ for sure",
}

SEARCHED = ("found", "none")
"""States of contests in which heads were looked for."""

EFFECTS = {
    "decide": "they decide",
    "matter": "they matter, but do not decide",
    "unclear": "too few others to tell whether they decide",
}
"""What found heads do, in a word."""

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

PUBLISHED = (
    "“Vision-Default, Prior-Override”", "https://arxiv.org/abs/2606.28273", "arXiv 2606.28273",
)  # fmt: skip
"""Where the published rule comes from: title, address, number."""

GLOSSARY: tuple[tuple[str, str], ...] = (
    (
        "Head",
        "One of the parts of each layer that move information between tokens. Head 12.3 is the "
        "one with number 3 in layer 12, both counted from 0.",
    ),
    (
        "Decision",
        "The last token of the prompt: there the model gives its first word, and there heads are "
        "turned off.",
    ),
    (
        "Logits, log-odds",
        "A model gives each possible next token a number, its logit. The difference of two logits "
        "is the log-odds of the two: 0 is a coin, +1 about 73 to 27, +3 about 95 to 5.",
    ),
    (
        "Conflict, subject",
        "A question whose two passages give different answers, one of them true. Its subject is "
        "what it is about. Conflicts of one subject stay together when they are divided.",
    ),
    (
        "Pair",
        "The two runs of a contest on one conflict, called a and b. Their prompts differ in one "
        "thing and call for different answers.",
    ),
    (
        "Held-out",
        "Not used for choosing heads. Effects are measured on held-out pairs, since what is "
        "chosen for being large looks larger than it is where it was chosen.",
    ),
    (
        "Put out nothing, their mean, of another pair",
        "Three ways of turning a head off at the decision. What it adds to the model’s state is "
        "replaced by zeros, by its mean over other pairs, or by what it adds in another pair.",
    ),
    (
        "90 % of the effect",
        "Turning off more and more heads moves the answer up to some point. The set of a run is "
        "the smallest that was found to move it 90 % as far.",
    ),
    (
        "Decide, matter",
        "Heads decide if in some run at least half of the answers turn with the run’s own set "
        "putting out nothing, more than with random sets (p at most .05), and not with zeros "
        "alone. Other heads that were found matter without deciding. With fewer than 19 random "
        "sets p cannot be so small; whether they decide is then left open.",
    ),
    (
        "Random sets, p",
        "As many heads drawn at random from the same layers, no set twice. p is the share of sets "
        "that do at least as much as the found one.",
    ),
    (
        "Cue",
        "The last words of the prompt, behind which the answer is to come.",
    ),
    (
        "Published rule",
        "A rule that calls heads override heads by how far out their effects lie among those of "
        "all heads; shown for comparison.",
    ),
)
"""(word, what it means on this page)"""

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
    "explain. With fewer than some 16 pairs no head could pass the test, and none is named; nor is "
    "any where over all conflicts the two runs do not differ for sure, as the usable ones are then "
    "picked by chance.",
    "crossing": "Two contests compared. Shared heads: Jaccard index of the sets that were found, "
    "beside its mean for random sets of these sizes. Rank correlation: of the effects of all "
    "heads, found or not; noise pulls it towards zero.",
    "across": "The heads of one contest, putting out nothing, in the runs of another, on pairs "
    "whose subjects they were not chosen on. If the judge used the heads that carry the passage’s "
    "answer, it would change its verdict without them.",
    "restored": "What the found heads put out when the model answers is put into the same heads "
    "when it judges the same passage. If a judge fails because these heads are silent then, its "
    "accuracy should come back. Difference: after minus before, paired. The heads of each contest "
    "are tried on conflicts whose subjects they were not chosen on, so “before” is not the same "
    "in all rows. n counts conflicts; for the AUROC it counts pairs of a right and a wrong "
    "candidate, two of each conflict.",
}

CAPTIONS = {
    "maps": "Mean shift of the log-odds on held-out pairs when one head’s output is carried over "
    "at the decision, towards the answer of the run that it comes from, in logits. Framed: the "
    "found heads. Dotted: labelled by the published rule. Layers run upwards, heads to the "
    "right, both from 0. Numbers are in the table.",
    "heads": "A head can be in a set without a clear effect of its own on held-out pairs: sets "
    "were chosen on other pairs, and by what their heads do together.",
    "curve": "To the right: k, how many heads are off. Upwards: mean shift towards the competing "
    "answer on held-out pairs when the first k heads put out nothing, in logits, with its 95 % "
    "interval (coloured band). Grey, at those k where they were run: random sets with as many "
    "heads in the same layers; dot: their mean, bar: the middle 95 % of them. At k = 1 there are "
    "only as many as the layer has other heads. Heads are ranked by their own effect on the pairs "
    "that heads were chosen on.",
    "flips": "Small print: 95 % interval and number of pairs. Below it: mean of the random sets, "
    "the middle 95 % of them, and how many there were; the share of them that does less (ties "
    "count half); and p, the share that does at least as much (the set itself counted). With 100 "
    "sets p cannot be below .0099, with 30 not below .032. No set comes twice, so that there are "
    "fewer where the layers have few other heads; with fewer than 19 p cannot reach .05.",
    "elsewhere": "All found heads of this contest are off, those of both runs. Questions: others, "
    "with passages, asked in the same role. Clozes: facts that the model knows, asked as the "
    "beginning of a sentence to finish, without a passage. Divergence says how far the "
    "probabilities of the next token move, in nats: 0 is not at all, 0.69 (the logarithm of 2) "
    "what halving a certain token’s probability gives. Plain text: the heads are off at every "
    "token.",
    "kinds": "Dots: estimates on held-out pairs; bars: 95 % intervals. Left: share of pairs in "
    "which the head’s own write has an answer among its top 20 tokens and moves the decision; from "
    "0.5 on the head is said to write, below 0.1 it may route (dashed). "
    "Middle: what this write moves by itself. Right: what later layers make of it.",
}

HELP = (
    "Held-out pairs are of other subjects than those on which heads were chosen, so that nothing "
    "is scored where it was picked. Intervals resample subjects. They say how far other conflicts "
    "like these could change a number, not what holds for other models or wordings.",
    "Turning to the other answer is counted apart from damage. A set that makes the model say "
    "something else altogether has broken it, not decided for it.",
    "Random sets answer the objection that switching anything off changes something. With 100 of "
    "them p cannot be below .0099, with 30 not below .032, with 8, which is all there are for one "
    "head of nine, not below .11.",
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
