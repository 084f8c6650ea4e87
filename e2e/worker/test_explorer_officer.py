"""An officer's use of the auditor's page: an event, its sender, the reason for a refusal, a session, and its file."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import pytest

from e2e.accessibility import violations
from e2e.browser import Browser, browser
from e2e.commands import proofgate
from e2e.indexed import READERS, SAID, Indexed, indexed
from e2e.local_gateway import MODEL, not_over_midnight
from e2e.reading import failures


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexed]:
    with indexed(tmp_path_factory.mktemp("indexed")) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser") / "window") as window:
        yield window


@pytest.fixture
def page(ledger: Indexed, window: Browser) -> Browser:
    """The browser in which the officer is signed in."""
    window.see(1200)
    window.open(f"{ledger.url}/")
    window.run("sessionStorage.clear(); localStorage.clear()")
    window.open(f"{ledger.url}/#/")
    window.wait_for("Your reader key")
    window.type("#reader-key", READERS["officer"])
    window.press_button("Sign in")
    window.wait_for("Signed in as officer")
    window.complaints()
    return window


def figures(page: Browser, css: str = "section[aria-label='In this time range']") -> dict[str, str]:
    script = """return Object.fromEntries([...document.querySelectorAll(arguments[0] + ' .figure')].map((one) =>
        [one.querySelector('dt').textContent, one.querySelector('dd').firstChild.textContent]))"""
    found: dict[str, str] = page.run(script, css)
    return found


def test_the_landing_page_counts_what_rules_denied_apart_and_says_since_when_the_log_is_intact(
    ledger: Indexed, page: Browser
) -> None:
    told = page.wait_for("Top rules")
    rows = ledger.rows()
    found = figures(page)
    assert found["Requests"] == str(len(rows))
    assert (found["Denied by policy"], found["Redacted"]) == ("1", "1")
    assert found["Refused otherwise"] == str(sum(row["verdict"] == "refused" for row in rows))
    assert figures(page, "section[aria-label='Verdict']")["Log intact since"].startswith("20")
    assert "codename" in told and "acme" in told and "globex" in told
    page.wait(lambda: page.run("return document.querySelectorAll('.plot canvas').length") >= 3, "the charts")
    page.open(f"{ledger.url}/#/overview/by=verdict&range=hour")
    assert "request denied by policy" in page.wait_for("Divided by")
    page.open(f"{ledger.url}/#/overview/by=model&range=30d")
    assert MODEL in page.wait_for("Top models")
    assert page.run("return document.querySelector('.range [aria-current]').textContent") == "30 days"
    page.open(f"{ledger.url}/#/overview/since=2001-01-01&until=2001-01-02")
    page.wait_for("No request in this time range")
    assert page.complaints() == []


def test_filters_offer_what_the_index_has_and_a_phone_shows_rows_first(ledger: Indexed, page: Browser) -> None:
    page.open(f"{ledger.url}/#/exchanges")
    page.wait_for("Following")
    offered = "return [...document.querySelectorAll('#choices-' + arguments[0] + ' option')].map((one) => one.value)"
    assert set(page.run(offered, "tenant")) == {"acme", "globex"}
    assert set(page.run(offered, "rule")) == {"codename", "staff"}
    assert page.run(offered, "session") == [SAID["session"]]
    page.see(390)
    page.open(f"{ledger.url}/#/exchanges")
    page.wait_for("Following")
    top = "return document.querySelector('table.wide tbody tr').getBoundingClientRect().top"
    assert page.run(top) < 900
    assert page.run("return document.querySelector('.filters-box').open") is False


def test_a_request_that_was_denied_says_who_asked_and_which_rule_denied_it(ledger: Indexed, page: Browser) -> None:
    page.open(f"{ledger.url}/#/exchange/{ledger.ids['refused']}")
    told = page.wait_for("Verified: checkpoints signed by the ledger's key")
    assert "denied by policy: status 403, policy_blocked" in told
    assert "codename" in told


def test_a_session_is_drawn_in_order_with_its_sums(ledger: Indexed, page: Browser) -> None:
    page.open(f"{ledger.url}/#/session/{SAID['session']}")
    told = page.wait_for("oldest first")
    assert "reviewer" in told and "$" in told
    assert page.run("return document.querySelectorAll('.waterfall tbody tr').length") == 1
    page.open(f"{ledger.url}/#/session/nobodys")
    page.wait_for("no request of this session")
    assert page.complaints() == []


def test_what_the_filter_shows_is_saved_as_columns_and_as_a_bundle_that_verifies_and_both_are_recorded(
    ledger: Indexed, page: Browser
) -> None:
    page.open(f"{ledger.url}/#/exchanges/tenant=globex")
    page.wait_for("Following")
    page.press_button("Download CSV")
    page.wait_for("The auditor recorded that you exported them")
    page.wait(lambda: list(page.downloads.glob("*.csv")), "the columns")
    [table] = page.downloads.glob("*.csv")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["tenant"] for row in rows} == {"globex"}
    page.press_button("Download signed bundle")
    page.wait_for("proofgate audit verify-export")
    page.wait(lambda: list(page.downloads.glob("*.tar.gz")), "the bundle")
    [bundle] = page.downloads.glob("*.tar.gz")
    checked = proofgate("audit", "verify-export", bundle, "--key", ledger.gateway.verifying_key)
    assert checked.stdout.rstrip().endswith("verified"), checked
    exports = [read for read in ledger.reads() if read.get("asked", {}).get("of") == "export"]
    assert [(read["reader"], read["rows"]) for read in exports] == [("officer", len(rows))] * 2
    assert page.complaints() == []


def test_no_view_violates_a_rule_of_axe_in_either_scheme_or_on_a_phone(ledger: Indexed, page: Browser) -> None:
    not_over_midnight(120)
    views = {
        "#/": "Top rules",
        "#/overview/by=verdict": "Divided by",
        "#/exchanges": "Following",
        f"#/exchange/{ledger.ids['second attempt']}": "Verified: checkpoints signed by the ledger's key",
        f"#/session/{SAID['session']}": "oldest first",
        "#/tenants": "lists the shards that served",
        "#/budgets": "Placement",
        "#/analysis": "spec.analysis: {}",
        "#/findings": "Findings",
        "#/witnesses": "On the published checkpoint",
        "#/receipt": "Nothing is uploaded",
        "#/keys": "Keys",
    }
    for view, whole in views.items():
        for width, dark in ((1200, False), (390, True)):
            page.see(width, dark=dark)
            page.open(f"{ledger.url}/{view}")
            page.wait_for(whole)
            assert (violations(page), failures(page)) == ([], []), (view, width, dark)
            assert page.run("return document.documentElement.scrollWidth") <= width, (view, width)
