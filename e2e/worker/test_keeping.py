"""Holds, retention and erasure on a real ledger, and the checks of it by others afterwards."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core, aggregate_log, auditor_port
from proofgate.keeping import arguments

from e2e import go_binaries
from e2e.auditing import AUDITOR, Audit, ask_and_wait, fetch, following
from e2e.commands import proofgate
from e2e.local_gateway import local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.served import look, served
from e2e.worker import killed_retention

RETENTION_KEY_NAME = "proofgate.dev/local/keeping"
EXAMPLE = Path(__file__).parents[2] / "examples" / "verify" / "verify.py"


@dataclass(frozen=True)
class Kept:
    """A ledger of four logs, one from a killed worker, with its auditor and its retention job."""

    audit: Audit

    def run(self, *arguments: str) -> tuple[int, str]:
        done = proofgate(*arguments)
        return done.returncode, done.stdout + done.stderr

    def keep(self, command: str, *more: str) -> tuple[int, dict[str, Any]]:
        folder = self.audit.folder
        where = ["--ledger", str(self.audit.ledger), "--state", str(folder / "holds"), "--ledger-key", self.audit.key]
        code, text = self.run(
            "ledger", command, *where, "--signing-key", str(folder / "retention-key"), "--json", *more
        )
        assert text.startswith("{"), text
        report: dict[str, Any] = json.loads(text)
        return code, report

    def by_plan(
        self, plan: dict[str, Any], kill_after: str = "", more: tuple[str, ...] = ()
    ) -> tuple[int, dict[str, Any]]:
        """Runs a plan with the clock one year ahead; if a step is named, the process is killed after this step."""
        folder = self.audit.folder
        (folder / "plan").write_text(json.dumps(plan))
        (folder / "report").write_text("{}")
        where = ["--ledger", str(self.audit.ledger), "--state", str(folder / "kept"), "--ledger-key", self.audit.key]
        named = ["--signing-key", str(folder / "retention-key"), "--plan", str(folder / "plan")]
        options = [*where, *named, *more, "--report", str(folder / "report")]
        if kill_after:
            command = [sys.executable, "-m", killed_retention.__name__, kill_after, *options]
            code = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).returncode
        else:
            later = killed_retention.in_a_year()
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(arguments, "now", lambda: later)
                code = proofgate("ledger", "retention", *options).returncode
        report: dict[str, Any] = json.loads((folder / "report").read_text())
        return code, report

    def found_today(self) -> set[str]:
        """The findings of an auditor with the current clock, after a plan that ran with the clock one year ahead."""
        return {found["code"] for found in self.audit.look()[1]}

    def hold(self, *arguments: str) -> tuple[int, str]:
        return self.run("ledger", "hold", *arguments, "--state", str(self.audit.folder / "holds"))

    def check(self) -> int:
        code, text = self.run("ledger", "fsck", str(self.audit.ledger), "--key", self.audit.key, *self.audit.keeping)
        assert code in {0, 10, 30, 40}, text
        return code

    def ids(self, log: Path) -> list[str]:
        """The ids of the exchanges that a log has admitted."""
        leaves = self.audit.folder / "leaves"
        code, text = self.run("ledger", "export-leaves", str(log), "--out", str(leaves))
        assert code == 0, text
        data, records = leaves.read_bytes(), []
        while data:
            length = int.from_bytes(data[:4], "big")
            records.append(json.loads(data[4 : 4 + length]))
            data = data[4 + length :]
        return [record["id"] for record in records if record["kind"] == "admission"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("keeping")
    with local_gateway(folder, settings={"ledger": {"segmentBytes": 1 << 20}}) as gateway:
        assert gateway.worker is not None
        for end in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            ask_and_wait(gateway, 3)
            gateway.worker.stop(end)
            gateway.start_worker()
        ask_and_wait(gateway, 3)
        assert gateway.worker.stop() == 0
        key = gateway.verifying_key
    home = folder / "audit"
    home.mkdir()
    shutil.copytree(folder / "ledger", home / "ledger")
    (home / "auditor-key").write_text(_core.generate_key(AUDITOR)[0])
    signing, verifying = _core.generate_key(RETENTION_KEY_NAME)
    (home / "retention-key").write_text(signing)
    (home / "keeping-key").write_text(verifying)
    kept = Kept(Audit(home, key))
    assert kept.hold("begin", "--ledger-key", key, "--signing-key", str(home / "retention-key"))[0] == 0
    assert kept.audit.look("--new-aggregate") == (0, [])
    return kept


@pytest.fixture
def kept(original: Kept, tmp_path: Path) -> Kept:
    return Kept(original.audit.copy(tmp_path / "audit"))


def test_a_ledger_that_was_shortened_by_right_verifies_for_everybody(kept: Kept, tmp_path: Path) -> None:
    audit = kept.audit
    oldest = audit.logs()[0]
    gone = kept.ids(oldest)
    assert kept.hold("add", "--id", gone[0], "--reason", "a case")[0] == 0
    plan = kept.keep("prune", "--older-than", "0d", "--yes")[1]
    assert [log["action"] for log in plan["logs"]] == ["stay", "remove", "stay", "stay"]
    assert [reason["code"] for reason in plan["logs"][0]["reasons"]] == ["held"]
    assert kept.hold("release", "1", "--reason", "closed")[0] == 0
    assert kept.keep("prune", "--older-than", "180d")[1]["remove"] == 0, "it is too young"
    assert kept.keep("prune", "--older-than", "0d", "--yes")[1]["remove"] == 1
    assert not list(oldest.glob("*.seg"))
    assert kept.check() == 0
    code, text = kept.run("ledger", "prove", gone[0], "--ledger", str(audit.ledger), "--out", str(tmp_path))
    assert code == 2 and "[log_removed]" in text
    index = [
        "audit",
        "index",
        "--ledger",
        str(audit.ledger),
        "--ledger-key",
        audit.key,
        "--index",
        str(tmp_path / "index"),
    ]
    code, text = kept.run(*index)
    assert code == 40 and "without the retention key its tombstone cannot be verified" in text
    _, other = _core.generate_key("proofgate.dev/local/other-retention")
    code, text = kept.run(*index, "--keeping-key", other)
    assert code == 40 and "its tombstone is refused" in text
    assert kept.run(*index, "--keeping-key", str(audit.folder / "keeping-key"))[0] == 0
    code, text = kept.run("audit", "exchanges", "--index", str(tmp_path / "index"), "--json")
    assert len(json.loads(text)["exchanges"]) == 6, "those of the two logs that stay"
    # A verifier without any earlier state checks the remaining proofs.
    for record in oldest.glob("*.record"):
        proof = record.with_suffix(".tlog-proof")
        command = [sys.executable, str(EXAMPLE), str(proof), "--record", str(record), "--key", audit.key]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
    apart = audit.copy(tmp_path / "apart")
    with served(apart.ledger) as url:
        assert look(apart, url) == [], "whoever reads it from a worker sees the removal as well"
    assert audit.look() == (0, [])
    with following(audit) as (program, url):
        public = _core.verifying_key((audit.folder / "auditor-key").read_text())
        command = [str(go_binaries.verifier()), "tiles", "--vkey", public, "--ledger-vkey", audit.key, url]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert checked.returncode == 0, checked.stderr
        wait_until(lambda: metric(url, "removed_logs") == "2", PATIENCE, "it counts what was removed")
        assert program.stop() == 0


def metric(url: str, name: str) -> str:
    lines = fetch(f"{url}/metrics").splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"proofgate_auditor_{name} "))


def test_an_exchange_that_was_erased_has_a_proof_and_no_salt(kept: Kept, tmp_path: Path) -> None:
    audit = kept.audit
    first, second, *_ = kept.ids(audit.logs()[0])
    young = kept.keep("erase", "--id", first, "--minimum", "180d", "--reason", "asked for", "--yes")
    assert young[0] == 1 and [reason["code"] for reason in young[1]["logs"][0]["reasons"]] == ["young"]
    salts = (audit.logs()[0] / "salts").read_bytes()
    done = kept.keep("erase", "--id", first, "--override-minimum", "--reason", "asked for", "--yes")
    assert (done[0], done[1]["exchanges"]) == (0, 1)
    after = (audit.logs()[0] / "salts").read_bytes()
    [at] = [at for at in range(0, len(salts), 32) if salts[at : at + 32] != after[at : at + 32]]
    assert after[at : at + 32] == bytes(32)
    everything = b"".join(path.read_bytes() for path in audit.ledger.rglob("*") if path.is_file())
    assert salts[at : at + 32] not in everything
    for name, has_salt in ((first, False), (second, True)):
        out = tmp_path / name
        assert (
            kept.run("ledger", "prove", name, "--ledger", str(audit.ledger), "--key", audit.key, "--out", str(out))[0]
            == 0
        )
        for proof in out.glob("*.tlog-proof"):
            assert ("\nextra " in proof.read_text()) is has_salt
            record = proof.with_suffix(".json")
            code, text = kept.run("verify", str(proof), "--record", str(record), "--key", audit.key)
            assert code == 0 and "verified" in text
    assert kept.check() == 0
    assert audit.look() == (0, [])


def test_what_waits_for_the_auditors_log_goes_once_that_has_it(kept: Kept) -> None:
    audit = kept.audit
    first = kept.ids(audit.logs()[0])[0]
    public = _core.verifying_key((audit.folder / "auditor-key").read_text())
    erase = (
        "erase",
        "--id",
        first,
        "--override-minimum",
        "--reason",
        "asked for",
        "--ticket",
        "R-7",
        "--yes",
    )
    waits = (*erase, "--auditor-state", str(audit.state), "--auditor-key", public)
    salts = (audit.logs()[0] / "salts").read_bytes()
    for _ in range(2):
        code, report = kept.keep(*waits)
        assert (code, [reason["code"] for reason in report["logs"][0]["reasons"]]) == (1, ["not_anchored"])
        assert (audit.logs()[0] / "salts").read_bytes() == salts
    note = (audit.logs()[0] / "erasures").read_text()
    assert (
        note.count("proofgate.dev/erasure@v2\n") == 1
        and "\nauthor end-to-end tests\nreason asked for\nticket R-7\n" in note
    )
    assert audit.look() == (0, [])
    assert hashlib.sha256(note.encode()).hexdigest() in aggregate_log.read_statements(audit.state, public)
    assert kept.keep(*waits)[0] == 0
    assert (audit.logs()[0] / "salts").read_bytes() != salts
    assert kept.check() == 0 and audit.look() == (0, [])


def auditors(kept: Kept, url: str, patience: float) -> tuple[str, ...]:
    """The options of a plan that waits for the auditor at a URL."""
    public = _core.verifying_key((kept.audit.folder / "auditor-key").read_text())
    return ("--auditor", url, "--auditor-key", public, "--auditor-patience", f"{patience:.0f}")


def test_a_plan_waits_for_an_auditor_that_is_away_and_goes_on_once_it_is_back(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = kept.audit
    hold = CASE | {"name": "other", "tenant": "globex"}
    plan = {"begin": True, "retention": RETENTION, "holds": [hold]}
    before = {path: path.read_bytes() for path in audit.ledger.glob("0/*/*") if path.is_file()}
    with following(audit) as (program, url):
        assert program.stop() == 0
    code, report = kept.by_plan(plan, more=auditors(kept, url, 0))
    assert (code, report["result"], report["anchor"], report["holds"]) == (1, "auditor_unreachable", "auditor", 1)
    assert {path: path.read_bytes() for path in audit.ledger.glob("0/*/*") if path.is_file()} == before
    # A stopped process does not answer either.
    plan = {"known": 1, "retention": RETENTION, "holds": [hold]}
    with following(audit) as (program, url):
        program.process.send_signal(signal.SIGSTOP)
        with monkeypatch.context() as patched:
            patched.setattr(auditor_port, "_RESPONSE_TIMEOUT_SECONDS", 0.2)
            stopped = kept.by_plan(plan, more=auditors(kept, url, 0))
        assert (stopped[0], stopped[1]["result"]) == (1, "auditor_unreachable")
        program.process.send_signal(signal.SIGCONT)
        code, report = kept.by_plan(plan, more=auditors(kept, url, PATIENCE))
        assert (code, report["result"], report["removedNow"], report["erasedNow"]) == (0, "ok", 2, 6), report
        assert "not_anchored" not in report["staying"]
        reads = json.loads((audit.folder / "kept" / "auditor-log").read_text())["size"]
        again = kept.by_plan(plan, more=auditors(kept, url, PATIENCE))[1]
        assert (again["result"], again["removedNow"], again["erasedNow"]) == ("ok", 0, 0)
        assert json.loads((audit.folder / "kept" / "auditor-log").read_text())["size"] >= reads > 0
        assert program.stop() == 0
    public = _core.verifying_key((audit.folder / "auditor-key").read_text())
    told = aggregate_log.read_statements(audit.state, public)
    for note in audit.ledger.glob("0/*/tombstone"):
        assert hashlib.sha256(note.read_bytes()).hexdigest() in told
        assert "(no anchor)" not in note.read_text()
    assert kept.check() == 0
    assert kept.found_today() == {"statement_postdated"}


def test_what_is_destroyed_without_an_auditor_says_that_it_has_no_anchor(kept: Kept) -> None:
    code, report = kept.by_plan({"begin": True, "retention": RETENTION})
    assert (code, report["anchor"], report["removed"]) == (0, "none", 2)
    notes = [note.read_text() for note in kept.audit.ledger.glob("0/*/tombstone")]
    assert [("reason the retention of 180 days (no anchor)\n" in note) for note in notes] == [True, True]


def test_no_clock_dates_an_erasure_before_its_exchange(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept.ids(kept.audit.logs()[0])[0]
    erase = ("erase", "--id", first, "--override-minimum", "--reason", "long ago", "--yes")
    sixty_days_ago = time.time_ns() // 1000 - 60 * 86_400_000_000
    with monkeypatch.context() as patched:
        patched.setattr(arguments, "now", lambda: sixty_days_ago)
        code, report = kept.keep(*erase)
    assert (code, [reason["code"] for reason in report["logs"][0]["reasons"]]) == (1, ["future"])
    assert not (kept.audit.logs()[0] / "erasures").exists()


RETENTION = {"maximumDays": 180, "tenants": [{"name": "acme", "maximumDays": 90}]}
CASE: dict[str, Any] = {"name": "case", "tenant": "acme", "reason": "litigation", "reference": "2026-17"}


def zeros(log: Path) -> int:
    """The number of erased salts in a log."""
    salts = (log / "salts").read_bytes()
    return sum(salts[at : at + 32] == bytes(32) for at in range(0, len(salts), 32))


def test_a_plans_hold_keeps_logs_and_salts_until_the_plan_releases_it(kept: Kept) -> None:
    logs = kept.audit.logs()
    before = [zeros(log) for log in logs]
    plan = {"begin": True, "retention": RETENTION, "holds": [CASE]}
    code, report = kept.by_plan(plan)
    assert (code, report["removed"], report["erased"], report["holds"]) == (0, 0, 0, 1), report
    assert report["staying"]["held"] >= 4
    # Removing the hold from the plan, or losing the state, releases nothing.
    plan = {"known": report["known"], "retention": RETENTION}
    code, report = kept.by_plan(plan)
    assert (code, report["removed"], report["erased"], report["outside"]) == (0, 0, 0, ["case"])
    code, report = kept.by_plan(plan | {"holds": [CASE | {"tenant": "globex"}]})
    assert (code, report["result"], report["changed"]) == (1, "hold_changed", ["case"])
    assert [zeros(log) for log in logs] == before
    assert all(list(log.glob("*.seg")) for log in logs)
    code, report = kept.by_plan(plan | {"holds": [CASE | {"released": "settled"}]})
    assert (code, report["removed"], report["erasedNow"], report["holds"]) == (0, 2, 6, 0), report
    assert kept.check() == 0
    assert kept.found_today() == {"statement_postdated"}
    notes = [(log / "erasures").read_bytes() for log in logs[2:]]
    code, report = kept.by_plan(plan)
    assert (code, report["removedNow"], report["erased"], report["erasedNow"]) == (0, 0, 6, 0)
    assert [(log / "erasures").read_bytes() for log in logs[2:]] == notes, "it is signed once"


def test_a_state_that_is_lost_stops_everything_also_where_the_plan_begins(kept: Kept) -> None:
    code, report = kept.by_plan({"begin": True, "retention": RETENTION})
    assert (code, report["removed"]) == (0, 2)
    shutil.rmtree(kept.audit.folder / "kept")
    files = {path: path.read_bytes() for path in kept.audit.ledger.rglob("*") if path.is_file()}
    for plan in ({"known": 0}, {"begin": True}):
        code, report = kept.by_plan(plan | {"retention": {"maximumDays": 0}})
        assert (code, report["result"]) == (1, "keeping_state_missing")
    assert {path: path.read_bytes() for path in kept.audit.ledger.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("step", sorted(killed_retention.STEPS))
def test_killed_after_any_step_the_next_run_finishes(kept: Kept, step: str) -> None:
    released = {"name": "case", "all": True, "reason": "litigation"}
    other = CASE | {"name": "other", "tenant": "globex"}
    plan: dict[str, Any] = {"begin": True, "retention": RETENTION, "holds": [released, other]}
    assert kept.by_plan(plan | {"retention": {}})[0] == 0
    plan = plan | {"holds": [released | {"released": "settled"}, *plan["holds"][1:]]}
    assert kept.by_plan(plan, kill_after=step) == (9, {})
    code, report = kept.by_plan(plan)
    assert (code, report["removed"], report["erased"], report["holds"]) == (0, 2, 6, 1), report
    assert kept.check() == 0
    assert kept.found_today() == {"statement_postdated"}
