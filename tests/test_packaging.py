"""The project as others install it: one list of dependencies, and a wheel that has all it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
import yaml
from tiny import tiny_model, tiny_tokenizer

ROOT = Path(__file__).parent.parent


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_conda_environment_lists_the_same_dependencies() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    listed = environment["dependencies"]
    pip = next(item["pip"] for item in listed if isinstance(item, dict))
    assert f"python{project()['requires-python']}" in listed
    assert sorted(pip) == sorted([*project()["dependencies"], "-e ."])
    assert environment["name"] == project()["name"]


def test_constraints_pin_every_direct_dependency() -> None:
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    optional = project()["optional-dependencies"]["dev"]
    for requirement in [*project()["dependencies"], *optional]:
        name = requirement.split(">")[0].split("[")[0].lower()
        assert name in pinned, f"{name} has no pinned version in constraints.txt"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed alone in a new environment that borrows only third-party packages."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run([*build, str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    home = folder / "env"
    venv.create(home, with_pip=False)
    place = next(home.glob("lib/python*/site-packages"))
    # A plain path: .pth files inside it, such as this checkout's editable install, do not count.
    (place / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n")
    wheel = next(folder.glob("rolelens-*.whl"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--prefix", str(home), "--ignore-installed", str(wheel)], check=True)
    return home


def call(home: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [str(home / "bin" / "python"), *words],
        cwd=cwd, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def test_the_wheel_runs_the_main_job_outside_of_the_repository(
    installed: Path, tmp_path: Path
) -> None:
    where = call(installed, tmp_path, "-c", "import lab; print(lab.__file__)")
    assert str(installed) in where.stdout, where.stdout + where.stderr

    model = tiny_model("llama")
    model.config.max_position_embeddings = 4096  # its tokenizer makes many tokens of a passage
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    run = call(installed, tmp_path, "-m", "lab.cli", "run", "--model", "model", "--data",
               "builtin:extract", "--n", "2", "--out", "study")  # fmt: skip
    assert run.returncode == 0, run.stderr
    report = call(installed, tmp_path, "-m", "lab.cli", "report", "study", "-o", "page.html")
    assert report.returncode == 0, report.stderr
    page = (tmp_path / "page.html").read_text()
    assert "</html>" in page and "builtin" in page
