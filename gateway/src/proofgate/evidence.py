"""Functions that read evidence, for `prove`, `verify` and `fsck`. None of these commands needs a running
worker.

Evidence is written and checked byte for byte as stored: no record is parsed and serialized again.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofgate import _core, another_key
from proofgate.admin_client import AdminError, AdminRefusedError, admin_get
from proofgate.exit_codes import ExitCode
from proofgate.terminal import one_line

VERDICTS: dict[int, str] = {
    ExitCode.OK: "verified",
    ExitCode.INCOMPLETE: "incomplete: all present records verify, but the log is not sealed or not complete",
    ExitCode.DIVERGED: "diverged: the log contradicts a checkpoint that was signed before",
    ExitCode.INVALID: "invalid: the log was changed after it was written",
}
#: Verdict on a ledger that is invalid only because a part of it cannot be read.
UNREADABLE_VERDICT = "invalid: a part of the ledger cannot be read, and was not checked"

_VERIFYING_KEY = re.compile(r"[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*")
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_KIND = re.compile(r"[a-z0-9_]{1,32}")
_HASH_BYTES = 32


class EvidenceError(Exception):
    """Evidence is unavailable (wrong input, an unreadable file, an unknown exchange) or invalid
    (`receipts.ContradictedError`)."""


@dataclass(frozen=True)
class ProvenRecord:
    """One record of an exchange with its proof, as text that is written unchanged."""

    kind: str
    record: str
    proof: str
    shred_key_missing: str | None = None
    """The shred key that the salt needs, if this key is missing; the proof then contains no salt."""
    salt_unreadable: str | None = None
    """Why the salt cannot be read; the proof then contains no salt."""


@dataclass(frozen=True)
class ProvenExchange:
    """The proven records of an exchange, and why its other records cannot be proven."""

    records: list[ProvenRecord]
    unproven: list[str]

    @property
    def findings(self) -> list[str]:
        """Messages about requested records that cannot be read or proven."""
        salts = {record.salt_unreadable for record in self.records if record.salt_unreadable}
        return [*self.unproven, *(unreadable_salt_message(why) for why in sorted(salts))]


def prove_from_ledger(
    directory: Path,
    request_id: str,
    key: str | None = None,
    *,
    scan: bool = False,
    shred_keys: Path | None = None,
) -> ProvenExchange:
    """Creates proofs from the files of a ledger. Records are searched near the time in the id, or with `scan`
    in the whole ledger. `shred_keys` is the folder of the shred keys that encrypted salts need.

    Raises EvidenceError.
    """
    _require_request_id(request_id)
    if not directory.is_dir():
        raise EvidenceError(f"{directory} is not a directory")
    verifying_key = read_verifying_key(key) if key is not None else None
    try:
        folder = None if shred_keys is None else str(shred_keys)
        answer = _core.prove(str(directory), request_id, verifying_key, scan, folder)
    except KeyError:
        where = f"under {directory}" if scan else f"under {directory} near the time in its id"
        advice = "" if scan else ": --scan searches the whole ledger"
        raise EvidenceError(f"exchange {request_id} was not found {where}{advice}") from None
    except _core.ProofgateError as error:
        raise EvidenceError(f"{error} [{error.code}]") from None
    return _parse_proven_exchange(answer)


def prove_from_worker(
    admin: str, request_id: str, timeout_seconds: float, token_file: Path | None = None
) -> ProvenExchange:
    """Gets proofs from a worker's admin port. Waits up to the timeout for a checkpoint that covers the
    records.

    Raises EvidenceError.
    """
    _require_request_id(request_id)
    path = f"/proof/{urllib.parse.quote(request_id, safe='')}?timeout={timeout_seconds}"
    try:
        # The worker may use the whole timeout before it answers.
        answer = admin_get(admin, path, timeout_seconds + 5, token_file)
    except AdminRefusedError as error:
        raise EvidenceError(f"the worker refused to prove {request_id}: {error}") from None
    except AdminError as error:
        raise EvidenceError(str(error)) from None
    return _parse_proven_exchange(answer)


def write_proofs(records: list[ProvenRecord], request_id: str, directory: Path) -> list[tuple[Path, Path]]:
    """Writes `<id>.<kind>.json` and `<id>.<kind>.tlog-proof` for each record. Returns (proof, record) paths.

    The name of a second record of a kind is `<id>.<kind>-2`, and so on.

    Raises EvidenceError.
    """
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        seen: Counter[str] = Counter()
        for proven in records:
            seen[proven.kind] += 1
            number = f"-{seen[proven.kind]}" if seen[proven.kind] > 1 else ""
            record = directory / f"{request_id}.{proven.kind}{number}.json"
            proof = directory / f"{request_id}.{proven.kind}{number}.tlog-proof"
            record.write_bytes(proven.record.encode())
            proof.write_bytes(proven.proof.encode())
            written.append((proof, record))
    except OSError as error:
        raise EvidenceError(f"{error.filename} cannot be written: {error.strerror}") from None
    return written


def verify(proof: Path, record: Path, key: str) -> dict[str, Any]:
    """Checks a record against its proof. Returns origin, size, index and root.

    Raises EvidenceError if a file cannot be read, the core's ProofError if the proof is invalid.
    """
    result: dict[str, Any] = json.loads(
        _core.verify_proof(_read(record), read_text(proof), read_verifying_key(key))
    )
    return result


def reveal(proof: Path, record: Path, body: Path, key: str) -> str:
    """Checks a record against its proof, and a body against the record's commitment. Returns which body of
    the exchange it is.

    Raises EvidenceError if a file cannot be read, the core's ProofError if a check fails.
    """
    return _core.reveal(_read(record), read_text(proof), read_verifying_key(key), _read(body))


def reveal_from_ledger(
    directory: Path, request_id: str, body: Path, key: str, shred_keys: Path | None = None
) -> list[str]:
    """Returns which bodies of an exchange in a ledger's files are equal to `body`. Raises EvidenceError."""
    held, content = read_verifying_key(key), _read(body)
    revealed, refusals = [], []
    exchange = prove_from_ledger(directory, request_id, key, shred_keys=shred_keys)
    for proven in exchange.records:
        if proven.salt_unreadable is not None:
            refusals.append(f"{proven.kind}: {unreadable_salt_message(proven.salt_unreadable)}")
            continue
        if proven.shred_key_missing is not None:
            refusals.append(f"{proven.kind}: {missing_shred_key_message(proven.shred_key_missing)}")
            continue
        try:
            revealed.append(_core.reveal(proven.record.encode(), proven.proof, held, content))
        except _core.ProofError as error:
            refusals.append(f"{proven.kind}: {error}")
    if not revealed:
        raise EvidenceError("; ".join([*exchange.unproven, *refusals]))
    return revealed


def missing_shred_key_message(key: str) -> str:
    """The message for a salt whose shred key is missing."""
    return f"its salt needs the shred key {key}, which is missing [shred_key_missing]"


def unreadable_salt_message(why: str) -> str:
    """The message for a salt that cannot be read."""
    return f"its salt cannot be read, so it cannot prove a body: {why}"


def check_consistency(
    old: Path, new: Path, key: str, ledger: Path | None, proof: Path | None
) -> dict[str, Any]:
    """Checks that two checkpoints are consistent. Returns origin, sizes and the proof.

    Raises EvidenceError if a file cannot be read, the core's LedgerError if they are not consistent.
    """
    result: dict[str, Any] = json.loads(
        _core.consistency(
            (str(old), read_text(old)),
            (str(new), read_text(new)),
            read_verifying_key(key),
            str(ledger) if ledger is not None else None,
            _read_hashes(proof) if proof is not None else None,
        )
    )
    return result


def _read_hashes(path: Path) -> list[bytes]:
    try:
        hashes = [base64.b64decode(line, validate=True) for line in read_text(path).splitlines()]
    except ValueError:
        hashes = [b""]
    if not all(len(entry) == _HASH_BYTES for entry in hashes):
        raise EvidenceError(f"{path} is not a consistency proof: expected one base64 hash on each line")
    return hashes


def fsck(
    directory: Path,
    key: str | None,
    against: list[Path] | None = None,
    keeping_key: str | None = None,
    *,
    mirror: bool = False,
    shred_keys: Path | None = None,
) -> tuple[int, dict[str, Any]]:
    """Checks every incarnation under a directory, also against checkpoint notes that are stored elsewhere.
    Only the holder of the key `keeping_key` may have removed logs. A copy from a `mirror` has no salts, no
    trees and no open logs. `shred_keys` is the folder of the shred keys that encrypted salts need.

    Returns the exit code and the report.

    Raises EvidenceError.
    """
    if not directory.is_dir():
        raise EvidenceError(f"{directory} is not a directory")
    if against and key is None:
        raise EvidenceError("--against needs --key: a note without a verified signature proves nothing")
    held = [(str(path), read_text(path)) for path in against or []]
    verifying_key = read_verifying_key(key) if key is not None else None
    retention_key = read_verifying_key(keeping_key) if keeping_key is not None else None
    try:
        folder = None if shred_keys is None else str(shred_keys)
        exit_class, report = _core.fsck(str(directory), verifying_key, held, retention_key, mirror, folder)
    except ValueError as error:
        raise EvidenceError(str(error)) from None
    except _core.LedgerError as error:
        if error.code in ("bad_note", another_key.CODE):
            raise EvidenceError(f"{error} [{error.code}]") from None
        raise
    document: dict[str, Any] = json.loads(report)
    # Notes that are stored elsewhere verified with the key, so it is the right one.
    if (
        exit_class == ExitCode.INVALID
        and not held
        and another_key.key_mismatch_verdict(document, verifying_key)
    ):
        exit_class = ExitCode.ANOTHER_KEY
    return exit_class, document


def render_report(exit_class: int, report: dict[str, Any], key: str | None = None) -> str:
    """Formats the report as text: one indented line per fact, the verdict last. With `key`, a wrong key is
    distinguished from changed logs. Raises EvidenceError for an invalid key."""
    lines = list(_outline(report, 0))
    told = VERDICTS.get(exit_class, f"unknown exit code {exit_class}")
    if exit_class == ExitCode.INVALID and _is_only_unreadable(report):
        told = UNREADABLE_VERDICT
    if exit_class == ExitCode.ANOTHER_KEY and key is not None:
        told = another_key.key_mismatch_verdict(report, read_verifying_key(key)) or told
    lines.append(told)
    return "\n".join(lines)


def _is_only_unreadable(report: dict[str, Any]) -> bool:
    """Whether the ledger is invalid only because parts are unreadable, which does not mean that anything was
    changed."""
    of_logs = (found for log in report.get("incarnations", []) for found in log.get("findings", []))
    invalid = [found for found in (*report.get("findings", []), *of_logs) if found["verdict"] == "invalid"]
    return bool(invalid) and all(found.get("code") == "unreadable" for found in invalid)


def read_verifying_key(text: str) -> str:
    """Returns a verifying key from a text (`name+hash+base64`) or from a file with this text.

    Statements of key succession may follow the key. They are part of the result.

    Raises EvidenceError.
    """
    if _VERIFYING_KEY.fullmatch(text.split("\n", 1)[0]):
        return text
    if text.startswith("PRIVATE+KEY+"):
        raise EvidenceError("--key is a signing key: give the verifying key, and keep the signing key secret")
    try:
        key = _read(Path(text)).decode().strip()
    except UnicodeDecodeError:
        key = ""
    if not _VERIFYING_KEY.fullmatch(key.split("\n", 1)[0].strip()):
        # The text is not repeated, because it may be a signing key, which must not appear in a terminal.
        raise EvidenceError(
            f"{text} contains no verifying key: expected one line such as name+1a2b3c4d+AbCd..."
        )
    return key


def _require_request_id(request_id: str) -> None:
    # The id becomes part of a URL and of file names.
    if not _REQUEST_ID.fullmatch(request_id):
        raise EvidenceError("a request id contains only letters, digits and . _ : -")


def _parse_proven_exchange(answer: str) -> ProvenExchange:
    try:
        document = json.loads(answer)
        unproven = document.get("unproven", [])
        records = [
            ProvenRecord(
                kind=entry["kind"],
                record=entry["record"],
                proof=entry["proof"],
                shred_key_missing=entry.get("shred_key_missing"),
                salt_unreadable=entry.get("salt_unreadable"),
            )
            for entry in document["records"]
        ]
        kinds = [proven.kind for proven in records]
        well_formed = (
            all(_KIND.fullmatch(kind) for kind in kinds)  # a kind becomes part of a file name
            and all(isinstance(text, str) for proven in records for text in (proven.record, proven.proof))
            and all(isinstance(proven.shred_key_missing, str | None) for proven in records)
            and all(isinstance(proven.salt_unreadable, str | None) for proven in records)
            and isinstance(unproven, list)
            and all(isinstance(why, str) for why in unproven)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        well_formed = False
    if not well_formed:
        raise EvidenceError("the answer is not a list of proven records: is this a Proofgate admin port?")
    return ProvenExchange(records, unproven)


def read_text(path: Path) -> str:
    """Reads the text of a file. Raises EvidenceError."""
    try:
        return _read(path).decode()
    except UnicodeDecodeError:
        raise EvidenceError(f"{path} is not a text file") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}") from None


def _outline(value: Any, depth: int) -> list[str]:
    indent = "  " * depth
    entries = value.items() if isinstance(value, dict) else ((None, entry) for entry in value)
    lines = []
    for name, entry in entries:
        label = f"{indent}{name}:" if name is not None else f"{indent}-"
        if isinstance(entry, dict | list):
            lines.append(label if entry else f"{label} none")
            lines += _outline(entry, depth + 1)
        else:
            # The name of a file can contain any character.
            lines.append(f"{label} {json.dumps(entry) if not isinstance(entry, str) else one_line(entry)}")
    return lines
