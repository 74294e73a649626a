"""``lab override``: what it prints, and that it stops and refuses in words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from override_study import finished
from tiny_folders import save_tiny
from typer.testing import CliRunner, Result

from lab.cli import app
from lab.cli.override import cells, print_override
from lab.engine.alone import alone
from lab.studies.override.results import FOLDER, OverrideResults, read_override


def lab(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def plain(text: str) -> str:
    """Text with its line breaks and runs of spaces as single spaces."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def planted() -> OverrideResults:
    return read_override(finished())


def test_a_study_ends_with_a_line_for_each_contest(tmp_path: Path) -> None:
    model = save_tiny(tmp_path / "tiny-llama", window=2048)
    out = tmp_path / "out"
    result = lab("override", "--model", model, "--n", 2, "--out", out)
    assert result.exit_code == 0, result.output
    told = plain(result.stderr)
    assert "2 conflicts of builtin." in told
    assert "Loading tiny-llama (local folder tiny-llama)." in told
    assert "2 of 2 conflicts." in told
    assert "instruction: 0 of 2 conflicts are decided as asked" in told
    printed = plain(result.stdout)
    for contest in ("instruction", "passage", "candidate", "checked"):
        assert f"{contest} 0 of" in printed
    assert printed.count("too few") == 4
    assert printed.endswith(f"Next: lab report {out}")


def test_heads_flips_and_random_sets_are_printed(
    planted: OverrideResults, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    print_override(planted)
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if line.startswith("instruction"))
    assert planted.tables["contests"]["heads"][0] in line
    assert "20 of 20" in line and "25.0 %" in line and "1.00 [" in line
    assert "random 0.00 to 0.00, p = 0.25" in printed, "one head of four has three others"
    assert "too few" in next(x for x in printed.splitlines() if x.startswith("checked"))


def test_a_run_without_heads_of_its_own_says_so(planted: OverrideResults) -> None:
    row = planted.tables["contests"].iloc[0]
    tables = dict(planted.contests["instruction"])
    tables["proof"] = tables["proof"][tables["proof"]["run"] != "b"]
    assert cells(row, tables)[5] == "no heads"
    assert cells(pd.Series({**row, "state": "none"}), tables)[2] == "none"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--data", "nowhere"), "Unknown source of conflicts 'nowhere'"),
        (("--pairs", 3), "pairs is 3, but a contest needs at least 16"),
        (("--model", "no/such/folder"), "no/such/folder"),
    ],
)
def test_what_cannot_be_run_is_told_in_words(
    tmp_path: Path, options: tuple[object, ...], why: str
) -> None:
    model = ("--model", save_tiny(tmp_path / "tiny")) if "--model" not in options else ()
    result = lab("override", *model, *options, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert why in plain(result.stderr) and "Traceback" not in result.output


def test_a_folder_that_another_process_runs_into_is_refused(tmp_path: Path) -> None:
    model, place = save_tiny(tmp_path / "tiny"), tmp_path / "out" / FOLDER
    place.mkdir(parents=True)
    with alone(place):
        result = lab("override", "--model", model, "--n", 20, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "Another process is running in" in plain(result.stderr)
    assert list(place.iterdir()) == []


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lab.cli.override.run_override", stopped)
    result = lab("override", "--out", tmp_path)
    assert result.exit_code == 130
    assert "run the same command again to go on" in result.stderr
