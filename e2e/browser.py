"""Chromium, driven by W3C WebDriver (w3.org/TR/webdriver2): the few commands that the tests of a page need."""

from __future__ import annotations

import base64
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from e2e.programs import PATIENCE, NotReadyError, Program, start_ready

CHROMIUM = "/usr/bin/chromium"
TAB, ENTER, UP, DOWN = "\ue004", "\ue007", "\ue013", "\ue015"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-color-profile=srgb"),
)


@dataclass
class Browser:
    """One browser window. CSS selectors name elements."""

    client: httpx.Client
    downloads: Path

    def _do(self, path: str, body: dict[str, Any] | None = None, method: str = "POST") -> Any:
        answer = self.client.request(method, path, json=(body or {}) if method == "POST" else None)
        value = answer.json()["value"]
        if answer.is_error:
            raise RuntimeError(f"{value['error']}: {value['message']}")
        return value

    def _element(self, css: str) -> str:
        found: dict[str, str] = self._do("/element", {"using": "css selector", "value": css})
        return found[_ELEMENT]

    def open(self, url: str) -> None:
        """Opens a URL as a new visit."""
        self._do("/url", {"url": "about:blank"})
        self._do("/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Runs a function body in the page, and returns its result."""
        return self._do("/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script: str, *arguments: Any) -> Any:
        """Runs a function body in the page; returns the value that it passes to the callback, its last argument."""
        return self._do("/execute/async", {"script": script, "args": list(arguments)})

    def text(self, css: str = "main") -> str:
        """The visible text of an element; empty if the element does not exist."""
        found: str = self.run("return document.querySelector(arguments[0])?.innerText ?? ''", css)
        return found

    def wait(self, condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        """Waits until a condition returns a value, and returns it."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} is not there; the page says:\n{self.text('body')}\n{self.complaints()}")
            time.sleep(0.02)
        return found

    def wait_for(self, text: str, css: str = "main") -> str:
        """Waits until an element's text contains `text`."""
        self.wait(lambda: text in self.text(css), text)
        return self.text(css)

    def click(self, css: str) -> None:
        self._do(f"/element/{self._element(css)}/click")

    def press_button(self, name: str, within: str = "main") -> None:
        """Clicks the button with this text."""
        script = """const all = [...document.querySelectorAll(arguments[0] + ' button')];
            all.find((one) => one.textContent === arguments[1]).click()"""
        self.run(script, within, name)

    def type(self, css: str, text: str) -> None:
        """Replaces the text of a field; for a file field, `text` is the path."""
        element = self._element(css)
        if not self.run("return document.querySelector(arguments[0]).type === 'file'", css):
            self._do(f"/element/{element}/clear")
        self._do(f"/element/{element}/value", {"text": text})

    def key(self, key: str) -> None:
        """Presses and releases a key, wherever the focus is."""
        steps = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._do("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": steps}]})

    def focused(self) -> str:
        """The accessible name of the focused element."""
        script = "const one = document.activeElement; return one.getAttribute('aria-label') ?? one.textContent"
        name: str = self.run(script)
        return name.strip()

    def see(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Sets the window's size in CSS pixels, and its colour scheme."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", features=scheme)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)

    def command(self, name: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self._do("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def screenshot(self) -> bytes:
        """The window as a PNG."""
        return base64.b64decode(self._do("/screenshot", method="GET"))

    def complaints(self) -> list[str]:
        """New console messages since the last call: errors, warnings and violations of the content security policy."""
        return [f"{entry['level']}: {entry['message']}" for entry in self._do("/se/log", {"type": "browser"})]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a new, empty profile in `folder`."""
    downloads = folder / "downloads"
    downloads.mkdir(parents=True)
    driver, session = start_ready(
        lambda: Program.start("chromedriver", folder, ["--port=0"], ["chromedriver"], cwd=folder),
        lambda driver: _session(driver, folder, downloads),
    )
    try:
        with httpx.Client(base_url=session, timeout=PATIENCE) as client:
            try:
                yield Browser(client, downloads)
            finally:
                # A trailing slash would make it a different path, and Chromium would keep running.
                client.delete(session).raise_for_status()
    finally:
        driver.stop()


def _session(driver: Program, folder: Path, downloads: Path) -> str:
    """The URL of a session with a new Chromium. Raises NotReadyError."""
    port = driver.wait_for_line(r"started successfully on port (\d+)")[1]
    # A failed start may have left files in its profile.
    profile = tempfile.mkdtemp(prefix="profile-", dir=folder)
    options = {
        "binary": CHROMIUM,
        "args": [*_ARGUMENTS, f"--user-data-dir={profile}"],
        "prefs": {
            "download.default_directory": str(downloads),
            "profile.default_content_setting_values.automatic_downloads": 1,
        },
    }
    wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    sessions = f"http://127.0.0.1:{port}/session"
    try:
        answer = httpx.post(sessions, json={"capabilities": {"alwaysMatch": wanted}}, timeout=PATIENCE)
        begun = answer.json()["value"]
    except (httpx.HTTPError, ValueError) as error:
        raise NotReadyError(f"no session: {error!r}: {driver.report}") from error
    if "sessionId" not in begun:
        raise NotReadyError(f"no session: {begun['message']}: {driver.report}")
    return f"{sessions}/{begun['sessionId']}"
