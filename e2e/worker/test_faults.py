"""Every fault of a log's file: every tool reports it, completes the rest, and ends.

The faults are those of `e2e.faults`. A tool that needs the file names its log and does not exit with 0; a tool that
does not need the file reports nothing.
"""

from __future__ import annotations

import base64
import errno
import json
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core

from e2e.auditing import AUDITOR, Audit, ask_and_wait
from e2e.commands import proofgate
from e2e.evidence import exchanges_by_their_ends
from e2e.faults import FAULTS, Commands, Outcome, commands
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.shim import Calls, Shim
from e2e.worker.raw_http import chat_request, error_of, send, status_of
from e2e.worker.test_keeping import RETENTION_KEY_NAME

#: A log's files: records, checkpoint, tree, salts, and bodies.
SEGMENT = "00000000000000000000.seg"
FILES = (SEGMENT, "checkpoint", "tree", "salts", "payloads", "payload-index")
LOGS, EACH = 4, 3


@dataclass(frozen=True)
class Home:
    """A ledger of four logs, and the other files that the tools need."""

    folder: Path
    key: str

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    def logs(self) -> list[Path]:
        return Audit(self.folder, self.key).logs()

    def ids(self, log: Path) -> list[str]:
        """The ids of a log's exchanges."""
        by_log: dict[str, list[str]] = json.loads((self.folder / "ids").read_text())
        return by_log[log.name]

    @property
    def keeping(self) -> list[object]:
        where: list[object] = ["--ledger", self.ledger, "--state", self.folder / "holds", "--ledger-key", self.key]
        return [*where, "--signing-key", self.folder / "retention-key"]


def _rule(word: str) -> dict[str, Any]:
    return {"id": word, "reason": "A project.", "literals": [word], "action": "Flag"}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("faults")
    shred_keys = folder / "shred-keys"
    shred_keys.mkdir()
    for tenant in KEYS:
        (shred_keys / tenant).write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
    stored = {"payloads": {"mode": "Stored"}, "shredKeysDirectory": str(shred_keys), "segmentBytes": 1 << 20}
    with local_gateway(folder, settings={"ledger": stored, "policy": {"rules": [_rule("bluebird")]}}) as gateway:
        assert gateway.worker is not None
        for life in range(LOGS):
            if life:
                gateway.start_worker()
            ask_and_wait(gateway, EACH)
            assert gateway.worker.stop(signal.SIGTERM) == 0
        key = gateway.verifying_key
    home = Home(folder / "home", key)
    home.folder.mkdir()
    shutil.copytree(folder / "ledger", home.ledger)
    shutil.copytree(shred_keys, home.folder / "shred-keys")
    (home.folder / "auditor-key").write_text(_core.generate_key(AUDITOR)[0])
    signing, verifying = _core.generate_key(RETENTION_KEY_NAME)
    (home.folder / "retention-key").write_text(signing)
    (home.folder / "keeping-key").write_text(verifying)
    for made in (
        (
            "audit",
            "index",
            "--ledger",
            home.ledger,
            "--ledger-key",
            key,
            "--index",
            home.folder / "index",
            "--same-volume",
        ),
        ("ledger", "hold", "begin", "--state", home.folder / "holds", *home.keeping[4:]),
        (*Audit(home.folder, key).arguments, "--once", "--new-aggregate"),
    ):
        done = proofgate(*made)
        assert done.returncode == 0, done.stderr
    rows = json.loads(proofgate("audit", "exchanges", "--index", home.folder / "index", "--json").stdout)["exchanges"]
    by_log: dict[str, list[str]] = {}
    for row in rows:
        by_log.setdefault(row["records"][0]["origin"].split("/")[-1], []).append(row["id"])
    (home.folder / "ids").write_text(json.dumps(by_log))
    assert [len(ids) for ids in by_log.values()] == [EACH] * LOGS
    return home


@dataclass(frozen=True)
class Tool:
    """A tool, the files of a log that it needs, and a check that it completed the rest."""

    run: Callable[[Callable[..., Outcome], Home, Path], Outcome]
    needs: frozenset[str]
    did_the_rest: Callable[[Outcome, Home, Path], bool]
    may_need: frozenset[str] = frozenset()
    """Files that it needs for some kinds of faults only."""


def _fsck(run: Callable[..., Outcome], home: Home, _: Path) -> Outcome:
    return run("ledger", "fsck", home.ledger, "--key", home.key, "--shred-keys", home.folder / "shred-keys", "--json")


def _others_are_checked(done: Outcome, _: Home, spoiled: Path) -> bool:
    logs = json.loads(done.out)["incarnations"]
    others = [log for log in logs if log["incarnation"] != spoiled.name]
    worst = {found["verdict"] for log in others for found in log["findings"]}
    return [log["records"] for log in others] == [2 + 2 * EACH] * (LOGS - 1) and not worst & {"invalid", "diverged"}


def _prove(run: Callable[..., Outcome], home: Home, spoiled: Path) -> Outcome:
    what = ["--ledger", home.ledger, "--key", home.key, "--shred-keys", home.folder / "shred-keys"]
    for number, log in enumerate(log for log in home.logs() if log.name != spoiled.name):
        for more in ([], ["--scan"]):
            out = home.folder / f"proofs-{number}-{len(more)}"
            other = run("ledger", "prove", home.ids(log)[0], *what, "--out", out, *more)
            assert other.code == 0, other.text
    return run("ledger", "prove", home.ids(spoiled)[0], *what, "--out", home.folder / "proofs")


def _what_can_be_is_proven(done: Outcome, home: Home, spoiled: Path) -> bool:
    proofs = list((home.folder / "proofs").glob("*.tlog-proof"))
    keys = ["--key", home.key]
    checked = [proofgate("verify", proof, "--record", proof.with_suffix(".json"), *keys) for proof in proofs]
    whole = len(proofs) == 2 and all(check.returncode == 0 for check in checked)
    # If only a salt cannot be read, everything else can be proved.
    return whole if "its salt cannot be read" in done.text else not proofs


def _export(run: Callable[..., Outcome], home: Home, _: Path) -> Outcome:
    paths = ["--index", home.folder / "index", "--ledger", home.ledger, "--out", home.folder / "export"]
    return run("audit", "export", *paths, "--tenant", "acme")


def _others_are_exported(done: Outcome, home: Home, spoiled: Path) -> bool:
    checked = proofgate("audit", "verify-export", home.folder / "export", "--key", home.key)
    left_out = f"missing: exchanges of {_origin(home, spoiled)}, which could not be read when the export was created"
    return checked.returncode == 10 and left_out in checked.stdout and f"{EACH * (LOGS - 1)} exchanges" in done.text


def _origin(home: Home, log: Path) -> str:
    return f"{home.key.split('+')[0]}/0/{log.name}"


def _replay(run: Callable[..., Outcome], home: Home, _: Path) -> Outcome:
    return run("ledger", "replay", home.ledger, "--key", home.key, "--shred-keys", home.folder / "shred-keys", "--json")


def _others_are_replayed(done: Outcome, _: Home, __: Path) -> bool:
    report = json.loads(done.out)
    return bool(report["request"]["same"] == EACH * (LOGS - 1)) and bool(report["problems"])


def _prune(run: Callable[..., Outcome], home: Home, _: Path) -> Outcome:
    return run("ledger", "prune", *home.keeping, "--older-than", "0d", "--author", "an officer", "--yes", "--json")


def _others_are_judged(done: Outcome, home: Home, spoiled: Path) -> bool:
    logs = {log["origin"].split("/")[-1]: log for log in json.loads(done.out)["logs"]}
    codes = [reason["code"] for reason in logs[spoiled.name]["reasons"]]
    return len(logs) == LOGS and logs[spoiled.name]["action"] == "stay" and "damaged" in codes


def _index(run: Callable[..., Outcome], home: Home, _: Path) -> Outcome:
    made = ["--index", home.folder / "made", "--same-volume"]
    return run("audit", "index", "--ledger", home.ledger, "--ledger-key", home.key, *made)


def _others_are_indexed(done: Outcome, _: Home, __: Path) -> bool:
    return f"{(LOGS - 1) * (2 + 2 * EACH)} records read" in done.text


def _auditor(run: Callable[..., Outcome], home: Home, _: Path) -> Outcome:
    fresh = Audit(home.folder, home.key).arguments
    fresh[fresh.index("--state") + 1] = str(home.folder / "fresh")
    return run(*fresh, "--once", "--new-aggregate", "--json")


def _others_are_audited(done: Outcome, home: Home, spoiled: Path) -> bool:
    report = json.loads(done.out)
    newest = home.logs()[-1].name
    about = {found["origin"] for found in report["findings"] if found["verdict"] != "incomplete"}
    accepted = [shard["origin"].split("/")[-1] for shard in report["shards"]]
    return accepted == [newest] and about <= {_origin(home, spoiled)}


def _mirror(run: Callable[..., Outcome], home: Home, _: Path) -> Outcome:
    to = home.folder / "mirror"
    to.mkdir()
    return run("mirror", home.ledger, home.folder / "state", home.folder / "auditor-key", home.key, to)


def _others_are_mirrored(_: Outcome, home: Home, spoiled: Path) -> bool:
    there = sorted(path.name for path in (home.folder / "mirror" / "ledger" / "0").iterdir())
    return there == [log.name for log in home.logs() if log.name != spoiled.name]


RECORDS = frozenset({SEGMENT, "checkpoint"})
TOOLS = {
    "fsck": Tool(_fsck, frozenset(FILES), _others_are_checked),
    "prove": Tool(_prove, RECORDS | {"salts"}, _what_can_be_is_proven),
    "export": Tool(_export, frozenset({SEGMENT}), _others_are_exported),
    "replay": Tool(_replay, frozenset(FILES) - {"tree"}, _others_are_replayed),
    # A file that will be removed need not be readable, but a folder instead of a file is an error.
    "prune": Tool(_prune, RECORDS, _others_are_judged, may_need=frozenset(FILES)),
    "index": Tool(_index, RECORDS, _others_are_indexed),
    "auditor": Tool(_auditor, RECORDS, _others_are_audited),
    "mirror": Tool(_mirror, RECORDS, _others_are_mirrored),
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Shim:
    return Shim(tmp_path_factory.mktemp("calls"))


@pytest.fixture(scope="module")
def in_one_process(calls: Shim) -> Iterator[Commands]:
    with commands(calls) as process:
        yield process


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_log_is_reported_and_the_rest_is_done(
    history: Home, tmp_path: Path, calls: Shim, in_one_process: Commands, tool: str, fault: str
) -> None:
    for file in FILES:
        home = Home(tmp_path / file, history.key)
        shutil.copytree(history.folder, home.folder)
        spoiled = home.logs()[1]
        with ExitStack() as afterwards:
            afterwards.callback(calls.heal)
            FAULTS[fault](spoiled / file, calls)
            done = TOOLS[tool].run(lambda *command: in_one_process.run(*command, seconds=PATIENCE), home, spoiled)
        where = f"{file}: exit code {done.code}, {done.text[-1500:]}"
        assert "Traceback" not in done.text, where
        if file not in TOOLS[tool].needs and done.code == 0:
            continue
        assert file in TOOLS[tool].needs | TOOLS[tool].may_need, where
        assert done.code != 0, where
        assert spoiled.name in done.text, where
        assert TOOLS[tool].did_the_rest(done, home, spoiled), where
        if tool == "prove":
            assert (done.code == 10) is (file == "salts"), where
        shutil.rmtree(home.folder)


def _status_and_code(gateway: LocalGateway) -> tuple[int, str]:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}).encode()
    answer = send(gateway.address, chat_request(body, KEYS["acme"]))
    status = status_of(answer)
    return status, "" if status == 200 else str(error_of(answer)["code"])


def test_a_worker_goes_on_once_a_write_of_its_log_finds_space_again(tmp_path: Path, calls: Shim) -> None:
    failing = [f"{name}={value}" for name, value in calls.environment.items()]
    with local_gateway(tmp_path, worker_prefix=["env", *failing]) as gateway:
        assert _status_and_code(gateway) == (200, "")
        for number in (errno.ENOSPC, errno.EDQUOT):
            calls.fail(Calls.WRITING, number, ".seg")
            try:
                # The first request waits until the timeout; for later ones the state is known.
                assert [_status_and_code(gateway) for _ in range(3)] == [(503, "ledger_full")] * 3
                assert gateway.status()["not_ready"] is None
            finally:
                calls.heal()
            wait_until(lambda: _status_and_code(gateway) == (200, ""), PATIENCE, "exchanges are admitted again")
        assert gateway.worker is not None and gateway.worker.stop() == 0
        ends = exchanges_by_their_ends(gateway.records())
        assert len(ends) >= 5 and set(ends.values()) == {1}, "also of those that waited in vain"
        assert proofgate("ledger", "fsck", gateway.ledger, "--key", gateway.verifying_key).returncode == 0
