"""``lab make-examples``: the file that it writes and what it prints."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from lab.cli import app
from lab.data import load_examples


def make(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["make-examples", *map(str, arguments)])


def test_writes_the_file_and_counts_the_families(tmp_path: Path) -> None:
    out = tmp_path / "world.jsonl"
    result = make("--seed", 2, "--n", 60, "--split", "test", "--out", out)
    assert result.exit_code == 0, result.output
    examples = load_examples(str(out))
    assert [item.id for item in examples] == [i.id for i in load_examples("world:test/2/60")]
    rows = {line.split()[0]: line.split()[1] for line in result.stdout.splitlines()}
    for family in ("extract", "arithmetic", "bridge", "chain"):
        assert int(rows[family]) == sum(item.family == family for item in examples)
    assert rows["all"] == "60,"
    assert str(out) in result.stdout


def test_a_file_is_written_over_only_by_force(tmp_path: Path) -> None:
    out = tmp_path / "my worlds.jsonl"
    assert make("--n", 3, "--out", out).exit_code == 0
    before = out.read_bytes()
    refused = make("--n", 3, "--seed", 1, "--out", out)
    assert refused.exit_code == 1
    assert "is there already: choose another name" in " ".join(refused.stderr.split())
    assert out.read_bytes() == before
    forced = make("--n", 3, "--seed", 1, "--out", out, "--force")
    assert forced.exit_code == 0
    assert out.read_bytes() != before
    assert f"lab examples 'jsonl:{out}' --list" in forced.stdout


def test_a_place_that_cannot_be_written_is_told_without_a_traceback(tmp_path: Path) -> None:
    result = make("--n", 3, "--out", tmp_path / "no" / "world.jsonl")
    assert result.exit_code == 1
    assert "cannot be written" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_no_question_at_all_is_refused(tmp_path: Path) -> None:
    result = make("--n", 0, "--out", tmp_path / "world.jsonl")
    assert result.exit_code == 1
    assert "at least 1, not 0" in " ".join(result.stderr.split())
