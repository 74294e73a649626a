"""The section on override heads: what it says, what it leaves out, and how it looks."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pandas as pd
import pytest
from override_frames import override_results
from override_study import build_override, planted
from typer.testing import CliRunner

from lab.cli import app
from lab.explorer.switch.switches import named_sets
from lab.studies.override.results import OverrideResults, heads_of, read_override
from lab.views.content.override import headline
from lab.views.content.override import section as override
from lab.views.content.override.figures import ablation_curve, head_maps
from lab.views.override_report import render_override, write_override
from lab.views.report import write_report

ATTACK = "</script><img src=x onerror='window.hacked=1'>{{7*7}}"


def changed(found: OverrideResults, contest: str = "passage", **tables: pd.DataFrame):
    """The results with other tables of one contest."""
    contests = {**found.contests, contest: {**found.contests[contest], **tables}}
    return replace(found, contests=contests)


@pytest.fixture(scope="module")
def found() -> OverrideResults:
    return override_results()


@pytest.fixture(scope="module")
def page(found) -> str:
    return render_override(found)


def words_of(html: str) -> str:
    body = re.sub(r"<style.*?</style>", " ", html, flags=re.DOTALL)
    said = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))
    return said.replace("\u00a0", " ")


class TestWords:
    def test_contests_of_every_state_are_told(self, page):
        words = words_of(page)
        assert "In 2 of 4 contests a few heads decide" in words
        assert "too few pairs" in words and "18 of 120 conflicts are usable" in words
        assert "no heads found" in words and "No head passed the test" in words
        assert words.count("heads found") == 3, "two found, one none"

    def test_a_contest_with_too_few_pairs_has_a_row_and_nothing_else(self, page):
        assert 'id="contest-instruction"' not in page
        for name in ("passage", "candidate", "checked"):
            assert f'id="contest-{name}"' in page

    def test_flips_stand_beside_random_sets_with_intervals(self, found):
        table = override.section(found).parts[0].flips
        row = next(r for r in table.rows if r.label.startswith("turn to the other answer"))
        assert [c.text.replace("\u00a0", " ") for c in row.cells] == ["62 %"] * 3
        assert "[40, 80]" in row.cells[0].small and "n\u00a0=\u00a020" in row.cells[0].small
        random, above = row.cells[0].more
        assert random.endswith("3.0\u00a0% [0, 10], 100 sets")
        assert "100\u00a0% of these" in above and "p\u00a0=\u00a0.010" in above

    def test_the_box_names_the_heads_and_what_they_do(self, found):
        box = [line.replace("\u00a0", " ") for line in override.section(found).parts[0].found]
        assert box[0].startswith("2 heads of the model (8.3 %): 3.1, 4.2.")
        assert box[1] == (
            "Chosen on 25 pairs and scored on 25 others, drawn from 74 usable conflicts. "
            "9 heads pass the test."
        )
        assert box[2] == (
            "Searched on the other half instead: 2 heads, Jaccard index 1.00 (0.08 by chance)."
        )
        assert "62 % [40, 80] of its answers turn to the other one" in box[3]
        assert "and 62 % [40, 80] become something else (n = 20)" in box[3]
        assert "95 % of the sets between 0 % and 10 %" in box[3]
        assert box[-2].startswith("All 2 off together turn 62 % [40, 80] of the answers of run a")
        assert "for 62 % [40, 80] of unrelated facts that the model knows (n = 20;" in box[-1]

    def test_an_empty_search_on_the_other_half_is_told(self, found):
        splits = found.contests["passage"]["splits"].copy()
        splits.loc[splits["split"] == "held_out", "heads"] = ""
        box = override.section(changed(found, splits=splits)).parts[0].found
        assert "Searched on the other half instead: no heads." in box

    def test_where_the_other_half_is_too_small_to_find_a_head_it_is_said(self, found):
        splits = found.contests["passage"]["splits"].assign(lone_head=False)
        splits.loc[splits["split"] == "held_out", "heads"] = ""
        box = override.section(changed(found, splits=splits)).parts[0].found
        assert (
            "Searched on the other half instead: no heads, but it has too few subjects (25) to "
            "find a lone head." in box
        )

    def test_no_backups_are_told_from_too_few_subjects_to_find_any(self, found):
        backups = found.contests["passage"]["backups"].assign(backup=False)

        def note(frame):
            notes = override.section(changed(found, backups=frame)).parts[0].notes
            return next(line for line in notes if line.startswith("Backup heads"))

        assert note(backups).endswith(": none.")
        few = note(backups.assign(enough=False))
        assert few.endswith(": too few held-out subjects to tell.") and "none" not in few

    def test_cut_attention_turns_answers_by_the_contest_s_own_measure(self, found):
        listed = found.tables["contests"].assign(flip_measure="two_token")
        knockout = found.contests["passage"]["knockout"].assign(to_other=0.0, two_token=1.0)
        judged = replace(
            changed(found, knockout=knockout), tables={**found.tables, "contests": listed}
        )
        for results, title, text, n in (
            (judged, "sign of the log-odds turns", "100 %", 25),
            (changed(found, knockout=knockout), "turn to the other answer", "0 %", 20),
        ):
            table = override.section(results).parts[0].knockout
            turned = table.rows[0].cells[2]
            assert table.columns[3] == title
            assert turned.text.replace("\u00a0", " ") == text
            assert turned.small.replace("\u00a0", " ") == f"n = {n}"

    def test_too_few_random_sets_are_not_told_as_a_p(self, found):
        proof = found.contests["passage"]["proof"].assign(random_sets=8, p=1 / 9)
        elsewhere = found.contests["passage"]["elsewhere"].assign(random_sets=8, p=1 / 9)
        box = " ".join(
            override.section(changed(found, proof=proof, elsewhere=elsewhere)).parts[0].found
        ).replace("\u00a0", " ")
        assert "3.0 % turn (only 8 sets: too few other heads to compare with)" in box
        assert "random sets 3.0 %, only 8 of them)" in box and "p =" not in box
        none = proof.assign(random_sets=0, p=float("nan"), random_mean=float("nan"))
        box = " ".join(override.section(changed(found, proof=none)).parts[0].found)
        assert "; there are no other heads in these layers to compare with." in box
        assert "nan" not in box

    def test_runs_that_do_not_differ_are_told_as_such(self, found):
        listed = found.tables["contests"].copy()
        listed.loc[listed["contest"] == "candidate", "state"] = "no gap"
        results = replace(found, tables={**found.tables, "contests": listed})
        assert "runs do not differ for sure" in words_of(render_override(results))
        assert 'id="contest-candidate"' not in render_override(results)

    def test_all_heads_together_are_told_where_they_turn_less(self, found):
        proof = found.contests["passage"]["proof"].copy()
        proof.loc[proof["set"] == "all", "value"] = 0.2
        box = " ".join(override.section(changed(found, proof=proof)).parts[0].found)
        assert "fewer than each run’s own heads: the heads of both answers are gone then" in box
        proof.loc[(proof["how"] == "mean") & (proof["run"] == "b"), "p"] = 0.6
        box = " ".join(override.section(changed(found, proof=proof)).parts[0].found)
        assert "fewer than each run’s own heads." in box, "a lean has no two answers' heads"

    def test_an_effect_that_only_zeros_have_is_told_as_a_lean(self, found):
        assert "only lean the answer" not in " ".join(override.section(found).parts[0].found)
        proof = found.contests["passage"]["proof"].copy()
        proof.loc[(proof["how"] == "mean") & (proof["run"] == "b"), "p"] = 0.6
        box = " ".join(override.section(changed(found, proof=proof)).parts[0].found)
        assert box.count("only lean the answer") == 1

    def test_heads_in_the_runs_of_another_contest_are_told_by_set(self, found):
        across = found.tables["across"].copy()
        across.loc[across["set"] == "b", "value"] = 0.11
        tables = {**found.tables, "across": across}
        rows = override.section(replace(found, tables=tables)).across.rows
        groups = [row.label for row in rows if row.group]
        assert [label.split(", in")[0] for label in groups] == [
            "heads of passage, the set of its run a", "heads of passage, the set of its run b",
        ]  # fmt: skip
        shown = [row.cells[0].text.replace("\u00a0", " ") for row in rows if not row.group]
        assert shown == ["62 %", "62 %", "11 %", "11 %"]

    def test_every_found_head_is_listed_by_splits(self, found):
        many = pd.DataFrame(
            {"layer": range(30), "head": 0, "splits": range(30, 0, -1), "of": 30, "share": 0.5,
             "chosen": [i >= 5 for i in range(30)], "chosen_swapped": False}
        )  # fmt: skip
        table = override.section(changed(found, stability=many)).parts[0].splits
        assert table.columns[1] == "splits in which it passes the test"
        assert [row.label for row in table.rows] == [f"{i}.0" for i in range(5, 30)]
        few = override.section(changed(found, stability=many.assign(chosen=False))).parts[0].splits
        assert len(few.rows) == 20 and {row.cells[1].text for row in few.rows} == {"no"}

    def test_words_are_explained_under_the_lead(self, page):
        words = words_of(page)
        start = words.index("Words on this page")
        assert start < words.index("What was found")
        for word in ("Logits", "Pair.", "Held-out.", "Cue.", "Published rule.", "90 % of the eff"):
            assert word in words[start : words.index("What was found")], word
        assert 'href="https://arxiv.org/abs/2606.28273"' in page

    def test_side_effects_stand_open(self, page):
        assert "<details open><summary>What else changes when all 2 found heads are off" in page
        assert "beginning of a sentence to finish, without a passage" in words_of(page)

    def test_the_table_of_the_four_cells_has_numbers_with_intervals(self, found):
        table = override.section(found).conflicts
        assert len(table.rows) == 4
        for row in table.rows:
            assert all(c.small for c in row.cells[1:5])

    def test_roles_are_crossed(self, page):
        words = words_of(page)
        assert "passage (answering) and checked (judging)" in words
        assert "chance 0.05" in words and "balanced accuracy (0.50 is a coin)" in words

    def test_routing_and_writing_are_drawn_and_told(self, found):
        kinds = override.section(found).parts[0].kinds
        assert [line.label for line in kinds.lines] == ["3.1", "4.2"]
        assert [line.note.split(".")[0] for line in kinds.lines] == ["writes", "routes"]
        assert "writes an answer (share of pairs) 0.40" in kinds.summary

    def test_nothing_is_called_by_a_name_that_only_the_code_knows(self, page):
        words = words_of(page)
        for name in ("a_into_b", "to_other", "two_token", "counterfactual", "nan", "L3H1"):
            assert not re.search(rf"\b{name}\b", words), name


class TestTitle:
    """What the page claims: only what was proved."""

    @pytest.mark.parametrize(
        ("passage", "checked", "said"),
        [
            ({}, {}, "In 2 of 4 contests a few heads decide"),
            (
                {},
                {"value": 0.2},
                "In 1 of 4 contests a few heads decide; in 1 more they matter, but do not decide",
            ),
            (
                {"p": 0.2},
                {"value": 0.2},
                "In 2 of 4 contests a few heads matter, but do not decide",
            ),
            (
                {},
                None,
                "In 1 of 4 contests a few heads decide; in 1 more some were found whose effect "
                "is not measured yet",
            ),
            (
                None,
                None,
                "In 2 of 4 contests a few heads were found; what they do is not measured yet",
            ),
        ],
    )
    def test_it_depends_on_what_was_proved(self, found, passage, checked, said):
        for name, values in (("passage", passage), ("checked", checked)):
            proof = found.contests[name]["proof"]
            main = (proof["set"] == "run") & (proof["measure"] == "to_other")
            new = proof.assign(value=float("nan")) if values is None else proof.copy()
            for column, value in (values or {}).items():
                new.loc[main, column] = value
            found = changed(found, name, proof=new)
        assert headline.title(found) == said

    def test_an_effect_of_zeros_alone_is_no_deciding(self, found):
        proof = found.contests["passage"]["proof"].copy()
        proof.loc[proof["how"] == "mean", "p"] = 0.6
        title = headline.title(changed(found, proof=proof))
        assert title.startswith("In 1 of 4 contests a few heads decide; in 1 more they matter")

    def test_too_few_random_sets_leave_it_open(self, found):
        proof = found.contests["passage"]["proof"].assign(random_sets=8, p=1 / 9)
        few = changed(found, proof=proof)
        assert headline.title(few) == (
            "In 1 of 4 contests a few heads decide; in 1 more some were found, with too few others "
            "to tell whether they decide"
        )
        assert "too few others to tell whether they decide" in words_of(render_override(few))
        low = changed(found, proof=proof.assign(value=0.2))
        assert headline.title(low).endswith("in 1 more they matter, but do not decide")

    def test_one_run_is_enough(self, found):
        proof = found.contests["passage"]["proof"].copy()
        proof.loc[proof["run"] == "b", "value"] = 0.1
        assert headline.title(changed(found, proof=proof)).startswith("In 2 of 4 contests")

    def test_damage_and_other_random_sets_prove_nothing(self, found):
        proof = found.contests["passage"]["proof"].copy()
        main = (proof["set"] == "run") & (proof["control"] == "layers")
        proof.loc[main & (proof["measure"] == "to_other"), "value"] = 0.1
        title = headline.title(changed(found, proof=proof))
        assert title.startswith("In 1 of 4 contests a few heads decide; in 1 more they matter")


class TestUnfinished:
    @pytest.mark.parametrize("keep", [(), ("conflicts",), ("conflicts", "contests")])
    def test_what_is_not_there_is_left_out(self, found, keep):
        some = {name: frame for name, frame in found.tables.items() if name in keep}
        words = words_of(render_override(replace(found, tables=some, contests={})))
        assert ("No contest is finished yet" in words) == ("contests" not in keep)
        assert ("Does the model do as it is told?" in words) == ("conflicts" in keep)
        assert not re.search(r"\bnan\b", words)

    def test_every_table_of_a_contest_can_be_missing(self, found):
        for name in found.contests["passage"]:
            less = {k: v for k, v in found.contests["passage"].items() if k != name}
            contests = {**found.contests, "passage": less}
            assert "Which heads carry" in render_override(replace(found, contests=contests))

    def test_before_any_contest_is_finished_the_title_claims_nothing(self, found):
        title = headline.title(replace(found, tables={}))
        assert title == "Which few heads decide? No contest is finished yet"

    def test_where_nothing_can_be_named_the_title_says_so(self, found):
        listed = found.tables["contests"].assign(state="too few", heads="")
        tables = {**found.tables, "contests": listed}
        title = headline.title(replace(found, tables=tables))
        assert title == "No heads could be named: there are too few conflicts to tell"


class TestFigures:
    def test_maps_frame_what_was_chosen_and_dot_what_was_labelled(self, found):
        one, other = head_maps(found.contests["passage"]["heads"], ("a into b", "b into a"))
        assert one.framed == ((10, 20), (20, 10)), "layer 3 head 1 and layer 4 head 2, upwards"
        assert len(one.dotted) == 4 and len(one.squares) == 24
        assert one.scale == other.scale
        strongest = [s for s in one.squares if s.opacity == "1.00"]
        assert {s.title for s in strongest} >= {"head 3.1: +1.50 logits"}
        assert "3.1 +1.50" in one.summary

    def test_the_curve_has_its_band_its_axes_and_random_sets(self, found):
        frame = found.contests["passage"]["curve"]
        curve = ablation_curve(frame[frame["run"] == "a"], "run a")
        assert curve.line.count("L") == 2 and curve.band.endswith("Z")
        assert [k for _, k in curve.columns] == ["0", "1", "2"]
        assert [x for x, _ in curve.columns] == ["0.0", "50.0", "100.0"]
        assert [text for _, text in curve.rows] == ["2.80", "0"], "the lowest is next to zero"
        assert curve.rows[1][0] == curve.zero == "93.3"
        assert "first 2: 2.40 [2.00, 2.80] logits; random sets between" in curve.note

    def test_random_sets_are_drawn_only_where_they_were_run(self, found):
        frame = found.contests["passage"]["curve"].query("run == 'a'")
        unknown = {"random_low": float("nan"), "random_high": float("nan")}
        bare = frame.assign(random_mean=float("nan"), **unknown)
        assert ablation_curve(bare, "run a").random == ()
        some = frame.copy()
        some.loc[some["k"] == 1, ["random_mean", "random_low", "random_high"]] = float("nan")
        assert [one.x for one in ablation_curve(some, "run a").random] == ["0.0", "100.0"]

    def test_long_curves_have_round_ticks(self, found):
        ends = {"random_mean": 0.0, "random_low": -0.1, "random_high": 0.1}
        long = pd.DataFrame({"k": range(21), "value": 1.0, "low": 0.5, "high": 1.5, "n": 8} | ends)
        assert [k for _, k in ablation_curve(long, "a").columns] == ["0", "5", "10", "15", "20"]

    def test_kinds_are_drawn_in_no_role_s_colour(self, found):
        kinds = override.section(found).parts[0].kinds
        assert {column.colour for column in kinds.columns} == {"dim"}

    def test_a_contest_without_heads_has_no_curve(self, found):
        part = next(p for p in override.section(found).parts if p.name == "candidate")
        assert part.maps and part.curves == [] and part.heads.rows == ()


class TestInTheReport:
    def test_a_study_with_one_has_the_section_and_its_entry_in_the_menu(self, study, tmp_path):
        path = tmp_path / "report.html"
        with_it = write_report(*study, path, deciding=override_results()).read_text("utf-8")
        assert "Which few heads decide" in with_it and '<a href="#override">' in with_it
        without = write_report(*study, path).read_text("utf-8")
        assert "Which few heads decide" not in without and '"#override"' not in without

    def test_text_from_data_stays_text(self):
        html = render_override(override_results(ATTACK))
        assert "<img" not in html and "&lt;img src=x" in html
        assert html.count("<script") == 1, "the one that turns it dark"

    def test_everything_that_is_linked_is_there(self, page):
        links = set(re.findall(r'href="#([^"]+)"', page))
        assert {"override", "contest-passage", "contest-checked", "compared", "made"} <= links
        assert links <= set(re.findall(r'id="([^"]+)"', page))
        assert '<th scope="row"><a href="#contest-passage">' in page


class TestOfARealRun:
    """The study of a planted model, in which the heads that decide are known."""

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory):
        path = tmp_path_factory.mktemp("planted")
        build_override(path)
        return path

    def test_the_command_writes_a_page_that_names_the_planted_heads(self, folder):
        done = CliRunner().invoke(app, ["report", str(folder)])
        assert done.exit_code == 0, done.output
        html = (folder / "report.html").read_text(encoding="utf-8")
        words = words_of(html)
        for layer, head in planted().heads:
            assert f"{layer}.{head}" in words
        assert "In 2 of 4 contests" in words and "too few pairs" in words
        assert not re.search(r"\bnan\b|a_into_b|L\d+H\d+", words)

    def test_switches_take_their_sets_from_its_folder(self, folder):
        found = read_override(folder).tables["contests"].set_index("contest")["heads"]
        sets = {name: heads_of(text) for name, text in found.items() if text}
        assert {f"{name} heads": heads for name, heads in sets.items()} == {
            name: heads for name, heads in named_sets(folder).items() if heads
        }


@pytest.mark.browser
class TestInABrowser:
    @pytest.fixture(scope="class")
    def path(self, tmp_path_factory):
        return write_override(override_results(ATTACK), tmp_path_factory.mktemp("o") / "o.html")

    @pytest.mark.parametrize("width", [390, 1280])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_it_asks_for_nothing_and_never_scrolls_sideways(self, path, open_page, width, scheme):
        opened = open_page(path, width, color_scheme=scheme)
        page = opened.page
        page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert opened.requests == [path.as_uri()] and opened.complaints == []
        assert page.evaluate("window.hacked") is None

    def test_figures_are_drawn_without_any_script(self, path, open_page):
        page = open_page(path, java_script_enabled=False).page
        assert page.locator("#override svg[role=img]").first.is_visible()
        assert page.locator("#override .dots .dot").first.is_visible()

    def test_it_can_be_turned_dark_and_light(self, path, open_page):
        page = open_page(path, color_scheme="light").page
        colour = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(colour)
        page.get_by_role("button", name="Show the page dark").click()
        assert page.evaluate(colour) != light
        page.get_by_role("button", name="Show the page light").click()
        assert page.evaluate(colour) == light

    def test_every_figure_says_what_it_shows(self, path, open_page):
        page = open_page(path).page
        labels = page.locator("#override [role=img]").evaluate_all(
            "(nodes) => nodes.map((node) => node.getAttribute('aria-label') || '')"
        )
        assert len(labels) >= 10 and all(len(label) > 10 for label in labels)
