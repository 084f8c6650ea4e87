"""The command line: the commands and their arguments. `proofgate.commands` runs them."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
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
from proofgate.cose import statement
from proofgate.descriptors import raise_descriptors
from proofgate.evidence import EvidenceError
from proofgate.exit_codes import EXIT_FAILED, EXIT_USAGE, fail
from proofgate.index import access_log_command, by_hand, end_user_command, export_command
from proofgate.index import command as index_command
from proofgate.keeping import erasing, holds, pruning, retention_job, shred_keys_command, shredding
from proofgate.logs import UnknownLogFormatError
from proofgate.mirror import fetch_command
from proofgate.reading import command as reading_command
from proofgate.replay import command as replay_command
from proofgate.witness import command as witness_command

#: Columns of a command's description.
_WIDTH = 98

_EXIT_CODES = """\
exit codes:
  0   done; serve: drained and sealed
  1   serve: the worker could not start, or its log was not sealed before the drain deadline;
      policy test: an example or a sample failed; erase, shred: a salt or a key remains;
      replay: a verdict is not reproduced
  2   wrong usage: arguments, configuration, a file that cannot be read, an unknown exchange
  3   replay: nothing could be replayed
  10  fsck, auditor --once, verify-export: incomplete; retention: something that was due remains;
      access-log: it cannot be compared
  30  fsck, auditor --once: diverged; access-log: it was changed
  40  fsck, auditor --once, index, configuration and commands that verify: invalid
"""

_SAMPLES = """\
samples, for example:
  - text: my card is 4539 5787 6362 1486
    direction: request          # or response; default: request
    tenant: acme                # default: the gateway's policy
    expect: mask                # allow, flag, mask, redact or block; default: any
    rules: [pii-card]           # must match; others may match, too
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    terminal.guard()
    raise_descriptors()
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except (EvidenceError, UnknownLogFormatError) as error:
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
        description="Run an LLM gateway worker that keeps provable records, and verify its evidence.",
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
    _add_haproxy_sidecar(commands)
    _add_prices(commands)
    _add_policy_commands(commands)
    receipt_command.add(partial(_command, commands))
    statement.add(partial(_command, commands))
    _add_evidence_commands(commands)
    replay_command.add(partial(_command, commands))
    payload_command.add(partial(_command, commands))
    holds.add(partial(_command, commands))
    pruning.add(partial(_command, commands))
    erasing.add(partial(_command, commands))
    shredding.add(partial(_command, commands))
    shred_keys_command.add(partial(_command, commands))
    retention_job.add(partial(_command, commands))
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
        description=textwrap.fill(
            f"{summary[0].upper()}{summary[1:]}. {details}", _WIDTH, break_on_hyphens=False
        ),
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
        "SIGTERM or SIGINT drains and seals it. A second signal stops it at once. SIGHUP reloads "
        "the configuration. So does a change to the file, or to a file that it names.",
    )
    serve.add_argument("--config", type=Path, required=True, metavar="FILE", help="the worker's YAML file")
    serve.add_argument(
        "--accepted",
        type=Path,
        default=os.environ.get("PROOFGATE_ACCEPTED_CONFIG") or None,
        metavar="FILE",
        help="the configuration that was accepted last; the worker starts with it if --config is "
        "refused (default: $PROOFGATE_ACCEPTED_CONFIG)",
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
        "check a configuration file and every file that it names, without starting a worker",
        "Compiles the rules and reports each problem with its line. Exit code 2 if there is a problem.",
    )
    given = validate.add_mutually_exclusive_group(required=True)
    given.add_argument("path", type=Path, nargs="?", metavar="CONFIG", help="the worker's YAML file")
    given.add_argument("--config", type=Path, metavar="FILE", help="the same, as an option")
    validate.add_argument(
        "--format", choices=("text", "json"), default="text", help="the output format (default: %(default)s)"
    )


def _add_haproxy_sidecar(commands: _Commands[argparse.ArgumentParser]) -> None:
    haproxy_sidecar = _command(
        commands,
        "haproxy-sidecar",
        handlers.haproxy_sidecar,
        "sync the workers, maps, weights and certificate of a running HAProxy",
        "Watches the files and applies each change atomically over HAProxy's Unix socket, "
        "without a reload. Serves GET /healthz, /readyz, /metrics, /workers and, with --ask, "
        "/answers.",
    )
    haproxy_sidecar.add_argument(
        "--socket", type=Path, required=True, metavar="PATH", help="HAProxy's stats socket, with level admin"
    )
    haproxy_sidecar.add_argument(
        "--map",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a map file, at the path in HAProxy's configuration; can be repeated",
    )
    haproxy_sidecar.add_argument(
        "--tenant-shards",
        type=Path,
        metavar="DIRECTORY",
        help="add the contents of 00/keys … 31/keys and 00/owners … 31/owners to tenants.map and owners.map",
    )
    haproxy_sidecar.add_argument(
        "--kept-maps",
        type=Path,
        metavar="DIRECTORY",
        help="write complete tenants.map and owners.map there, with all shards; HAProxy's "
        "configuration names these files, so it starts with them",
    )
    haproxy_sidecar.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="the weights of servers; a server that is not listed keeps its configured weight",
    )
    haproxy_sidecar.add_argument(
        "--workers",
        type=Path,
        metavar="FILE",
        help="the addresses of servers, - for a server without an address (default: resolve their names)",
    )
    haproxy_sidecar.add_argument(
        "--server-state",
        type=Path,
        metavar="FILE",
        help="with --workers: write the state of servers to this file; HAProxy starts with it (its "
        "server-state-file)",
    )
    haproxy_sidecar.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="the certificate chain, at the path in HAProxy's configuration; its key is FILE.key",
    )
    haproxy_sidecar.add_argument(
        "--client-certificate",
        type=Path,
        metavar="FILE",
        help="the client certificate that HAProxy presents to workers, likewise",
    )
    haproxy_sidecar.add_argument(
        "--ask",
        type=_address,
        metavar="ADDRESS",
        help="the address of HAProxy's traffic port, with TLS if there is a certificate; probe it "
        "with GET / every few seconds, and report the results at GET /answers",
    )
    haproxy_sidecar.add_argument(
        "--ask-proxied",
        action="store_true",
        help="start each probe with a PROXY header, if HAProxy expects one",
    )
    haproxy_sidecar.add_argument(
        "--listen", type=_address, default="127.0.0.1:8405", metavar="ADDRESS", help="default: %(default)s"
    )


def _add_prices(commands: _Commands[argparse.ArgumentParser]) -> None:
    prices = _command(
        commands,
        "prices",
        handlers.prices,
        "list the price that applies to each model of a configuration",
        "Prices are in US dollars per million tokens. Files that the configuration names are not read.",
    )
    prices.add_argument("config", type=Path, metavar="CONFIG", help="the worker's YAML file")
    prices.add_argument("--at", metavar="DATE", help="the prices of this day, at midnight UTC (default: now)")
    prices.add_argument(
        "--output", choices=("text", "json"), default="text", help="the output format (default: %(default)s)"
    )


def _add_policy_commands(commands: _Commands[argparse.ArgumentParser]) -> None:
    policy = commands.add_parser(
        "policy",
        help="test, list and try the rules of a configuration",
        description="Test, list and try the rules of a configuration.\n"
        "Files that the configuration names are not read, so no secret is needed.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    actions = policy.add_subparsers(title="commands", metavar="COMMAND", required=True)

    test = _command(
        actions,
        "test",
        handlers.policy_test,
        "run the examples of the configuration's own rules, and samples",
        "Evaluates as if the policy were enforced. Prints each failure and what matched. Exit "
        "code 1 if an example or a sample fails.",
        _SAMPLES,
    )
    test.add_argument("--samples", type=Path, metavar="FILE", help="a YAML list of samples")
    rules = _command(actions, "rules", handlers.policy_rules, "list the rules in force")
    rules.add_argument("--pack", metavar="NAME", help="only the rules of this pack")
    check = _command(
        actions,
        "check",
        handlers.policy_check,
        "evaluate a text or a request with the policy",
        "Prints the decision, scopes, scores and matches.",
    )
    what = check.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", metavar="TEXT", help="the text, or - for standard input")
    what.add_argument(
        "--request", metavar="FILE", help="a file with a whole request in JSON, or - for standard input"
    )
    check.add_argument(
        "--endpoint",
        default="/v1/chat/completions",
        metavar="PATH",
        help="the endpoint of the request (default: %(default)s)",
    )
    check.add_argument(
        "--scope", choices=get_args(Scope), help="the scope of the text (default: User or Answer)"
    )
    check.add_argument(
        "--direction",
        choices=("request", "response"),
        default="request",
        help="the direction: prompt or answer (default: %(default)s)",
    )
    check.add_argument(
        "--tenant", metavar="NAME", help="the tenant whose policy applies (default: the gateway's policy)"
    )
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
        "Writes two files for each record: ID.KIND.json (the stored bytes) and "
        "ID.KIND.tlog-proof (a C2SP proof with the signed checkpoint).",
    )
    prove.add_argument(
        "request_id", metavar="REQUEST_ID", help="the exchange: the x-request-id of its response"
    )
    source = prove.add_mutually_exclusive_group(required=True)
    source.add_argument("--ledger", type=Path, metavar="DIR", help="the ledger's directory")
    source.add_argument(
        "--admin", metavar="URL", help="the admin port of a running worker, for example http://127.0.0.1:9090"
    )
    prove.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the output directory (default: the current one)",
    )
    prove.add_argument(
        "--timeout",
        type=_proof_timeout,
        default=5.0,
        metavar="SECONDS",
        help="with --admin: how long to wait for a checkpoint that covers the exchange (default: 5, "
        "at most 30)",
    )

    prove.add_argument(
        "--key",
        metavar="VKEY",
        help="with --ledger: check signatures with this verifying key, or a file with it",
    )
    prove.add_argument(
        "--scan",
        action="store_true",
        help="with --ledger: search the whole ledger, if the records are not near the time in the id",
    )
    _add_shred_keys(prove, "with --ledger: ")
    prove.add_argument(
        "--token-file", type=Path, metavar="FILE", help="with --admin: the file with the admin token"
    )

    configuration = _command(
        commands,
        "configuration",
        handlers.configuration,
        "print an archived configuration by its digest",
        "Records name the configuration in force by its digest. The worker archives it beside "
        "the ledger, without secrets. Exit code 40 if the archived file does not match its "
        "digest.",
    )
    configuration.add_argument("ledger", type=Path, metavar="LEDGER", help="the ledger's directory")
    configuration.add_argument(
        "digest",
        metavar="DIGEST",
        help="the `settings` of the last `open` or `config` record before yours, or its `config` if "
        "it has no `settings`; the first 16 digits are enough",
    )

    verify = _command(
        commands,
        "verify",
        handlers.verify,
        "check a receipt, or one record against its proof, offline",
        "With --request and --response it also checks that these bodies were recorded, byte for "
        "byte. Exit code 40 if a check fails.",
    )
    verify.add_argument(
        "proof", type=Path, metavar="RECEIPT|PROOF", help="the receipt, or with --record a .tlog-proof file"
    )
    verify.add_argument("--record", type=Path, metavar="FILE", help="the record's stored bytes")
    verify.add_argument("--request", type=Path, metavar="FILE", help="with a receipt: the request's body")
    verify.add_argument("--response", type=Path, metavar="FILE", help="with a receipt: the response's body")
    verify.add_argument("--key", required=True, metavar="VKEY", help="the verifying key, or a file with it")

    reveal = _command(
        commands,
        "reveal",
        handlers.reveal,
        "check that a recorded commitment opens to a body",
        "Give a proof and its record to check offline: the proof contains the salt. Or give a "
        "request id and --ledger. Exit code 40 if the commitment does not open.",
    )
    reveal.add_argument(
        "evidence", metavar="PROOF|REQUEST_ID", help="the .tlog-proof file, or with --ledger a request id"
    )
    reveal.add_argument("--record", type=Path, metavar="FILE", help="the record's stored bytes")
    reveal.add_argument("--ledger", type=Path, metavar="DIR", help="the ledger's directory")
    _add_shred_keys(reveal, "with --ledger: ")
    by_hand.add_arguments(reveal)
    reveal.add_argument(
        "--body",
        type=Path,
        required=True,
        metavar="FILE",
        help="the body of the request or the response, byte for byte",
    )
    reveal.add_argument("--key", required=True, metavar="VKEY", help="the verifying key, or a file with it")

    consistency = _command(
        commands,
        "consistency",
        handlers.consistency,
        "check that two checkpoints of a log are consistent",
        "Uses the ledger's tree, or a proof to check offline. Exit code 40 if they are not consistent.",
    )
    consistency.add_argument(
        "old", type=Path, metavar="OLD", help="the file with the older checkpoint (a signed note)"
    )
    consistency.add_argument(
        "new", type=Path, metavar="NEW", help="the file with the newer checkpoint (a signed note)"
    )
    consistency.add_argument(
        "--key", required=True, metavar="VKEY", help="the verifying key, or a file with it"
    )
    shown = consistency.add_mutually_exclusive_group(required=True)
    shown.add_argument("--ledger", type=Path, metavar="DIR", help="the ledger's directory")
    shown.add_argument("--proof", type=Path, metavar="FILE", help="a proof that --out wrote")
    consistency.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the RFC 9162 consistency proof, one base64 hash on each line",
    )

    fsck = _command(
        commands,
        "fsck",
        handlers.fsck,
        "read and check a whole ledger",
        "Exit code 0: verified, 10: incomplete,\n30: diverged from a signed checkpoint, 40: invalid.",
    )
    fsck.add_argument(
        "directory", type=Path, metavar="DIR", help="the directory of a ledger, a shard or an incarnation"
    )
    fsck.add_argument(
        "--key",
        metavar="VKEY",
        help="the verifying key, or a file with it; without it signatures are not checked",
    )
    fsck.add_argument(
        "--against",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a file with checkpoints (signed notes) from outside the ledger; can be repeated. Each "
        "log that they name must exist, have at least as many records, and have the same root",
    )
    fsck.add_argument(
        "--keeping-key",
        metavar="VKEY",
        help="the verifying key of the retention job, or a file with it; without it a removed log is "
        "incomplete",
    )
    fsck.add_argument(
        "--mirror",
        action="store_true",
        help="the directory was restored from a mirror: do not check salts, trees and continuations of logs",
    )
    _add_shred_keys(fsck, "")
    fsck.add_argument("--json", action="store_true", help="print the report as JSON")

    export = _command(
        commands,
        "export-leaves",
        handlers.export_leaves,
        "write the leaves of an incarnation to a file, for other tools",
    )
    export.add_argument("directory", type=Path, metavar="DIR", help="the incarnation's directory")
    export.add_argument("--out", type=Path, required=True, metavar="FILE", help="the output file")


def _add_key_commands(commands: _Commands[argparse.ArgumentParser]) -> None:
    keygen = _command(
        commands,
        "keygen",
        handlers.keygen,
        "create a key pair for a ledger, an auditor, a retention job or a witness",
        "Writes signing-key (mode 0600) and verifying-key. Never overwrites a file.",
    )
    keygen.add_argument(
        "name",
        metavar="NAME",
        help="the name of the key, for example the ledger's name proofgate.example.com/team",
    )
    keygen.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the output directory (default: the current one)",
    )
    keygen.add_argument(
        "--witness",
        action="store_true",
        help="create a key for a witness, which cosigns (c2sp.org/tlog-cosignature)",
    )
    _command(
        commands,
        "hash-key",
        handlers.hash_key,
        "read an API key from standard input and print its hash for keyHashes",
        "The key is not an argument, because other processes can see arguments.",
    )


def _add_mock_upstream(commands: _Commands[argparse.ArgumentParser]) -> None:
    from proofgate.mock_answers import DIRECTIVES
    from proofgate.mock_logprobs import CHARACTERS

    mock = _command(
        commands,
        "mock-upstream",
        handlers.mock_upstream,
        "run a simulated provider (OpenAI, Anthropic, Google, Amazon) for demonstrations and tests",
        "Serves the endpoints that a gateway calls, with and without streaming, and GET "
        "/v1/models, /health and /mock/stats.",
        DIRECTIVES,
    )
    mock.add_argument(
        "--listen", type=_address, default="127.0.0.1:9000", metavar="ADDRESS", help="default: %(default)s"
    )
    mock.add_argument(
        "--tokens",
        type=_positive,
        default=8,
        metavar="N",
        help="the length of a response, in tokens (default: 8)",
    )
    mock.add_argument(
        "--token-interval-ms",
        type=_whole,
        default=0,
        metavar="N",
        help="the time between the tokens of a stream (default: 0)",
    )
    mock.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="a model to serve; can be repeated (default: any name)",
    )
    mock.add_argument(
        "--character",
        choices=CHARACTERS,
        default="a",
        help="the simulated model: b gives its tokens lower probabilities (default: a)",
    )
    mock.add_argument(
        "--api-key", metavar="KEY", help="the API key that requests need (default: any key or none)"
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
