"""Direct contributions to the logits, and gradients, mean what the model does."""

from __future__ import annotations

import threading
from functools import cache

import numpy as np
import pytest
import torch
from hook_runs import plain, tokens
from tiny import tiny_lens

from lab.engine.direct import direct_logits, head_writes
from lab.engine.forward import Keep
from lab.engine.gradients import head_gradients
from lab.engine.packing import Branch
from lab.errors import LabError

lens_of = cache(tiny_lens)


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "granite", "cohere"])
def test_the_whole_residual_s_direct_logits_are_the_logits(architecture: str) -> None:
    lens, ids = lens_of(architecture), tokens()
    whole = lens.run([Branch(ids)], Keep(True, resid=True))[0]
    direct = direct_logits(lens, whole.resid[-1], whole.resid[-1])
    if cap := getattr(lens.config, "final_logit_softcapping", None):
        direct = cap * np.tanh(direct / cap)
    assert np.abs(direct[0] - whole.logits[0]).max() < 1e-3 * np.abs(whole.logits).max()


@pytest.mark.parametrize("architecture", ["llama", "granite"])
def test_what_heads_write_adds_up_to_what_attention_adds(architecture: str) -> None:
    lens, ids = lens_of(architecture), tokens()
    heads = lens.run([Branch(ids)], Keep(False, heads=True))[0].heads
    cache = lens.cache(ids)
    for layer in range(lens.n_layers):
        added = cache["resid_mid", layer][0, -1] - cache["resid_pre", layer][0, -1]
        written = sum(head_writes(lens, layer, h, heads[layer, h, 0]) for h in range(lens.n_heads))
        assert (written - added).abs().max() < 1e-4


def test_logits_that_are_made_in_another_way_have_no_direct_part() -> None:
    lens = tiny_lens("llama")
    lens.asked_logits = False
    with pytest.raises(LabError, match="in a way of its own"):
        direct_logits(lens, torch.zeros(1, 32), torch.zeros(1, 32))


def test_gradients_are_those_of_small_steps() -> None:
    lens, ids = lens_of("llama"), tokens()
    gradient = head_gradients(lens, ids, ((5,), (6, 7)))

    def odds(step: float) -> float:
        def add(z: torch.Tensor, hook: object) -> torch.Tensor:
            z = z.clone()
            z[0, -1, 1, 3] += step
            return z

        row = torch.tensor(plain(lens, ids, [("blocks.2.attn.hook_z", add)])[-1])
        return float(row[5] - row[[6, 7]].logsumexp(0))

    assert float(gradient[2, 1, 3]) == pytest.approx((odds(0.1) - odds(-0.1)) / 0.2, rel=1e-2)


def test_gradients_wait_while_another_thread_runs_the_lens() -> None:
    lens, ids = lens_of("llama"), tokens()
    wanted, found = head_gradients(lens, ids, ((5,), (6,))), []
    with lens.lock:
        thread = threading.Thread(
            target=lambda: found.append(head_gradients(lens, ids, ((5,), (6,))))
        )
        thread.start()
        thread.join(timeout=1.0)
        assert thread.is_alive() and not found
    thread.join()
    assert torch.equal(found[0], wanted)
