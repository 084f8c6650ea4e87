"""Distinguishes a wrong verifying key from changed evidence. For the key of another ledger, no message may
claim that a log was tampered with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

#: Code of the core for evidence that the given key did not sign, and for findings about such evidence.
CODE = "another_key"
#: The explanation for this code.
EXPLANATION = (
    "another key: the given key made none of the signatures; give this ledger's key. "
    "Until then, it is unknown whether anything was changed"
)
_INVALID = "invalid"
#: Maximum bytes of a checkpoint.
_MAX_CHECKPOINT_BYTES = 1 << 16


def has_key_mismatch_code(message: str) -> bool:
    """Whether a message ends with the code of another key in brackets."""
    return f"[{CODE}]" in message


def with_explanation(message: str) -> str:
    """Returns a message that has its code in brackets. If no signature is by the given key, adds an
    explanation."""
    if not has_key_mismatch_code(message):
        return message
    return f"{message}\n{EXPLANATION}"


def key_mismatch_verdict(report: dict[str, Any], key: str | None) -> str | None:
    """Returns the verdict on a ledger that is signed with another key and is otherwise valid.

    None for any other ledger."""
    logs = report.get("incarnations", [])
    foreign = {
        _key_name_and_id(log["key"])
        for log in logs
        if log.get("checkpoint") == "bad" and log.get("key") and key is not None and log["key"] not in key
    }
    refused = [found for log in logs for found in log["findings"] if found["verdict"] == _INVALID]
    others = [found for found in report.get("findings", []) if found["verdict"] == _INVALID]
    about_keys = all(found.get("code") == CODE for found in refused)
    # If one log verifies, the key is the ledger's, and a log with another key was added.
    own = any(log.get("checkpoint") == "verified" for log in logs)
    if not foreign or own or not refused or others or not about_keys:
        return None
    given = _key_name_and_id(key)
    return (
        f"another key: the logs name {', '.join(sorted(foreign))} as their key, but {given} was given. "
        "Until the right key is given, it is unknown whether anything was changed"
    )


def check_ledger_key(ledger: Path, key: str) -> str | None:
    """Returns why `key` cannot be the key of a ledger directory: it signed no checkpoint in the directory.

    None if the directory has no checkpoint, or one that is signed with this key or cannot be read.
    """
    from proofgate import _core
    from proofgate.regular_file import read_regular

    found = False
    for path in ledger.glob("*/*/checkpoint"):
        # A writer of the volume may have replaced the file by a pipe, which would block the read.
        checkpoint = read_regular(path, _MAX_CHECKPOINT_BYTES)
        if checkpoint is None:
            return None
        try:
            _core.verify_checkpoint(checkpoint.decode(), key)
        except (_core.ProofgateError, UnicodeDecodeError) as error:
            if getattr(error, "code", None) != CODE:
                return None
            found = True
        else:
            return None
    return f"--ledger-key is not the key of {ledger} [{CODE}]" if found else None


def _key_name_and_id(key: object) -> str:
    """The name and the id of a vkey; names have no plus sign."""
    return "+".join(str(key).split("\n", 1)[0].split("+")[:2])
