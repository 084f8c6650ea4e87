"""Mirrors of evidence that an auditor has accepted: files, order of uploads, and forbidden operations."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from failures import failure
from hypothesis import given
from hypothesis import strategies as st

from proofgate import _core
from proofgate.auditor.metrics import render
from proofgate.auditor.watch import LedgerWatcher
from proofgate.cli import main
from proofgate.mirror import aggregate
from proofgate.mirror.directory import DirectoryTarget
from proofgate.mirror.mirror import Mirror
from proofgate.mirror.mirror_progress import MirrorProgress
from proofgate.mirror.target import ConflictError, FileChangedError, MirrorError, MirrorObject
from proofgate.mirror.target_address import TargetAddressError, parse

pytestmark = pytest.mark.usefixtures("fake_pinned")

LEDGER = "proofgate.dev/ns/demo"
LOGS = [f"01M89PCZT1JE2K4A4FYY15YK{number:02d}" for number in range(10, 14)]


class Auditor:
    """An auditor with the test's accepted logs."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.hidden = False

    def end(self, incarnation: str, kind: str = "end") -> None:
        origin = f"{LEDGER}/0/{incarnation}"
        self.entries.append(
            {"v": 1, "kind": kind, "origin": origin, "size": 3, "checkpoint": f"{origin}\n3\nroot\n"}
        )

    def checkpoint(self) -> tuple[int, str] | None:
        return None if self.hidden else (len(self.entries), f"audit\n{len(self.entries)}\n")

    def verifying_keys(self) -> tuple[str, str]:
        return "proofgate.dev/ns/audit+1a2b3c4d+cHVi", f"{LEDGER}+1a2b3c4d+cHVi"

    def heads(self) -> str:
        heads = [{"origin": entry["origin"], "size": 3, "checkpoint": "note"} for entry in self.entries[-1:]]
        return json.dumps(heads)

    def read(self, path: str) -> bytes | None:
        for number in range(-(-len(self.entries) // 256)):
            told = self.entries[number * 256 : (number + 1) * 256]
            if path == aggregate.tile_path("entries", number, len(told)):
                encoded = [json.dumps(entry).encode() for entry in told]
                return b"".join(len(one).to_bytes(2, "big") + one for one in encoded)
        return b"hashes" if path.startswith("tile/0/") else None


@pytest.fixture
def auditor() -> Auditor:
    return Auditor()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    for name in LOGS:
        log = tmp_path / "ledger" / "0" / name
        log.mkdir(parents=True)
        for file in ("00000000000000000000.seg", "checkpoint", "salts", "tree", "erasures"):
            (log / file).write_text(f"{file} of {name}")
    return tmp_path / "ledger"


@pytest.fixture
def bring(auditor: Auditor, ledger: Path, tmp_path: Path) -> Callable[..., Mirror]:
    (tmp_path / "mirror").mkdir()
    (tmp_path / "state").mkdir()

    def make(**more: Any) -> Mirror:
        target = more.pop("target", DirectoryTarget(tmp_path / "mirror"))
        return Mirror(
            target,
            cast("_core.Auditor", auditor),
            ledger,
            tmp_path / "state",
            **{"recheck_seconds": 0.0} | more,
        )

    return make


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def codes(mirror: Mirror) -> list[str]:
    return [finding["code"] for finding in mirror.findings()]


def test_a_log_that_has_ended_is_mirrored_without_what_can_be_erased(
    auditor: Auditor, bring: Callable[..., Mirror], tmp_path: Path
) -> None:
    auditor.end(LOGS[0])
    mirror = bring()
    mirror.run_once()
    there = files(tmp_path / "mirror")
    assert [name for name in there if name.startswith("ledger/0/")] == [
        f"ledger/0/{LOGS[0]}/00000000000000000000.seg",
        f"ledger/0/{LOGS[0]}/checkpoint",
    ]
    assert there["ledger/ledger-name"] == f"{LEDGER}\n"
    kept = [name.rsplit("/", 1)[0] for name in there if name.startswith(("checkpoints/", "aggregate/"))]
    assert set(kept) == {"aggregate/checkpoints", f"checkpoints/0/{LOGS[0]}"}
    assert (mirror.findings(), mirror.lag_seconds(), mirror.lag_bytes) == ([], 0.0, 0)


def test_what_goes_on_or_is_not_published_is_not_mirrored(
    auditor: Auditor, bring: Callable[..., Mirror], tmp_path: Path
) -> None:
    auditor.end(LOGS[0], "open")
    auditor.end(LOGS[0], "head")
    mirror = bring()
    auditor.hidden = True
    mirror.run_once()
    assert files(tmp_path / "mirror") == {}
    auditor.hidden = False
    mirror.run_once()
    assert not (tmp_path / "mirror" / "ledger" / "0").exists()


def test_a_log_that_does_not_verify_is_found_and_does_not_hold_up_the_next(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, tmp_path: Path
) -> None:
    auditor.end(LOGS[0])
    auditor.end(LOGS[1])
    (ledger / "0" / LOGS[0] / "verdict").write_text("40")
    mirror = bring()
    mirror.run_once()
    assert codes(mirror) == ["mirror_unverified"]
    assert "it was changed" in mirror.findings()[0]["message"]
    assert os.listdir(tmp_path / "mirror" / "ledger" / "0") == [LOGS[1]]  # noqa: PTH208
    # The finding is evidence, so a restarted mirror still has it.
    assert codes(bring()) == ["mirror_unverified"]


def test_what_looks_wrong_is_looked_at_again_before_it_is_a_finding(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, tmp_path: Path
) -> None:
    auditor.end(LOGS[0])
    verdict = ledger / "0" / LOGS[0] / "verdict"
    verdict.write_text("40")
    mirror = bring(recheck_seconds=3600.0)
    mirror.run_once()
    assert codes(mirror) == []
    assert mirror.lag_seconds() > 0
    verdict.unlink()
    mirror.run_once()
    assert (tmp_path / "mirror" / "ledger" / "0" / LOGS[0] / "checkpoint").exists()
    assert mirror.lag_seconds() == 0


def test_a_log_that_is_gone_before_it_was_mirrored_is_found(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise failure(_core.LedgerError, "it is not there", "ledger_not_found")

    monkeypatch.setattr(_core, "fsck_pinned", gone)
    (ledger / "0" / LOGS[0]).rename(ledger.parent / "stolen")
    auditor.end(LOGS[0])
    mirror = bring()
    mirror.run_once()
    assert codes(mirror) == ["mirror_log_missing"]


def not_readable(directory: str, *_: object) -> Any:
    raise failure(_core.LedgerError, f"read {directory}: Input/output error (os error 5)", "ledger_io")


def test_a_log_that_cannot_be_read_for_a_while_is_no_evidence_and_does_not_hold_up_the_next(
    auditor: Auditor, bring: Callable[..., Mirror], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verified = _core.fsck_pinned
    asked: list[str] = []

    def of_some(directory: str, *more: Any) -> Any:
        asked.append(directory[-2:])
        return (not_readable if directory.endswith(LOGS[0]) else verified)(directory, *more)

    def there() -> list[str]:
        return [name for name in files(tmp_path / "mirror") if name.endswith(".seg")]

    monkeypatch.setattr(_core, "fsck_pinned", of_some)
    for name in LOGS[:3]:
        auditor.end(name)
    mirror = bring()
    for _ in range(2):
        with pytest.raises(MirrorError, match=LOGS[0]):
            mirror.run_once()
        assert there() == [f"ledger/0/{name}/00000000000000000000.seg" for name in LOGS[1:3]]
    assert asked == [name[-2:] for name in (*LOGS[:3], LOGS[0])]
    assert (mirror.totals.failures, mirror.findings()) == ({"mirror_source": 2}, [])
    assert mirror.lag_bytes == len(f"00000000000000000000.seg of {LOGS[0]}")
    assert (tmp_path / "mirror" / "ledger" / "ledger-name").exists()
    monkeypatch.setattr(_core, "fsck_pinned", verified)
    mirror.run_once()
    assert there() == [f"ledger/0/{name}/00000000000000000000.seg" for name in LOGS[:3]]
    assert (mirror.findings(), mirror.lag_seconds(), mirror.lag_bytes) == ([], 0, 0)
    auditor.end(LOGS[3])
    mirror.run_once()
    assert len(there()) == 4


@pytest.mark.parametrize("left", [".", "0"])
@pytest.mark.parametrize("code", ["ledger_io", "bad_note"])
def test_below_a_volume_that_is_not_mounted_no_log_is_missed(
    auditor: Auditor,
    bring: Callable[..., Mirror],
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
    left: str,
    code: str,
) -> None:
    verified = _core.fsck_pinned

    def fail(*_: object) -> None:
        raise failure(_core.LedgerError, "it is not there", code)

    monkeypatch.setattr(_core, "fsck_pinned", fail)
    away = (ledger / left).rename(ledger.parent / "away")
    auditor.end(LOGS[0])
    mirror = bring()
    with pytest.raises(MirrorError):
        mirror.run_once()
    assert (mirror.totals.failures, mirror.findings()) == ({"mirror_source": 1}, [])
    away.rename(ledger / left)
    monkeypatch.setattr(_core, "fsck_pinned", verified)
    mirror.run_once()
    assert (mirror.findings(), mirror.lag_seconds()) == ([], 0)


def test_a_signature_that_is_nobodys_is_no_evidence_while_the_statements_of_keys_cannot_be_read(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise failure(_core.LedgerError, "note 1: its signature is by no key of the ledger", "bad_note")

    monkeypatch.setattr(_core, "fsck_pinned", refuse)
    auditor.end(LOGS[0])
    statements = ledger / "key-successions"
    statements.symlink_to("key-successions")
    mirror = bring()
    with pytest.raises(MirrorError):
        mirror.run_once()
    assert (mirror.totals.failures, mirror.findings()) == ({"mirror_source": 1}, [])
    statements.unlink()
    mirror.run_once()
    assert codes(mirror) == ["mirror_unverified"]


def test_statements_of_keys_that_cannot_be_read_break_the_round_off_by_name(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path
) -> None:
    auditor.end(LOGS[0])
    (ledger / "key-successions").symlink_to("key-successions")
    mirror = bring()
    with pytest.raises(MirrorError, match="the ledger cannot be read"):
        mirror.run_once()
    assert mirror.totals.failures == {"mirror_source": 1}


def test_something_else_in_the_place_of_a_file_is_found_by_name_and_stays(
    auditor: Auditor, bring: Callable[..., Mirror], tmp_path: Path
) -> None:
    place = tmp_path / "mirror" / "ledger" / "0" / LOGS[0] / "00000000000000000000.seg"
    place.parent.mkdir(parents=True)
    place.write_text("foreign")
    auditor.end(LOGS[0])
    mirror = bring()
    mirror.run_once()
    assert place.read_text() == "foreign"
    [finding] = mirror.findings()
    assert (finding["code"], finding["verdict"]) == ("mirror_conflict", "diverged")
    assert f"ledger/0/{LOGS[0]}/00000000000000000000.seg" in finding["message"]
    watch = LedgerWatcher(cast("_core.Auditor", core_auditor()), 0)
    watch.mirrors = [mirror]
    assert 'findings{code="mirror_conflict",verdict="diverged"} 1' in render(watch)


def core_auditor() -> Any:
    import auditor_double

    return auditor_double.Auditor(
        "ledger", "state", "PRIVATE+KEY+a+1a2b3c4d+c2", "a+1a2b3c4d+cHVi", 1, 1, 1, True
    )


def test_a_file_that_changes_after_it_was_verified_is_not_mirrored(
    auditor: Auditor,
    bring: Callable[..., Mirror],
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    segment = ledger / "0" / LOGS[0] / "00000000000000000000.seg"
    verified = _core.fsck_pinned

    def then_change(*arguments: Any) -> Any:
        result = verified(*arguments)
        segment.write_text("x" * len(segment.read_text()))
        return result

    monkeypatch.setattr(_core, "fsck_pinned", then_change)
    auditor.end(LOGS[0])
    mirror = bring()
    mirror.run_once()
    assert codes(mirror) == ["mirror_unverified"]
    assert [name for name in files(tmp_path / "mirror") if name.endswith((".seg", ".part"))] == []


class Failing:
    """A mirror that accepts only `takes` pieces."""

    name = "failing"

    def __init__(self, below: DirectoryTarget, takes: int) -> None:
        self.below, self.takes = below, takes
        self.asked: list[str] = []

    def problem(self) -> str | None:
        return self.below.problem()

    def put(self, piece: MirrorObject) -> bool:
        self.asked.append(piece.key)
        if self.takes == 0:
            raise MirrorError("mirror_full", "no room")
        self.takes -= 1
        return self.below.put(piece)

    def keys(self, prefix: str) -> Iterator[str]:
        return self.below.keys(prefix)

    def fetch(self, key: str, write: Callable[[bytes], object]) -> None:
        self.below.fetch(key, write)


@pytest.mark.parametrize("takes", range(10))
def test_a_round_that_is_cut_short_anywhere_is_finished_by_the_next_life(
    auditor: Auditor, bring: Callable[..., Mirror], tmp_path: Path, takes: int
) -> None:
    for name in LOGS[:3]:
        auditor.end(name)
    below = DirectoryTarget(tmp_path / "mirror")
    first = bring(target=Failing(below, takes))
    try:
        first.run_once()
    except MirrorError:
        assert first.totals.failures == {"mirror_full": 1}
    second = bring(target=Failing(below, 99))
    second.run_once()
    assert [name for name in files(tmp_path / "mirror") if name.endswith(".seg")] == [
        f"ledger/0/{name}/00000000000000000000.seg" for name in LOGS[:3]
    ]
    assert second.findings() == []


def test_what_was_brought_is_not_brought_again_and_all_is_compared_when_the_memory_is_lost(
    auditor: Auditor, bring: Callable[..., Mirror], tmp_path: Path
) -> None:
    auditor.end(LOGS[0])
    bring().run_once()
    again = Failing(DirectoryTarget(tmp_path / "mirror"), 99)
    bring(target=again).run_once()
    target = Failing(DirectoryTarget(tmp_path / "mirror"), 99)
    bring(target=target).run_once()
    assert not [key for key in target.asked if key.endswith(".seg")]
    for memory in (tmp_path / "state" / "mirrors").iterdir():
        memory.write_text("{")
    lost = bring(target=target)
    lost.run_once()
    assert [key for key in target.asked if key.endswith(".seg")]
    assert (lost.totals.objects, lost.findings()) == (0, [])


def test_what_waits_longer_than_the_patience_is_a_state_that_ends(
    auditor: Auditor, bring: Callable[..., Mirror], tmp_path: Path
) -> None:
    auditor.end(LOGS[0])
    target = Failing(DirectoryTarget(tmp_path / "mirror"), 0)
    mirror = bring(target=target, max_lag_seconds=0.001)
    with pytest.raises(MirrorError):
        mirror.run_once()
    mirror._mark_lagging()
    assert mirror.lag_bytes == len(f"00000000000000000000.seg of {LOGS[0]}")
    while mirror.lag_seconds() < mirror.max_lag_seconds:
        time.sleep(0)
    [finding] = mirror.findings()
    assert (finding["code"], finding["verdict"]) == ("mirror_lags", "incomplete")
    assert "no room" in finding["message"]
    target.takes = 99
    mirror.run_once()
    assert (mirror.findings(), mirror.lag_bytes) == ([], 0)


def test_of_a_log_that_was_removed_what_stays_of_it_is_mirrored_beside_it(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, tmp_path: Path
) -> None:
    auditor.end(LOGS[0])
    mirror = bring(retention_key="retention")
    mirror.run_once()
    log = ledger / "0" / LOGS[0]
    (log / "00000000000000000000.seg").unlink()
    for name in ("tombstone", "00000000000000000000.record", "00000000000000000000.tlog-proof"):
        (log / name).write_text(name)
    auditor.end(LOGS[0], "removed")
    mirror.run_once()
    there = files(tmp_path / "mirror")
    assert f"ledger/0/{LOGS[0]}/00000000000000000000.seg" in there, "the segment stays until its lock ends"
    assert [name.rsplit("/", 1)[1] for name in there if name.startswith("removed/")] == [
        *("00000000000000000000.record", "00000000000000000000.tlog-proof", "checkpoint", "tombstone")
    ]


def test_a_tombstone_that_nobody_can_check_does_not_keep_a_log_from_the_mirror_unnoticed(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path
) -> None:
    auditor.end(LOGS[0])
    (ledger / "0" / LOGS[0] / "tombstone").write_text("anybody's")
    mirror = bring()
    mirror.run_once()
    assert codes(mirror) == ["mirror_unverified"]


def test_of_many_logs_some_are_looked_for_at_once(
    auditor: Auditor, bring: Callable[..., Mirror], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofgate.mirror.mirror.MAX_BATCH", 2)
    for name in LOGS:
        auditor.end(name)
    mirror = bring()
    for count in (2, 4):
        mirror.run_once()
        assert len(list((tmp_path / "mirror" / "ledger" / "0").iterdir())) == count
        assert (mirror.lag_seconds() > 0) == (count < len(LOGS))


def test_a_link_or_a_pipe_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    digest = hashlib.sha256(b"secret").digest()
    with pytest.raises(MirrorError, match="cannot be read"):
        list(MirrorObject("a", 6, digest, tmp_path / "link").chunks())
    with pytest.raises(FileChangedError):
        list(MirrorObject("a", 6, digest, tmp_path / "pipe").chunks())


def test_of_bytes_that_are_others_the_last_are_never_given_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(600_000))
    given: list[bytes] = []
    with pytest.raises(FileChangedError):
        given.extend(MirrorObject("a", 600_000, bytes(32), tmp_path / "file").chunks())
    assert sum(map(len, given)) < 600_000


def test_whole_tiles_are_mirrored_once(
    auditor: Auditor, bring: Callable[..., Mirror], tmp_path: Path
) -> None:
    for _ in range(300):
        auditor.end(LOGS[0], "head")
    bring().run_once()
    assert [name for name in files(tmp_path / "mirror") if "/tile/" in name] == [
        *("aggregate/tile/0/000", "aggregate/tile/entries/000")
    ]


@given(st.integers(0, 70_000), st.integers(0, 70_000))
def test_tiles_that_become_whole_in_steps_are_those_that_become_whole_at_once(one: int, other: int) -> None:
    low, high = sorted((one, other))
    steps = [*aggregate.full_tiles(0, low), *aggregate.full_tiles(low, high)]
    assert sorted(steps) == sorted(aggregate.full_tiles(0, high))


@pytest.mark.parametrize(
    ("number", "path"),
    [(0, "000"), (999, "999"), (1000, "x001/000"), (1234067, "x001/x234/067")],
)
def test_paths_of_tiles_are_those_of_the_specification(number: int, path: str) -> None:
    assert aggregate.tile_path("entries", number, 5) == f"tile/entries/{path}.p/5"
    assert aggregate.tile_path("1", number) == f"tile/1/{path}"


@pytest.mark.parametrize(
    "origin",
    [
        "other/0/01M89PCZT1JE2K4A4FYY15YK69",
        f"{LEDGER}/../01M89PCZT1JE2K4A4FYY15YK69",
        f"{LEDGER}/0/..",
        LEDGER,
    ],
)
def test_an_origin_that_is_no_log_of_the_ledger_has_no_place(origin: str) -> None:
    assert aggregate.parse_origin(origin, LEDGER) is None


def test_a_directory_never_shows_half_a_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"a" * 10)
    piece = MirrorObject("log/segment", 10, hashlib.sha256(b"b" * 10).digest(), source)
    with pytest.raises(FileChangedError):
        DirectoryTarget(tmp_path / "mirror").put(piece)
    assert files(tmp_path / "mirror") == {}


def test_a_directory_takes_a_piece_once_and_compares_it_then(tmp_path: Path) -> None:
    target = DirectoryTarget(tmp_path)
    assert target.put(MirrorObject.from_bytes("a/b", b"one"))
    assert not target.put(MirrorObject.from_bytes("a/b", b"one"))
    with pytest.raises(ConflictError):
        target.put(MirrorObject.from_bytes("a/b", b"two"))
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "b")
    with pytest.raises(ConflictError):
        target.put(MirrorObject.from_bytes("a/link", b"one"))
    assert list(target.keys("a/")) == ["a/b"]


def test_a_full_or_missing_directory_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MirrorError) as gone:
        DirectoryTarget(tmp_path / "nowhere").problem()
    assert gone.value.code == "mirror_unreachable"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MirrorError) as refused:
        DirectoryTarget(tmp_path).put(MirrorObject.from_bytes("a", b"one"))
    assert refused.value.code == "mirror_full"
    assert files(tmp_path) == {}


S3 = "s3://bucket/prefix?lock=compliance&days=30"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("gs://bucket/prefix", "is not known"),
        ("s3://b/prefix?lock=compliance&days=30", "BUCKET/PREFIX"),
        ("s3://bucket/a%20b?lock=compliance&days=30", "BUCKET/PREFIX"),
        ("s3://bucket/a/../b?lock=compliance&days=30", "BUCKET/PREFIX"),
        ("s3://bucket/prefix", "lock=compliance"),
        ("s3://bucket/prefix?lock=none&days=3", "lock=compliance"),
        ("s3://bucket/prefix?lock=governance", "days=N"),
        ("s3://bucket/prefix?lock=governance&days=0", "days=N"),
        (f"{S3}&days=31", "each at most once"),
        (f"{S3}&secret=x", "each at most once"),
        (f"{S3}&endpoint=http://store.example", "http=allow"),
        (f"{S3}&endpoint=https://store.example/path", "after the host"),
        (f"{S3}&endpoint=ftp://store.example", "endpoint"),
        (f"{S3}&region=EU%20West", "region"),
        (f"{S3}&ca=/nowhere", "is not a file"),
    ],
)
def test_a_place_that_is_none_is_refused_with_what_to_write(text: str, why: str) -> None:
    with pytest.raises(TargetAddressError, match=why):
        parse(text)


def test_the_name_of_a_bucket_tells_nothing_of_what_belongs_to_it() -> None:
    assert parse(f"{S3}&credentials=/secret&endpoint=https://store.example").name == "s3://bucket/prefix"


def test_mirrors_go_with_an_auditor_that_stays_and_lie_outside_of_the_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ledger").mkdir()
    base = ["audit", "run", "--ledger", str(tmp_path / "ledger"), "--state", str(tmp_path / "state")]
    base += ["--signing-key", "k", "--ledger-key", f"{LEDGER}+1a2b3c4d+cHVi"]
    inside = str(tmp_path / "ledger" / "mirror")
    for more, why in (
        (["--mirror", "elsewhere", "--once"], "cannot be combined with --once"),
        (["--mirror", inside], "is inside the ledger"),
        (["--mirror", "elsewhere", "--mirror", "elsewhere"], "given twice"),
        (["--mirror", "s3://bucket"], "lock=compliance"),
        (["--mirror-patience", "0"], "86400"),
    ):
        assert main([*base, *more]) == 2
        assert why in capsys.readouterr().err


def test_a_mirror_is_brought_back_with_what_stays_of_logs_that_it_has_not(
    auditor: Auditor,
    bring: Callable[..., Mirror],
    ledger: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    auditor.end(LOGS[0])
    auditor.end(LOGS[1])
    (ledger / "0" / LOGS[1] / "tombstone").write_text("tombstone")
    bring(retention_key="retention").run_once()
    foreign = tmp_path / "mirror" / "ledger" / "0" / LOGS[0] / "evil.sh"
    foreign.write_text("no")
    out = tmp_path / "out"
    assert main(["audit", "fetch", str(tmp_path / "mirror"), str(out)]) == 0
    assert "fsck" in capsys.readouterr().out
    assert list(files(out)) == [
        f"0/{LOGS[0]}/00000000000000000000.seg",
        f"0/{LOGS[0]}/checkpoint",
        f"0/{LOGS[1]}/checkpoint",
        f"0/{LOGS[1]}/tombstone",
        "ledger-name",
    ]
    assert main(["audit", "fetch", str(tmp_path / "mirror"), str(out)]) == 2
    assert main(["audit", "fetch", "s3://bucket", str(tmp_path / "other")]) == 2


@pytest.mark.parametrize("place", ["not-there", "empty"])
def test_a_place_without_a_mirror_is_told_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["audit", "fetch", str(tmp_path / place), str(tmp_path / "out")]) == 1
    assert "contains no mirrored log" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_memory_of_another_mirror_or_aggregate_log_is_not_taken(tmp_path: Path) -> None:
    memory = MirrorProgress.open(tmp_path, "one", "audit")
    memory.next_entry = 7
    memory.save()
    assert MirrorProgress.open(tmp_path, "one", "audit").next_entry == 7
    assert MirrorProgress.open(tmp_path, "two", "audit").next_entry == 0
    assert MirrorProgress.open(tmp_path, "one", "other").next_entry == 0


def named(ledger: Path, name: str, text: str) -> None:
    """Writes a segment whose records refer to a configuration."""
    (ledger / "0" / name / "00000000000000000000.seg").write_text(text)


def test_the_configurations_that_records_name_are_mirrored_and_come_back(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, tmp_path: Path
) -> None:
    contents = {hashlib.sha256(text.encode()).hexdigest(): text for text in ("{}", '{"a":1}', "planted")}
    one, other, planted = contents
    (ledger / "configurations").mkdir()
    for digest, text in contents.items():
        (ledger / "configurations" / f"{digest}.json").write_text(text)
    filler = "x" * ((1 << 18) - 100)
    whole = "f" * 64
    named(
        ledger, LOGS[0], f'{filler}{{"config":"{whole}","settings":"{one}"}} {{"config":"{other}","key":""}}'
    )
    auditor.end(LOGS[0])
    mirror = bring()
    mirror.run_once()
    kept = [name for name in files(tmp_path / "mirror") if "configurations" in name]
    assert kept == sorted(f"ledger/configurations/{digest}.json" for digest in (one, other))
    assert mirror.findings() == []
    assert planted not in str(kept)
    assert main(["audit", "fetch", str(tmp_path / "mirror"), str(tmp_path / "back")]) == 0
    assert main(["ledger", "configuration", str(tmp_path / "back"), other[:16]]) == 0


@pytest.mark.parametrize("content", [None, "something else"])
def test_a_configuration_that_is_not_there_is_found_until_it_is(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, tmp_path: Path, content: str | None
) -> None:
    digest = hashlib.sha256(b"{}").hexdigest()
    path = ledger / "configurations" / f"{digest}.json"
    path.parent.mkdir()
    if content is not None:
        path.write_text(content)
    named(ledger, LOGS[0], f'{{"config":"{digest}"}}')
    auditor.end(LOGS[0])
    mirror = bring()
    mirror.run_once()
    assert codes(mirror) == ["mirror_configuration_missing"]
    assert (tmp_path / "mirror" / "ledger" / "0" / LOGS[0] / "checkpoint").exists()
    # A restarted mirror also looks for it.
    again = bring()
    assert codes(again) == ["mirror_configuration_missing"]
    path.write_text("{}")
    again.run_once()
    assert again.findings() == []
    assert (tmp_path / "mirror" / "ledger" / "configurations" / f"{digest}.json").read_text() == "{}"


def test_a_mirror_of_an_older_version_gets_the_configurations_of_all_logs(
    auditor: Auditor, bring: Callable[..., Mirror], ledger: Path, tmp_path: Path
) -> None:
    digest = hashlib.sha256(b"{}").hexdigest()
    named(ledger, LOGS[0], f'{{"config":"{digest}"}}')
    auditor.end(LOGS[0])
    bring().run_once()
    [memory] = (tmp_path / "state" / "mirrors").glob("*.json")
    told = json.loads(memory.read_text())
    assert told.pop("configurations")
    memory.write_text(json.dumps(told | {"v": 1}))
    (ledger / "configurations").mkdir()
    (ledger / "configurations" / f"{digest}.json").write_text("{}")
    bring().run_once()
    assert (tmp_path / "mirror" / "ledger" / "configurations" / f"{digest}.json").exists()
