"""The command `shred`: destroys a tenant's keys, so that no copy of the ledger reveals its bodies."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proofgate_schema.counts import format_count

from proofgate import evidence, output
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail
from proofgate.keeping import arguments
from proofgate.keeping.shred_key_files import ShredKeyFolder, ShredKeysError

_Key = dict[str, Any]


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Backups and snapshots reveal no bodies either; all records and proofs stay valid. A "
        "statement of the destruction is signed first. Without --yes nothing is changed. Exit "
        "code 1 if a key remains, or if you have to remove it yourself.",
    )
    parser.add_argument(
        "--ledger",
        type=Path,
        action="append",
        required=True,
        metavar="DIR",
        help="the ledger's directory; repeat for each volume if each worker has its own",
    )
    parser.add_argument(
        "--ledger-key",
        required=True,
        metavar="VKEY",
        help="the ledger's verifying key, or a file that contains it",
    )
    arguments.add_state(parser)
    parser.add_argument(
        "--signing-key",
        type=Path,
        required=True,
        metavar="FILE",
        help="the retention job's signing key, which signs each removal",
    )
    arguments.add_auditor(parser)
    parser.add_argument("--tenant", required=True, metavar="NAME", help="the tenant")
    parser.add_argument(
        "--key",
        dest="keys",
        action="append",
        metavar="ID",
        help="the id of a key; can be repeated (default: all keys of the tenant)",
    )
    parser.add_argument(
        "--shred-keys", type=Path, metavar="DIR", help="the folder from which the keys are removed"
    )
    parser.add_argument(
        "--secret",
        metavar="NAMESPACE/NAME",
        default="NAMESPACE/GATEWAY-shred-keys",
        help="the Secret with the keys, for the kubectl command that is printed",
    )
    arguments.add_minimum(parser, "shred")
    parser.add_argument(
        "--reason", required=True, metavar="TEXT", help="the reason, on one line; it is signed"
    )
    arguments.add_author(parser)
    arguments.add_ticket(parser)
    parser.add_argument("--yes", action="store_true", help="carry out the destruction")
    output.add_argument(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Plans the destruction, and with --yes signs it and removes the keys."""
    try:
        keys = _shred(options)
    except (arguments.UsageError, ShredKeysError, ValueError) as error:
        # The error does not contain the text of a key.
        return fail(str(error), EXIT_USAGE)
    going = _removable_key_ids(keys)
    stay = len(keys) - len(going)
    left = bool(going) and options.yes and not _remove(options, going)
    command = _kubectl(options, going) if left else None
    if output.is_data(options):
        output.show(options, {"done": options.yes, "stay": stay, "left_to_you": command, "keys": keys})
    else:
        for line in _report_lines(keys, done=options.yes):
            print(line)
        if not options.yes:
            print(
                f"nothing was changed: --yes would destroy {format_count(len(going), 'key')} of {options.tenant} "
                f"and keep {stay}"
            )
        if command is not None:
            print(
                "the destruction is signed, but the removal of the keys is not confirmed. Remove them:\n  "
                f"{command}"
            )
    return EXIT_FAILED if stay or left or not keys else EXIT_OK


def _shred(options: argparse.Namespace) -> list[_Key]:
    """Returns the action on each key. A key that must stay for one of the ledgers stays for all."""
    policy = arguments.minimum_retention(options)
    why = arguments.Justification(
        arguments.author(options, signs=options.yes), options.reason, options.ticket
    )
    there: list[str] = []
    if options.shred_keys is not None:
        there = ShredKeyFolder(options.shred_keys).ids().get(options.tenant, [])
    retention = arguments.open_retention_state(options.state)
    for ledger in options.ledger:
        arguments.require_separate(options.state, ledger)
    signing_key, anchored = (
        arguments.read_signing_key(options.signing_key),
        arguments.anchored_statements(options),
    )

    def shred(ledger: Path, only: list[str] | None, *, carry_out: bool) -> list[_Key]:
        answer: list[_Key] = json.loads(
            retention.shred(
                str(ledger),
                evidence.read_verifying_key(options.ledger_key),
                signing_key,
                options.tenant,
                only,
                there,
                policy,
                why,
                arguments.now(),
                carry_out,
                anchored,
            )
        )
        return answer

    def plan(only: list[str] | None) -> list[_Key]:
        planned: dict[str, _Key] = {}
        for ledger in options.ledger:
            for key in shred(ledger, only, carry_out=False):
                _merge_key(planned, key)
        return [planned[key] for key in sorted(planned)]

    # Plan all volumes first, because records on one volume may require a key that another one uses too.
    known = sorted({key["key"] for key in plan(options.keys)})
    keys = plan(known) if known else []
    for key in keys:
        # A signed destruction of an unknown key would record a typing error permanently.
        if key["action"] == "destroy" and key["key"] not in there and not key["exchanges"]:
            raise arguments.UsageError(
                f"{key['key']} is not a shred key of {options.tenant}: the folder of shred keys "
                "(--shred-keys) does not contain this key, and no admitted request in the ledger used it"
            )
    if options.yes:
        planned = {key["key"]: key for key in keys}
        for ledger in options.ledger:
            # New records since the plan may require a key. It then stays, and its destruction is not signed
            # on later volumes.
            if going := _removable_key_ids(keys):
                for key in shred(ledger, going, carry_out=True):
                    _merge_key(planned, {**key, "exchanges": 0})
    return keys


def _removable_key_ids(keys: list[_Key]) -> list[str]:
    return [key["key"] for key in keys if key["action"] != "stay"]


def _merge_key(keys: dict[str, _Key], key: _Key) -> None:
    """Merges one ledger's result for a key. The strictest action of all ledgers applies."""
    before = keys.setdefault(key["key"], {**key, "exchanges": 0, "reasons": []})
    before["exchanges"] += key["exchanges"]
    before["reasons"] += key["reasons"]
    order = ("destroyed", "destroy", "stay")
    before["action"] = max(before["action"], key["action"], key=order.index)


def _remove(options: argparse.Namespace, keys: list[str]) -> bool:
    """Removes keys from the folder. Returns whether they are gone."""
    if options.shred_keys is None:
        return False
    folder = ShredKeyFolder(options.shred_keys)
    try:
        folder.drop(options.tenant, keys)
        return not set(keys) & set(folder.ids().get(options.tenant, []))
    except OSError as error:
        fail(f"{error.filename or options.shred_keys} cannot be written: {error.strerror}", EXIT_FAILED)
    except (ShredKeysError, ValueError) as error:
        # The file was damaged after the plan. The error does not contain the text of a key.
        fail(str(error), EXIT_FAILED)
    return False


def _kubectl(options: argparse.Namespace, keys: list[str]) -> str:
    namespace, _, name = options.secret.rpartition("/")
    flag = f"-n {shlex.quote(namespace)} " if namespace else ""
    which = " ".join(f"--key {key}" for key in keys)
    return (
        f"kubectl {flag}get secret {shlex.quote(name)} -o json"
        f" | proofgate ledger shred-keys drop - {shlex.quote(options.tenant)} {which}"
        f" | kubectl {flag}replace -f -"
    )


def _report_lines(keys: list[_Key], *, done: bool) -> Iterator[str]:
    if not keys:
        yield (
            "no shred key is known: the folder of shred keys (--shred-keys) contains no key of this tenant, and "
            "no request in the ledger used one"
        )
    for key in keys:
        named = f"key {key['key']}, with the salts of {format_count(key['exchanges'], 'exchange')}"
        match key["action"]:
            case "destroy":
                verb = "destroyed" if done else "will be destroyed"
                yield f"{verb}: {named}"
            case "destroyed":
                yield f"already destroyed: {named}"
            case _:
                yield f"kept: {named}"
                for reason in key["reasons"]:
                    yield f"  {reason['code']}: {reason['text']}"
