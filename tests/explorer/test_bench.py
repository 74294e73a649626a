"""The patch bench: the study's own numbers, one direction at a time, that can be stopped."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch

import lab
from lab import LabError
from lab.engine.lens import Lens
from lab.engine.watching import watched
from lab.explorer import bench
from lab.explorer.continuation import continuations
from lab.explorer.directions import DIRECTIONS, WHATS
from lab.explorer.jobs import Stopped, Watch
from lab.instruments.names import CONTRASTS
from lab.instruments.patching import head_edits
from lab.instruments.patching import measure_patching as measured


@pytest.fixture(scope="module")
def opened(made):
    """An example on its model, with its contrasts."""
    case = lab.open_case(made.lens, made.examples[0], made.examples.pool)
    return case, lab.contrasts(case, lab.measure_behaviour(case, controls=False))


class TestExact:
    @pytest.mark.parametrize("direction", [d for d in DIRECTIONS if not d.startswith("passage")])
    def test_it_gives_what_a_study_measures(self, opened, direction):
        case, contrasts = opened
        contrast, way = direction.split("/")
        wanted = measured(case.lens, contrasts[contrast])
        at = ("a_into_b", "b_into_a").index(way)
        heads = bench.patch(case, bench.Request(direction, "heads"), contrasts)
        np.testing.assert_allclose(heads.patched, wanted.head[at], atol=1e-4)
        layers = bench.patch(case, bench.Request(direction, "layers"), contrasts)
        np.testing.assert_allclose(layers.patched, wanted.layer[at][::-1], atol=1e-4)
        one = bench.patch(case, bench.Request(direction, "head", ((2, 1),)), contrasts)
        assert float(one.patched) == pytest.approx(wanted.head[at, 2, 1], abs=1e-4)
        assert (one.source, one.target) == pytest.approx(wanted.clean[[at, 1 - at]], abs=1e-4)

    def test_restoration_is_the_share_of_the_difference_between_the_clean_runs(self, opened):
        result = bench.patch(opened[0], bench.Request("role/a_into_b", "heads"), opened[1])
        frame = result.to_dataframe()
        gap = result.source - result.target
        np.testing.assert_allclose(frame["restoration"], frame["shift"] / gap, rtol=1e-5)

    def test_carrying_the_residual_over_after_the_last_layer_restores_all(self, opened):
        result = bench.patch(opened[0], bench.Request("role/a_into_b", "layers"), opened[1])
        assert result.restoration[0, -1] == pytest.approx(1, abs=1e-4)

    def test_clean_runs_that_hardly_differ_give_shifts_but_no_shares(self, opened, monkeypatch):
        monkeypatch.setattr(bench, "MIN_GAP", 1e6)
        result = bench.patch(opened[0], bench.Request("role/a_into_b", "heads"), opened[1])
        assert np.isnan(result.restoration).all() and np.isfinite(result.patched).all()
        assert "no share of the difference" in result.words
        assert result.as_state()["map"][0][0] is None


class TestText:
    def test_unchanged_text_is_what_the_model_answers(self, opened):
        case, _ = opened
        prompt = case.prompt("generator")
        assert continuations(case.lens, prompt.token_ids, [()]) == [lab.answer(case.lens, prompt)]

    def test_changed_text_is_what_a_plain_hook_gives(self, opened):
        case, contrasts = opened
        prompt, source = contrasts["role"].b, contrasts["role"].a
        trace = case.lens.run([lab.Branch(source.token_ids)], lab.Keep(heads=True))[0]
        edit = head_edits(case.lens, trace, prompt.decision)[6]
        text = continuations(case.lens, prompt.token_ids, [(edit,)])[0]
        assert text == hooked(case.lens, prompt.token_ids, edit)

    def test_before_and_after_say_what_the_runs_say(self, opened):
        case, contrasts = opened
        request = bench.Request("role/a_into_b", "set", ((0, 3), (2, 1)))
        result = bench.patch(case, request, contrasts)
        assert result.before.effect == pytest.approx(result.target, abs=1e-4)
        assert result.before.verdict[0] == pytest.approx(
            lab.judge(case, [contrasts["role"].b])[0].log_odds, abs=1e-4
        )
        assert len(result.after.top) == 5
        assert result.after.top[0][1] >= result.after.top[4][1] > 0
        assert "decision" in result.note

    def test_a_run_that_answers_has_no_verdict(self, opened):
        result = bench.patch(
            opened[0], bench.Request("role/b_into_a", "head", ((0, 0),)), opened[1]
        )
        assert result.before.verdict is None
        assert result.as_state()["before"]["verdict"] is None


def hooked(lens: Lens, tokens: tuple[int, ...], edit: lab.engine.edits.Edit) -> str:
    """Greedy decoding through TransformerLens's own hooks, the prompt run anew for each token."""

    def change(z: torch.Tensor, hook: object) -> torch.Tensor:
        z = z.clone()
        z[0, len(tokens) - 1, edit.head] = edit.add
        return z

    new: list[int] = []
    name = f"blocks.{edit.layer}.attn.hook_z"
    for _ in range(32):
        ids = torch.tensor([[*tokens, *new]])
        with torch.no_grad():
            logits = lens.bridge.run_with_hooks(ids, fwd_hooks=[(name, change)])
        token = int(logits[0, -1].argmax())
        if token in lens.end_ids():
            break
        new.append(token)
        if "\n" in lens.tokenizer.decode(new).lstrip():
            break
    lines = lens.tokenizer.decode(new, skip_special_tokens=True).splitlines()
    return next((line.strip() for line in lines if line.strip()), "")


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("role/up", "heads"), "Unknown direction 'role/up': use one of role/a_into_b"),
            (("role/a_into_b", "neurons"), "Unknown patch 'neurons': use one of heads, layers"),
            (("role/a_into_b", "set", []), "No head is selected"),
            (("role/a_into_b", "head", [(9, 9)]), r"no head 9\.9"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(self, live, arguments, words):
        with pytest.raises(LabError, match=words):
            live.run(*arguments)

    @pytest.mark.parametrize("contrast", CONTRASTS)
    def test_an_example_that_lacks_a_contrast_says_why(self, opened, contrast):
        with pytest.raises(LabError, match=r"Example q0 cannot be patched .* Choose another"):
            bench.patch(opened[0], bench.Request(f"{contrast}/a_into_b", "heads"), {})


def send(explorer: lab.Explorer, **message: object) -> None:
    """A message as the front end sends it."""
    explorer.widget._handle_custom_msg(message, [])


def ask(explorer: lab.Explorer, direction: str = "role/a_into_b", what: str = "heads", heads=()):
    request = {"direction": direction, "what": what, "heads": [list(pair) for pair in heads]}
    send(explorer, kind="run", request=request)


def finished(explorer: lab.Explorer) -> dict:
    """The bench's state, once nothing runs any more."""
    limit = time.monotonic() + 120
    while explorer.widget.bench["running"] and time.monotonic() < limit:
        time.sleep(0.02)
    return explorer.widget.bench


class TestInTheWidget:
    def test_a_run_shows_progress_and_then_its_result(self, live):
        live.select(example="q0")
        steps = []
        live.widget.observe(lambda c: steps.append(dict(c["new"])), names="bench")
        ask(live)
        state = finished(live)
        assert state["error"] == "" and state["result"]["kind"] == "heads"
        assert np.shape(state["result"]["map"]) == (4, 4)
        assert any(s["running"] and s["step"] == "running 16 patches" for s in steps)
        assert live.last_result.what == "heads"
        np.testing.assert_allclose(live.run().patched, live.last_result.patched, atol=1e-5)

    def test_the_set_of_the_request_is_what_is_patched(self, live):
        live.select(example="q0", heads=[(3, 3)])
        ask(live, what="set", heads=[(0, 1), (1, 2)])
        state = finished(live)
        assert live.last_result.heads == ((0, 1), (1, 2))
        assert state["result"]["before"]["top"] and "text" in state["result"]["after"]

    def test_what_is_offered_can_be_asked(self, live):
        offered = live.widget.bench["options"]
        assert [value for value, _ in offered["direction"]] == list(DIRECTIONS)
        assert [value for value, _ in offered["what"]] == list(WHATS)

    def test_errors_are_told_in_words(self, live):
        ask(live, direction="role/sideways")
        assert "Unknown direction 'role/sideways'" in finished(live)["error"]
        assert isinstance(live.last_error, LabError)

    def test_what_nobody_foresaw_is_told_too_and_kept(self, live, monkeypatch):
        def broken(*_: object) -> None:
            raise KeyError("a bug")

        monkeypatch.setattr(bench, "patch", broken)
        ask(live)
        error = finished(live)["error"]
        assert "did not foresee (KeyError: 'a bug')" in error and "Traceback" not in error
        assert isinstance(live.last_error, KeyError)

    def test_a_second_run_is_refused_while_one_runs_and_the_first_can_be_stopped(
        self, live, monkeypatch
    ):
        begun = threading.Event()

        def endless(*arguments: object) -> None:
            while True:
                begun.set()
                arguments[-1].step(1, 2, "patching")
                time.sleep(0.01)

        monkeypatch.setattr(bench, "patch", endless)
        ask(live)
        assert begun.wait(30)
        ask(live)
        assert "still running" in live.widget.bench["error"]
        with pytest.raises(LabError, match="bench is running"):
            live.run()
        start = time.monotonic()
        send(live, kind="stop")
        state = finished(live)
        assert time.monotonic() - start < 1
        assert state["error"] == "Stopped." and state["result"] is None

    def test_after_a_stop_the_next_run_is_whole(self, live):
        ask(live)
        send(live, kind="stop")
        finished(live)
        ask(live)
        assert finished(live)["result"]["kind"] == "heads"

    def test_a_run_from_python_is_shown_in_the_widget(self, live):
        result = live.run("candidate/a_into_b", "layers")
        shown = live.widget.bench["result"]
        assert shown["words"] == result.words
        assert [line["name"] for line in shown["lines"]] == ["residual", "MLP"]
        assert list(live.data("bench")["site"].unique()) == ["residual", "MLP"]
        assert live.figure("bench").layout.title.text.replace("<br>", " ") == result.title

    def test_unknown_messages_do_nothing(self, live):
        before = live.widget.bench
        for message in ("run", None, {"kind": "dance"}, {}):
            live.widget._handle_custom_msg(message, [])
        assert live.widget.bench == before


class TestReadingOnRequest:
    def test_an_example_is_read_and_handed_to_the_views(self, made, monkeypatch):
        explorer = lab.explore(made.lens, made.examples)
        told = []
        monkeypatch.setattr(explorer.widget, "tell", told.append)
        send(explorer, kind="read", example=1)
        explorer._runner.jobs.wait(120)
        (message,) = told
        assert message["example"] == 1 and set(message["roles"]) == {"generator", "evaluator"}
        listed = explorer.widget.data["reader"]["examples"][1]
        assert listed["answer"] == explorer.data("examples")["answer"][1] != ""
        # Once read, it is kept: the next answer needs no model.
        monkeypatch.setattr(made.lens, "run", None)
        send(explorer, kind="read", example=1)
        assert len(told) == 2

    def test_what_cannot_be_read_is_told_in_words(self, made, monkeypatch):
        explorer = lab.explore(made.folder)
        told = []
        monkeypatch.setattr(explorer.widget, "tell", told.append)
        send(explorer, kind="read", example=2)
        explorer._runner.jobs.wait(120)
        send(explorer, kind="read", example=77)
        assert "No model is loaded" in told[0]["error"]
        assert "examples 0 to 2, not 77" in told[1]["error"]


class TestStopping:
    @pytest.mark.parametrize("what", ["heads", "layers", "set"])
    def test_a_pass_can_be_ended_at_any_layer_and_leaves_the_lens_whole(self, opened, what):
        case, contrasts = opened
        request = bench.Request("role/a_into_b", what, ((1, 1),))
        wanted = bench.patch(case, request, contrasts)
        for steps in (1, 4, 9, 13):
            case.lens.forget()
            with pytest.raises(Stopped):
                bench.patch(case, request, contrasts, StopsAfter(steps))
        again = bench.patch(case, request, contrasts)
        np.testing.assert_allclose(again.patched, wanted.patched, atol=1e-5)
        assert not any(block._forward_pre_hooks for block in case.lens.bridge.blocks)

    def test_every_layer_of_trunks_and_branches_is_watched(self, opened):
        lens, seen = opened[0].lens, []
        lens.forget()
        with watched(lens, seen.append):
            lens.run([lab.Branch(opened[0].prompt("generator").token_ids)])
        assert seen == [*range(lens.n_layers), *range(lens.n_layers)]

    def test_progress_of_one_step_is_told_now_and_then(self):
        told = []
        watch = Watch(lambda *told_now: told.append(told_now))
        for count in range(1_000):
            watch.step(count, 1_000, "one")
        watch.step(0, 1, "two")
        assert told[0] == (0, 1_000, "one") and told[-1] == (0, 1, "two")
        assert len(told) < 100


class StopsAfter(Watch):
    """A watch that is told to stop at one of its steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def step(self, done: int, total: int, words: str) -> None:
        self._left -= 1
        if self._left <= 0:
            self.stop()
        super().step(done, total, words)
