"""The words of the report: what each thing is called and what a newcomer needs to know of it."""

from __future__ import annotations

Words = dict[str, tuple[str, str]]
"""Name in the data: (label, one-line explanation)."""

RUNGS: Words = {
    "own": ("its own, when wrong", "What the model itself answered, where that is wrong."),
    "gold": ("the gold answer", "The right answer: every rejection is a mistake."),
    "same_type": ("wrong, same type", "A plausible wrong answer of the same type."),
    "same_passage": ("wrong, same passage", "A wrong answer that stands in this very passage."),
    "other_passage": ("wrong, other passage", "The answer to another passage's question."),
    "closed_book": ("wrong, from memory", "What the model says without the passage, when wrong."),
    "empty": ("no answer", "An empty candidate."),
}

OWN_ANSWER = "its own answer"
"""What the rung ``own`` is called where the right answers among its own are meant too."""

CONTROLS: Words = {
    "candidate_masked": ("candidate hidden", "The candidate is replaced by blanks."),
    "candidate_swapped": ("candidate swapped", "A wrong candidate takes its place."),
    "context_masked": ("passage hidden", "The passage is removed."),
    "context_swapped": ("passage swapped", "Another example's passage takes its place."),
    "question_masked": ("question hidden", "The question is removed."),
    "candidate_first": ("candidate before passage", "Same words, other order."),
    "filler": ("filler added", "Meaningless words of the same length as the candidate."),
    "labels_swapped": ("label order swapped", "The two verdict words change places."),
}

CONTRASTS: Words = {
    "role": (
        "answering or judging",
        "Run a answers the question, run b judges the answer. The measure is the logit of the "
        "first token that a would say minus that of the token that b would say.",
    ),
    "candidate": (
        "right or wrong candidate",
        "Both runs judge: a the right candidate, b a wrong one. The measure is the verdict's "
        "log-odds.",
    ),
    "passage": (
        "true or altered passage",
        "Both runs answer: a with the passage as it is, b with the gold answer in it replaced by a "
        "wrong one. The measure is the logit of the gold answer's first token minus that of the "
        "wrong one's.",
    ),
}

TESTED = (
    "Corrected p (q): of the shift in logits towards what the giving run's prompt calls for, "
    "whatever the model made of it; not of R."
)
"""What the p-values of a contrast's patches are of."""

NOT_TESTED = (
    "No p-value: both tokens are the runs' own choices, so that every head restores a little by "
    "construction."
)
"""Why the patches of the contrast ``role`` have none."""

ENDS: dict[tuple[str, str], str] = {
    ("role", "a_into_b"): "from answering into judging",
    ("role", "b_into_a"): "from judging into answering",
    ("candidate", "a_into_b"): "from the right into the wrong candidate's run",
    ("candidate", "b_into_a"): "from the wrong into the right candidate's run",
    ("passage", "a_into_b"): "from the true into the altered passage's run",
    ("passage", "b_into_a"): "from the altered into the true passage's run",
}
"""What each direction of each contrast is called on a button."""

NORMS: dict[str, dict[str, str]] = {
    "raw": {
        "label": "attention",
        "of": "attention",
        "unit": "share",
        "note": "Share of the decision's attention on each part of the prompt. Shares add up to "
        "100 %; the first token takes what a head does not use.",
        "colour": "",
    },
    "sink_excluded": {
        "label": "without the sink",
        "of": "attention beyond the first token",
        "unit": "share",
        "note": "The first token is left out and the rest adds up to 100 %.",
        "colour": "Colour: share of the attention that is not on the first token.",
    },
    "enrichment": {
        "label": "per token",
        "of": "attention",
        "unit": "times",
        "note": "Share of attention divided by share of tokens: 1 means as much as if attention "
        "were spread evenly, so that long parts have no advantage. Scale by powers of ten.",
        "colour": "Colour: attention over an even share of it, which is the same for all tokens of "
        "a text.",
    },
    "norm_weighted": {
        "label": "weighted by what is read",
        "of": "norm-weighted attention",
        "unit": "share",
        "note": "Attention times the length of what each token writes into the head's output "
        "(Kobayashi et al. 2020): a token that is looked at but carries nothing counts little.",
        "colour": "Colour: attention as it is. The bars above the texts are weighted by what is "
        "read, which is kept for whole parts of a prompt only.",
    },
}
"""The normalisations of span mass, in the order of the switch."""

MEASURES: dict[str, tuple[str, str, str]] = {
    "ga_em": (
        "answers exactly right",
        "The answer equals a gold answer (exact match).",
        "GA exact",
    ),
    "ga_f1_50": (
        "answers with F1 of .5 or more (GA)",
        "Generation accuracy, half the words in common: what this page calls right.",
        "GA F1 \u2265 .5",
    ),
    "ga_f1_80": ("answers with F1 of .8 or more", "Nearly all in common.", "GA F1 \u2265 .8"),
    "ga": ("answers right (GA)", "Generation accuracy: answers with F1 of .5 or more.", "GA"),
    "ea": (
        "verdicts right (EA)",
        "Evaluation accuracy: verdicts that agree with the truth. Depends on how often the answers "
        "are right, hence the columns on the right.",
        "EA",
    ),
    "delta": (
        "EA \u2212 GA",
        "Above 0 it judges better than it answers, or leans to the verdict that is mostly right.",
        "EA \u2212 GA",
    ),
    "acceptance": ("accepts", "Share of its answers that it accepts: shows a lean.", "accepts"),
    "tpr": ("accepts, of the right ones", "True positive rate (TPR).", "TPR"),
    "tnr": ("rejects, of the wrong ones", "True negative rate (TNR).", "TNR"),
    "balanced_accuracy": (
        "balanced accuracy",
        "Mean of the two lines above: 0.50 for any judge that does not look.",
        "balanced",
    ),
    "auroc": (
        "ranks right above wrong (AUROC)",
        "How often a right answer gets higher log-odds than a wrong one, whatever the lean.",
        "AUROC",
    ),
    "kappa": ("agreement beyond chance", "Cohen's \u03ba of verdict and truth.", "\u03ba"),
    "mcc": ("correlation with the truth", "Matthews correlation (MCC).", "MCC"),
    "brier": ("Brier score", "Squared error of its stated probability; lower is better.", "Brier"),
    "ece": (
        "calibration error (ECE)",
        "Gap between stated probability and share of right answers; lower is better.",
        "ECE",
    ),
}
"""Measures of behaviour: (label, explanation, column header). Right means F1 of .5 or more."""

RETEST: Words = {
    "balanced_accuracy": ("balanced accuracy", "0.50 is a coin, whatever the judge leans to."),
    "auroc": (
        "ranks right above wrong (AUROC)",
        "How often some right answer gets higher log-odds than some wrong one.",
    ),
    "pair_share": ("prefers the right one", "The same, within the two answers of one question."),
    "accepts_right": ("accepts the right one", "Should be 1."),
    "accepts_wrong": ("accepts the wrong one", "Should be 0."),
}
"""Measures of the balanced re-test: (label, explanation)."""

COMPARISONS: dict[tuple[str, str], tuple[str, str]] = {
    ("generator", "evaluator"): (
        "answering against judging",
        "The comparison of this report.",
    ),
    ("generator_filler", "evaluator"): (
        "answering with filler against judging",
        "Filler gives the answering prompt the judging prompt's length: what remains is not "
        "length.",
    ),
    ("generator", "evaluator_candidate_first"): (
        "answering against judging, candidate first",
        "The candidate stands before the passage, which is then as near as when answering.",
    ),
    ("evaluator_repeat", "evaluator"): (
        "repeating against judging",
        "The model is told to repeat the candidate, so it must read it: what reading looks like.",
    ),
}
"""Pairs of roles whose attention is compared: (label, why)."""

LIMITS: tuple[str, ...] = (
    "Attention is not use. That a head looks at the passage does not show that the answer depends "
    "on what it reads there; patching and the controls speak to that, attention maps do not.",
    "Only the decision is watched: the last token of the prompt, which predicts the first token of "
    "the answer or the verdict. What earlier tokens gathered before is seen only through it.",
    "Right and wrong are decided by comparing words with the gold answers. A right answer in other "
    "words counts as wrong, and a judge that accepts it counts as mistaken.",
    "A judge that leans to one verdict can look good or bad without reading anything. Read "
    "evaluation accuracy only beside the lines for always-accept and always-reject.",
    "The two prompts differ in wording and length, not only in role. Attention per token and the "
    "filler control bound what length alone can do, but do not remove it.",
    "A patch at one position puts the model in a state that no text may bring about; a head that "
    "restores a difference can carry it without computing it.",
    "Heads are listed by their effect on the same examples on which the effect is measured, so "
    "that the largest ones are overstated. Corrected p-values guard against chance finds, not "
    "against that.",
)
"""What holds for every report of this kind."""

SECTIONS: tuple[tuple[str, str], ...] = (
    ("behaviour", "Behaviour"),
    ("layers", "Layers"),
    ("heads", "Heads"),
    ("patching", "Patching"),
    ("override", "Deciding heads"),
    ("training", "Training"),
    ("reading", "Reader"),
    ("limits", "Limits"),
    ("made", "How it was made"),
)
"""Sections of the page: (anchor, name in the menu)."""

CAPTIONS: dict[str, str] = {
    "ladder": "Dots: estimates; bars: 95 % intervals; n: questions that have this candidate. AUROC "
    "compares each wrong candidate with the gold answer of the same questions; the dashed line is "
    "chance.",
    "controls": "Dots: means over examples; bars: 95 % intervals. Shift: log-odds after the change "
    "minus before, in logits; above 0 it leans more to accepting.",
    "spans": "Mean over the heads of a layer and over all examples, without intervals; the table "
    "below gives those of the mean over all layers. Template: the chat format’s own tokens. Cue: "
    "the words that end the prompt, such as “Answer:”, and what the format puts behind them.",
    "heads": "Each cell is one head: mean over all examples. Generator and evaluator share one "
    "scale; the difference has its own, symmetric about zero. q: p-value corrected over all heads.",
    "training": "Dots: difference from the reference, paired by question; bars: 95 % intervals; "
    "dashed line: no difference. One scale for all. n: questions. For the Brier score and the "
    "calibration error, left of the line is better.",
    "curves": "Measured during the training of the model of this report, on questions that it was "
    "not trained on, other ones than those of this report, from the first to the last step. All "
    "values lie between 0 and 1; the line in the middle is .5.",
    "patching": "Mean R over the examples used; bands are 95 % intervals. Patches act at the last "
    "token of the prompt only. First choice: the likeliest first token of the answer or verdict.",
    "patched": "Mean shift: logits towards what the giving run's prompt calls for, whatever the "
    "model made of it; its p is corrected over all heads of a direction. A dash: not tested, since "
    "both tokens are the runs' own choices and every head restores a little by construction.",
}

HELP: dict[str, tuple[str, ...]] = {
    "behaviour": (
        "Small print: 95 % interval and number of examples. The columns of numbers on the right "
        "say what a judge would get that never looks at anything: one that accepts all, one that "
        "rejects all, and the better of the two. Where the model was trained, a column holds the "
        "untrained one, and below those of its numbers that the section on training compares, what "
        "training changes, paired by question (▲ or ▼: the interval excludes 0).",
        "If 80 of 100 answers are wrong, always rejecting agrees with the truth 80 times. So "
        "evaluation accuracy must be compared with those columns, and the fair test comes first: "
        "there each question has one right and one wrong candidate, so no lean can help. The wrong "
        "one is the hardest at hand: of the same type, else from the same passage, else from "
        "memory, else from another passage.",
        "Right means F1 of .5 or more with a gold answer, unless a line says otherwise. Log-odds: "
        "log P(yes) − log P(no) at the decision; above 0 the verdict is to accept.",
        "A number without an interval is not a certain one: where all examples or passages agree, "
        "resampling them shows no spread, and so no interval is given.",
    ),
    "ladder": (
        "The order is by design: an empty answer or one from another passage can be refused "
        "without understanding, a wrong one of the same type from the same passage only by "
        "reading. What is hard for a model need not follow it. A judge that reads stays right of "
        "the chance line everywhere.",
        "AUROC: pick a gold answer and a candidate of this rung at random; how often does the gold "
        "one get the higher log-odds? .5 is chance, 1 is always.",
    ),
    "controls": (
        "Hiding or swapping the passage should change many verdicts if the judge uses it. Order "
        "and filler should change few. What moves the verdict as much as hiding the passage does "
        "is not reading.",
    ),
    "spans": (
        "The decision is the last token of the prompt. In every layer each head spreads one unit "
        "of attention over all tokens before it. The first token takes what a head has no use for "
        "(the sink), so shares are also given without it.",
        "The ratio is taken within each example and averaged as a geometric mean: 3 × means that "
        "the part got three times the attention when answering. 'Strongest head' takes each "
        "layer's largest head instead of the mean, which a few heads that read can hide behind.",
        "Marked words (evidence, gold answer, verdict words) lie inside other parts and are not "
        "added to the hundred per cent.",
    ),
    "heads": (
        "A dark cell on the left that is pale in the middle is a head that reads the passage to "
        "answer but not to judge; it is dark blue on the right. Orange on the right: reads it more "
        "when judging.",
        "The table of the strongest readers holds means over the examples. They have no intervals, "
        "since heads and places are picked there for being the largest.",
        "Heads are named layer.head, both from 0. Corrected p is a sign-flip test over examples, "
        "corrected over all heads (Benjamini-Hochberg): .05 means that one in twenty of the heads "
        "listed up to there may be chance.",
    ),
    "training": (
        "In each cell: the value with its 95 % interval; below it the difference from the "
        "reference with its own interval. ▲ or ▼: that interval excludes 0; not set "
        "for fewer than ten questions, whose intervals are too narrow. With many cells some will "
        "do so by chance: one in twenty where nothing changed.",
        "Both models answer and judge the same questions, so that differences are taken within "
        "each question. Their intervals are often narrower than the two values' own suggest. They "
        "say how far other questions could change the result, not how far another training could: "
        "that is the range over training seeds. Where single trainings lie on both sides of the "
        "reference, no ▲ or ▼ is set.",
        "Answers right, own answers accepted and over-acceptance (accepted minus right) are over "
        "the model's own answers, which training changes. All other measures are over one right "
        "and one wrong candidate for each question that has an answer; the wrong one depends on no "
        "model.",
        "A judge may change because it tells candidates apart better or because it leans "
        "elsewhere. AUROC sees the first only; TPR and TNR move against each other when only the "
        "lean changes. Resampling overstates the calibration error where questions are few, so "
        "that an interval may lie above its value.",
        "Inside: the ratio is attention on the passage when answering over when judging, and its "
        "change is a factor (1 is no change). The other columns are mean attention over all heads, "
        "their changes percentage points. Heads: sign-flip test over examples, corrected over all "
        "heads of a model and role (Benjamini-Hochberg); the ten largest are overstated, since "
        "they are chosen by the same numbers.",
    ),
    "patching": (
        "Two clean runs give two outcomes. Then the target run is repeated with one head's output "
        "at the last token (or one layer's) replaced by that of the source run. R = (patched − "
        "target) / (source − target), mean over examples.",
        "Into and out of are different questions: what suffices to bring the source's decision "
        "about, and what the target needs to keep its own. Sums of single heads need not be 1.",
        "R of means divides summed shifts by summed gaps: examples with small gaps weigh little "
        "there. Where it differs much from the mean R, a few examples carry the mean.",
    ),
}
"""The 'how to read this' texts."""

RUNS: dict[str, str] = {
    "base": "untrained",
    "generator": "trained to answer",
    "evaluator": "trained to judge",
    "both": "trained on both",
    "verdict-only": "trained on verdicts only",
}
"""What a model is called, by what was trained."""

TRANSFER: dict[str, tuple[str, str, str]] = {
    "ga": ("answers right", "F1 of .5 or more with a gold answer.", "answers right"),
    "balanced_accuracy": (
        "balanced accuracy",
        "Of verdicts on the right and the wrong candidate; .5 is chance.",
        "balanced accuracy",
    ),
    "auroc": ("AUROC", "Ranks right candidates above wrong ones, whatever its lean.", "AUROC"),
    "acceptance": ("accepts its own", "Share of its own answers accepted.", "accepts its own"),
    "over_acceptance": (
        "over-acceptance",
        "Share of its own answers accepted minus share right.",
        "over-acceptance",
    ),
    "tpr": ("accepts right ones", "True positive rate (TPR).", "accepts right (TPR)"),
    "tnr": ("rejects wrong ones", "True negative rate (TNR).", "rejects wrong (TNR)"),
    "brier": ("Brier score", "Squared error of its probability.", "Brier score"),
    "ece": ("calibration error", "Probability against share right (ECE).", "ECE"),
}
"""Measures of what training changes: (label, explanation, column header)."""

INSIDE: dict[str, str] = {
    "ratio": "passage, answering over judging",
    "generator/context": "passage, answering",
    "generator/evidence": "evidence, answering",
    "evaluator/context": "passage, judging",
    "evaluator/evidence": "evidence, judging",
    "evaluator/candidate": "candidate, judging",
    "evaluator/question": "question, judging",
}
"""Measures of attention that are compared between models."""

CURVES: dict[str, str] = {
    "answers_exact": "answers exactly right",
    "auroc": "ranks right above wrong (AUROC)",
    "right_above_wrong": "prefers the right one of two",
    "accepted_right": "accepts right candidates",
    "accepted_wrong": "accepts wrong candidates",
}
"""What the learning curves show: shares and areas from 0 to 1."""

TEXTS: dict[str, str] = {
    "claims": "From “Can LLMs Judge Better Than They Generate?” (arXiv 2606.28050). Seen or "
    "opposite: the interval of the difference lies on one side of zero. “Not seen” with a "
    "wide interval is no evidence of absence: these questions do not settle it.",
    "schemes": "A judge that was trained on one form may know the form and not the task. The same "
    "right and wrong candidates are judged again, asked about in ways that it was not trained on. "
    "In each cell: AUROC with its 95 % interval, and the difference from the usual way on the same "
    "questions with its own.",
    "inside": "Attention of the last token before the answer or the verdict, as in the sections "
    "above, for each model.",
    "behaviour": "A judge that always says the same word can score high without reading. So every "
    "number stands beside what such a judge would get, and the fair test leaves a lean no room.",
    "ladder": "For each question it judges the gold answer and a ladder of others. The wrong "
    "answer of the fair test above is the hardest that there is for a question: of the same type, "
    "else from the same passage.",
    "controls": "It judges its own answer again, with one thing changed. A judge that reads must "
    "change its mind when the passage is gone, and must not when only the order changes.",
    "layers": "What share of the decision's attention falls on each part of the prompt, mean over "
    "heads and examples. Layers run upwards in every figure of this page: 0, the first, is "
    "at the bottom.",
    "heads": "How much each head looks at the passage. Choose a head by clicking or tapping on "
    "it, or with the arrow keys, and a set of heads with the button below the maps or by dragging "
    "with a mouse; the reader below follows.",
}
"""What introduces each section."""
