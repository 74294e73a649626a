"""The notebooks run from top to bottom, say what they should, and are stored without outputs."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from lab.engine.weights import DEFAULT, find_weights
from lab.errors import LabError
from lab.instruments.summaries.transfer import CLAIMS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
EXAMPLES = "3"
"""Questions in the little study of each notebook, which takes eight by itself."""

PLOTLY = "application/vnd.plotly.v1+json"


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
class TestAsStored:
    def test_it_is_a_valid_notebook(self, path):
        nbformat.validate(read(path))

    def test_it_holds_no_output(self, path):
        for cell in read(path).cells:
            if cell.cell_type == "code":
                assert cell.outputs == [], f"{cell.id}: clear the outputs before storing"
                assert cell.execution_count is None

    def test_it_names_no_absolute_path_and_no_user(self, path):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.:/])/(home|Users|root|work|tmp|mnt)/|[A-Z]:\\\\", text)

    def test_its_code_is_short_enough_to_read(self, path):
        for cell in read(path).cells:
            if cell.cell_type == "code":
                assert len(cell.source.splitlines()) <= 30, f"{cell.id}: put it into the package"


def executed(name: str, folder: Path) -> tuple[nbformat.NotebookNode, Path]:
    """A notebook, executed in a fresh kernel, and the folder that it ran in."""
    try:
        find_weights(DEFAULT)
    except LabError as error:
        pytest.skip(f"the default model cannot be had: {error}")
    notebook = copy.deepcopy(read(NOTEBOOKS / name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_NOTEBOOK_N", EXAMPLES)
        patch.setenv("PYTHONPATH", str(NOTEBOOKS.parent))
        client = NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute()
    return notebook, folder


@pytest.fixture(scope="module")
def first_look(tmp_path_factory) -> tuple[nbformat.NotebookNode, Path]:
    return executed("01_first_look.ipynb", tmp_path_factory.mktemp("first_look"))


@pytest.fixture(scope="module")
def transfer(tmp_path_factory) -> tuple[nbformat.NotebookNode, Path]:
    return executed("02_transfer.ipynb", tmp_path_factory.mktemp("transfer"))


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [o for cell in notebook.cells for o in cell.get("outputs", [])]


def printed(notebook: nbformat.NotebookNode) -> str:
    return "".join(o.text for o in outputs(notebook) if o.output_type == "stream")


def bundles(notebook: nbformat.NotebookNode, mime: str) -> list[str]:
    return [o.data[mime] for o in outputs(notebook) if mime in o.get("data", {})]


@pytest.mark.model
class TestFirstLook:
    def test_the_lab_and_transformer_lens_by_hand_give_the_same_numbers(self, first_look):
        differences = re.findall(r"largest difference in the (\w+): (\S+)", printed(first_look[0]))
        assert [what for what, _ in differences] == ["masses", "logits"]
        assert all(float(value) < 1e-3 for _, value in differences)

    def test_it_warns_of_nothing(self, first_look):
        errors = [o.text for o in outputs(first_look[0]) if o.get("name") == "stderr"]
        assert errors == []

    def test_both_prompts_are_shown_with_their_spans_and_with_attention(self, first_look):
        maps = [h for h in bundles(first_look[0], "text/html") if "white-space:pre-wrap" in h]
        assert len(maps) == 2
        assert all("generator" in text and "evaluator" in text for text in maps)
        assert 'title="passage"' in maps[0] and "of the attention" in maps[1]

    def test_every_figure_is_there_live_and_in_exported_html(self, first_look):
        assert len(bundles(first_look[0], PLOTLY)) == 6
        divisions = [h for h in bundles(first_look[0], "text/html") if "Plotly.newPlot" in h]
        assert len(divisions) == 6

    def test_plotly_is_stored_once_and_not_in_every_figure(self, first_look):
        large = [h for h in bundles(first_look[0], "text/html") if len(h) > 1_000_000]
        assert len(large) == 1

    def test_the_study_has_the_questions_that_were_asked_for(self, first_look):
        assert f"{EXAMPLES} of {EXAMPLES} questions" in printed(first_look[0])

    def test_the_headline_is_modest_about_so_few_questions(self, first_look):
        (opening,) = bundles(first_look[0], "text/markdown")
        assert f"Only {EXAMPLES} examples" in opening

    def test_the_report_is_written_where_the_link_points(self, first_look):
        notebook, folder = first_look
        (report,) = folder.rglob("report.html")
        (link,) = [h for h in bundles(notebook, "text/html") if "report.html" in h]
        assert str(report.relative_to(folder)) in link
        assert report.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")


@pytest.mark.model
class TestTransfer:
    def test_it_warns_of_nothing(self, transfer):
        assert [o.text for o in outputs(transfer[0]) if o.get("name") == "stderr"] == []

    def test_all_four_versions_answer_and_are_compared(self, transfer):
        text = printed(transfer[0])
        for name in ("base", "generator", "evaluator", "both"):
            assert re.search(rf"^ *{name}: ", text, re.MULTILINE), "each gives an answer"
        assert "['base', 'generator', 'evaluator', 'both']" in text

    def test_every_published_claim_is_judged_on_these_questions(self, transfer):
        verdicts = re.findall(
            r"^Training to .*: (seen|opposite|not seen)$", printed(transfer[0]), re.M
        )
        assert len(verdicts) == len(CLAIMS)

    def test_its_figures_are_there(self, transfer):
        assert len(bundles(transfer[0], PLOTLY)) == 3

    def test_its_report_has_the_section_on_training(self, transfer):
        (report,) = transfer[1].rglob("report.html")
        assert "What training changes" in report.read_text(encoding="utf-8")
