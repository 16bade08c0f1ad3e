"""The app as `streamlit run app.py` serves it, and a real browser in front of it."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
SHOTS = ROOT / "screenshots"
PATIENCE = 120.0  # seconds for the server to answer
expect.set_options(timeout=90_000)


@pytest.fixture(scope="session")
def server(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the app, with the model's files already in the cache."""
    with serving(tmp_path_factory.mktemp("server") / "log") as url:
        yield url


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """Start the app on a free port and stop it in the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    flags = ["--server.headless", "true", "--server.port", str(port)]
    flags += ["--server.address", "127.0.0.1"]
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, *flags],
            cwd=ROOT,
            stdout=out,
            stderr=out,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url + "/_stcore/health", process, log)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"{url} never answered\n{log.read_text()}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not on PATH")
    with sync_playwright() as play:
        flags = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
        browser = play.chromium.launch(executable_path=path, headless=True, args=flags)
        yield browser
        browser.close()


class Tab:
    """One browser tab that remembers everything the console complained about."""

    def __init__(self, browser: Browser, scheme: str, width: int, height: int = 1000) -> None:
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self.page.set_default_timeout(90_000)
        self.complaints: list[str] = []
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", self._refuse)

    def _refuse(self, request: object) -> None:
        if request.failure != "net::ERR_ABORTED":  # what a page change itself gives up
            self.complaints.append(request.url)

    def _listen(self, message: object) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def open(self, url: str) -> "Tab":
        self.page.goto(url)
        self.page.get_by_role("button", name="Run live").wait_for()
        self.pane.wait_for()
        return self

    @property
    def pane(self):
        return self.page.locator(".sv-flow")

    @property
    def current(self) -> str:
        """The number of the round that is marked in the pane."""
        return self.page.locator(".sv-round.sv-current .sv-number").inner_text()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).first.click()

    def shoot(self, name: str) -> None:
        SHOTS.mkdir(exist_ok=True)
        self.page.wait_for_timeout(2500)  # charts and tables are drawn after the page is
        self.page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def tab(browser: Browser):
    tabs = []

    def make(scheme: str = "light", width: int = 1440, height: int = 1000) -> Tab:
        tabs.append(Tab(browser, scheme, width, height))
        return tabs[-1]

    yield make
    for each in tabs:
        each.page.close()
