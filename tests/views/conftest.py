"""Studies and a browser for the tests of the views."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from synthetic_study import synthetic_study

from lab.views.report import write_report

CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def study() -> tuple[xr.Dataset, dict[str, Any]]:
    return synthetic_study(n=12, layers=5, heads=4)


@pytest.fixture(scope="session")
def report(study, tmp_path_factory) -> Path:
    """The report of the study, written once."""
    return write_report(*study, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium; the tests that need it are skipped where it cannot be had."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium on the path")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        yield running
        running.close()


@dataclass
class Opened:
    """A page in the browser, and everything it asked for or complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Opens an HTML file offline, at a width and in a colour scheme."""
    contexts = []

    def opener(path: Path, width: int = 1280, **options: Any) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_offline(True)
        opened = Opened(context.new_page())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on(
            "console",
            lambda said: opened.complaints.append(said.text) if said.type == "error" else None,
        )
        opened.page.goto(path.as_uri())
        opened.page.wait_for_timeout(150)
        return opened

    yield opener
    for context in contexts:
        context.close()
