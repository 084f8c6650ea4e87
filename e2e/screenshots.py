"""Makes the pictures of docs/how-to/use-the-explorer.md in a real browser: `python -m e2e.screenshots`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from proofgate.index.filter import Filter
from proofgate.index.overview import overview
from proofgate.index.query import IndexSnapshot

from bench.explorer_pages import DAY, END, make
from e2e.analysed import analysed
from e2e.browser import Browser, browser
from e2e.explored import Explored, explored, standing_in
from e2e.indexed import READERS, indexed
from e2e.living import living

IMAGES = Path(__file__).parents[1] / "docs" / "images"
#: Maximum bytes of a picture in the documentation.
MOST_BYTES = 200_000


def _write(name: str, picture: bytes) -> None:
    if len(picture) > MOST_BYTES:
        raise SystemExit(f"{name} has {len(picture)} bytes, more than {MOST_BYTES}")
    (IMAGES / name).write_bytes(picture)
    print(f"wrote docs/images/{name}: {len(picture)} bytes")


def _receipt(window: Browser, ledger: Explored, folder: Path) -> None:
    window.open(f"{ledger.url}/#/receipt")
    window.wait_for("Nothing is uploaded")
    for name, content in (("receipt", ledger.receipt), ("request", ledger.request), ("response", ledger.response)):
        (folder / name).write_bytes(content)
        window.type(f"#{name}", str(folder / name))
    window.press_button("Check")
    window.wait_for("Not shown: that the provider sent this response", ".result")


def sign_in(window: Browser, url: str, view: str, key: str) -> None:
    """Opens a view as the reader with this key."""
    window.open(f"{url}/{view}")
    window.wait_for("Your reader key")
    window.type("#reader-key", key)
    window.press_button("Sign in")
    window.wait_for("Signed in as")


def _readers(folder: Path) -> None:
    """Pictures of a reader's views."""
    (folder / "ledger").mkdir()
    with indexed(folder / "ledger") as ledger, browser(folder / "window") as window:
        window.see(1100, 960)
        sign_in(window, ledger.url, f"#/exchange/{ledger.ids['second attempt']}", READERS["officer"])
        window.wait_for("Verified: checkpoints signed by the ledger's key")
        _write("explorer-exchange.png", window.screenshot())
        window.see(1100, 760, dark=True)
        window.open(f"{ledger.url}/#/exchanges")
        window.wait_for("Following")
        _write("explorer-exchanges.png", window.screenshot())
        window.see(1100, 760)
        window.open(f"{ledger.url}/#/tenants")
        window.wait_for("lists the shards that served")
        _write("explorer-tenants.png", window.screenshot())


def _landing(folder: Path) -> None:
    """A picture of the landing page over a week. A test's ledger has no week of data, so bench makes the index."""
    (folder / "ledger").mkdir()
    make(folder / "week", 20_000, 7)
    with (
        indexed(folder / "ledger") as ledger,
        standing_in(ledger.url) as between,
        browser(folder / "window") as window,
    ):
        with IndexSnapshot(folder / "week") as questions:
            told = overview(questions, Filter(since=END - 7 * DAY, until=END), "tenant", END)
        between.changes["/v1/overview"] = lambda _: json.dumps({**told, "index": {"behind": 0, "code": ""}}).encode()
        window.see(1100, 1180)
        sign_in(window, between.url, "#/overview/range=7d", READERS["officer"])
        window.wait_for("Top rules")
        window.wait(lambda: window.run("return document.querySelectorAll('.plot canvas').length") == 4, "the charts")
        _write("explorer-landing.png", window.screenshot())


def _places(folder: Path) -> None:
    """Pictures of the tenants' budgets, and of the ring that places them."""
    (folder / "ledger").mkdir()
    with living(folder / "ledger") as url, browser(folder / "window") as window:
        window.see(1100, 900)
        sign_in(window, url, "#/budgets", READERS["officer"])
        window.wait_for("Placement")
        _write("explorer-budgets.png", window.screenshot())
        window.see(1100, 820, dark=True)
        window.open(f"{url}/#/budgets")
        window.wait_for("Placement")
        window.run("document.getElementById('ring').scrollIntoView()")
        _write("explorer-ring.png", window.screenshot())


def _analysis(folder: Path) -> None:
    """A picture of a swapped model."""
    (folder / "ledger").mkdir()
    with analysed(folder / "ledger") as url, browser(folder / "window") as window:
        window.see(1100, 900)
        sign_in(window, url, "#/analysis", READERS["officer"])
        window.wait_for("Alarms")
        _write("explorer-analysis.png", window.screenshot())


def main() -> None:
    """Writes the pictures."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        _analysis(Path(name))
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        _landing(Path(name))
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        _places(Path(name))
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        _readers(Path(name))
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        (folder / "ledger").mkdir()
        with explored(folder / "ledger") as ledger, browser(folder / "window") as window:
            window.see(1100, 760)
            window.open(f"{ledger.url}/")
            window.wait_for("No witness is configured")
            _write("explorer-overview.png", window.screenshot())
            window.see(1100, 900, dark=True)
            window.open(f"{ledger.url}/#/tree/5")
            window.wait_for("Verified: entry 5")
            window.run("document.querySelector('.entry').scrollIntoView()")
            _write("explorer-tree.png", window.screenshot())
            window.see(1100, 900)
            _receipt(window, ledger, folder)
            window.run("document.querySelector('.result').scrollIntoView()")
            _write("explorer-receipt.png", window.screenshot())


if __name__ == "__main__":
    main()
