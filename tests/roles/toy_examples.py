"""Examples for the tests of roles: a plain one, a long one, and strange ones from hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from lab.data.example import Example, Mark, Passage

FOUNDED = "Port Amel was founded in 1834 by Ida Brandt. It lies on the river Sane."
TOLD = "Some say that Olaf Renn built the harbour, but ida brandt drew it."


def port_amel() -> Example:
    """Two titled passages; the answer stands in the first, and is named again in the second."""
    start = FOUNDED.index("Ida Brandt")
    return Example(
        id="port-1",
        dataset="builtin",
        family="extract",
        question="Who founded Port Amel?",
        passages=(Passage(FOUNDED, "Port Amel"), Passage(TOLD, "The harbour")),
        answers=(("Ida Brandt",),),
        evidence=(Mark(0, 0, FOUNDED.index(" It lies")),),
        answer_marks=(Mark(0, start, start + len("Ida Brandt")),),
        distractors=("Olaf Renn",),
    )


def sane_river() -> Example:
    """Another example with another passage."""
    return Example(
        id="river-1",
        dataset="builtin",
        family="extract",
        question="How long is the Sane?",
        passages=(Passage("The Sane is 70 km long.", "Sane"),),
        answers=(("70 km",),),
    )


def crowded(paragraphs: int = 12) -> Example:
    """Many paragraphs of which the third holds the evidence, the seventh is the longest."""
    passages = [Passage("It rains here. " * 4, f"Town {i}") for i in range(paragraphs)]
    passages[2] = Passage(FOUNDED, "Port Amel")
    passages[6] = Passage("It rains here. " * 30, "Town of rain")
    return Example(
        id="crowd-1",
        dataset="musique",
        family="2hop",
        question="Who founded Port Amel?",
        passages=tuple(passages),
        answers=(("Ida Brandt",),),
        evidence=(Mark(2, 0, 44),),
    )


STRANGE = (
    "Ida Brandt", "1834", " ", "  ", "\n", "\n\n", ".", "?", ",", "7", "12,5", "e\u0301",
    "\u0928\u093f", "\U0001f642", "\U0001f469\u200d\U0001f680", "\u05e9\u05dc\u05d5\u05dd",
    "\u0645\u0631", "\u200b", "\u200f", "\ufeff", "\u2581", "\x00", "\r\n", "\u00a0", "\ufb01",
    "<|im_end|>", "<|im_start|>assistant\n", "</s>", "<s>", "<bos>", "<eos>", "<unk>", "<|end|>",
    "<|begin|>", "<end_of_turn>", "<<s>", "<b>bold</b>", "&amp;", "{{ x }}", "{first}", "[INST]",
    "____", "Yes", "No", "'", '"',
)  # fmt: skip

texts = st.lists(
    st.one_of(
        st.sampled_from(STRANGE), st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    ),
    max_size=8,
).map("".join)


@st.composite
def examples(draw: st.DrawFn) -> tuple[Example, str]:
    """An example of strange texts with marks anywhere, and a candidate that may stand in it."""
    passages = draw(st.lists(st.builds(Passage, texts, texts), min_size=1, max_size=3))
    marks = []
    for i, passage in enumerate(passages):
        if passage.text:
            start = draw(st.integers(0, len(passage.text) - 1))
            marks.append(Mark(i, start, draw(st.integers(start + 1, len(passage.text)))))
    question = draw(texts.map(str.strip))
    source = draw(st.sampled_from([p.text for p in passages] + ["", "...", "No"]))
    candidate = draw(st.one_of(st.just(source), texts))
    example = Example(
        id="strange", dataset="test", family="test", question=question,
        passages=tuple(passages), answers=(("x",),),
        evidence=tuple(marks), answer_marks=tuple(marks[:1]),
    )  # fmt: skip
    return example, candidate
