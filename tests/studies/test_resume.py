"""A study that was stopped goes on and ends with the bytes of an unbroken one."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_study import Unbroken, stored_bytes
from zarr.storage import LocalStore

from lab.engine.alone import alone
from lab.errors import LabError
from lab.instruments.summaries import headline
from lab.studies.store import ARRAYS, PROVENANCE, RECIPE, Store, read_json, read_study
from lab.studies.study import run_study
from lab.views.content.made import limits, provenance_rows

READER = {"held": 1, "of": 1, "error": 0.0}


class Killed(BaseException):
    """Stands for a process that ends without a chance to tidy up."""


def stop_at_write(monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
    """Let the n-th array write of an example, counted over all examples, fail."""
    plain, count = Store._write_one, 0

    def write(self: Store, name: str, index: int, value: Any) -> None:
        nonlocal count
        count += 1
        if count > number:
            raise error
        plain(self, name, index, value)

    monkeypatch.setattr(Store, "_write_one", write)


@pytest.mark.parametrize("writes", [0, 20, 50, 100])
def test_stopped_between_any_two_writes_the_arrays_end_the_same(
    unbroken: Unbroken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    with monkeypatch.context() as patch:
        stop_at_write(patch, writes, Killed())
        with pytest.raises(Killed):
            run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    # What zarr leaves when it is killed while it writes.
    torn = tmp_path / ARRAYS / "mass" / "c" / "2" / "0.0123.partial"
    torn.parent.mkdir(parents=True, exist_ok=True)
    torn.write_bytes(b"half")
    run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert unbroken.same_arrays(tmp_path)


def test_stopped_while_the_arrays_are_made_it_begins_anew(
    unbroken: Unbroken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("lab.studies.store.write_json", killed)
        with pytest.raises(Killed):
            run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert not (tmp_path / RECIPE).exists()
    run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert unbroken.same_arrays(tmp_path)


def start(unbroken: Unbroken, folder: Path) -> subprocess.Popen[str]:
    """``lab run`` in a process of its own, once it has stored its first example."""
    recipe = unbroken.recipe
    command = [
        sys.executable, "-m", "lab.cli", "run", "--out", str(folder), "--model", recipe.model,
        "--data", recipe.data[0], "--patching", "2",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        # Tests that are run in the background ignore Ctrl-C, and what they start would, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    flag = folder / ARRAYS / "done" / "c" / "0"
    deadline = time.monotonic() + 240
    while not flag.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "nothing was stored in four minutes"
        time.sleep(0.01)
    return process


def test_kill_minus_nine_loses_nothing_that_was_stored(unbroken: Unbroken, tmp_path: Path) -> None:
    process = start(unbroken, tmp_path)
    time.sleep(random.uniform(0, 0.5))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    dataset, provenance = read_study(tmp_path)
    assert dataset.sizes["example"] in (1, 2, 3)
    assert provenance["model"]["sha256"] == unbroken.lens.sha256
    run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert unbroken.same_arrays(tmp_path)


def test_ctrl_c_stops_with_words_and_exit_code_130(unbroken: Unbroken, tmp_path: Path) -> None:
    process = start(unbroken, tmp_path)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "run the same command again to go on" in stderr
    assert "Traceback" not in stderr
    run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert unbroken.same_arrays(tmp_path)


def test_a_full_disk_is_told_and_loses_nothing(
    unbroken: Unbroken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at_write(patch, 50, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        with pytest.raises(LabError, match=r"No space left on device; 1 of 3 examples are stored"):
            run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    before = stored_bytes(tmp_path)
    kept = {name: data for name, data in before.items() if "/c/0" in name}
    assert kept
    run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert kept.items() <= stored_bytes(tmp_path).items()
    assert unbroken.same_arrays(tmp_path)


def test_a_disk_that_is_full_inside_zarr_is_told_too(
    unbroken: Unbroken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(unbroken.folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / ARRAYS / "done" / "c" / "2").unlink()

    async def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(LocalStore, "set", full)
    with pytest.raises(LabError, match=r"No space left on device; 2 of 3 examples are stored"):
        run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)


def test_a_full_disk_at_the_very_end_is_told(
    unbroken: Unbroken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(unbroken.folder, tmp_path, dirs_exist_ok=True)
    provenance = read_json(tmp_path / PROVENANCE)
    (tmp_path / PROVENANCE).write_text(
        (tmp_path / PROVENANCE).read_text().replace(provenance["finished"], "")
    )

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("lab.studies.study.write_json", full)
        with pytest.raises(LabError, match="No space left on device"):
            run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert read_json(tmp_path / PROVENANCE)["finished"]


def test_a_half_finished_study_can_be_read(
    unbroken: Unbroken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at_write(patch, 50, Killed())
        with pytest.raises(Killed):
            run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    dataset, provenance = read_study(tmp_path)
    whole, _ = read_study(unbroken.folder)
    assert list(dataset["example"].values) == ["q0"]
    assert np.array_equal(dataset["mass"], whole["mass"][:1])
    assert provenance["finished"] == ""
    assert (provenance["done"], provenance["planned"]) == (1, 3)
    told = f"Unfinished: 1 of 3 examples are stored; `{provenance['command']}` goes on."
    assert limits(provenance, 1, 1)[0] == told
    assert told in dict(provenance_rows(provenance, READER))["Run"]
    assert "1 of 3 examples" in headline(dataset, provenance).subtitle


def test_a_finished_study_is_not_called_unfinished(unbroken: Unbroken) -> None:
    dataset, provenance = read_study(unbroken.folder)
    assert (provenance["done"], provenance["planned"]) == (3, 3)
    assert "nfinished" not in " ".join(limits(provenance, 3, 3))
    assert headline(dataset, provenance).subtitle == "tiny-llama, 3 examples from harbours"


def test_two_processes_do_not_run_into_one_folder(unbroken: Unbroken, tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(LabError, match=r"Another process is running in .*--out"):
        run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert list(tmp_path.iterdir()) == []
    run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert unbroken.same_arrays(tmp_path)
    with alone(tmp_path):
        dataset, _ = run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert dataset.sizes["example"] == 3, "what is finished can be read at any time"


def test_a_finished_study_is_read_without_loading_weights(
    unbroken: Unbroken, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unwanted(*_: object, **__: object) -> None:
        raise AssertionError("weights were loaded")

    monkeypatch.setattr("lab.engine.loading.open_lens", unwanted)
    before = stored_bytes(unbroken.folder), read_json(unbroken.folder / PROVENANCE)
    with caplog.at_level("INFO", "lab"):
        dataset, _ = run_study(unbroken.recipe, unbroken.folder)
    assert dataset.sizes["example"] == 3
    assert "All 3 examples are stored already" in caplog.text
    assert before == (stored_bytes(unbroken.folder), read_json(unbroken.folder / PROVENANCE))


def test_an_example_whose_file_got_lost_is_told_and_measured_anew(
    unbroken: Unbroken, tmp_path: Path
) -> None:
    shutil.copytree(unbroken.folder, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / ARRAYS / "mass" / "c" / "1")
    with pytest.raises(LabError, match=r"lacks files of the example 'q1' \(mass\)"):
        read_study(tmp_path)
    run_study(unbroken.recipe, tmp_path, lens=unbroken.lens)
    assert unbroken.same_arrays(tmp_path)
