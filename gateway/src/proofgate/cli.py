"""The command line: which commands and arguments exist. `proofgate.commands` carries them out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

from proofgate_schema.policy import Scope

from proofgate import (
    __version__,
    _core,
    key_rotation,
    payload_command,
    quickstart_command,
    receipt_command,
    schema_command,
    status_command,
    terminal,
)
from proofgate import commands as handlers
from proofgate.auditor import command as auditor_command
from proofgate.descriptors import raise_descriptors
from proofgate.evidence import EvidenceError
from proofgate.exit_codes import EXIT_FAILED, EXIT_USAGE, fail
from proofgate.index import access_log_command, by_hand, end_user_command, export_command
from proofgate.index import command as index_command
from proofgate.keeping import erasing, holds, keep, pruning, shred_keys_command, shredding
from proofgate.mirror import fetch_command
from proofgate.reading import command as reading_command
from proofgate.replay import command as replay_command
from proofgate.witness import command as witness_command

_EXIT_CODES = """\
exit codes:
  0   done; for serve: drained and sealed
  1   the worker could not start, or its log was not sealed before the drain deadline;
      policy test: an example or a sample failed; erase, shred: something of it stays;
      replay: a verdict does not come out again
  2   wrong usage: arguments, configuration, a file that cannot be read, an unknown exchange
  3   replay: there was nothing to replay
  10  fsck, auditor --once and verify-export: incomplete; keep: something stays that
      was to go; access-log: it cannot be compared
  30  fsck, auditor --once: diverged; access-log: it was changed
  40  these, index, configuration and all that verifies: invalid
"""

_SAMPLES = """\
samples, for example:
  - text: my card is 4539 5787 6362 1486
    direction: request          # or response; default: request
    tenant: acme                # default: the gateway's policy
    expect: mask                # allow, flag, mask, redact or block; default: any
    rules: [pii-card]           # have to match; others may as well
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    terminal.guard()
    raise_descriptors()
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except EvidenceError as error:
        return fail(str(error), EXIT_USAGE)
    except _core.ConfigError as error:
        return fail(f"{error} [{error.code}]", EXIT_USAGE)
    except _core.ProofgateError as error:
        return fail(f"{error} [{error.code}]", EXIT_FAILED)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe is gone; the interpreter must not report it a second time when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="proofgate",
        description="An LLM gateway worker that can prove what it did, and the tools for its evidence.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"proofgate {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    quickstart_command.add(partial(_command, commands), _address)
    status_command.add(partial(_command, commands))
    reading_command.add(partial(_command, commands))
    _add_worker_commands(commands)
    schema_command.add(partial(_command, commands))
    _add_front_door(commands)
    _add_prices(commands)
    _add_policy_commands(commands)
    receipt_command.add(partial(_command, commands))
    _add_evidence_commands(commands)
    replay_command.add(partial(_command, commands))
    payload_command.add(partial(_command, commands))
    holds.add(partial(_command, commands))
    pruning.add(partial(_command, commands))
    erasing.add(partial(_command, commands))
    shredding.add(partial(_command, commands))
    shred_keys_command.add(partial(_command, commands))
    keep.add(partial(_command, commands))
    auditor_command.add(partial(_command, commands), _address)
    index_command.add(partial(_command, commands))
    export_command.add(partial(_command, commands))
    access_log_command.add(partial(_command, commands))
    end_user_command.add(partial(_command, commands))
    witness_command.add(partial(_command, commands), _address)
    fetch_command.add(partial(_command, commands))
    _add_key_commands(commands)
    key_rotation.add(partial(_command, commands))
    _add_mock_upstream(commands)
    return parser


_Commands = argparse._SubParsersAction


def _command(
    commands: _Commands[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    details: str = "",
    epilog: str | None = None,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. {details}".strip(),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=run)
    return parser


def _add_worker_commands(commands: _Commands[argparse.ArgumentParser]) -> None:
    serve = _command(
        commands,
        "serve",
        handlers.serve,
        "run one worker",
        "SIGTERM or SIGINT drains and seals it;\n"
        "a second signal leaves at once. SIGHUP reads the configuration again, and so does a change of\n"
        "the file or of one that it names.",
    )
    serve.add_argument("--config", type=Path, required=True, metavar="FILE", help="the worker's YAML file")
    serve.add_argument(
        "--accepted",
        type=Path,
        default=os.environ.get("PROOFGATE_ACCEPTED_CONFIG") or None,
        metavar="FILE",
        help="the file that was accepted last: the worker starts with it when --config is refused"
        " (default: $PROOFGATE_ACCEPTED_CONFIG)",
    )
    serve.add_argument(
        "--shard",
        type=_shard,
        # argparse checks a default that is text like an argument.
        default=os.environ.get("PROOFGATE_SHARD") or "0",
        metavar="N",
        help="this worker's stable number (default: $PROOFGATE_SHARD, or 0)",
    )
    validate = _command(
        commands,
        "validate",
        handlers.validate,
        "check a configuration file and every file it names, and start nothing",
        "Compiles\nthe rules, and reports every problem with its line. Exit code 2 when there is one.",
    )
    given = validate.add_mutually_exclusive_group(required=True)
    given.add_argument("path", type=Path, nargs="?", metavar="CONFIG", help="the worker's YAML file")
    given.add_argument("--config", type=Path, metavar="FILE", help="the same, as serve takes it")
    validate.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to report (default: %(default)s)"
    )


def _add_front_door(commands: _Commands[argparse.ArgumentParser]) -> None:
    front_door = _command(
        commands,
        "front-door",
        handlers.front_door,
        "sync a running HAProxy with its workers, maps, weights and certificate",
        "Follows the\nfiles and applies each change as a whole, over HAProxy's Unix socket, "
        "without a reload.\nAnswers GET /healthz, /readyz, /metrics, /workers and, with --ask, /answers.",
    )
    front_door.add_argument(
        "--socket", type=Path, required=True, metavar="PATH", help="HAProxy's stats socket, of level admin"
    )
    front_door.add_argument(
        "--map",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a map, by the path that HAProxy's configuration names; may be given again",
    )
    front_door.add_argument(
        "--tenant-shards",
        type=Path,
        metavar="DIRECTORY",
        help="what 00/keys … 31/keys and 00/owners … 31/owners hold is added to tenants.map and owners.map",
    )
    front_door.add_argument(
        "--kept-maps",
        type=Path,
        metavar="DIRECTORY",
        help="tenants.map and owners.map are written there whole, shards included, for HAProxy to start from:"
        " its configuration names them",
    )
    front_door.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="weights of servers; one that it does not name has the configured weight",
    )
    front_door.add_argument(
        "--workers",
        type=Path,
        metavar="FILE",
        help="addresses of servers, - for one without; without such a file their names are looked up",
    )
    front_door.add_argument(
        "--server-state",
        type=Path,
        metavar="FILE",
        help="written, with --workers, for HAProxy to start from: its configuration's server-state-file",
    )
    front_door.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="the chain, by the path that HAProxy's configuration names; its key is FILE.key",
    )
    front_door.add_argument(
        "--client-certificate",
        type=Path,
        metavar="FILE",
        help="likewise what HAProxy shows to workers",
    )
    front_door.add_argument(
        "--ask",
        type=_address,
        metavar="ADDRESS",
        help="where HAProxy takes requests, with TLS if there is a certificate: GET / is sent there every few"
        " seconds, and GET /answers says what came of it",
    )
    front_door.add_argument(
        "--ask-proxied", action="store_true", help="begin with a PROXY header, as HAProxy wants one"
    )
    front_door.add_argument(
        "--listen", type=_address, default="127.0.0.1:8405", metavar="ADDRESS", help="default: %(default)s"
    )


def _add_prices(commands: _Commands[argparse.ArgumentParser]) -> None:
    prices = _command(
        commands,
        "prices",
        handlers.prices,
        "list the price that holds for each model of a configuration",
        "In US dollars for a million tokens.\nThe files that the configuration names are not read.",
    )
    prices.add_argument("config", type=Path, metavar="CONFIG", help="the worker's YAML file")
    prices.add_argument("--at", metavar="DATE", help="on this day, midnight UTC (default: now)")
    prices.add_argument(
        "--output", choices=("text", "json"), default="text", help="how to report (default: %(default)s)"
    )


def _add_policy_commands(commands: _Commands[argparse.ArgumentParser]) -> None:
    policy = commands.add_parser(
        "policy",
        help="test, list and try the rules of a configuration",
        description="Test, list and try the rules of a configuration. The files that it names are not read:\n"
        "no secret has to be at hand.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    actions = policy.add_subparsers(title="commands", metavar="COMMAND", required=True)

    test = _command(
        actions,
        "test",
        handlers.policy_test,
        "run the examples of the configuration's own rules, and samples",
        "Judges as if the\npolicy were enforced. Prints failures and what matched; exit code 1 on failure.",
        _SAMPLES,
    )
    test.add_argument("--samples", type=Path, metavar="FILE", help="a YAML list of samples")
    rules = _command(actions, "rules", handlers.policy_rules, "list the rules that are in force")
    rules.add_argument("--pack", metavar="NAME", help="only those of one pack")
    check = _command(
        actions,
        "check",
        handlers.policy_check,
        "show what the policy makes of a text or a request",
        "Prints decision, scopes, scores and matches.",
    )
    what = check.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", metavar="TEXT", help="a text; - reads standard input")
    what.add_argument("--request", metavar="FILE", help="a whole request in JSON; - reads standard input")
    check.add_argument(
        "--endpoint",
        default="/v1/chat/completions",
        metavar="PATH",
        help="where the request would be sent (default: %(default)s)",
    )
    check.add_argument("--scope", choices=get_args(Scope), help="what the text is (default: User or Answer)")
    check.add_argument(
        "--direction",
        choices=("request", "response"),
        default="request",
        help="whether it is a prompt or an answer (default: %(default)s)",
    )
    check.add_argument("--tenant", metavar="NAME", help="whose policy applies (default: the gateway's)")
    for action in (test, rules, check):
        action.add_argument("config", type=Path, metavar="CONFIG", help="the worker's YAML file")


def _add_shred_keys(parser: argparse.ArgumentParser, when: str) -> None:
    parser.add_argument(
        "--shred-keys",
        type=Path,
        metavar="DIR",
        help=f"{when}the folder of tenants' shred keys, for salts that need one",
    )


def _add_evidence_commands(commands: _Commands[argparse.ArgumentParser]) -> None:
    prove = _command(
        commands,
        "prove",
        handlers.prove,
        "write the records of one exchange with their proofs",
        "For each record: ID.KIND.json (the stored\n"
        "bytes) and ID.KIND.tlog-proof (a C2SP proof with the signed checkpoint).",
    )
    prove.add_argument(
        "request_id", metavar="REQUEST_ID", help="the exchange, as the response header named it"
    )
    source = prove.add_mutually_exclusive_group(required=True)
    source.add_argument("--ledger", type=Path, metavar="DIR", help="read the files of a ledger")
    source.add_argument(
        "--admin", metavar="URL", help="ask a running worker, for example http://127.0.0.1:9090"
    )
    prove.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="where to write (default: here)"
    )
    prove.add_argument(
        "--timeout",
        type=_proof_timeout,
        default=5.0,
        metavar="SECONDS",
        help="with --admin: how long a checkpoint may take to cover the exchange (default: 5, at most 30)",
    )

    prove.add_argument(
        "--key", metavar="VKEY", help="with --ledger: check signatures with this verifying key, or file"
    )
    prove.add_argument(
        "--scan",
        action="store_true",
        help="with --ledger: read everything, for an id whose time is not where its records are",
    )
    _add_shred_keys(prove, "with --ledger: ")
    prove.add_argument(
        "--token-file", type=Path, metavar="FILE", help="with --admin: the file with the admin token"
    )

    configuration = _command(
        commands,
        "configuration",
        handlers.configuration,
        "print the configuration that a record names by its digest",
        "It is what was in force,\n"
        "without secrets, as the worker archived it beside its ledger. Exit code 40 when what is there is\n"
        "not what its name says.",
    )
    configuration.add_argument("ledger", type=Path, metavar="LEDGER", help="the ledger's directory")
    configuration.add_argument(
        "digest",
        metavar="DIGEST",
        help="`settings` of the `open` or `config` record before the one in question, or `config` where\n"
        "that has no `settings`; the first 16 digits do",
    )

    verify = _command(
        commands,
        "verify",
        handlers.verify,
        "check a receipt, or one record against its proof, offline",
        "With bodies, a receipt also shows\n"
        "that they are what was sent and answered. Exit code 40 when something does not hold.",
    )
    verify.add_argument(
        "proof", type=Path, metavar="RECEIPT|PROOF", help="the receipt; with --record a .tlog-proof file"
    )
    verify.add_argument("--record", type=Path, metavar="FILE", help="the record's stored bytes")
    verify.add_argument(
        "--request", type=Path, metavar="FILE", help="with a receipt: the request's body, byte for byte"
    )
    verify.add_argument(
        "--response", type=Path, metavar="FILE", help="with a receipt: the answer's body, byte for byte"
    )
    verify.add_argument(
        "--key", required=True, metavar="VKEY", help="the verifying key, or a file that holds it"
    )

    reveal = _command(
        commands,
        "reveal",
        handlers.reveal,
        "show that a recorded commitment opens to a body",
        "With a proof and its record, offline:\n"
        "the proof carries the salt. Or with a request id and --ledger. Exit code 40 when it does not open.",
    )
    reveal.add_argument(
        "evidence", metavar="PROOF|REQUEST_ID", help="the .tlog-proof file; with --ledger a request id"
    )
    reveal.add_argument("--record", type=Path, metavar="FILE", help="the record's stored bytes")
    reveal.add_argument("--ledger", type=Path, metavar="DIR", help="read the files of a ledger")
    _add_shred_keys(reveal, "with --ledger: ")
    by_hand.add_arguments(reveal)
    reveal.add_argument(
        "--body", type=Path, required=True, metavar="FILE", help="the bytes of the request or the answer"
    )
    reveal.add_argument(
        "--key", required=True, metavar="VKEY", help="the verifying key, or a file that holds it"
    )

    consistency = _command(
        commands,
        "consistency",
        handlers.consistency,
        "check that two checkpoints of one log are one history",
        "From the ledger's tree, or offline\nwith a proof. Exit code 40 when they are not.",
    )
    consistency.add_argument("old", type=Path, metavar="OLD", help="a file with the older signed note")
    consistency.add_argument("new", type=Path, metavar="NEW", help="a file with the newer signed note")
    consistency.add_argument(
        "--key", required=True, metavar="VKEY", help="the verifying key, or a file that holds it"
    )
    shown = consistency.add_mutually_exclusive_group(required=True)
    shown.add_argument("--ledger", type=Path, metavar="DIR", help="read the files of a ledger")
    shown.add_argument("--proof", type=Path, metavar="FILE", help="a proof that --out has written")
    consistency.add_argument(
        "--out", type=Path, metavar="FILE", help="write the RFC 9162 proof: one base64 hash in each line"
    )

    fsck = _command(
        commands,
        "fsck",
        handlers.fsck,
        "read a whole ledger again and check it",
        "Exit code 0: verified, 10: incomplete,\n30: diverged from a signed checkpoint, 40: invalid.",
    )
    fsck.add_argument("directory", type=Path, metavar="DIR", help="a ledger, a shard or one incarnation")
    fsck.add_argument(
        "--key", metavar="VKEY", help="the verifying key, or a file; without it signatures are not checked"
    )
    fsck.add_argument(
        "--against",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="signed notes kept outside, one after the other; may be given again. Every log that they\n"
        "name must be there, hold as many records and lead to the same root",
    )
    fsck.add_argument(
        "--keeping-key",
        metavar="VKEY",
        help="the verifying key of the retention job, or a file; without it such a log is incomplete",
    )
    fsck.add_argument(
        "--mirror",
        action="store_true",
        help="it is a copy that a mirror held: salts, trees and continuations of logs are not checked",
    )
    _add_shred_keys(fsck, "")
    fsck.add_argument("--json", action="store_true", help="print the report as JSON")

    export = _command(
        commands,
        "export-leaves",
        handlers.export_leaves,
        "write the leaves of one incarnation for foreign tools",
    )
    export.add_argument("directory", type=Path, metavar="DIR", help="the directory of one incarnation")
    export.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")


def _add_key_commands(commands: _Commands[argparse.ArgumentParser]) -> None:
    keygen = _command(
        commands,
        "keygen",
        handlers.keygen,
        "create the key pair of a ledger, an auditor, a keeper or a witness",
        "Writes signing-key (mode 0600) and verifying-key; never overwrites.",
    )
    keygen.add_argument(
        "name", metavar="NAME", help="the key's name: the ledger's, for example proofgate.example.com/team"
    )
    keygen.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="where to write (default: here)"
    )
    keygen.add_argument(
        "--witness", action="store_true", help="a witness's key, which cosigns (c2sp.org/tlog-cosignature)"
    )
    _command(
        commands,
        "hash-key",
        handlers.hash_key,
        "read an API key from standard input and print its hash for keyHashes",
        "Not from an\nargument: those are visible to other processes.",
    )


def _add_mock_upstream(commands: _Commands[argparse.ArgumentParser]) -> None:
    from proofgate.mock_answers import DIRECTIVES
    from proofgate.mock_logprobs import CHARACTERS

    mock = _command(
        commands,
        "mock-upstream",
        handlers.mock_upstream,
        "an honest stand-in for OpenAI, Anthropic, Google and Amazon: for demonstrations and tests",
        "The\nendpoints that a gateway asks, plain and streamed, GET /v1/models, /health and /mock/stats.",
        DIRECTIVES,
    )
    mock.add_argument(
        "--listen", type=_address, default="127.0.0.1:9000", metavar="ADDRESS", help="default: %(default)s"
    )
    mock.add_argument(
        "--tokens", type=_positive, default=8, metavar="N", help="length of an answer (default: 8)"
    )
    mock.add_argument(
        "--token-interval-ms",
        type=_whole,
        default=0,
        metavar="N",
        help="between the tokens of a stream (default: 0)",
    )
    mock.add_argument(
        "--model", action="append", default=[], metavar="NAME", help="a model that exists (default: all)"
    )
    mock.add_argument(
        "--character",
        choices=CHARACTERS,
        default="a",
        help="which model it plays: b is less sure of its tokens (default: a)",
    )
    mock.add_argument(
        "--api-key", metavar="KEY", help="the key that requests must carry (default: any or none)"
    )


def _between(text: str, minimum: float, maximum: float, whole: bool) -> float:
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = float("nan")
    if not minimum <= number <= maximum:
        kind = "a whole number" if whole else "a number"
        raise argparse.ArgumentTypeError(f"expected {kind} from {minimum} to {maximum}")
    return number


def _shard(text: str) -> int:
    return int(_between(text, 0, 65_535, whole=True))


def _whole(text: str) -> int:
    return int(_between(text, 0, 3_600_000, whole=True))


def _positive(text: str) -> int:
    return int(_between(text, 1, 1_000_000, whole=True))


def _proof_timeout(text: str) -> float:
    return _between(text, 0.001, 30, whole=False)


def _address(text: str) -> str:
    from proofgate.address import split_address

    try:
        split_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
