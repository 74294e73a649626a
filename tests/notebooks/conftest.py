"""Notebooks take minutes and wait for no other test, so they run beside all others from the start.

What asks for them comes last.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest
from lessons import NAMES, Ran, Running, start

HERE = Path(__file__).parent
RUNNING = pytest.StashKey[Running]()


def waits(item: pytest.Item) -> bool:
    """Whether a test asks for a notebook that ran."""
    return item.path.parent == HERE and "run" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=waits)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the notebooks that the chosen tests name, or all where a test names none."""
    items = [item for item in session.items if waits(item)]
    if not items or session.config.option.collectonly:
        return
    named = {item.callspec.params["name"] if hasattr(item, "callspec") else "" for item in items}
    names = NAMES if "" in named else [name for name in NAMES if name in named]
    folder = Path(mkdtemp(prefix="notebooks-"))
    session.config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    session.config.stash[RUNNING] = running = start(names, folder)
    session.config.add_cleanup(running.stop)  # before the folder goes: the last added is first


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest) -> Callable[[str], Ran]:
    """Gives a notebook, by the number that its name begins with, as soon as it has run."""
    running = request.config.stash[RUNNING]

    def ran(name: str) -> Ran:
        return running.wait(next(known for known in NAMES if known.startswith(name[:2])))

    return ran
