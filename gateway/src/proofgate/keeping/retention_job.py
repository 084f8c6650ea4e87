"""The command `retention`: carries out a plan of holds and retention, and can be repeated.

Each step is on the disk before the next one starts, and each run computes all steps from the current state.
So the next run completes an interrupted one.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofgate_schema.counts import format_count

from proofgate import _core, evidence, output
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, ExitCode, fail
from proofgate.keeping import arguments, erasing, pruning
from proofgate.keeping.anchors import Anchors, AnchorsError
from proofgate.keeping.ledger import Logs, RetentionLedger
from proofgate.ulid_time import milliseconds_of

if TYPE_CHECKING:
    from proofgate.keeping.plans import HoldChanges, RetentionPlan

#: Exit code if data that is due for removal remains until a person acts.
EXIT_INCOMPLETE = ExitCode.INCOMPLETE
#: Maximum bytes of a termination message (terminationMessagePath) that a kubelet reads.
MAX_REPORT_BYTES = 4096
_MAX_MESSAGE = 512
_VERSION = 1
#: Reasons that keep logs after their retention and that only a person can resolve.
_OVERDUE_REMOVAL_CODES = frozenset(
    {"damaged", "unknown_kinds", "future", "tombstone_refused", "held_unknown"}
)
#: Reasons that keep salts and that only a person can resolve. An erasure is complete only if all logs are
#: complete.
_OVERDUE_ERASURE_CODES = _OVERDUE_REMOVAL_CODES | {"not_ended", "locked", "uncovered", "removal_unfinished"}
#: Code of statements that wait for the auditor's log.
NOT_ANCHORED = "not_anchored"
#: Seconds that a run waits for the auditor, which checks the files beside an ended log within
#: `ended logs / 256` seconds.
AUDITOR_TIMEOUT_SECONDS = 600.0
#: Values of the report for the anchor of statements.
_BY_AUDITOR, _NO_ANCHOR = "auditor", "none"
_DAY = 86_400_000_000
#: Pattern of the name of a log's folder, which is a ULID.
_INCARNATION = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
#: Patterns of files that the retention job writes to a ledger.
_TRACE_GLOBS = ("*/*/tombstone", "*/*/erasures", "key-destructions/*.note", "hold-statements/*.note")


class RetentionError(Exception):
    """A reason to remove and erase nothing, with a `code`."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class RetentionReport:
    """The results and findings of a run. Numbers of the state have the value None until it has been read."""

    plan: str = ""
    retention_key_name: str = ""
    result: str = "ok"
    message: str = ""
    holds: int | None = None
    known: int | None = None
    outside: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: int = 0
    removed_now: int = 0
    erased: int = 0
    erased_now: int = 0
    staying: Counter[str] = field(default_factory=Counter)
    removal: Logs = field(default_factory=list)
    erasures: dict[str, Logs] = field(default_factory=dict)
    anchor: str = ""

    def summary(self) -> dict[str, Any]:
        """Returns a summary that fits into a container's termination message: all lists are limited."""
        found: dict[str, Any] = {"v": _VERSION, "plan": self.plan[:64], "result": self.result}
        if self.retention_key_name:
            found["retentionKeyName"] = self.retention_key_name[:_MAX_MESSAGE]
        if self.anchor:
            found["anchor"] = self.anchor
        if self.message:
            found["message"] = self.message.encode()[:_MAX_MESSAGE].decode(errors="ignore")
        if self.known is not None:
            found |= {"holds": self.holds, "known": self.known}
        for name, names, most in (("outside", self.outside, 16), ("changed", self.changed, 4)):
            if names:
                found[name] = [each[:63] for each in names[:most]]
                found[f"{name}Count"] = len(names)
        found |= {"removed": self.removed, "removedNow": self.removed_now}
        found |= {"erased": self.erased, "erasedNow": self.erased_now}
        return found | {"staying": dict(sorted(self.staying.items()))}

    def start_pass(self) -> None:
        """Clears the findings of the previous pass. Counts of this run's actions are retained."""
        self.result, self.message, self.removed, self.erased = "ok", "", 0, 0
        self.staying, self.removal, self.erasures = Counter(), [], {}

    def awaited_statements(self) -> set[str]:
        """The SHA-256 of the statements that must be in the auditor's log before removals can continue."""
        logs = [*self.removal, *(log for found in self.erasures.values() for log in found)]
        return {
            reason["statement"]
            for log in logs
            for reason in log["reasons"]
            if reason["code"] == NOT_ANCHORED and reason.get("statement")
        }


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Adds the plan's holds to the state. Then removes logs and erases salts after the end of "
        "their retention, as `prune` and `erase` do. Run it regularly. A hold that is dropped "
        "from the plan stays active until the plan or a person releases it. Exit code 10 if data "
        "that is due for removal remains, 1 if nothing can be removed.",
    )
    arguments.add_ledger(parser)
    arguments.add_author(parser)
    parser.add_argument(
        "--auditor-patience",
        type=_seconds,
        default=AUDITOR_TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="with --auditor or --auditor-state: how long to wait for the auditor's log; statements "
        "that the log does not contain by then are left for the next run (default: "
        f"{AUDITOR_TIMEOUT_SECONDS:g})",
    )
    parser.add_argument("--plan", type=Path, required=True, metavar="FILE", help="the plan in JSON")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help=f"write a report in JSON of at most {MAX_REPORT_BYTES} bytes, for example to /dev/termination-log",
    )
    parser.add_argument("--dry-run", action="store_true", help="change nothing, and print what would change")
    output.add_argument(parser, "--json")


def _seconds(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise argparse.ArgumentTypeError("expected whole seconds, such as 600")
    return float(text)


def run(options: argparse.Namespace) -> int:
    """Carries out the plan and reports the result."""
    report = RetentionReport()
    code = _run_plan(options, report)
    _print(options, report)
    if options.report is not None:
        text = json.dumps(report.summary(), ensure_ascii=False, separators=(",", ":"))
        try:
            # Written in place, because the kubelet mounts this file.
            options.report.write_text(text, encoding="utf-8")
        except OSError as error:
            return fail(f"{options.report} cannot be written: {error.strerror}", code or EXIT_FAILED)
    return code


def _run_plan(options: argparse.Namespace, report: RetentionReport) -> int:
    try:
        _apply_plan(options, report)
    except (arguments.UsageError, evidence.EvidenceError, ValueError) as error:
        # The error does not contain the text of a key.
        report.result, report.message = "usage", str(error)
        return fail(str(error), EXIT_USAGE)
    except (RetentionError, AnchorsError, _core.ProofgateError) as error:
        report.result, report.message = error.code, str(error)
        return fail(f"{error} [{error.code}]", EXIT_FAILED)
    except OSError as error:
        report.result, report.message = "io", f"{error.filename}: {error.strerror}"
        return fail(f"{report.message} [io]", EXIT_FAILED)
    return EXIT_INCOMPLETE if report.result in ("staying", NOT_ANCHORED) else EXIT_OK


def _apply_plan(options: argparse.Namespace, report: RetentionReport) -> None:
    from proofgate.keeping import plans

    plan, report.plan = plans.read(options.plan)
    author, anchors = arguments.author(options, signs=not options.dry_run), arguments.anchors(options)
    report.anchor = _NO_ANCHOR if anchors is None else _BY_AUDITOR
    key = evidence.read_verifying_key(options.ledger_key)
    signing = arguments.read_signing_key(options.signing_key)
    own = _core.verifying_key(signing.strip())
    report.retention_key_name = own.partition("+")[0]
    _require_key(plan, own)
    retention = _open_state(options, plan, key, signing)
    if retention is None:
        report.message = "there is no state yet; a run would create it"
        return
    state = json.loads(retention.holds())
    if plan.known is not None and len(state) < plan.known:
        raise RetentionError(
            f"the state had {format_count(plan.known, 'hold')} and now has {len(state)}: it was rolled back, so "
            "nothing is removed or erased. Restore the newest state",
            "keeping_state_set_back",
        )
    changes = plans.hold_changes(plan.holds, state)
    if not options.dry_run:
        _apply_hold_changes(retention, changes, author)
        state = json.loads(retention.holds())
    report.known, report.holds = len(state), sum("released" not in hold for hold in state)
    report.outside, report.changed = changes.outside_plan, changes.changed
    kept = RetentionLedger(options.ledger, key, signing, retention)
    if not options.dry_run:
        # Written even if nothing is removed, so that the holds are known outside the state.
        kept.write_hold_statements()
    if changes.changed:
        raise RetentionError(
            f"{', '.join(changes.changed)}: holds with these names have another scope. They stay "
            "active, and nothing is removed or erased: restore their scope, or use other names",
            "hold_changed",
        )
    _require_plausible_clock(options.ledger, plan)
    if anchors is None:
        _carry_out(kept, plan, author, report, carry_out=not options.dry_run)
    elif options.dry_run:
        kept = replace(kept, anchored=anchors.without_cache().read())
        _carry_out(kept, plan, author, report, carry_out=False)
    else:
        _carry_out_once_anchored(kept, plan, author, report, anchors, options.auditor_patience)


def _carry_out_once_anchored(
    kept: RetentionLedger,
    plan: RetentionPlan,
    author: str,
    report: RetentionReport,
    anchors: Anchors,
    patience: float,
) -> None:
    """Signs the statements about removals, and carries each out when it is in the auditor's log. Statements
    that are not in the log after `patience` seconds are left to the next run. If the auditor does not answer,
    nothing is signed.

    Raises AnchorsError.
    """
    deadline = time.monotonic() + patience
    anchored, known = anchors.wait((), deadline), None
    while known is None or anchored & report.awaited_statements() > known & report.awaited_statements():
        known = anchored
        report.start_pass()
        _carry_out(replace(kept, anchored=set(known)), plan, author, report, carry_out=True)
        if awaited := report.awaited_statements():
            try:
                anchored = anchors.wait(awaited, deadline)
            except AnchorsError as error:
                report.message = f"{report.message}; {error}"


def _require_key(plan: RetentionPlan, own: str) -> None:
    """Refuses a key other than the plan's: an auditor without this key would report removals as losses."""
    if plan.retention_key not in (None, own):
        raise RetentionError(
            f"the plan names another retention key: {plan.retention_key or 'none yet'}, and this "
            f"job has {own}. Nothing is held, removed or erased until the keys are equal",
            "retention_key_differs",
        )


def _open_state(
    options: argparse.Namespace, plan: RetentionPlan, key: str, signing: str
) -> _core.RetentionState | None:
    """Opens or creates the state. None in a dry run if the state does not exist yet."""
    arguments.require_separate(options.state, options.ledger)
    if options.state.is_dir():
        try:
            return _core.RetentionState(str(options.state))
        except _core.KeepingError as error:
            if error.code != "keeping_state_missing":
                raise
    lost = "" if plan.begin else "this is not the first run"
    if trace := next(_traces(options.ledger), None):
        lost = f"{trace} shows that the state existed"
    if lost:
        raise RetentionError(
            f"the retention job's state is missing, and {lost}: the state may have contained holds, so "
            "nothing is removed or erased. Restore the state",
            "keeping_state_missing",
        )
    if options.dry_run:
        return None
    return _core.RetentionState(str(options.state), (key, _core.verifying_key(signing.strip())))


def _traces(ledger: Path) -> Iterator[Path]:
    """Yields the files that any retention job has written to this ledger."""
    for name in _TRACE_GLOBS:
        yield from ledger.glob(name)


def _require_plausible_clock(ledger: Path, plan: RetentionPlan) -> None:
    """Refuses a clock that is far ahead of the ledger's newest log, because all records would seem old."""
    began = [_start_time(log.name) for log in ledger.glob("*/*") if _INCARNATION.fullmatch(log.name)]
    if plan.quiet_days is None or not began:
        return
    quiet = (arguments.now() - max(began)) // _DAY
    if quiet > plan.quiet_days:
        raise RetentionError(
            f"the newest log began {format_count(quiet, 'day')} ago, but workers begin a new log at least every "
            f"{format_count(plan.quiet_days, 'day')}: this clock is wrong, or no worker runs. Nothing is removed "
            "or erased",
            "clock_doubtful",
        )


def _start_time(incarnation: str) -> int:
    """The start time of a log, in Unix microseconds, from its name."""
    return milliseconds_of(incarnation) * 1000


def _apply_hold_changes(retention: _core.RetentionState, changes: HoldChanges, author: str) -> None:
    """Adds holds first, then releases others. If it is interrupted, too few holds are released, never too
    many."""
    for hold in changes.to_add:
        why = arguments.Justification(author, hold.reason, hold.reference)
        retention.add_hold(json.dumps(hold.scope), why, arguments.now(), hold.name)
    if not changes.changed:
        for number, reason in changes.to_release:
            retention.release_hold(number, arguments.Justification(author, reason), arguments.now())


def _carry_out(
    kept: RetentionLedger, plan: RetentionPlan, author: str, report: RetentionReport, *, carry_out: bool
) -> None:
    """Removes logs and erases salts. Counts by reason what a hold or another reason keeps."""
    overdue: Counter[str] = Counter()
    # The suffix is part of each signed reason: without an anchor, only the retention job attests the time.
    without = " (no anchor)" if report.anchor == _NO_ANCHOR else ""
    if plan.removal is not None:
        days, minimums = plan.removal
        why = arguments.Justification(author, f"the retention of {format_count(days, 'day')}{without}")
        report.removal = kept.prune(days, minimums, why, carry_out=carry_out)
        gone = [log for log in report.removal if log["action"] != "stay"]
        report.removed = len(gone)
        report.removed_now += sum(log["action"] != "removed" for log in gone)
        overdue += _count_staying(report, report.removal, _OVERDUE_REMOVAL_CODES)
    for tenant, until in plan.erasures(arguments.now()).items():
        why = arguments.Justification(author, f"the retention of its tenant{without}")
        logs = kept.erase(None, (tenant, until), plan.minimums, why, carry_out=carry_out)
        report.erasures[tenant] = logs
        report.erased += sum(log["exchanges"] for log in logs if log["action"] != "stay")
        report.erased_now += sum(log["exchanges"] for log in logs if log["action"] == "erase")
        overdue += _count_staying(report, logs, _OVERDUE_ERASURE_CODES)
    if overdue:
        told = ", ".join(f"{code} ({count})" for code, count in sorted(overdue.items()))
        report.result = "staying"
        report.message = f"some logs or salts were not removed although their retention has ended: {told}"
    # This reason resolves without a person, and may cause others: the salts of a log that is being removed
    # stay.
    if waiting := report.staying[NOT_ANCHORED]:
        report.result = NOT_ANCHORED
        told = f"; {report.message}" if report.message else ""
        held_back = format_count(waiting, "log")
        report.message = (
            f"signed statements about {held_back} wait until the auditor's log contains them{told}"
        )


def _count_staying(report: RetentionReport, logs: Logs, overdue: frozenset[str]) -> Counter[str]:
    """Counts the reasons why logs stay, and returns the counts of those that a person must resolve."""
    found = Counter(
        code
        for log in logs
        if log["action"] == "stay"
        for code in {reason["code"] for reason in log["reasons"]}
    )
    report.staying += found
    return Counter({code: count for code, count in found.items() if code in overdue})


def _print(options: argparse.Namespace, report: RetentionReport) -> None:
    done = not options.dry_run
    if output.is_data(options):
        whole = {"done": done, **report.summary(), "removal": report.removal, "erasures": report.erasures}
        output.show(options, whole)
        return
    for line in pruning.report_lines(report.removal, done=done):
        print(line)
    for tenant, logs in report.erasures.items():
        print(f"salts of tenant {tenant}:")
        for line in erasing.report_lines(logs, done=done):
            print(f"  {line}")
    if report.known is None:
        if report.result == "ok":
            print(report.message)
        return
    outside = f" ({len(report.outside)} not in the plan)" if report.outside else ""
    print(f"{format_count(report.holds or 0, 'active hold')}{outside}")
