"""The notebooks run from top to bottom, say what they should, and are stored without outputs.

Each runs once, with its exercises unanswered, and then its solutions in the same kernel.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from lessons import EXAMPLES, LESSONS, NAMES, NOTEBOOKS, Ran

from lab import teach
from lab.instruments.summaries.transfer import CLAIMS
from lab.teach.gallery import RUNS_NOTEBOOK

STORED = sorted(NOTEBOOKS.rglob("*.ipynb"))
PLOTLY = "application/vnd.plotly.v1+json"


@cache
def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", STORED, ids=lambda path: str(path.relative_to(NOTEBOOKS)))
class TestAsStored:
    def test_it_is_a_valid_notebook(self, path):
        nbformat.validate(read(path))

    def test_it_holds_no_output(self, path):
        for cell in code(path):
            assert cell.outputs == [], f"{cell.id}: clear the outputs before storing"
            assert cell.execution_count is None
        assert "widgets" not in read(path).metadata

    def test_it_names_no_absolute_path_and_no_user(self, path):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.:/])/(home|Users|root|work|tmp|mnt)/|[A-Z]:\\\\", text)

    def test_its_code_is_short_enough_to_read(self, path):
        for cell in code(path):
            assert len(cell.source.splitlines()) <= 30, f"{cell.id}: put it into the package"

    def test_no_formula_needs_a_script_from_the_network(self, path):
        for cell in read(path).cells:
            assert cell.cell_type != "markdown" or "$$" not in cell.source, cell.id


CHECK = re.compile(r'lab\.teach\.check\(\s*"(\d\d\.\w+)",\s*(\w+)')


def exercises(path: Path) -> dict[str, nbformat.NotebookNode]:
    """The cells of a notebook that check an answer, by the exercise's name."""
    found = {match[1]: cell for cell in code(path) if (match := CHECK.search(cell.source))}
    return found


def names_in(source: str, kind: type[ast.expr_context]) -> set[str]:
    nodes = ast.walk(ast.parse(source))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
class TestAsTeaching:
    def test_it_asks_for_a_prediction_and_shows_the_result_beside_it(self, lesson):
        text = "\n".join(cell.source for cell in code(lesson.notebook))
        assert 1 <= text.count("lab.teach.predict(") == text.count("guess.reveal(")

    def test_it_has_the_exercises_that_the_checkers_know(self, lesson):
        known = [name for name in teach.EXERCISES if name[:2] == lesson.name[:2]]
        assert list(exercises(lesson.notebook)) == known and 2 <= len(known) <= 4
        assert list(exercises(lesson.solutions)) == known

    def test_exercises_are_stored_unanswered_and_checked_in_the_same_way_as_solved(self, lesson):
        solved = exercises(lesson.solutions)
        for name, cell in exercises(lesson.notebook).items():
            answer = CHECK.search(cell.source)[2]
            assert cell.source.startswith(f"{answer} = ...\n"), name
            assert cell.source.splitlines()[-1] == solved[name].source.splitlines()[-1], name

    def test_no_later_cell_needs_an_answer(self, lesson):
        cells, answers = code(lesson.notebook), set()
        for cell in cells:
            if cell in exercises(lesson.notebook).values():
                answers |= names_in(cell.source, ast.Store)
            else:
                source = re.sub(r"^%.*$", "", cell.source, flags=re.MULTILINE)
                assert not answers & names_in(source, ast.Load), cell.id

    def test_its_solutions_begin_by_running_it(self, lesson):
        first = code(lesson.solutions)[0]
        assert first.source == f"%%capture\n%run ../{lesson.notebook.name}"
        assert first.metadata.tags == [RUNS_NOTEBOOK]

    def test_the_plan_names_it_and_its_exercises(self, lesson):
        plan = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
        assert f"({lesson.notebook.name})" in plan
        for name in exercises(lesson.notebook):
            assert f"`{name}`" in plan

    def test_no_option_of_a_prediction_could_be_the_number_of_another(self, lesson):
        for cell in code(lesson.notebook):
            for options in literal_options(cell.source):
                assert not [option for option in options if option.isdecimal()], cell.id


def literal_options(source: str) -> list[list[str]]:
    """The options of each prediction in a cell that writes them out."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [call for call in calls if ast.unparse(call.func) == "lab.teach.predict"]
    found = [call.args[1] for call in named if isinstance(call.args[1], ast.List)]
    return [[e.value for e in options.elts if isinstance(e, ast.Constant)] for options in found]


class TestAnotherModel:
    """Notebook 06 says that one line changes for another model, and asks all of its questions."""

    source = "\n".join(cell.source for cell in code(NOTEBOOKS / "06_your_own.ipynb"))

    def test_one_line_names_the_model_and_the_adapter(self):
        lines = [line for line in self.source.splitlines() if re.search(r"smollm2|both", line)]
        assert lines == ['model, adapter = "smollm2-135m-instruct", "both"']

    def test_every_recipe_takes_both_from_there(self):
        calls = [node for node in ast.walk(ast.parse(self.source)) if isinstance(node, ast.Call)]
        recipes = [ast.unparse(call) for call in calls if ast.unparse(call.func) == "lab.Recipe"]
        assert len(recipes) == 2
        assert all("model=model" in text and "adapter=adapter" in text for text in recipes)
        assert "n=" not in recipes[0], "the study asks all questions of the file"


# --- executed -----------------------------------------------------------------------------------


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [o for cell in notebook.cells for o in cell.get("outputs", [])]


def printed(notebook: nbformat.NotebookNode) -> str:
    """What all cells print, each from the beginning of a line."""
    cells = (cell.get("outputs", []) for cell in notebook.cells)
    return "\n".join("".join(o.text for o in cell if o.output_type == "stream") for cell in cells)


def bundles(notebook: nbformat.NotebookNode, mime: str) -> list[str]:
    return [o.data[mime] for o in outputs(notebook) if mime in o.get("data", {})]


@pytest.mark.model
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
class TestExecuted:
    def test_it_warns_of_nothing(self, name, run):
        ran = run(name)
        for notebook in (ran.notebook, ran.solutions):
            assert [o.text for o in outputs(notebook) if o.get("name") == "stderr"] == []

    def test_unanswered_exercises_say_what_is_asked(self, name, run):
        asked = re.findall(r"^(\S+): not answered yet\. ", printed(run(name).notebook), re.M)
        assert asked == [known for known in teach.EXERCISES if known[:2] == name[:2]]

    def test_its_solutions_are_right(self, name, run):
        solved = re.findall(r"^(\S+): (right|not yet)\. ", printed(run(name).solutions), re.M)
        known = [known for known in teach.EXERCISES if known[:2] == name[:2]]
        assert solved == [(exercise, "right") for exercise in known]

    def test_every_prediction_is_followed_by_its_result(self, name, run):
        text = printed(run(name).notebook)
        assert 1 <= text.count("No guess yet") == text.count("Your guess: none. The result: ")


@pytest.mark.model
@pytest.mark.timeout(1800)
class TestFirstLook:
    @pytest.fixture(scope="class")
    def first_look(self, run) -> Ran:
        return run("01")

    def test_the_lab_and_transformer_lens_by_hand_give_the_same_numbers(self, first_look):
        text = printed(first_look.notebook)
        differences = re.findall(r"largest difference in the (\w+): (\S+)", text)
        assert [what for what, _ in differences] == ["masses", "logits"]
        assert all(float(value) < 1e-3 for _, value in differences)

    def test_both_prompts_are_shown_with_their_spans_and_with_attention(self, first_look):
        shown = bundles(first_look.notebook, "text/html")
        maps = [h for h in shown if h.startswith('<div style="display:grid')]
        assert len(maps) == 2
        assert all("generator" in text and "evaluator" in text for text in maps)
        assert 'title="passage"' in maps[0] and "of the attention" in maps[1]

    def test_no_span_without_tokens_is_listed(self, first_look):
        (table,) = [h for h in bundles(first_look.notebook, "text/html") if "tokens (judging)" in h]
        assert "context" in table and "demonstrations" not in table

    def test_every_figure_is_there_live_and_in_exported_html(self, first_look):
        assert len(bundles(first_look.notebook, PLOTLY)) == 6
        html = bundles(first_look.notebook, "text/html")
        assert len([h for h in html if "Plotly.newPlot" in h]) == 6

    def test_plotly_is_stored_once_and_not_in_every_figure(self, first_look):
        html = bundles(first_look.notebook, "text/html")
        assert len([h for h in html if len(h) > 3_000_000]) == 1

    def test_the_study_has_the_questions_that_were_asked_for(self, first_look):
        assert f"{EXAMPLES} of {EXAMPLES} questions" in printed(first_look.notebook)

    def test_every_number_says_of_how_many_questions_it_is(self, first_look):
        numbers = re.findall(r"n = (\d+) +([A-Z].*)$", printed(first_look.notebook), re.M)
        # The passage answers one of the three, and only on that one are both candidates judged.
        assert [n for n, _ in numbers] == [EXAMPLES, EXAMPLES, "1", EXAMPLES]

    def test_the_headline_is_modest_about_so_few_questions(self, first_look):
        (opening,) = bundles(first_look.notebook, "text/markdown")
        assert f"Only {EXAMPLES} examples" in opening

    def test_the_report_is_written_where_the_link_points(self, first_look):
        (report,) = first_look.folder.rglob("report.html")
        (link,) = [h for h in bundles(first_look.notebook, "text/html") if "report.html" in h]
        assert str(report.relative_to(first_look.folder)) in link
        assert report.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")


@pytest.mark.model
@pytest.mark.timeout(1800)
class TestTransfer:
    def test_all_four_versions_answer_and_are_compared(self, run):
        text = printed(run("02").notebook)
        for name in ("base", "generator", "evaluator", "both"):
            assert re.search(rf"^ *{name}: ", text, re.MULTILINE), "each gives an answer"
        assert "['base', 'generator', 'evaluator', 'both']" in text

    def test_every_published_claim_is_judged_on_these_questions(self, run):
        text = printed(run("02").notebook)
        # With so few questions the lab does not decide, and says so.
        said = r"cannot be said \(\d+ questions are too few\)"
        verdicts = re.findall(rf"^Training to .*: {said}$", text, re.MULTILINE)
        assert len(verdicts) == len(CLAIMS)

    def test_its_figures_are_there(self, run):
        assert len(bundles(run("02").notebook, PLOTLY)) == 3

    def test_its_report_has_the_section_on_training(self, run):
        (report,) = run("02").folder.rglob("report.html")
        assert "What training changes" in report.read_text(encoding="utf-8")


@pytest.mark.model
@pytest.mark.timeout(1800)
class TestTheOthers:
    def test_reading_ends_in_ratios_with_intervals_and_a_page(self, run):
        ran = run("03")
        assert re.search(r"\d\.\d\d \[\d\.\d\d, \d\.\d\d\], n = " + EXAMPLES, printed(ran.notebook))
        assert len(bundles(ran.notebook, PLOTLY)) == 2
        (page,) = ran.folder.rglob("explorer.html")
        assert page.stat().st_size > 10_000

    def test_patching_refuses_a_position_without_counterpart(self, run):
        text = printed(run("04").notebook)
        assert re.search(r"^Refused: Position \d+ .* has no counterpart", text, re.M)
        assert "of 100 random sets" in text

    def test_the_table_of_heads_shows_the_largest_first_and_tests_their_shift(self, run):
        tables = bundles(run("04").notebook, "text/html")
        (table,) = [html for html in tables if "<th>p_adjusted</th>" in html]
        assert "<th>shift</th>" in table
        rows = re.findall(r"<tr>.*?<td>([-\d.]+)</td>", table, re.S)
        sizes = [abs(float(value)) for value in rows]
        assert len(sizes) > 1 and sizes == sorted(sizes, reverse=True)

    def test_by_hand_and_packed_agree(self, run):
        text = printed(run("05").notebook)
        found = re.findall(r"largest difference[^\n]*?([\d.]+e[+-]\d+)", text)
        assert len(found) == 3 and all(float(value) < 1e-3 for value in found)

    def test_what_is_refused_is_said_in_words(self, run):
        ran = run("06")
        text = printed(ran.notebook)
        refusals = re.findall(r"^Refused: (.+)$", text, re.M)
        assert len(refusals) == 6 and "Nothing was refused" not in text
        for words in ("answers", "distractor", "is not in passage 0", "occurs", "another recipe"):
            assert any(words in refusal for refusal in refusals), words
        (report,) = ran.folder.rglob("report.html")
        assert "Corlin" in report.read_text(encoding="utf-8")

    def test_heads_stand_beside_random_sets_and_too_few_conflicts_are_told(self, run):
        ran = run("07")
        text = printed(ran.notebook)
        assert re.search(r"^\d+ of 24 conflicts are usable; out: ", text, re.M)
        assert "significant:             0" in text and "nothing is proved" in text
        assert re.search(r"more than with \d+ of 100 random sets", text)
        (still,) = [h for h in bundles(ran.notebook, "text/html") if "still picture" in h]
        assert "heads off" in still and "the middle 95 %" in still
