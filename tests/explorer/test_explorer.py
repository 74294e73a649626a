"""The explorer in Python: ways in, selection, tables, figures, pages."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from synthetic_study import synthetic_study

import lab
from lab import LabError
from lab.engine.lens import Lens
from lab.instruments.summaries import reading


class TestWaysIn:
    def test_a_study_can_be_a_folder_a_pair_or_a_dataset_with_its_provenance(self, made):
        pair = made.dataset, made.provenance
        for explorer in (
            lab.explore(str(made.folder)),
            lab.explore(pair),
            lab.explore(made.dataset, made.provenance),
            lab.explore(made.dataset, provenance=made.provenance),
        ):
            assert explorer.choices.examples == ("q0", "q1", "q2")
            assert explorer.title == made.provenance["title"]
            assert not explorer.live

    def test_examples_on_a_lens_are_listed_at_once_and_read_when_they_are_chosen(self, made):
        explorer = lab.explore(made.lens, made.examples)
        listed = explorer.data("examples").set_index("id")
        assert list(listed["question"]) == [e.question for e in made.examples]
        assert list(listed["read"]) == [True, False, False]
        explorer.select(example="q2")
        read = explorer.data("examples").set_index("id")
        assert list(read["read"]) == [True, False, True]
        # The third was answered and judged in the study too, by the same model.
        stored = lab.explore(made.folder).data("examples").set_index("id")
        assert read.loc["q2", "answer"] == stored.loc["q2", "answer"]
        assert read.loc["q2", "log_odds"] == pytest.approx(stored.loc["q2", "log_odds"], abs=1e-3)

    def test_a_live_reading_is_what_the_study_stores(self, made):
        explorer = lab.explore(made.lens, made.examples[0])
        stored = lab.explore(made.folder)
        stored.select(example="q0")
        assert explorer.choices.examples == ("q0",)
        for head in ((0, 1), (3, 2)):
            live, kept = (e.select(head=head) and e.data("reader") for e in (explorer, stored))
            assert list(live["token"]) == list(kept["token"])
            assert list(live["span"]) == list(kept["span"])
            np.testing.assert_allclose(live["attention"], kept["attention"], atol=1 / 255)

    def test_a_prompter_says_how_examples_are_asked(self, made):
        plain = lab.Prompter(made.lens.tokenizer, format="plain")
        explorer = lab.explore(made.lens, made.examples[0], plain)
        assert "<|im_start|>" not in "".join(explorer.data("reader")["token"])

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (lambda made: ("nowhere",), "There is no folder nowhere"),
            (lambda made: (made.lens,), "explored with examples"),
            (lambda made: (made.lens, ["q0"]), "explored with examples"),
            (lambda made: (made.lens, []), "no example to explore"),
            (lambda made: (made.folder, list(made.examples)), "explored on a model"),
            (lambda made: (42,), "int cannot be explored"),
        ],
    )
    def test_what_cannot_be_explored_is_refused_in_words(self, made, arguments, words):
        with pytest.raises(LabError, match=words):
            lab.explore(*arguments(made))

    def test_another_model_than_the_studys_is_refused(self, made):
        other = {**made.provenance, "model": {**made.provenance["model"], "sha256": "f" * 64}}
        with pytest.raises(LabError, match=r"made with tiny llama \(weights ffffffffffff\)"):
            lab.explore(made.dataset, other, lens=made.lens)

    def test_a_study_that_is_asked_otherwise_now_is_not_patched(self, made):
        changed = made.dataset.copy()
        tokens = changed["tokens"].values.copy()
        tokens[0, 0] = json.dumps(["other", *json.loads(tokens[0, 0])[1:]])
        changed["tokens"] = (("example", "role2"), tokens)
        explorer = lab.explore(changed, made.provenance, lens=made.lens)
        with pytest.raises(LabError, match="asked otherwise now"):
            explorer.run()


class TestSelecting:
    def test_views_follow_the_selection(self, invented):
        invented.select(example=invented.choices.examples[3], head=(2, 1), norm="enrichment")
        assert invented.widget.state["example"] == 3
        assert (invented.widget.state["layer"], invented.widget.state["head"]) == (2, 1)
        assert invented.widget.state["norm"] == "enrichment"

    def test_the_selection_follows_the_views(self, invented):
        invented.widget.state = {**invented.widget.state, "layer": 4, "head": 0, "example": 1}
        assert (invented.selection.layer, invented.selection.head) == (4, 0)
        assert invented.selection.example == invented.choices.examples[1]

    def test_both_are_told_to_whoever_observes_until_they_no_longer_do(self, invented):
        seen = []
        stop = invented.observe(lambda selection: seen.append((selection.layer, selection.head)))
        invented.select(head=(0, 3))
        invented.widget.state = {**invented.widget.state, "head": 2}
        stop()
        invented.select(head=(1, 1))
        assert seen == [(0, 3), (0, 2)]

    def test_it_can_be_set_whole(self, invented):
        invented.selection = replace(invented.selection, layer=1, head=3, scope="layer")
        assert invented.selection.scope == "layer"
        with pytest.raises(LabError, match="cannot be 'q1'"):
            invented.selection = "q1"

    def test_a_refused_selection_changes_nothing(self, invented):
        before = invented.selection
        with pytest.raises(LabError, match=r"no head 9\.9"):
            invented.select(head=(9, 9))
        assert invented.selection == before

    def test_what_a_front_end_asks_for_wrongly_is_told_in_the_widget(self, invented):
        before = invented.selection
        invented.widget.state = {**invented.widget.state, "layer": 99}
        assert "no head 99" in invented.widget.bench["error"]
        assert invented.selection == before


class TestTables:
    def test_heads_are_the_summaries_in_the_chosen_normalisation(self, invented):
        invented.select(quantity="difference", norm="sink_excluded")
        dataset, _ = synthetic_study(n=8, layers=5, heads=4)
        wanted = reading.head_differences(dataset, "context", "sink_excluded")
        np.testing.assert_array_equal(invented.data("heads")["value"], wanted["value"])
        invented.select(quantity="evaluator")
        np.testing.assert_array_equal(invented.data("heads")["value"], wanted["evaluator"])

    def test_a_patching_sweep_is_a_quantity_too(self, invented):
        invented.select(quantity="candidate/b_into_a")
        frame = invented.data("heads")
        assert set(frame["contrast"]) == {"candidate"} and len(frame) == 20

    def test_flow_adds_up_to_one_in_every_layer(self, invented):
        invented.select(norm="raw")
        frame = invented.data("flow")
        spans = frame[~frame["region"].isin(["evidence", "answer", "labels", "mention"])]
        sums = spans.groupby(["role", "layer"])["value"].sum()
        np.testing.assert_allclose(sums, 1, atol=0.02)

    def test_the_reader_shows_the_mean_over_the_chosen_heads(self, invented):
        rows = [invented.select(head=(1, h)) and invented.data("reader") for h in (0, 2)]
        invented.select(heads=[(1, 0), (1, 2)])
        both = invented.data("reader")["attention"]
        np.testing.assert_allclose(both, (rows[0]["attention"] + rows[1]["attention"]) / 2)
        invented.select(scope="all")
        assert len(invented.data("reader")) == len(both)

    def test_tokens_come_with_the_ids_that_were_run(self, live, made, invented):
        live.select(example=made.examples[0].id)
        shown = live.data("reader")
        case = lab.open_case(made.lens, made.examples[0], made.examples.pool)
        asked = shown[shown["role"] == "generator"]
        assert tuple(asked["id"]) == case.prompt("generator").token_ids
        assert tuple(asked["token"]) == case.prompt("generator").tokens()
        # A study may hold texts alone.
        assert set(invented.data("reader")["id"]) == {-1}

    def test_an_unread_example_has_no_tokens_to_show(self, made):
        explorer = lab.explore(made.folder)
        explorer.select(example="q2")
        with pytest.raises(LabError, match=r"was not read.*explorer\.load"):
            explorer.data("reader")

    @pytest.mark.parametrize("view", ["picker", "", "Heads"])
    def test_an_unknown_view_is_refused_with_the_known_ones(self, invented, view):
        with pytest.raises(LabError, match="examples, reader, heads, flow, bench"):
            invented.data(view)


class TestFiguresAndFiles:
    def test_every_figure_has_a_title_that_says_what_is_seen(self, invented):
        invented.select(head=(1, 0), quantity="difference", norm="raw")
        titles = {v: invented.figure(v).layout.title.text for v in ("heads", "flow", "reader")}
        assert all(titles.values())
        assert titles["reader"].startswith("Head 1.0 puts")
        invented.select(quantity="role/a_into_b")
        assert "R = " in invented.figure("heads").layout.title.text

    def test_the_readers_bars_are_its_tables_attention(self, invented):
        invented.select(head=(2, 0))
        frame, figure = invented.data("reader"), invented.figure("reader")
        drawn = sum(float(np.sum(bar.y)) for bar in figure.data)
        assert drawn == pytest.approx(frame["attention"].sum())

    def test_a_figure_is_saved_alive(self, invented, tmp_path):
        path = invented.save(tmp_path / "heads.html")
        assert "Plotly.newPlot" in path.read_text(encoding="utf-8")

    def test_a_picture_needs_kaleido_and_says_so(self, invented, tmp_path):
        if find_spec("kaleido"):
            pytest.skip("kaleido is installed")
        with pytest.raises(LabError, match=r"Install kaleido .* or save the figure as heads\.html"):
            invented.save(tmp_path / "heads.svg")

    def test_an_unknown_ending_is_refused(self, invented, tmp_path):
        with pytest.raises(LabError, match=r"end the name with \.html or one of \.svg"):
            invented.save(tmp_path / "heads.docx")

    def test_the_page_holds_all_examples_and_the_selection(self, invented, tmp_path):
        invented.select(example=invented.choices.examples[2], head=(3, 2))
        page = invented.export(tmp_path / "page.html").read_text(encoding="utf-8")
        data = json.loads(page.split('type="application/json" id="data">')[1].split("</script>")[0])
        assert [e["id"] for e in data["reader"]["examples"]] == list(invented.choices.examples)
        assert (data["state"]["example"], data["state"]["layer"]) == (2, 3)

    def test_a_folder_that_does_not_exist_is_told_in_words(self, invented, tmp_path):
        with pytest.raises(LabError, match="cannot be written"):
            invented.export(tmp_path / "none" / "page.html")


class TestInANotebook:
    def test_a_saved_notebook_shows_the_chosen_example_without_a_kernel(self, invented):
        invented.select(example=invented.choices.examples[0], head=(1, 1))
        bundle = invented._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in bundle
        text = bundle["text/html"]
        assert "<script" not in text and "head 1.1" in text
        assert "generator" in text and "evaluator" in text

    @pytest.mark.parametrize(
        ("chosen", "words"),
        [
            ({"head": (2, 1)}, "head 2.1"),
            ({"heads": [(2, 1), (3, 0)]}, "the mean of the chosen heads"),
            ({"layer": 2, "scope": "layer"}, "the mean of layer 2"),
            ({"scope": "all"}, "the mean of all heads"),
        ],
    )
    def test_it_says_whose_attention_it_shows(self, invented, chosen, words):
        before = invented.selection
        invented.select(**chosen)
        html = invented._repr_mimebundle_()["text/html"]
        invented.select(layer=before.layer, head=before.head, scope="head", heads=[])
        assert f"Attention of the decision, {words}:" in html

    def test_text_from_data_stays_text_there(self):
        dataset, provenance = synthetic_study(n=2, layers=2, heads=2)
        attack = "</p><script>alert(1)</script>" + "x" * 10_000
        for name in ("question", "gold", "answer"):
            dataset[name] = ("example", np.array([attack] * 2, dtype=object))
        html = lab.explore(dataset, provenance)._repr_mimebundle_()["text/html"]
        assert "<script" not in html and "x" * 1_000 not in html

    def test_everything_sent_is_json_that_a_browser_reads(self, invented):
        json.dumps(invented.widget.data, allow_nan=False)

    def test_a_study_is_explored_without_torch(self, made):
        import subprocess
        import sys

        code = (
            "import sys, lab; e = lab.explore(sys.argv[1]); e.data('heads'); e.data('reader'); "
            "print('torch' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(made.folder)], capture_output=True, text=True
        )
        assert done.stdout.strip() == "False", done.stderr


class TestLoading:
    def test_the_studys_own_model_is_loaded_from_its_recipe(self, made, monkeypatch):
        asked = []

        def load(name: str, **options: object) -> Lens:
            asked.append((name, options["adapter"], options["dtype"]))
            return made.lens

        monkeypatch.setattr("lab.engine.loading.load_lens", load)
        explorer = lab.explore(made.folder)
        widget = explorer.widget
        assert not widget.bench["live"]
        assert explorer.load() is made.lens and explorer.live
        assert asked == [("tiny llama", None, "float32")]
        assert explorer.widget.bench["live"] and explorer.widget is not widget

    def test_an_example_that_the_study_did_not_read_is_read_then(self, made):
        explorer = lab.explore(made.folder, lens=made.lens)
        explorer.select(example="q2")
        assert explorer.data("examples").set_index("id").loc["q2", "read"]
        assert len(explorer.data("reader"))
        # The arrays that were given stay as they were.
        assert not json.loads(str(made.dataset["tokens"].sel(example="q2").values[0]) or "[]")

    def test_a_study_without_a_recipe_cannot_load(self):
        explorer = lab.explore(synthetic_study(n=2, layers=2, heads=2)[0])
        with pytest.raises(LabError, match="does not say with which model"):
            explorer.load()
