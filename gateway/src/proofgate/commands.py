"""Functions that run the commands: each takes parsed arguments and returns an exit code.

Each function imports what it needs, so verifying a proof does not load a web server.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from proofgate import _core, logs, output
from proofgate.exit_codes import (
    EXIT_FAILED,
    EXIT_INCOMPLETE,
    EXIT_INVALID_EVIDENCE,
    EXIT_OK,
    EXIT_USAGE,
    fail,
)
from proofgate.terminal import show_bytes, show_verdict


def serve(options: argparse.Namespace) -> int:
    from proofgate.config import InvalidConfigError
    from proofgate.http_server import ListenError
    from proofgate.serve import serve as run
    from proofgate.startup_config import load_startable_config
    from proofgate.volume import VolumeError

    logs.configure("worker")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # serve logs the start and the stop itself
    try:
        return run(load_startable_config(options.config, options.accepted, options.shard), options.shard)
    except InvalidConfigError as error:
        return fail(f"the configuration is not valid\n{error}", EXIT_USAGE)
    except (ListenError, VolumeError) as error:
        return fail(f"{error} [{error.code}]", EXIT_FAILED)


def validate(options: argparse.Namespace) -> int:
    from proofgate.config import InvalidConfigError, load
    from proofgate.preflight import require_priced, require_usable

    path = options.path or options.config
    try:
        config = load(path)
        require_usable(config)
        require_priced(config)
    except InvalidConfigError as error:
        if output.is_data(options):
            problems = [problem.as_json(error.source) for problem in error.problems]
            output.show(options, {"config": str(path), "valid": False, "problems": problems})
            return EXIT_USAGE
        return fail(f"the configuration is not valid\n{error}", EXIT_USAGE)
    if output.is_data(options):
        facts = {"digest": config.digest(), "verifying_key": config.verifying_key}
        warnings = [warning.as_json(config.source) for warning in config.warnings]
        report = {"config": str(path), "valid": True, **facts, "problems": [], "warnings": warnings}
        output.show(options, report)
    else:
        for warning in config.warnings:
            print(f"proofgate: warning: {warning.describe(config.source)}", file=sys.stderr)
        print(f"{path}: valid (digest {config.digest()})\nverifying key: {config.verifying_key}")
    return EXIT_OK


def haproxy_sidecar(options: argparse.Namespace) -> int:
    from proofgate.address import split_address
    from proofgate.haproxy_sidecar import agent
    from proofgate.haproxy_sidecar.follower import SyncLoop
    from proofgate.haproxy_sidecar.runtime_api import RuntimeApi
    from proofgate.haproxy_sidecar.traffic_probe import TrafficProbe
    from proofgate.http_server import ListenError, bind

    logs.configure("haproxy-sidecar")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    api = RuntimeApi(options.socket)
    found = agent.build_targets(
        api,
        options.map,
        options.weights,
        options.certificate,
        options.tenant_shards,
        options.workers,
        options.client_certificate,
        options.server_state,
        options.kept_maps,
    )
    try:
        listener = bind(options.listen)
    except ListenError as error:
        return fail(f"{error} [{error.code}]", EXIT_FAILED)
    answers = None
    if options.ask is not None:
        tls = options.certificate is not None
        answers = TrafficProbe(split_address(options.ask), tls=tls, proxied=options.ask_proxied)
    with listener:
        agent.run(SyncLoop(found, life=api.instance_id), api, listener, answers)
    return EXIT_OK


def prices(options: argparse.Namespace) -> int:
    """Lists the prices of models."""
    from proofgate import prices_command

    return prices_command.show(options)


def policy_test(options: argparse.Namespace) -> int:
    from proofgate import policy_commands

    return policy_commands.test(options)


def policy_rules(options: argparse.Namespace) -> int:
    from proofgate import policy_commands

    return policy_commands.rules(options)


def policy_check(options: argparse.Namespace) -> int:
    from proofgate import policy_commands

    return policy_commands.check(options)


def prove(options: argparse.Namespace) -> int:
    from proofgate import evidence

    if options.ledger is not None:
        proven = evidence.prove_from_ledger(
            options.ledger,
            options.request_id,
            options.key,
            scan=options.scan,
            shred_keys=options.shred_keys,
        )
    else:
        proven = evidence.prove_from_worker(
            options.admin, options.request_id, options.timeout, options.token_file
        )
    records = proven.records
    written = evidence.write_proofs(records, options.request_id, options.out)
    for proof, record in written:
        print(f"wrote {record}\nwrote {proof}")
    for key in sorted({proven.shred_key_missing for proven in records if proven.shred_key_missing}):
        print(f"the proofs cannot prove a body: {evidence.missing_shred_key_message(key)}")
    print("To verify them with the ledger's verifying key in the file verifying-key:")
    for proof, record in written:
        print(f"  proofgate verify {proof} --record {record} --key verifying-key")
    for finding in proven.findings:
        fail(finding, EXIT_INCOMPLETE)
    return EXIT_INCOMPLETE if proven.findings else EXIT_OK


def verify(options: argparse.Namespace) -> int:
    from proofgate import evidence, receipt_command

    if options.record is None:
        return receipt_command.run_verify(options)
    if options.request is not None or options.response is not None:
        return fail(
            "--request and --response need a receipt and cannot be combined with --record", EXIT_USAGE
        )
    try:
        result = evidence.verify(options.proof, options.record, options.key)
    except _core.ProofgateError as error:
        return fail(f"not verified: {error} [{error.code}]", EXIT_INVALID_EVIDENCE)
    if output.is_data(options):
        output.show(options, {"verified": True, **result})
    else:
        facts = f"origin: {result['origin']}\nindex: {result['index']}\nsize: {result['size']}"
        show_verdict(f"{facts}\nverified", EXIT_OK)
    return EXIT_OK


def reveal(options: argparse.Namespace) -> int:
    from proofgate import evidence
    from proofgate.index import command_line_reads

    try:
        if options.ledger is not None:
            command_line_reads.record_read(options, "reveal", {"id": options.evidence})
            bodies = evidence.reveal_from_ledger(
                options.ledger, options.evidence, options.body, options.key, options.shred_keys
            )
        elif options.record is not None:
            bodies = [evidence.reveal(Path(options.evidence), options.record, options.body, options.key)]
        else:
            return fail("give --record with a proof, or --ledger with a request id", EXIT_USAGE)
    except _core.ProofgateError as error:
        return fail(f"not revealed: {error} [{error.code}]", EXIT_INVALID_EVIDENCE)
    if output.is_data(options):
        output.show(options, {"verified": True, "body": str(options.body), "recorded_as": bodies})
    else:
        show_verdict(f"{options.body} is the recorded {' and '.join(bodies)}\nverified", EXIT_OK)
    return EXIT_OK


def consistency(options: argparse.Namespace) -> int:
    from proofgate import evidence

    try:
        result = evidence.check_consistency(
            options.old, options.new, options.key, options.ledger, options.proof
        )
    except _core.ProofgateError as error:
        code = EXIT_INVALID_EVIDENCE if error.code == "inconsistent" else EXIT_USAGE
        return fail(f"{error} [{error.code}]", code)
    if options.out is not None:
        options.out.write_text("".join(f"{entry}\n" for entry in result["hashes"]))
    if output.is_data(options):
        output.show(options, {"verified": True, **result})
        return EXIT_OK
    if options.out is not None:
        print(f"wrote {options.out}")
    facts = f"origin: {result['origin']}\nold: {result['old']}\nnew: {result['new']}"
    show_verdict(f"{facts}\nverified", EXIT_OK)
    return EXIT_OK


def configuration(options: argparse.Namespace) -> int:
    from proofgate import archive

    try:
        content = archive.find_configuration(options.ledger, options.digest)
    except ValueError as error:
        return fail(str(error), EXIT_USAGE)
    except OSError as error:
        return fail(f"{error.filename} cannot be read: {error.strerror}", EXIT_FAILED)
    except archive.ArchiveError as error:
        changed = error.code == "configuration_changed"
        return fail(f"{error} [{error.code}]", EXIT_INVALID_EVIDENCE if changed else EXIT_FAILED)
    show_bytes(content + b"\n")
    return EXIT_OK


def fsck(options: argparse.Namespace) -> int:
    from proofgate import evidence, progress

    with progress.show_progress("reading the ledger"):
        exit_class, report = evidence.fsck(
            options.directory,
            options.key,
            options.against,
            options.keeping_key,
            mirror=options.mirror,
            shred_keys=options.shred_keys,
        )
    if output.is_data(options):
        output.show(options, report)
    else:
        show_verdict(evidence.render_report(exit_class, report, options.key), exit_class)
    return exit_class


def export_leaves(options: argparse.Namespace) -> int:
    count = _core.export_leaves(str(options.directory), str(options.out))
    print(f"wrote {count} leaves to {options.out}")
    return EXIT_OK


def keygen(options: argparse.Namespace) -> int:
    from proofgate.keys import SIGNING_KEY_FILE, VERIFYING_KEY_FILE, KeyFileError, write_key_pair

    try:
        verifying_key = write_key_pair(options.name, options.out, witness=options.witness)
    except KeyFileError as error:
        return fail(str(error), EXIT_USAGE)
    use = "a witness" if options.witness else "ledger.signingKeyFile, an auditor or a retention job"
    print(f"wrote {options.out / SIGNING_KEY_FILE} (secret: only for {use})")
    print(f"wrote {options.out / VERIFYING_KEY_FILE} (public: give it to those who verify)")
    print(f"verifying key: {verifying_key.strip()}")
    return EXIT_OK


def hash_key(_: argparse.Namespace) -> int:
    from proofgate.keys import KeyFileError, read_api_key
    from proofgate.well_known_keys import WELL_KNOWN_MESSAGE, is_well_known

    try:
        digest = _core.hash_api_key(read_api_key())
    except KeyFileError as error:
        return fail(str(error), EXIT_USAGE)
    if is_well_known(digest):
        return fail(f"the hash of this API key would be {WELL_KNOWN_MESSAGE}", EXIT_USAGE)
    print(digest)
    return EXIT_OK


def mock_upstream(options: argparse.Namespace) -> int:
    from proofgate.http_server import ListenError, bind
    from proofgate.mock_answers import MockBehaviour
    from proofgate.mock_upstream import UpstreamOptions, run

    upstream = UpstreamOptions(
        behaviour=MockBehaviour(
            tokens=options.tokens,
            interval=options.token_interval_ms / 1000,
            logprob_profile=options.character,
        ),
        models=tuple(options.model),
        api_key=options.api_key,
    )
    try:
        listener = bind(options.listen)
    except ListenError as error:
        return fail(f"{error} [{error.code}]", EXIT_FAILED)
    with listener:
        run(upstream, listener)
    return EXIT_OK
