"""What a notebook imports: few names, quickly, and torch only when a model is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lab

HEAVY = ("torch", "transformers", "transformer_lens", "plotly", "pandas", "xarray", "numpy")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_the_lab_imports_nothing_heavy():
    loaded = run("import lab, sys; print(*sys.modules)").split()
    assert set(loaded).isdisjoint(HEAVY)


def test_importing_the_lab_takes_less_than_three_tenths_of_a_second():
    code = "import time; t = time.perf_counter(); import lab; print(time.perf_counter() - t)"
    # The best of three, so that other work on the machine does not count.
    assert min(float(run(code)) for _ in range(3)) < 0.3


def test_reading_data_and_prompts_needs_no_torch():
    loaded = run(
        "import lab, sys; lab.load_examples; lab.Prompter; lab.figures; print(*sys.modules)"
    )
    assert {"torch", "transformers"}.isdisjoint(loaded.split())


@pytest.mark.parametrize("name", lab.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(lab, name)
    assert name in dir(lab)
    if callable(value):
        assert value.__doc__


def test_an_unknown_name_is_refused_as_python_does_it():
    with pytest.raises(AttributeError, match="has no attribute 'load_lense'"):
        _ = lab.load_lense


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(lab.__file__).read_text(encoding="utf-8"))
    (checked,) = [n for n in tree.body if isinstance(n, ast.If)]
    named = {
        alias.asname or alias.name
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert named == set(lab.__all__) - {"__version__"}
