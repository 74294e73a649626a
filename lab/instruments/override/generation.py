"""What a model goes on to say with a set of heads ablated: texts to read, not only logits."""

from __future__ import annotations

from collections.abc import Sequence

from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.instruments.override.ablation import replace_heads
from lab.instruments.override.pairs import Head


def generate_ablated(
    lens: Lens, tokens: Sequence[int], heads: Sequence[Head], *, max_new_tokens: int = 12
) -> tuple[int, ...]:
    """The greedy continuation with heads zero-ablated at the decision and at every token after it.

    Without heads it is `Lens.generate`. A flip of the first token can be followed by anything: the
    published demonstration flips the colour of a banana and goes on to claim that bananas are
    typically blue (arXiv 2606.28273), so read what is said.
    """
    ends = lens.end_ids()
    whole = list(tokens)
    for _ in range(max_new_tokens):
        places = range(len(tokens) - 1, len(whole))
        logits = lens.run([Branch(tuple(whole), replace_heads(heads, places))])[0].logits
        assert logits is not None
        token = int(logits[-1].argmax())
        if token in ends:
            break
        whole.append(token)
    return tuple(whole[len(tokens) :])
