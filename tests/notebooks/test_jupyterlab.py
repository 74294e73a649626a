"""The explorer as a person uses it: JupyterLab in a browser, a notebook, clicks, a page to keep."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tiny_folders import question, save_tiny, write_questions

import lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TOKEN = "only-for-this-test"
SECONDS = 120
"""How long anything may take: kernels load torch, and the machine may be busy."""

SETTINGS = {
    # All cells stay in the page, also those out of sight.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}

CELLS = (
    'import lab\n\nexplorer = lab.explore("study")\nlens = explorer.load()',
    "explorer",
    'print("head", explorer.selection.layer, explorer.selection.head, explorer.selection.example)',
    # A patch on a tiny model is over before anyone could stop it.
    "import time\nfrom lab.explorer.jobs import Watch\n\nquick = Watch.step\n\n\n"
    "def slow(watch, *told):\n    time.sleep(0.5)\n    quick(watch, *told)\n\n\n"
    'Watch.step = slow\nprint("slow", "now")',
    "from lab.data.conflicts import load_conflicts\n\n"
    'switches = lab.switch_heads(lens, load_conflicts("builtin", n=2), '
    '{"two heads": [(0, 1), (2, 1)]}, n_random=5)\nswitches',
    "print(*switches.selection.heads, switches.last_error)",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of three questions on a tiny model, and a notebook that explores it."""
    root = tmp_path_factory.mktemp("jupyterlab")
    model = save_tiny(root / "model", window=2048)
    questions = write_questions(root / "harbours.jsonl", [question(i) for i in range(3)])
    recipe = lab.Recipe(str(model), (f"jsonl:{questions}",), patching=0, controls=0)
    lab.run_study(recipe, root / "study")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, root / "explore.ipynb")
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    """The address of JupyterLab, with settings of its own."""
    if find_spec("jupyterlab") is None:
        pytest.skip("JupyterLab is not installed")
    port = free_port()
    names = (
        "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR",
        "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR",
    )  # fmt: skip
    places = {name: folder / "jupyter" / name.lower() for name in names}
    for name, settings in SETTINGS.items():
        file = places["JUPYTERLAB_SETTINGS_DIR"] / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    environment = {
        **os.environ,
        **{name: str(place) for name, place in places.items()},
        "PYTHONPATH": str(Path(lab.__file__).parents[1]),
        "OMP_NUM_THREADS": "1",
    }
    options = [
        f"--ServerApp.token={TOKEN}", f"--ServerApp.port={port}", f"--ServerApp.root_dir={folder}",
        "--ServerApp.port_retries=0", "--no-browser", "--allow-root",
    ]  # fmt: skip
    with open(folder / "server.log", "w", encoding="utf-8") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], env=environment, stdout=log, stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api?token={TOKEN}", running, folder / "server.log")
        yield address
    finally:
        running.terminate()
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()


def _wait_for(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    limit = time.monotonic() + SECONDS
    while time.monotonic() < limit and running.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5)
        except OSError:
            time.sleep(0.5)
        else:
            return
    pytest.fail(f"JupyterLab did not start: {log.read_text(encoding='utf-8')[-2000:]}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium on the path")
    arguments = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=arguments)
        yield running
        running.close()


@pytest.fixture(scope="module")
def page(server: str, browser: Any) -> Iterator[Any]:
    """The notebook, its first two cells run: the explorer is on the screen."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    context.set_default_timeout(1000 * SECONDS)
    opened = context.new_page()
    opened.goto(f"{server}/lab/tree/explore.ipynb?token={TOKEN}&reset")
    opened.locator(".jp-Notebook .jp-Cell").first.wait_for()
    start_cell(opened, 0)
    start_cell(opened, 1)
    opened.locator(".rl [data-view=bench] button").first.wait_for()
    yield opened
    context.close()


def start_cell(page: Any, number: int) -> Any:
    """Run a cell; before the kernel is there, JupyterLab forgets that it was asked to."""
    cell = page.locator(".jp-Notebook .jp-Cell").nth(number)
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    limit = time.monotonic() + SECONDS
    while prompt.inner_text() == before and time.monotonic() < limit:
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(1000)
    return cell


def run_cell(page: Any, number: int) -> str:
    """What a cell prints when it is run now."""
    cell = start_cell(page, number)
    limit = time.monotonic() + SECONDS
    while "*" in cell.locator(".jp-InputPrompt").inner_text() and time.monotonic() < limit:
        page.wait_for_timeout(100)
    return str(cell.locator(".jp-OutputArea-output").first.inner_text()).strip()


def tints(page: Any, role: str) -> list[str]:
    """The looks of a prompt's tokens in the reader."""
    script = "(role) => [...document.querySelectorAll(`.r-${role} .t`)].map((t) => t.style.cssText)"
    return list(page.evaluate(script, role))


def changed_from(page: Any, role: str, before: list[str]) -> bool:
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        if tints(page, role) != before:
            return True
        time.sleep(0.1)
    return False


def test_a_filter_narrows_the_examples_and_the_choice_reaches_python(page):
    rows = page.locator(".rl .rl-option")
    assert rows.count() == 3
    page.get_by_label("Search examples").fill("Tilbeck")
    page.wait_for_function("document.querySelectorAll('.rl .rl-option').length === 1")
    before = tints(page, "generator")
    rows.first.click()
    assert changed_from(page, "generator", before)
    assert "Tilbeck" in page.locator(".rl [data-view=reader] .rl-question").inner_text()
    assert run_cell(page, 2).endswith("q2")


def test_a_click_on_a_head_changes_both_texts(page):
    before = {role: tints(page, role) for role in ("generator", "evaluator")}
    assert all(before.values())
    map_ = page.locator(".rl [data-view=heads] .rl-map").first
    map_.scroll_into_view_if_needed()
    cells = map_.locator("rect")
    shown = run_cell(page, 2).split()[1:3]
    # Layer 0 is at the bottom; rectangles come in the order of layers and heads.
    layer, head = (0, 1) if shown != ["0", "1"] else (2, 2)
    cells.nth(layer * 4 + head).click(force=True)
    for role, old in before.items():
        assert changed_from(page, role, old), f"the {role}'s text stayed as it was"
    assert run_cell(page, 2).split()[1:3] == [str(layer), str(head)]


def test_a_patch_runs_and_shows_what_it_restores(page):
    bench = page.locator(".rl [data-view=bench]")
    bench.get_by_role("button", name="Run the patch").click()
    bench.locator("h3").wait_for()
    assert "from answering into judging" in bench.locator("h3").inner_text()
    assert bench.locator(".rl-map rect").count() >= 16
    assert bench.locator(".rl-error").inner_text() == ""


def test_heads_are_switched_off_and_the_answer_is_shown_again(page):
    start_cell(page, 4)
    switches = page.locator(".rl-switches").first
    switches.get_by_text("Took ").wait_for()
    assert switches.locator(".rl-sw .rl-panel").count() == 1
    switches.get_by_role("button", name="two heads (2)").click()
    switches.get_by_text("2 heads off: 0.1, 2.1").wait_for()
    assert switches.locator(".rl-sw-track .rl-sw-tick").count() == 5
    assert run_cell(page, 5) == "(0, 1) (2, 1) None"
    switches.get_by_role("button", name="off 0.1", exact=True).click()
    switches.get_by_text("1 head off: 2.1").wait_for()
    assert switches.locator(".rl-error").inner_text() == ""


def test_a_patch_can_be_stopped(page):
    assert run_cell(page, 3).startswith("slow now")
    bench = page.locator(".rl [data-view=bench]")
    bench.get_by_role("button", name="Run the patch").click()
    stop = bench.get_by_role("button", name="Stop")
    stop.click()
    bench.get_by_text("Stopped.").wait_for()
    assert bench.locator("h3").count() == 0


def test_the_page_is_exported_and_lives_without_kernel_and_network(page, browser, folder):
    page.get_by_role("button", name="Export page").click()
    page.get_by_text("Written to").wait_for()
    file = folder / "explorer.html"
    context = browser.new_context(offline=True)
    alone = context.new_page()
    asked: list[str] = []
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(file.as_uri())
    alone.locator(".rl-option").first.wait_for()
    assert "Tilbeck" in alone.locator("[data-view=reader] .rl-question").inner_text()
    before = tints(alone, "evaluator")
    alone.locator("[data-view=heads] .rl-map rect").nth(13).click(force=True)
    assert changed_from(alone, "evaluator", before)
    assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]
    context.close()
