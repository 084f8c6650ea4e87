"""The auditor's page in a real browser with a real auditor: the evidence that it verifies or refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core

from e2e.auditing import AUDITOR, ask_and_wait, fetch
from e2e.browser import DOWN, ENTER, TAB, UP, Browser, browser
from e2e.explored import Explored, StandIn, explored, standing_in
from e2e.programs import PATIENCE, wait_until
from e2e.reading import failures

#: Each view, and a text that it contains when it is complete.
VIEWS = {
    "": "Witnesses",
    "#/findings": "There are no findings",
    "#/tree": "Verified: entry",
    "#/receipt": "Nothing is uploaded",
    "#/exchanges": "Your reader key",
    "#/witnesses": "No witness is configured",
    "#/keys": "proves nothing by itself",
}
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    with explored(tmp_path_factory.mktemp("explored")) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser") / "window") as window:
        yield window


@pytest.fixture
def page(ledger: Explored, window: Browser) -> Browser:
    """The browser at the auditor's own page, without stored data."""
    window.see(1200)
    window.open(f"{ledger.url}/")
    window.run("localStorage.clear()")
    window.complaints()
    return window


@pytest.fixture
def between(ledger: Explored) -> Iterator[StandIn]:
    with standing_in(ledger.url) as between:
        yield between


def with_another_end(number: int) -> Any:
    """Returns a function that changes the last byte of an entry in a bundle."""

    def changed(body: bytes) -> bytes:
        at = 0
        for _ in range(number + 1):
            at += 2 + int.from_bytes(body[at : at + 2])
        return body[: at - 1] + bytes([body[at - 1] ^ 1]) + body[at:]

    return changed


def json_with(change: Any) -> Any:
    """Returns a function that applies a change to a JSON answer."""

    def changed(body: bytes) -> bytes:
        document = json.loads(body)
        change(document)
        return json.dumps(document).encode()

    return changed


def test_every_view_is_readable_in_both_schemes_and_sizes_without_a_complaint(ledger: Explored, page: Browser) -> None:
    for view, whole in VIEWS.items():
        for width, dark in ((1200, False), (1200, True), (320, False), (320, True)):
            page.see(width, dark=dark)
            page.open(f"{ledger.url}/{view}")
            page.wait_for(whole)
            assert failures(page) == [], (view, width, dark)
    assert page.complaints() == []


def test_the_overview_tells_the_verdict_the_shards_and_their_logs_in_order(ledger: Explored, page: Browser) -> None:
    page.open(f"{ledger.url}/")
    told = page.wait_for("No witness is configured")
    assert "Nothing found" in told and "Shard 0" in told and "Shard 1" in told
    shards = page.run(
        """return [...document.querySelectorAll('.shard')].map((shard) =>
            [...shard.querySelectorAll('.chain > li')].map((log) => log.innerText.replaceAll(/\\s+/g, ' ')))"""
    )
    assert [len(logs) for logs in shards] == [3, 2]
    assert all("end" in log and "ended" in log for log in [*shards[0], shards[1][1]])
    assert "active" in shards[1][0] and "open" in shards[1][0]


def test_the_overview_tells_a_log_that_was_removed_by_right(page: Browser) -> None:
    log = f"proofgate.dev/local/demo/0/{'0' * 26}"
    kinds = enumerate(("open", "head", "end", "removed"))
    entries = [{"index": index, "kind": kind, "origin": log, "size": 7, "time": 1} for index, kind in kinds]
    script = """return import('/explorer/chains.js').then((module) => {
        const found = module.chains([], arguments[0]);
        return [found.querySelector('.stages').textContent, found.querySelector('.state').textContent];
    })"""
    assert page.run(script, entries) == ["open 7head 7end 7removed 7", "removed after its retention"]
    assert page.run(script, entries[:2]) == ["open 7head 7", "active"]


def test_an_auditor_that_has_not_looked_or_found_something_says_so_first(between: StandIn, window: Browser) -> None:
    finding = {
        "code": "fork",
        "origin": "a/0/X",
        "shard": "0",
        "since": 1,
        "message": "two logs",
        "verdict": "diverged",
    }
    between.changes["/status"] = json_with(lambda told: told.update(last_poll=0, checkpoint=""))
    between.changes["/heads"] = json_with(lambda told: told.update(shards=[]))
    window.open(f"{between.url}/")
    assert "No shard has a signed log yet" in window.wait_for("The first check has not finished")
    between.changes = {"/findings": json_with(lambda told: told["findings"].append(finding))}
    window.open(f"{between.url}/")
    told = window.wait_for("The ledger is diverged")
    assert told.index("two logs") < told.index("Shards")
    between.changes = {"/status": json_with(lambda told: told.update(poll_age_seconds=120.0))}
    window.open(f"{between.url}/")
    assert "2 minutes ago" in window.wait_for("The auditor has stopped checking")


def test_an_entry_is_verified_in_the_browser_and_its_bundle_by_the_command_lines_verifier(
    ledger: Explored, page: Browser
) -> None:
    page.open(f"{ledger.url}/#/tree/2")
    told = page.wait_for("Verified: entry 2 is in the tree")
    assert "does not contradict itself" in told
    drawn = page.run("return [...document.querySelectorAll('.path .box')].map((box) => box.getAttribute('aria-label'))")
    path = _core_path(ledger, 2)
    assert [label.split(": ")[1].removesuffix(". Copy it.") for label in drawn[1::2]] == path
    page.press_button("Download the entry")
    page.press_button("Download its proof")
    entry, proof = page.downloads / "entry-2.json", page.downloads / "entry-2.tlog-proof"
    page.wait(lambda: entry.exists() and proof.exists(), "the bundle")
    assert json.loads(_core.verify_proof(entry.read_bytes(), proof.read_text(), ledger.aggregate_key))["index"] == 2
    page.open(f"{ledger.url}/#/keys")
    page.wait_for("proves nothing by itself")
    page.type("#key-aggregate", ledger.aggregate_key)
    page.press_button("Use this key")
    page.wait_for("You entered this key, and this server offers the same")
    page.open(f"{ledger.url}/#/tree/2")
    assert "Verified with the key that you entered." in page.wait_for("Verified: entry 2 is in the tree")
    assert page.complaints() == []


def _core_path(ledger: Explored, index: int) -> list[str]:
    """The sibling hashes in the auditor's proof for the newest checkpoint."""
    return fetch(f"{ledger.url}/proof?index={index}").split("\n\n")[0].split("\n")[2:]


@pytest.mark.parametrize(
    ("path", "change", "told"),
    [
        ("/tile/entries/", with_another_end(2), "another root"),
        ("/proof", lambda body: body.replace(b"index 2", b"index 3"), "another root"),
        ("/proof", lambda body: body.replace(b"\n\xe2\x80\x94 ", b"\n\xe2\x80\x94 x"), "is not signed by"),
        ("/tile/entries/", lambda body: body[:-1], "is truncated"),
        ("/proof", lambda body: b"nothing", "no blank line"),
        ("/explorer/verifier.wasm", lambda body: body[:100], "could not be loaded"),
    ],
)
def test_an_entry_that_somebody_has_changed_on_the_way_is_not_verified(
    between: StandIn, window: Browser, path: str, change: Any, told: str
) -> None:
    between.changes[path] = change
    window.open(f"{between.url}/#/tree/2")
    shown = window.wait_for(told)
    assert "Verified: entry" not in shown


def test_an_entry_is_not_verified_under_another_key_and_a_key_that_is_exchanged_later_is_told(
    between: StandIn, window: Browser
) -> None:
    _, other = _core.generate_key(AUDITOR)
    window.open(f"{between.url}/#/keys")
    window.wait_for("proves nothing by itself")
    window.type("#key-aggregate", other)
    window.press_button("Use this key")
    window.wait_for("You entered this key; this server offers another")
    window.open(f"{between.url}/#/tree/2")
    window.wait_for("Not verified: entry 2")
    window.open(f"{between.url}/#/keys")
    window.wait_for("You entered this key")
    window.press_button("Use what the server offers")
    # Both rows show this text then; the ledger's key shows it before.
    window.wait(lambda: window.text().count("This server offers this key") == 2, "the key that the server offers")
    between.changes["/explorer/keys"] = json_with(lambda keys: keys.update(aggregate=other))
    window.open(f"{between.url}/#/keys")
    window.wait_for("offers another key than on your first visit")
    window.open(f"{between.url}/#/tree/2")
    assert "offers another key than the one that is used here" in window.wait_for("Verified: entry 2")


def test_a_browser_that_comes_back_sees_that_the_log_went_on_from_what_it_keeps(
    ledger: Explored, between: StandIn, window: Browser
) -> None:
    window.open(f"{between.url}/#/tree")
    window.wait_for("It is the first checkpoint that this browser stores")
    before = fetch(f"{ledger.url}/checkpoint")
    size = int(before.split("\n")[1])
    ask_and_wait(ledger.gateway, 1)
    wait_until(lambda: ledger.size > size, PATIENCE, "the log has grown")
    window.open(f"{between.url}/#/tree")
    window.wait_for("It is consistent with the checkpoint of")
    window.run("document.querySelector('#older').value = arguments[0]", before)
    window.press_button("Compare", "section[aria-labelledby=compare] > ")
    window.wait_for(f"Consistent: {size} entries")
    window.run("document.querySelector('#older').value = 'no note'")
    window.press_button("Compare", "section[aria-labelledby=compare] > ")
    window.wait_for("Consistency is not shown")
    assert window.text("#alarms") == ""


def test_a_browser_that_comes_back_to_another_history_says_so_loudly_on_every_view_and_keeps_the_evidence(
    ledger: Explored, between: StandIn, window: Browser
) -> None:
    window.open(f"{between.url}/#/tree")
    window.wait_for("It is the first checkpoint that this browser stores")
    kept = json.loads(
        window.run("return localStorage.getItem(Object.keys(localStorage).find((one) => /points/.test(one)))")
    )
    forged = ledger.signed_by_the_auditor(int(kept[0]["size"]), bytes(32))
    between.changes["/checkpoint"] = lambda _: forged.encode()
    window.open(f"{between.url}/#/tree")
    window.wait_for("contradicts a checkpoint that this browser stored", "#alarms")
    between.changes.clear()
    window.open(f"{between.url}/#/receipt")
    assert "Anyone with the key can verify" in window.wait_for("equivocation", "#alarms")
    window.press_button("Download both checkpoints", "#alarms")
    evidence = window.downloads / "contradiction.checkpoints"
    window.wait(evidence.exists, "the evidence")
    older, newer = evidence.read_text().split(f"\n\n{AUDITOR}\n")
    notes = [f"{older}\n", f"{AUDITOR}\n{newer}"]
    told = [json.loads(_core.verify_checkpoint(note, ledger.aggregate_key)) for note in notes]
    assert told[0]["size"] == told[1]["size"] and told[0]["root"] != told[1]["root"]
    assert failures(window) == []
    # A log that is shorter than before is also reported.
    window.press_button("Dismiss", "#alarms")
    between.changes["/checkpoint"] = lambda _: ledger.signed_by_the_auditor(3, bytes(32)).encode()
    window.open(f"{between.url}/#/tree")
    window.wait_for("set_back", "#alarms")


def test_a_receipt_is_checked_with_its_bodies_and_nothing_of_it_is_sent(
    ledger: Explored, page: Browser, tmp_path: Path
) -> None:
    files = {"receipt": ledger.receipt, "request": ledger.request, "response": ledger.response}
    page.open(f"{ledger.url}/#/receipt")
    page.wait_for("Nothing is uploaded")
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        page.type(f"#{name}", str(tmp_path / name))
    loaded = "return performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)"
    page.run("performance.clearResourceTimings()")
    page.press_button("Check")
    told = page.wait_for("Not shown: that the provider sent this response", ".result")
    assert told.startswith("Verified\n") and "does not hold" not in told
    assert "the file matches the recorded request byte for byte" in told
    assert set(page.run(loaded)) <= {"/explorer/verifier.wasm", "/explorer/verifier-worker.js", "/explorer/wasm.js"}
    (tmp_path / "other").write_bytes(ledger.response + b" ")
    page.type("#response", str(tmp_path / "other"))
    page.press_button("Check")
    page.wait_for("Not verified", ".result")
    assert "the file matches the recorded response byte for byte: the commitment" in page.text(".result")
    assert page.complaints() == []


#: Changes of a receipt, whose records are JSON texts inside JSON.
CHANGES = [(b'\\"acme\\"', b'\\"akme\\"'), (b'"complete"', b'"incomplete"'), (b"{", b"")]


def test_a_receipt_of_which_a_byte_is_changed_or_that_is_none_is_not_verified(
    ledger: Explored, page: Browser, tmp_path: Path
) -> None:
    page.open(f"{ledger.url}/#/receipt")
    page.wait_for("Nothing is uploaded")
    page.press_button("Check")
    page.wait_for("Choose a receipt first")
    for number, (old, new) in enumerate(CHANGES):
        file = tmp_path / str(number)
        file.write_bytes(ledger.receipt.replace(old, new, 1))
        assert file.read_bytes() != ledger.receipt
        page.type("#receipt", str(file))
        page.press_button("Check")
        page.wait(lambda: page.text(".result").startswith("Not verified"), "the refusal")
        page.run("document.querySelector('.result').replaceChildren()")
    assert page.complaints() == []


def test_an_auditor_that_answers_no_readers_says_what_would_make_it(ledger: Explored, page: Browser) -> None:
    page.open(f"{ledger.url}/#/tenants")
    page.wait_for("Your reader key")
    page.type("#reader-key", "a-reader-key")
    page.key(ENTER)
    assert "spec.auditor.index with readersSecretRef" in page.wait_for("serves no readers")


def test_the_page_is_used_by_keyboard_alone(ledger: Explored, page: Browser) -> None:
    page.open(f"{ledger.url}/")
    page.wait_for("No witness is configured")
    seen = []
    for _ in range(11):
        page.key(TAB)
        seen.append(page.focused())
    views = [
        "Overview",
        "Findings",
        "Tree",
        "Receipt",
        "Exchanges",
        "Tenants",
        "Budgets",
        "Analysis",
        "Witnesses",
        "Keys",
    ]
    assert seen == ["Skip to the content", *views]
    page.open(f"{ledger.url}/#/findings")
    page.wait_for("There are no findings")
    for _ in range(4):
        page.key(TAB)
    page.key(ENTER)
    page.wait_for("Verified: entry")
    assert page.focused() == "The tree", "a reader of the screen is told where it is"
    page.run("document.querySelector('.path .box[tabindex=\"0\"]').focus()")
    leaf = page.focused()
    assert leaf.startswith("Leaf ")
    page.key(UP)
    assert page.focused().startswith("Sibling on the ")
    page.key(UP)
    page.key(DOWN)
    page.key(DOWN)
    assert page.focused() == leaf
    # The whole path is one tab stop, and the next stop is after it.
    page.key(TAB)
    assert page.focused() == "The path as a table"


def test_what_a_hostile_writer_put_into_names_is_shown_as_text(
    ledger: Explored, between: StandIn, window: Browser
) -> None:
    hostile = f"proofgate.dev/{HOSTILE}"
    finding = {"code": HOSTILE, "origin": hostile, "shard": HOSTILE, "since": 1, "message": HOSTILE, "verdict": HOSTILE}
    between.changes = {
        "/findings": json_with(lambda told: told["findings"].append(finding)),
        "/heads": json_with(lambda told: told["shards"][0].update(origin=hostile, shard=HOSTILE)),
        "/witnesses": json_with(
            lambda told: told["witnesses"].append({"name": HOSTILE, "last": HOSTILE, "asked": True, "size": HOSTILE})
        ),
        "/tile/entries/": lambda body: body.replace(b'"kind":"open"', b'"kind":"<i>x"'),
        "/proof": lambda body: body.replace(AUDITOR.encode(), HOSTILE.encode()),
    }
    for view in ("", "#/findings", "#/tree/0"):
        window.open(f"{between.url}/{view}")
        window.wait_for("<i>x" if view == "#/tree/0" else HOSTILE)
        assert window.run("return document.title").endswith("Proofgate auditor")
        assert window.run("return document.querySelectorAll('main img, main script, main i').length") == 0
