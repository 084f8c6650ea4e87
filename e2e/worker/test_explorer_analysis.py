"""The auditor's page shows the analysis of answers for a swapped model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.analysed import analysed
from e2e.browser import Browser, browser
from e2e.indexed import READERS
from e2e.local_gateway import MODEL
from e2e.reading import failures
from e2e.screenshots import sign_in

ROWS = """return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) =>
    [...row.cells].map((cell) => cell.innerText.trim()))"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with analysed(tmp_path_factory.mktemp("analysed")) as url:
        yield url


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser") / "window") as window:
        window.see(1200)
        yield window


def test_a_swap_is_an_alarm_in_the_chart_and_in_the_tables(url: str, page: Browser) -> None:
    sign_in(page, url, "#/analysis", READERS["officer"])
    page.wait_for("Alarms")
    [alarm] = page.run(ROWS, "section[aria-labelledby=alarms-found]")
    assert alarm[1:4] == ["acme", MODEL, "entropy, opening"] and alarm[4].startswith("window 4: ")
    windows: list[list[Any]] = page.run(ROWS, ".pair")
    assert [row[2] for row in windows] == ["1", "2", "3", "4"]
    assert [row[-1] for row in windows] == [
        "became the reference",
        "like the reference",
        "like the reference",
        "differs: entropy, opening",
    ]
    told = page.run("return [...document.querySelectorAll('.chart')].map((one) => one.getAttribute('aria-label'))")
    entropy = float(windows[0][4]), float(windows[3][4])
    assert f"Entropy, bits per token: 4 windows from {entropy[0]:.3g} to {entropy[1]:.3g}, 1 alarm" in told
    assert any(one.startswith("Length, tokens: 4 windows") and one.endswith("0 alarms") for one in told)
    marks = "return document.querySelectorAll('.chart .alarm-mark').length"
    assert page.run(marks) == 1
    page.click("section[aria-labelledby=alarms-found] a")
    page.wait_for("Verified: checkpoints signed by the ledger's key")
    for width, dark in ((1200, True), (320, False)):
        page.see(width, dark=dark)
        page.open(f"{url}/#/analysis")
        page.wait_for("Alarms")
        assert failures(page) == []
    assert page.complaints() == []


def test_a_reader_of_another_tenant_sees_none_of_it(url: str, page: Browser) -> None:
    page.run("sessionStorage.clear()")
    page.open("about:blank")
    sign_in(page, url, "#/analysis", READERS["acme's"])
    assert "acme" not in page.wait_for("No analysis is recorded here")


CEILING = "return import('/explorer/chart.js').then((module) => arguments[0].map(module.ceiling))"


def test_the_top_of_a_chart_is_a_round_number_that_holds_every_value(url: str, page: Browser) -> None:
    page.open(f"{url}/")
    values = [0, -1, 0.03, 1, 1.872, 20, 21, 999, 1e9, 3e-9]
    tops = page.run(CEILING, values)
    assert tops[:8] == pytest.approx([1, 1, 0.05, 1, 2, 20, 50, 1000])
    assert all(top >= value * 0.999 for top, value in zip(tops, values, strict=True))
