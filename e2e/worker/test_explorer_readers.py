"""The data that the auditor's page shows to readers of exchanges, and hides from all others."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.browser import DOWN, ENTER, TAB, Browser, browser
from e2e.demo_page import PICTURE, ExchangePage
from e2e.demo_receipt import fetch_and_verify
from e2e.explored import StandIn, standing_in
from e2e.indexed import READERS, RESILIENT, SAID, Indexed, indexed, say
from e2e.local_gateway import KEYS, MODEL, not_over_midnight
from e2e.programs import PATIENCE, wait_until
from e2e.reading import failures

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


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
    """The browser at the auditor's page, without a signed-in reader."""
    window.see(1200)
    window.open(f"{ledger.url}/")
    window.run("sessionStorage.clear(); localStorage.clear()")
    window.complaints()
    return window


@pytest.fixture
def between(ledger: Indexed) -> Iterator[StandIn]:
    with standing_in(ledger.url) as between:
        yield between


def sign_in(page: Browser, url: str, reader: str, view: str = "#/exchanges") -> None:
    page.open(f"{url}/{view}")
    page.wait_for("Your reader key")
    page.type("#reader-key", READERS[reader])
    page.press_button("Sign in")
    page.wait_for(f"Signed in as {reader}")


def named(tenant: str | None) -> str:
    """A tenant's name on the page; a request without a valid key belongs to no tenant."""
    return tenant or "no tenant"


def is_indexed(ledger: Indexed, request_id: str) -> bool:
    """Whether the index contains an exchange and its end."""
    return any(of["id"] == request_id and of["outcome"] != "open" for of in ledger.rows())


def cells(page: Browser, css: str) -> list[list[str]]:
    """The texts of a table's cells, by rows."""
    script = """return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) =>
        [...row.cells].map((cell) => cell.innerText.trim()))"""
    found: list[list[str]] = page.run(script, css)
    return found


def test_a_reader_signs_in_with_a_key_that_stays_in_the_tab_and_is_in_no_address(
    ledger: Indexed, page: Browser
) -> None:
    page.open(f"{ledger.url}/#/exchanges")
    page.wait_for("Your reader key")
    assert "acme" not in page.text()
    for key in (KEYS["acme"], "two words", "schlüssel"):
        page.type("#reader-key", key)
        page.press_button("Sign in")
        page.wait_for("belongs to no reader")
    page.complaints()
    sign_in(page, ledger.url, "officer")
    kept = "return [location.href, JSON.stringify(localStorage), document.cookie].join(' ')"
    assert READERS["officer"] not in page.run(kept)
    assert READERS["officer"] in page.run("return JSON.stringify(sessionStorage)")
    page.press_button("Sign out")
    page.wait_for("Your reader key")
    assert page.run("return sessionStorage.length") == 0
    assert READERS["officer"] not in json.dumps(ledger.reads())
    assert page.complaints() == []


def test_exchanges_are_listed_the_newest_first_and_found_by_filters(ledger: Indexed, page: Browser) -> None:
    sign_in(page, ledger.url, "officer")
    rows, told = cells(page, "table.wide"), ledger.rows()[::-1]
    assert [row[1] for row in rows] == [named(of["tenant"]) for of in told] and len(rows) >= 7
    ids = [of["id"] for of in told]
    oldest_first = ["plain", "second attempt", "redacted", "refused", "globex"]
    assert sorted(oldest_first, key=lambda name: ids.index(ledger.ids[name])) == oldest_first[::-1]
    assert rows[ids.index(ledger.ids["refused"])][5].split() == ["denied", "by", "policy", "codename"]
    page.type("#filter-rule", "staff")
    page.key(ENTER)
    page.wait(lambda: len(cells(page, "table.wide")) == 1, "the one that the rule matched")
    assert "rule=staff" in page.run("return location.hash")
    page.type("#filter-rule", "nothing")
    page.key(ENTER)
    page.wait_for("No exchange matches these filters")
    page.type("#filter-rule", "")
    page.run("document.querySelectorAll('.filters-box details').forEach((one) => { one.open = true })")
    page.type("#filter-session", SAID["session"])
    page.key(ENTER)
    page.wait(lambda: len(cells(page, "table.wide")) == 1, "the one of that session")
    page.open(f"{ledger.url}/#/exchange/{ledger.ids['plain']}")
    page.wait_for("Verified: checkpoints signed by the ledger's key")
    assert SAID["session"] in page.text() and SAID["agent"] in page.text()
    page.open(f"{ledger.url}/#/exchanges")
    page.wait(lambda: len(cells(page, "table.wide")) >= 7, "all of them")
    page.open(f"{ledger.url}/#/exchanges/since=yesterday")
    page.wait_for("bad_filter")
    # The console reports only the 400 answer.
    assert all("400" in complaint for complaint in page.complaints())


def test_a_tenants_reader_sees_its_own_alone(ledger: Indexed, page: Browser) -> None:
    sign_in(page, ledger.url, "acme's")
    assert "who sees only acme" in page.text()
    assert {row[1] for row in cells(page, "table.wide")} == {"acme"}
    assert page.run("return document.querySelector('#filter-tenant')") is None
    page.open(f"{ledger.url}/#/exchange/{ledger.ids['globex']}")
    page.wait_for("no exchange with this id")
    page.open(f"{ledger.url}/#/tenants")
    page.wait_for("lists the shards that served")
    assert [row[0] for row in cells(page, "table.wide")] == ["acme"]


def test_one_exchange_is_drawn_from_records_that_this_browser_verified(ledger: Indexed, page: Browser) -> None:
    sign_in(page, ledger.url, "officer", f"#/exchange/{ledger.ids['second attempt']}")
    told = page.wait_for("Verified: checkpoints signed by the ledger's key")
    records = [record for record in ledger.gateway.records() if record.get("id") == ledger.ids["second attempt"]]
    stages = cells(page, ".waterfall")
    assert [stage[0] for stage in stages] == ["Admitted", "Attempt 1", "Attempt 2", "Completed"]
    assert "503" in stages[1][4] and "answered with 200" in stages[2][4]
    # The width of each bar matches the records.
    first, second, end = (record["ts"] for record in records)
    shapes = "return [...document.querySelectorAll('.bar rect')].map((one) => Number(one.getAttribute(arguments[0])))"
    at, wide = page.run(shapes, "x"), page.run(shapes, "width")
    assert at[2] == pytest.approx(994 * (second - first) / (end - first), abs=0.01)
    assert wide[2] == pytest.approx(max(6, 994 * (end - second) / (end - first)), abs=0.01)
    assert RESILIENT in told and "complete" in told
    page.press_button("Download records and proofs")
    receipt = page.downloads / f"{ledger.ids['second attempt']}.receipt.json"
    page.wait(receipt.exists, "the receipt")
    page.open(f"{ledger.url}/#/receipt")
    page.wait_for("Nothing is uploaded")
    page.type("#receipt", str(receipt))
    page.press_button("Check")
    page.wait_for("this exchange in the auditor's index", ".result")
    assert cells(page, ".result .waterfall") == stages
    assert page.complaints() == []


def test_what_rules_said_is_in_its_stage(ledger: Indexed, page: Browser) -> None:
    sign_in(page, ledger.url, "officer", f"#/exchange/{ledger.ids['refused']}")
    page.wait_for("Verified: checkpoints signed by the ledger's key")
    [[name, _, _, _, what, rules]] = cells(page, ".waterfall")
    assert (name, rules) == ("Refused", "denied: codename") and "nothing was sent" in what
    page.open(f"{ledger.url}/#/exchange/{ledger.ids['redacted']}")
    page.wait_for("redacted: staff")
    assert cells(page, ".waterfall")[0][5] == "redacted: staff"


STAGES = """return import('/explorer/stages.js').then((module) => module.stagesOf(arguments[0]).map(
    (stage) => [stage.name, stage.from, stage.to, stage.failed]))"""
ADMISSION = {"kind": "admission", "ts": 100, "provider": "a", "bytes": 5}


@pytest.mark.parametrize(
    ("records", "stages"),
    [
        ([], []),
        ([{"kind": "completion", "ts": 5}], []),
        ([ADMISSION], [["Admitted", 0, 0, False], ["Attempt 1", 0, None, True], ["No end yet", None, None, False]]),
        # The record of an aborted exchange does not contain the time of its end.
        (
            [ADMISSION, {"kind": "aborted", "ts": 900}],
            [["Admitted", 0, 0, False], ["Attempt 1", 0, None, True], ["Aborted", 800, 800, True]],
        ),
        # If the clock was set back, nothing is drawn before the start.
        (
            [ADMISSION, {"kind": "completion", "ts": 50, "outcome": "complete", "status": 200}],
            [["Admitted", 0, 0, False], ["Attempt 1", 0, 0, False], ["Completed", 0, 0, False]],
        ),
    ],
)
def test_stages_are_what_records_tell_and_nothing_is_made_up(
    page: Browser, records: list[dict[str, Any]], stages: list[list[Any]]
) -> None:
    assert page.run(STAGES, records) == stages


def test_records_that_somebody_changed_on_the_way_are_neither_verified_nor_drawn(
    ledger: Indexed, between: StandIn, window: Browser
) -> None:
    between.changes["/v1/exchanges/"] = lambda body: body.replace(b'\\"acme\\"', b'\\"akme\\"')
    sign_in(window, between.url, "officer", f"#/exchange/{ledger.ids['plain']}")
    told = window.wait_for("Not verified")
    assert "no record shows how this exchange began".lower() in told.lower() and "akme" not in told


#: Records the number of rows marked as new in each table, because a mark lasts only until the next query.
COUNT_FRESH = """window.fresh = [];
    new MutationObserver(() => window.fresh.push(document.querySelectorAll('.fresh').length))
        .observe(document.querySelector('main'), { childList: true, subtree: true })"""


def test_what_comes_is_followed_until_it_is_paused_and_recorded_once_a_minute(
    ledger: Indexed, between: StandIn, window: Browser
) -> None:
    between.changes["/explorer/exchanges.js"] = lambda body: body.replace(
        b"const SECONDS = 5;", b"const SECONDS = 0.1;"
    )
    before = len(ledger.reads())
    # No other test has followed this query within the last minute.
    sign_in(window, between.url, "officer", "#/exchanges/tenant=globex")
    window.wait_for("Following")
    window.run(COUNT_FRESH)
    window.run("document.querySelector('table.wide tbody tr:last-child a').focus()")
    focused = window.run("return document.activeElement.getAttribute('href')")
    new = say(ledger.gateway, "hi", "globex")
    window.wait(lambda: new[-6:] in window.text("table.wide tbody tr:first-child"), "the new exchange")
    window.wait_for("1 new exchange at")
    assert window.run("return Math.max(...window.fresh)") == 1
    assert window.run("return document.activeElement.getAttribute('href')") == focused
    # The filters' choices are a separate query.
    reads = [read["asked"] for read in ledger.reads()[before:] if read["asked"].get("of") != "names"]
    assert [asked.get("watch") for asked in reads] == [None, "true"]
    window.press_button("Follow")
    window.wait_for("Paused.")
    assert window.run("return document.querySelector('[aria-pressed]').getAttribute('aria-pressed')") == "false"


def test_what_a_hostile_writer_put_into_records_is_shown_as_text_and_what_is_missing_is_said(
    between: StandIn, window: Browser
) -> None:
    hostile = {name: HOSTILE for name in ("id", "time", "tenant", "model", "verdict", "outcome", "status")}
    row = {
        **hostile,
        "providers": [HOSTILE],
        "rules": [HOSTILE],
        "prompt_tokens": HOSTILE,
        "completion_tokens": HOSTILE,
    }
    row["cost_nanodollars"] = HOSTILE
    of: dict[str, Any] = dict.fromkeys(
        ("exchanges", "refused", "denied", "blocked", "redacted", "open", "prompt_tokens", "completion_tokens"), HOSTILE
    )
    of |= {"tenant": HOSTILE, "cost_nanodollars": HOSTILE, "unpriced": HOSTILE, "shards": [HOSTILE]}
    stuck = {"behind": 7, "code": HOSTILE}
    page = json.dumps({"exchanges": [row], "next": None, "index": stuck}).encode()
    totals = json.dumps({"tenants": [{**of, "days": [{**of, "day": HOSTILE}]}], "index": stuck}).encode()
    quota = dict.fromkeys(("tokens_per_day", "nanodollars_per_month", "requests_per_minute", "concurrency"), HOSTILE)
    spent = {"day": dict.fromkeys(("tokens", "cost_nanodollars", "unpriced", "open"), HOSTILE)}
    lives = {"recorded": {"shard": HOSTILE, "time": HOSTILE}, "ring": {"at": HOSTILE, "shard": HOSTILE}}
    models = [{"model": HOSTILE, "nanodollars_per_day": HOSTILE, "spent": {"day": HOSTILE}}]
    budgets = {
        "tenants": [
            {"tenant": HOSTILE, "limits": quota, "key_limits": quota, "model_budgets": models, "spent": spent, **lives},
        ],
        "left_out": HOSTILE,
        "shards": [HOSTILE],
        "windows": {"day": dict.fromkeys(("since", "until", "whole"), HOSTILE)},
        "configuration": {"digest": HOSTILE, "since": HOSTILE, "others": [HOSTILE], "beside": HOSTILE, "code": ""},
        "index": stuck,
    }
    test = dict.fromkeys(("feature", "distance_ppm", "p_ppb", "differs"), HOSTILE)
    numbers = ("entropy_millibits", "length_millitokens", "refusal_permille", "repetition_permille", "cut_permille")
    window_of: dict[str, Any] = dict.fromkeys(
        (*numbers, "time", "tenant", "model", "exchange", "number", "answers"), HOSTILE
    )
    window_of |= {"findings": [HOSTILE], "tests": [test], "record": {"origin": HOSTILE, "index": HOSTILE}}
    flagged = {name: value for name, value in window_of.items() if name != "tests"}
    analysis = {"windows": [window_of], "answers": [flagged], "more": True, "index": stuck}
    between.changes = {
        "/v1/exchanges": lambda _: page,
        "/v1/tenants": lambda _: totals,
        "/v1/budgets": lambda _: json.dumps(budgets).encode(),
        "/v1/analysis": lambda _: json.dumps(analysis).encode(),
    }
    sign_in(window, between.url, "officer")
    for view in ("#/exchanges", "#/tenants", "#/budgets", "#/analysis"):
        window.open(f"{between.url}/{view}")
        assert HOSTILE in window.wait_for("The index has stopped")
        assert window.run("return document.title").endswith("Proofgate auditor")
        assert window.run("return document.querySelectorAll('main img, main script').length") == 0


def test_tenants_are_told_with_their_totals_and_the_shards_that_recorded_them(ledger: Indexed, page: Browser) -> None:
    sign_in(page, ledger.url, "officer", "#/tenants")
    rows = {row[0]: row for row in cells(page, "table.wide")}
    told = {named(of["tenant"]): of for of in ledger.rows(path="tenants")}
    assert set(rows) == set(told) >= {"acme", "globex"}
    of_acme = [of for of in ledger.rows() if of["tenant"] == "acme"]
    assert [rows["acme"][at] for at in (1, 2, 4, 9)] == [str(len(of_acme)), "1", "1", "0"] and len(of_acme) >= 6
    for tenant, of in told.items():
        assert rows[tenant][7] == f"{of['prompt_tokens']} + {of['completion_tokens']}"
    page.click("table.wide a")
    page.wait(lambda: {row[1] for row in cells(page, "table.wide")} == {"acme"}, "the tenant's exchanges")
    page.open(f"{ledger.url}/#/tenants/since=2001-01-01&until=2001-01-02")
    page.wait_for("No tenant has an exchange in this time range")
    assert page.complaints() == []


def test_tenants_of_an_index_that_keeps_fewer_days_than_a_week_are_told(ledger: Indexed, page: Browser) -> None:
    with closing(sqlite3.connect(ledger.state.parent / "index" / "catalogue.sqlite")) as catalogue:
        [[first]] = catalogue.execute("SELECT min(day) FROM day")
        with catalogue:
            catalogue.execute("INSERT INTO meta VALUES ('pruned_before', ?)", (first,))
        try:
            sign_in(page, ledger.url, "officer", "#/tenants")
            page.wait_for("lists the shards that served")
            assert {"acme", "globex"} <= {row[0] for row in cells(page, "table.wide")}
        finally:
            with catalogue:
                catalogue.execute("DELETE FROM meta WHERE name = 'pruned_before'")
    page.complaints()


def test_budgets_are_told_with_what_is_left_and_the_ring_says_what_its_table_does(
    ledger: Indexed, page: Browser
) -> None:
    # Usage is shown for the current day only.
    not_over_midnight(60)
    for tenant in ("acme", "globex"):
        request_id = say(ledger.gateway, "hi", tenant)
        wait_until(partial(is_indexed, ledger, request_id), PATIENCE, "what was used today is in the index")
    sign_in(page, ledger.url, "officer", "#/budgets")
    page.wait_for("Placement")
    used = {row[0]: row for row in cells(page, "section[aria-labelledby=used] table")}
    told = {of["tenant"]: of for of in ledger.rows(path="budgets", name="tenants")}
    assert set(used) == set(told) == {"acme", "globex"}
    tokens = told["acme"]["spent"]["day"]["tokens"]
    assert tokens > 0 and used["acme"][1] == f"{tokens} of 100,000" and used["acme"][2].endswith("of $25")
    assert used["acme"][3].endswith("of $40") and used["acme"][4:] == ["600 requests per minute", "8 at once"]
    assert used["globex"][4:] == ["", ""]
    [[tenant, model, spent, month]] = cells(page, "section[aria-labelledby=models] table")
    assert (tenant, model, month) == ("acme", MODEL, "") and spent.endswith("of $15")
    for row in cells(page, ".living table"):
        place, of = f"{told[row[1]]['ring']['at'] * 100:.1f} %", row[0]
        assert row[2:4] == [place, "0"] and row[4].startswith("shard 0")
        label = "return [...document.querySelectorAll('.ring .tenant')].map((one) => one.getAttribute('aria-label'))"
        assert f"{of}. {row[1]}, at {place}: shard 0 recorded it last. Show its exchanges." in page.run(label)
    page.run("document.querySelector('.ring .tenant').focus()")
    first = page.text(".living .full")
    page.key(DOWN)
    assert page.text(".living .full") != first
    page.key(DOWN)
    assert page.text(".living .full") == first
    page.key(ENTER)
    page.wait(lambda: {row[1] for row in cells(page, "table.wide")} == {first.split(",")[0]}, "its exchanges")
    assert page.complaints() == []


def test_a_tenants_reader_finds_itself_alone_on_the_ring(ledger: Indexed, page: Browser) -> None:
    sign_in(page, ledger.url, "acme's", "#/budgets")
    page.wait_for("Placement")
    assert [row[1] for row in cells(page, ".living table")] == ["acme"] and "globex" not in page.text()
    assert page.run("return document.querySelectorAll('.ring .tenant').length") == 1


APART = "return import('/explorer/ring.js').then((module) => module.apart(arguments[0]))"


@pytest.mark.parametrize("parts", [[], [0.4], [0.1] * 5, [0.0, 0.001, 0.999], [number / 60 for number in range(60)]])
def test_numbers_on_the_ring_stand_apart_in_the_order_of_their_tenants(page: Browser, parts: list[float]) -> None:
    placed = page.run(APART, parts)
    assert len(placed) == len(parts)
    gaps = [(after - before) % 1 for before, after in zip(placed, placed[1:] + placed[:1], strict=True)]
    assert len(parts) < 2 or (min(gaps) > 0.015 and sum(gaps) == pytest.approx(1))


def test_what_would_fill_an_empty_page_is_said(between: StandIn, window: Browser) -> None:
    nothing = {
        "tenants": [],
        "left_out": 0,
        "shards": [],
        "windows": {"day": {"since": "", "until": "", "whole": True}},
    }
    nothing["configuration"] = {
        "digest": "",
        "since": None,
        "others": [],
        "beside": False,
        "code": "configuration_not_named",
    }
    empty = {"windows": [], "answers": [], "more": False}
    between.changes = {
        "/v1/budgets": lambda _: json.dumps(nothing | {"index": {"behind": 0, "code": ""}}).encode(),
        "/v1/analysis": lambda _: json.dumps(empty | {"index": {"behind": 0, "code": ""}}).encode(),
    }
    sign_in(window, between.url, "officer", "#/budgets")
    assert "writes it as the first record of each log" in window.wait_for("No tenant is known")
    window.open(f"{between.url}/#/analysis")
    window.wait_for("spec.analysis: {}")


def test_the_policy_is_met_by_witnesses_whose_cosignatures_stand_in_the_checkpoint(
    ledger: Indexed, page: Browser
) -> None:
    page.open(f"{ledger.url}/#/witnesses")
    told = page.wait_for("The policy is met for")
    assert "witness.example/ours" in told and "cosigned" in told
    [[name, when]] = cells(page, "main section:last-of-type")
    assert name == "witness.example/ours" and when.endswith("UTC") and when.startswith("20")
    assert page.complaints() == []


def test_every_view_of_a_reader_is_readable_in_both_schemes_and_sizes(ledger: Indexed, page: Browser) -> None:
    sign_in(page, ledger.url, "officer")
    views = {
        "#/exchanges": "Following",
        f"#/exchange/{ledger.ids['second attempt']}": "Verified: checkpoints signed by the ledger's key",
        "#/tenants": "lists the shards that served",
        "#/budgets": "Placement",
        "#/analysis": "spec.analysis: {}",
        "#/witnesses": "On the published checkpoint",
    }
    for view, whole in views.items():
        for width, dark in ((1200, False), (1200, True), (320, False), (320, True)):
            page.see(width, dark=dark)
            page.open(f"{ledger.url}/{view}")
            page.wait_for(whole)
            assert failures(page) == [], (view, width, dark)
    assert page.complaints() == []


def test_the_demonstration_ends_with_a_verified_receipt_and_a_picture_of_the_page(
    ledger: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = ledger.gateway.base_url.removesuffix("/v1")
    shown = fetch_and_verify(url, KEYS["acme"], RESILIENT, ledger.gateway.verifying_key, tmp_path)
    assert shown.lines[-1] == "verified"
    assert "shown: response.json is the recorded response, byte for byte" in shown.lines
    page = ExchangePage(ledger.url, shown.request_id, READERS["officer"])
    wait_until(page.is_indexed, PATIENCE, "it is indexed")
    assert str(tmp_path / "demo" / PICTURE) in page.leave_picture(tmp_path / "demo")
    assert (tmp_path / "demo" / PICTURE).read_bytes().startswith(b"\x89PNG")
    monkeypatch.setenv("PATH", "")
    assert page.leave_picture(tmp_path / "none").startswith("no picture of the auditor's page")
    assert not (tmp_path / "none").exists()
    with pytest.raises(SystemExit, match="401"):
        fetch_and_verify(url, "sk-of-nobody-0123456789", RESILIENT, ledger.gateway.verifying_key, tmp_path)


def test_a_reader_whose_key_is_taken_away_sees_nothing_any_more(ledger: Indexed, page: Browser) -> None:
    sign_in(page, ledger.url, "officer")
    path: Path = ledger.state.parent / "readers"
    content = path.read_text()
    try:
        path.write_text("{}")
        page.open(f"{ledger.url}/#/tenants")
        assert "acme" not in page.wait_for("You were signed out")
    finally:
        path.write_text(content)


def test_signing_in_and_following_need_no_mouse(ledger: Indexed, page: Browser) -> None:
    page.open(f"{ledger.url}/#/exchanges")
    page.wait_for("Your reader key")
    page.type("#reader-key", READERS["officer"])
    page.key(ENTER)
    page.wait_for("Following")
    page.run("document.querySelector('.filters-box .actions button:last-child').focus()")
    page.key(TAB)
    assert page.focused() == "Follow"
    page.key(ENTER)
    page.wait_for("Paused.")
