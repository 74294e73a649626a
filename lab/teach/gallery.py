"""The notebooks as a folder of pages: executed, exported, with an index. ``make gallery``.

Every page opens without a network: plotly's script is inside, and what nbconvert and plotly would
fetch (require.js, MathJax, mermaid, the widgets' scripts) is left out. Live widgets cannot be
exported; in their place stands what they show without a kernel, or a line that says so.

Solutions run in the kernel of their notebook, after it, so that no notebook runs twice.
"""

from __future__ import annotations

import argparse
import copy
import re
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lab.errors import LabError

WIDGET = "application/vnd.jupyter.widget-view+json"
RUNS_NOTEBOOK = "runs-the-notebook"
"""Tag of the cell in a solutions notebook that runs the notebook itself."""

TIMEOUT = 1200
"""Seconds for one cell."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""What colours a traceback in a terminal."""

_FETCHED = re.compile(r'<script src="https?://[^"]*"></script>')
"""Plotly asks for MathJax with every figure; ours hold no formula."""

_NO_NETWORK = """
{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block body_header -%}
{{ super() }}
<p class="up"><a href="index.html">All notebooks</a></p>
{%- endblock -%}
{%- block html_head_css -%}
<style>
.up, main { box-sizing: border-box; max-width: 62rem; margin: 0 auto; }
.up { font: 15px system-ui, sans-serif; padding: 1rem 1.5rem 0; }
.up a { text-decoration: underline; }
.jp-InputArea-editor, .jp-OutputArea-output { overflow-x: auto !important; }
.plotly-graph-div { min-width: 46rem; }
.jp-RenderedText pre { word-break: normal !important; overflow-wrap: anywhere; }
</style>
{%- endblock -%}
"""

_INDEX = Markup("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Role Lens: notebooks</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 17px/1.55 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto;
  padding: 0 1.2rem; }}
li {{ margin: 0 0 1.6rem; }}
ol {{ list-style: none; padding: 0; }}
h2 {{ font-size: 1.15rem; margin: 0; }}
p {{ margin: .2rem 0; }}
.failed {{ font-weight: 600; }}
</style>
</head>
<body>
<h1>Role Lens: notebooks</h1>
<p>Executed, with all outputs. The pages need neither a network nor Python; widgets are live in
JupyterLab only.</p>
<ol>
{}
</ol>
</body>
</html>
""")

_ENTRY = Markup("<li><h2>{}</h2>\n<p>{}</p>\n<p>{}</p></li>")
_LINK = Markup('<a href="{}">{}</a>')


@dataclass(frozen=True, slots=True)
class Lesson:
    """A notebook and its solutions.

    Attributes:
        notebook: its file.
        solutions: the file of its solutions; None where there are none.
    """

    notebook: Path
    solutions: Path | None

    @property
    def name(self) -> str:
        return self.notebook.stem


@dataclass(frozen=True, slots=True)
class Executed:
    """A lesson after it was run.

    Attributes:
        lesson: which.
        notebook, solutions: with outputs; ``solutions`` is None where there are none.
        seconds: how long both took.
        error: the first line of what failed; empty where all cells ran.
    """

    lesson: Lesson
    notebook: Any
    solutions: Any
    seconds: float
    error: str = ""


def find_lessons(folder: Path) -> list[Lesson]:
    """The notebooks of a folder by name, each with its solutions in ``solutions/``.

    Raises:
        LabError: there is none.
    """
    found = []
    for path in sorted(folder.glob("*.ipynb")):
        solutions = folder / "solutions" / path.name
        found.append(Lesson(path, solutions if solutions.exists() else None))
    if not found:
        raise LabError(f"There are no notebooks in {folder}.")
    return found


def execute(lesson: Lesson, folder: Path, timeout: int = TIMEOUT) -> Executed:
    """A lesson, run in ``folder`` in a fresh kernel: the notebook, then its solutions.

    A cell that fails ends the run; what came before it keeps its outputs.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = nbformat.read(lesson.notebook, as_version=4)
    solutions = nbformat.read(lesson.solutions, as_version=4) if lesson.solutions else None
    both = copy.copy(notebook)
    both.cells = [*notebook.cells, *(_own_cells(solutions) if solutions else ())]
    client = NotebookClient(
        both,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        # A kernel warns of its unencrypted sockets, which do not leave this machine.
        extra_arguments=["--Application.log_level=ERROR"],
    )
    start, error = time.perf_counter(), ""
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as failure:
        error = _COLOUR.sub("", str(failure).strip().splitlines()[-1])
    return Executed(lesson, notebook, solutions, time.perf_counter() - start, error)


def _own_cells(solutions: Any) -> list[Any]:
    return [c for c in solutions.cells if RUNS_NOTEBOOK not in c.metadata.get("tags", ())]


def page(notebook: Any, title: str) -> str:
    """An executed notebook as HTML that needs no network."""
    from jinja2 import DictLoader
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    shown = copy.deepcopy(notebook)
    shown.metadata.pop("widgets", None)
    for output in (o for cell in shown.cells for o in cell.get("outputs", ())):
        _without_network(output.get("data", {}))
    exporter = HTMLExporter(
        extra_loaders=[DictLoader({"gallery.html.j2": _NO_NETWORK})],
        template_file="gallery.html.j2",
    )
    # A counter that writes over itself shows its last words only.
    exporter.register_preprocessor(CoalesceStreamsPreprocessor, enabled=True)
    html, _ = exporter.from_notebook_node(shown, resources={"metadata": {"name": title}})
    return str(html)


def _without_network(data: dict[str, Any]) -> None:
    """Leave what a widget shows without a kernel, or a line in its place; and no fetched script."""
    if "text/html" in data:
        data["text/html"] = _FETCHED.sub("", data["text/html"])
    if data.pop(WIDGET, None) is not None and "text/html" not in data:
        data["text/html"] = "<p><em>A live widget: run the notebook to use it.</em></p>"


def heading(notebook: Any) -> tuple[str, str]:
    """A notebook's title, and the question under it."""
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    question = re.search(r"^\*\*(.+)\*\*$", text, re.MULTILINE)
    return (title[1] if title else "", question[1] if question else "")


def index(lessons: Iterable[Executed]) -> str:
    """The page that lists all others."""
    return str(_INDEX.format(Markup("\n").join(_entry(executed) for executed in lessons)))


def _entry(executed: Executed) -> Markup:
    title, question = heading(executed.notebook)
    name = executed.lesson.name
    links = [_LINK.format(f"{name}.html", "page"), _LINK.format(f"{name}.ipynb", "notebook")]
    if executed.solutions is not None:
        links.insert(1, _LINK.format(f"{name}_solutions.html", "solutions"))
    took = f"ran in {max(1, round(executed.seconds / 60))} min"
    last = Markup('<span class="failed">failed: {}</span>').format(executed.error)
    tail: str | Markup = last if executed.error else took
    return _ENTRY.format(f"{name[:2]} {title}", question, Markup(" · ").join([*links, tail]))


def write_gallery(
    notebooks: Path, out: Path, only: Sequence[str] = (), timeout: int = TIMEOUT
) -> list[Executed]:
    """Execute the notebooks of a folder and write their pages, and an index, to another.

    Args:
        notebooks: the folder with the notebooks.
        out: where pages are written, and where the notebooks run.
        only: beginnings of the names of those that are wanted, such as ``03``; all if empty.
        timeout: seconds for one cell.

    Raises:
        LabError: there is no notebook, or none that is wanted.
    """
    lessons = find_lessons(notebooks)
    if only:
        lessons = [lesson for lesson in lessons if lesson.name.startswith(tuple(only))]
    if not lessons:
        raise LabError(f"No notebook in {notebooks} begins with {' or '.join(only)}.")
    out.mkdir(parents=True, exist_ok=True)
    done = []
    for lesson in lessons:
        print(f"{lesson.name} ...", end=" ", flush=True)
        executed = execute(lesson, out, timeout)
        print(executed.error or f"{executed.seconds:.0f} s", flush=True)
        done.append(executed)
        _write_pages(executed, out)
        (out / "index.html").write_text(index(done), encoding="utf-8")
    return done


def _write_pages(executed: Executed, out: Path) -> None:
    name = executed.lesson.name
    (out / f"{name}.html").write_text(page(executed.notebook, name), encoding="utf-8")
    shutil.copy(executed.lesson.notebook, out / f"{name}.ipynb")
    if executed.solutions is not None:
        title = f"{name}_solutions"
        (out / f"{title}.html").write_text(page(executed.solutions, title), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command behind ``make gallery``: 0 if all notebooks ran, else 1."""
    parser = argparse.ArgumentParser(description="Execute all notebooks and export them as pages.")
    parser.add_argument("notebooks", type=Path, help="folder with the notebooks")
    parser.add_argument("out", type=Path, help="folder for the pages")
    parser.add_argument("only", nargs="*", help="beginnings of names, such as 03; all if none")
    asked = parser.parse_args(arguments)
    try:
        done = write_gallery(asked.notebooks, asked.out, asked.only)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Open {asked.out / 'index.html'}")
    return int(any(executed.error for executed in done))


if __name__ == "__main__":
    sys.exit(main())
