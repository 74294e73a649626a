"""The gallery: notebooks executed with their solutions, as pages that need no network."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lab import LabError
from lab.teach.gallery import (
    RUNS_NOTEBOOK,
    WIDGET,
    Executed,
    Lesson,
    execute,
    find_lessons,
    heading,
    index,
    main,
    page,
)


def write(path: Path, *cells: nbformat.NotebookNode) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A notebook with solutions, and one without that fails in its second cell."""
    write(
        tmp_path / "01_one.ipynb",
        new_markdown_cell("# One <b>\n\n**What is one?**\n\nText."),
        new_code_cell("x = 1\nprint('x', x)", id="made"),
    )
    runs = new_code_cell("%%capture\n%run ../01_one.ipynb")
    runs.metadata["tags"] = [RUNS_NOTEBOOK]
    write(tmp_path / "solutions" / "01_one.ipynb", runs, new_code_cell("x + 41", id="solved"))
    write(
        tmp_path / "02_two.ipynb",
        new_markdown_cell("# Two"),
        new_code_cell("print('before')"),
        new_code_cell("1 / 0"),
    )
    return tmp_path


def test_lessons_are_found_with_their_solutions(folder):
    assert [(one.name, one.solutions is not None) for one in find_lessons(folder)] == [
        ("01_one", True),
        ("02_two", False),
    ]


def test_a_folder_without_notebooks_is_refused(tmp_path):
    with pytest.raises(LabError, match="no notebooks"):
        find_lessons(tmp_path)


def test_all_are_executed_and_a_failure_is_told(folder, capsys):
    out = folder / "out"
    assert main([str(folder), str(out)]) == 1
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().out

    first = (out / "01_one.html").read_text(encoding="utf-8")
    assert "x 1" in first
    # The solutions run behind their notebook, in the same kernel, and do not run it again.
    assert ">42<" in re.sub(r"\s", "", (out / "01_one_solutions.html").read_text(encoding="utf-8"))
    assert "before" in (out / "02_two.html").read_text(encoding="utf-8")

    listed = (out / "index.html").read_text(encoding="utf-8")
    assert 'href="01_one.html"' in listed and 'href="01_one_solutions.html"' in listed
    assert "failed: ZeroDivisionError" in listed
    assert "One &lt;b&gt;" in listed and "What is one?" in listed
    for link in re.findall(r'href="([^"]+)"', listed):
        assert (out / link).exists(), link
    assert nbformat.read(out / "01_one.ipynb", 4).cells[1].outputs == [], "as it is stored"


def test_solutions_run_their_notebook_when_they_are_opened_alone(folder):
    place = folder / "solutions"
    done = execute(Lesson(place / "01_one.ipynb", None), place)
    assert done.error == ""
    assert done.notebook.cells[0].outputs == []
    assert done.notebook.cells[1].outputs[0].data["text/plain"] == "42"


def test_a_lesson_that_is_not_there_is_refused(folder, capsys):
    assert main([str(folder), str(folder / "out"), "07"]) == 1
    assert "begins with 07" in capsys.readouterr().err


class TestPage:
    def test_it_asks_for_nothing_from_the_network(self):
        # As plotly writes a figure: it would fetch MathJax, with or without a formula in it.
        figure = (
            '<div><script src="https://cdn.example/mathjax.js"></script><script>draw()</script>'
        )
        output = new_output("display_data", {"text/html": figure})
        cells = [new_markdown_cell("# A\n\n$x^2$"), new_code_cell("f", outputs=[output])]
        html = page(new_notebook(cells=cells), "a")
        assert "<script>draw()</script>" in html
        assert not re.search(r'(src|href)="(https?:)?//', html)
        assert "cdnjs" not in html and "unpkg" not in html and "import(" not in html
        assert 'href="index.html"' in html

    def test_a_widget_gives_way_to_what_it_shows_without_a_kernel(self):
        def shown(data):
            cell = new_code_cell("w", outputs=[new_output("display_data", data)])
            notebook = new_notebook(cells=[cell])
            notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}
            return page(notebook, "a")

        view = {"model_id": "m", "version_major": 2, "version_minor": 0}
        with_fallback = shown({WIDGET: view, "text/html": "<p>still here</p>"})
        without = shown({WIDGET: view, "text/plain": "Widget()"})
        assert "still here" in with_fallback and "A live widget" not in with_fallback
        assert "A live widget: run the notebook to use it." in without
        assert "widget-view" not in with_fallback + without

    def test_a_counter_that_writes_over_itself_shows_its_last_words(self):
        said = [new_output("stream", name="stdout", text=f"\r{i} of 3 done") for i in (1, 2, 3)]
        html = page(new_notebook(cells=[new_code_cell("count()", outputs=said)]), "a")
        assert "3 of 3 done" in html and "2 of 3 done" not in html


def test_a_heading_is_the_title_and_the_first_bold_line():
    cells = [new_markdown_cell("# T\n\n**Why?**\n\nx **not** this"), new_markdown_cell("**Nor**")]
    assert heading(new_notebook(cells=cells)) == ("T", "Why?")


def test_the_index_is_escaped():
    notebook = new_notebook(cells=[new_markdown_cell("# <script>alert(1)</script>")])
    lesson = Lesson(Path("x.ipynb"), None)
    html = index([Executed(lesson, notebook, None, 1.0, "<img src=x>")])
    assert "<script>" not in html and "<img" not in html
