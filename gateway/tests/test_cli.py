"""The command line: each command's output, files and exit code."""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from conftest import HTTP, ConfigDirectory, Controls, attached, serving, started
from failures import failure
from faulty_worker import Worker
from index_ledger import DAY, NOON, Log, own_id
from recorded_exchange import Recorded, recorded, recorded_once
from signing import LEDGER, RETENTION_KEY, VKEY, Key, key_set
from written_log import records_of

from proofgate import _core, evidence
from proofgate.admin import create_app
from proofgate.cli import all_parsers, main
from proofgate.cli.catalogue import BY_FORMER_PATH, BY_PATH, COMMANDS, GROUPS
from proofgate.config import load

__all__ = ["recorded", "recorded_once"]
TOKEN = "0123456789abcdef-admin"

JWT = """
jwt:
  issuers:
    - issuer: https://login.example.com/
      jwksFile: jwks.json
      audiences: [proofgate]
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def proven(recorded: Recorded, tmp_path: Path, capsys: Capture) -> Path:
    """A directory with the exchange's records and their proofs."""
    out = tmp_path / "evidence"
    assert (
        main(["ledger", "prove", recorded.request_id, "--ledger", str(recorded.ledger), "--out", str(out)])
        == 0
    )
    capsys.readouterr()
    return out


@pytest.fixture
def worker(config_directory: ConfigDirectory) -> Iterator[Worker]:
    with started(load(config_directory.file)) as worker:
        yield worker


@pytest.fixture
def admin_url(worker: Worker) -> Iterator[str]:
    with attached(worker) as typed, serving(create_app(typed, Controls(worker, TOKEN))) as url:
        yield url


def usage_error(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def verify(directory: Path, *, record: str | None = None, key: str = VKEY) -> int:
    [proof] = directory.glob("*.admission.tlog-proof")
    path = proof.with_suffix(".json") if record is None else directory / record
    return main(["verify", str(proof), "--record", str(path), "--key", key])


@pytest.mark.parametrize("command", BY_PATH)
def test_every_command_explains_itself(command: str, capsys: Capture) -> None:
    assert usage_error(*command.split(), "--help") == 0
    assert f"usage: proofgate {command}" in capsys.readouterr().out


@pytest.mark.parametrize("former", BY_FORMER_PATH)
def test_the_name_of_before_the_groups_is_the_same_command(former: str, capsys: Capture) -> None:
    assert usage_error(former, "--help") == 0
    given = capsys.readouterr()
    assert given.out.startswith(f"usage: proofgate {BY_FORMER_PATH[former].path}")
    # Without a terminal, there is no progress line.
    assert given.err == ""


def _commands(document: object) -> Iterator[list[str]]:
    """Yields every list in a document that is a command line of this package."""
    if isinstance(document, list) and str(next(iter(document), "")).endswith("/proofgate"):
        yield document
    elif isinstance(document, list | dict):
        for part in document.values() if isinstance(document, dict) else document:
            yield from _commands(part)


@pytest.mark.parametrize("folder", ["examples", "operator/tests/golden"])
def test_no_manifest_calls_a_command_by_its_former_name(folder: str) -> None:
    files = [*(Path(__file__).parents[2] / folder).rglob("*.yaml")]
    documents = [one for file in files for one in yaml.safe_load_all(file.read_text())]
    called = [command for document in documents for command in _commands(document)]
    assert called
    assert [command[:2] for command in called if command[1] in BY_FORMER_PATH] == []


def test_a_terminal_gets_the_new_name_of_a_command(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert usage_error("fsck", "--help") == 0
    told = "proofgate: fsck is now ledger fsck; the old name works until the next version\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_lists_its_commands(group: str, capsys: Capture) -> None:
    assert usage_error(group, "--help") == 0
    text = capsys.readouterr().out
    own = [command for command in COMMANDS if command.group == group]
    assert all(command.name in text and command.summary.split()[0] in text for command in own)
    # A call without a command is a usage error.
    assert usage_error(group) == 2
    assert capsys.readouterr().err == text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("fskc ledger", "unknown command fskc: did you mean ledger fsck?"),
        ("ledger fskc", "unknown command ledger fskc: did you mean ledger fsck?"),
        ("ledger exchanges", "unknown command ledger exchanges: did you mean audit exchanges?"),
        ("hash-keys", "unknown command hash-keys: did you mean keys hash?"),
        ("ledgr fsck", "unknown command ledgr: did you mean ledger COMMAND?"),
        ("nothing", "unknown command nothing: proofgate --help lists the commands"),
        ("--verison", "unknown option --verison: did you mean --version?"),
        ("serve --conf gateway.yaml", "unknown option --conf: did you mean --config?"),
        ("ledger hold lst --state x", "unknown command lst: did you mean list?"),
        ("ledger hold list --stat x", "unknown option --stat: did you mean --state?"),
        ("policy check a.yaml --text hi --direction sideways", "choose from request, response"),
        ("policy check a.yaml --text hi --scope Asistant", "did you mean Assistant?"),
        ("validate a.yaml b.yaml", "unexpected argument b.yaml"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(arguments: str, told: str, capsys: Capture) -> None:
    assert usage_error(*arguments.split()) == 2
    printed = capsys.readouterr()
    assert told in printed.err.splitlines()[0]
    assert len(printed.err.splitlines()) <= 2
    assert printed.out == ""


def test_help_is_a_word_as_well(capsys: Capture) -> None:
    assert usage_error("help", "ledger", "fsck") == 0
    assert capsys.readouterr().out.startswith("usage: proofgate ledger fsck")


@pytest.mark.parametrize("arguments", ["--version", "--help", "ledger --help", "nothing"])
def test_what_runs_no_command_loads_neither_core_nor_schema(arguments: str) -> None:
    program = (
        "import sys\n"
        "from proofgate.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(sorted({'proofgate._core', 'proofgate_schema', 'pydantic', 'yaml'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", program, *arguments.split()]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_help_lists_every_command_and_the_exit_codes(capsys: Capture) -> None:
    assert usage_error("--help") == 0
    text = capsys.readouterr().out
    assert all(name in text for command in COMMANDS for name in command.path.split())
    assert not any(re.search(rf"(?<![\w-]){former}(?![\w-])", text) for former in ("keygen", "mirror-fetch"))
    assert "exit codes:" in text


def test_the_reference_has_every_option_of_the_commands_that_it_lists() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "command-line.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `proofgate ")]
    commands = all_parsers()
    told_by_help_alone = {"gateway mock-upstream", "gateway haproxy-sidecar", "policy check"}
    for name in set(commands) - told_by_help_alone:
        listed = " ".join(row for row in rows if row.startswith(f"| `proofgate {name}"))
        assert listed, name
        for option, action in commands[name]._option_string_actions.items():
            if option not in ("-h", "--help") and action.help != argparse.SUPPRESS:
                assert option in listed, f"{name} {option}"


def test_the_version_is_that_of_the_core(capsys: Capture) -> None:
    assert usage_error("--version") == 0
    assert capsys.readouterr().out == f"proofgate {_core.__version__}\n"


def test_the_module_is_the_command_line() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    command = [sys.executable, "-m", "proofgate", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"proofgate {_core.__version__}\n"


@pytest.mark.parametrize("option", [[], ["--config"]])
def test_validate_accepts_a_good_configuration(
    config_directory: ConfigDirectory, option: list[str], capsys: Capture
) -> None:
    assert main(["validate", *option, str(config_directory.file)]) == 0
    digest = load(config_directory.file).digest()
    expected = f"{config_directory.file}: valid (digest {digest})\nverifying key: {VKEY}\n"
    assert capsys.readouterr().out == expected


def test_validate_warns_of_a_signing_key_that_everybody_can_read(
    config_directory: ConfigDirectory, capsys: Capture
) -> None:
    key = config_directory.path / "signing-key"
    key.chmod(0o640)
    assert main(["validate", str(config_directory.file)]) == 0
    assert capsys.readouterr().err == ""
    key.chmod(0o644)
    assert main(["validate", str(config_directory.file)]) == 0
    assert f"every user of this machine can read the signing key {key}: chmod 600" in capsys.readouterr().err
    [warning] = load(config_directory.file).warnings
    assert warning.code == "config_exposed_signing_key"
    assert main(["keys", "show", str(key)]) == 0
    assert "every user of this machine can read the signing key" in capsys.readouterr().err


def test_validate_asks_the_core_as_well(
    config_directory: ConfigDirectory, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "Worker", Worker)
    (config_directory.ledger / "refuse-config").write_text("rule injection: the pattern is too large")
    assert main(["validate", str(config_directory.file)]) == 2
    error = capsys.readouterr().err
    assert f"{config_directory.file}:2: rule injection: the pattern is too large" in error


def test_validate_gives_a_key_set_to_the_core(
    config_directory: ConfigDirectory, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(Worker):
        def set_key_set(self, issuer: str, jwks_json: str) -> int:
            raise failure(_core.ConfigError, f"the key set of {issuer} is not JSON: {jwks_json}", "config")

    monkeypatch.setattr(_core, "Worker", Refusing)
    config_directory.write("jwks.json", key_set("a"))
    config_directory.append(JWT)
    assert main(["validate", str(config_directory.file)]) == 2
    assert (
        ":36: jwt.issuers[0].jwksFile: the key set of https://login.example.com/ is"
        in capsys.readouterr().err
    )


def test_validate_can_report_as_json(config_directory: ConfigDirectory, capsys: Capture) -> None:
    assert main(["validate", str(config_directory.file), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    digest = load(config_directory.file).digest()
    assert report == {
        "config": str(config_directory.file),
        "valid": True,
        "digest": digest,
        "verifying_key": VKEY,
        "problems": [],
        "warnings": [],
    }
    config_directory.replace("name: fast", "nam: fast")
    assert main(["validate", str(config_directory.file), "--format", "json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["valid"] is False
    assert {
        "code": "config_unknown_field",
        "file": str(config_directory.file),
        "line": 20,
        "field": "models[1].nam",
        "message": "there is no such field: did you mean name?",
    } in report["problems"]


@pytest.mark.parametrize("arguments", [[], ["a.yaml", "--config", "b.yaml"]])
def test_validate_wants_one_configuration(arguments: list[str]) -> None:
    assert usage_error("validate", *arguments) == 2


@pytest.mark.parametrize("command", ["validate", "serve"])
def test_a_bad_configuration_is_wrong_usage(
    config_directory: ConfigDirectory, command: str, capsys: Capture
) -> None:
    config_directory.replace("name: fast", "nam: fast")
    assert main([command, "--config", str(config_directory.file)]) == 2
    error = capsys.readouterr().err
    assert "gateway.yaml:20: models[1].nam: there is no such field: did you mean name?" in error


@pytest.mark.parametrize("shard", ["-1", "x", "1.5", "65536"])
def test_a_shard_is_a_small_number(shard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROOFGATE_SHARD", shard)
    assert usage_error("serve", "--config", "gateway.yaml") == 2


def test_prove_writes_the_stored_bytes_and_how_to_verify_them(
    recorded: Recorded, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert (
        main(["ledger", "prove", recorded.request_id, "--ledger", str(recorded.ledger), "--out", str(out)])
        == 0
    )
    record = out / f"{recorded.request_id}.admission.json"
    proof = out / f"{recorded.request_id}.admission.tlog-proof"
    assert record.read_bytes() == records_of(recorded.log)[1]
    assert proof.read_text().startswith("c2sp.org/tlog-proof@v1\n")
    output = capsys.readouterr().out
    assert f"proofgate verify {proof} --record {record} --key verifying-key" in output


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return str(tmp_path / "token")


def test_a_token_file_that_holds_something_else_is_named_and_not_shown(
    admin_url: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "token"
    file.write_text("first-secret\nsecond-secret\n")
    assert main(["ledger", "prove", "req-1", "--admin", admin_url, "--token-file", str(file)]) == 2
    told = capsys.readouterr().err
    assert "does not contain exactly one token on one line" in told
    assert "secret" not in told


def test_prove_asks_a_running_worker(tmp_path: Path, worker: Worker, admin_url: str, token_file: str) -> None:
    refused = HTTP.post(f"http://{worker.address}/v1/chat/completions", content=b"{}")
    request_id = refused.headers["x-request-id"]
    asked = ["ledger", "prove", request_id, "--admin", admin_url, "--out", str(tmp_path)]
    assert main([*asked, "--token-file", token_file]) == 0
    assert request_id in (tmp_path / f"{request_id}.rejection.json").read_text()


@pytest.mark.parametrize(("request_id", "code"), [("nobody", "unknown_request"), ("not-covered", "ledger")])
def test_prove_repeats_why_a_worker_refused(
    admin_url: str, token_file: str, request_id: str, code: str, capsys: Capture
) -> None:
    assert main(["ledger", "prove", request_id, "--admin", admin_url, "--token-file", token_file]) == 2
    assert f"[{code}]" in capsys.readouterr().err


def test_prove_without_the_token_says_what_is_missing(admin_url: str, capsys: Capture) -> None:
    assert main(["ledger", "prove", "exchange-1", "--admin", admin_url]) == 2
    assert "[missing_token]" in capsys.readouterr().err


@pytest.mark.parametrize("admin", ["file:///etc/passwd", "127.0.0.1:9090", "http://"])
def test_prove_asks_over_http_only(admin: str, capsys: Capture) -> None:
    assert main(["ledger", "prove", "exchange-1", "--admin", admin]) == 2
    assert "is not an http URL" in capsys.readouterr().err


@pytest.mark.parametrize("request_id", ["../escape", ".hidden", "a/b", "a b", ""])
def test_a_request_id_never_becomes_a_path(tmp_path: Path, request_id: str) -> None:
    assert main(["ledger", "prove", request_id, "--ledger", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [
        "not json",
        "[]",
        '{"records": [{"kind": "../evil", "record": "", "proof": ""}]}',
        '{"records": [{"kind": "a", "record": 1, "proof": ""}]}',
    ],
)
def test_a_strange_answer_writes_nothing(
    tmp_path: Path, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(_core, "prove", lambda *_: answer)
    assert (
        main(["ledger", "prove", "exchange-1", "--ledger", str(tmp_path), "--out", str(tmp_path / "out")])
        == 2
    )
    assert not (tmp_path / "out").exists()
    assert "is not a list of proven records" in capsys.readouterr().err


def test_verify_accepts_the_stored_bytes(recorded: Recorded, proven: Path, capsys: Capture) -> None:
    assert verify(proven) == 0
    size = len(records_of(recorded.log))
    assert capsys.readouterr().out == f"origin: {recorded.origin}\nindex: 1\nsize: {size}\nverified\n"


def test_verify_takes_the_key_from_a_file(proven: Path) -> None:
    key = proven / "verifying-key"
    key.write_text(f"{VKEY}\n")
    assert verify(proven, key=str(key)) == 0


def test_a_changed_record_does_not_verify(proven: Path, capsys: Capture) -> None:
    [record] = proven.glob("*.admission.json")
    (proven / "changed.json").write_bytes(record.read_bytes() + b"\n")
    assert verify(proven, record="changed.json") == 40
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ("proofgate: not verified: the proof leads to another root [proof]\n")


def test_a_missing_record_is_wrong_usage(proven: Path) -> None:
    assert verify(proven, record="nowhere.json") == 2


def test_a_signing_key_given_as_verifying_key_is_not_repeated(proven: Path, capsys: Capture) -> None:
    (proven / "signing-key").write_text(LEDGER.signing)
    assert verify(proven, key=LEDGER.signing) == 2
    assert verify(proven, key=str(proven / "signing-key")) == 2
    assert LEDGER.secret not in capsys.readouterr().err


@pytest.mark.parametrize("exit_class", [0, 10, 30, 40])
def test_fsck_exits_with_its_class(recorded: Recorded, exit_class: int, capsys: Capture) -> None:
    size = len(records_of(recorded.log))
    match exit_class:
        case 10:
            (recorded.log / "tree").unlink()
        case 30:
            (recorded.log / "checkpoint").write_text(LEDGER.checkpoint(recorded.origin, size, bytes(32)))
        case 40:
            (recorded.log / "salts").unlink()
    assert main(["ledger", "fsck", str(recorded.ledger), "--key", VKEY]) == exit_class
    assert f"origin: {recorded.origin}\n" in capsys.readouterr().out


def test_fsck_can_print_json(recorded: Recorded, capsys: Capture) -> None:
    assert main(["ledger", "fsck", str(recorded.ledger), "--json"]) == 10
    assert json.loads(capsys.readouterr().out)["keys"] == []


def test_fsck_takes_checkpoints_that_were_kept(recorded: Recorded, tmp_path: Path, capsys: Capture) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(recorded.first_checkpoint)
    kept = ["--against", str(tmp_path / "a"), "--against", str(tmp_path / "b")]
    fsck = ["ledger", "fsck", str(recorded.ledger)]
    assert main([*fsck, "--key", VKEY, "--json", *kept]) == 0
    assert json.loads(capsys.readouterr().out)["against"] == 2
    assert main([*fsck, *kept]) == 2
    assert "--against needs --key" in capsys.readouterr().err
    (tmp_path / "b").write_text(Key(LEDGER.name, bytes(32)).checkpoint(recorded.origin, 1, bytes(32)))
    assert main([*fsck, "--key", VKEY, *kept]) == 41
    assert "b: note 1: " in capsys.readouterr().err
    assert main([*fsck, "--key", VKEY, "--against", str(tmp_path / "nowhere")]) == 2


def test_two_checkpoints_are_compared_by_the_ledger_or_by_a_proof(
    recorded: Recorded, tmp_path: Path, capsys: Capture
) -> None:
    old, new, proof = (tmp_path / name for name in ("old", "new", "proof"))
    size = len(records_of(recorded.log))
    old.write_text(recorded.first_checkpoint)
    new.write_text((recorded.log / "checkpoint").read_text())
    compare = ["ledger", "consistency", str(old), str(new), "--key", VKEY]
    assert main([*compare, "--ledger", str(recorded.ledger), "--out", str(proof)]) == 0
    assert f"old: 1\nnew: {size}\nverified\n" in capsys.readouterr().out
    assert main([*compare, "--proof", str(proof)]) == 0
    proof.write_text("bm90IGEgaGFzaA==\n")
    assert main([*compare, "--proof", str(proof)]) == 2
    new.write_text(LEDGER.checkpoint(recorded.origin, size, bytes(32)))
    assert main([*compare, "--ledger", str(recorded.ledger)]) == 40
    assert "not consistent" in capsys.readouterr().err


def test_a_body_is_revealed_by_a_proof_or_from_the_ledger(
    recorded: Recorded, proven: Path, tmp_path: Path, capsys: Capture
) -> None:
    body = tmp_path / "body"
    body.write_bytes(recorded.body)
    admission = proven / f"{recorded.request_id}.admission"
    by_proof = ["ledger", "reveal", f"{admission}.tlog-proof", "--record", f"{admission}.json"]
    from_ledger = ["ledger", "reveal", recorded.request_id, "--ledger", str(recorded.ledger)]
    for command in (by_proof, from_ledger):
        assert main([*command, "--body", str(body), "--key", VKEY]) == 0
        assert capsys.readouterr().out == f"{body} is the recorded request\nverified\n"
    body.write_bytes(b"another body")
    assert main([*by_proof, "--body", str(body), "--key", VKEY]) == 40
    assert main([*from_ledger, "--body", str(body), "--key", VKEY]) == 2
    assert main(["ledger", "reveal", recorded.request_id, "--body", str(body), "--key", VKEY]) == 2


def test_an_exchange_that_is_not_near_its_time_is_found_by_a_scan(tmp_path: Path, capsys: Capture) -> None:
    log = Log(tmp_path / "ledger")
    log.admit(1, NOON, id=own_id(1, NOON - 3 * DAY))
    log.sign()
    ledger = str(tmp_path / "ledger")
    command = ["ledger", "prove", own_id(1, NOON - 3 * DAY), "--ledger", ledger, "--out", str(tmp_path)]
    assert main(command) == 2
    assert "--scan searches the whole ledger" in capsys.readouterr().err
    assert main([*command, "--scan"]) == 0


def test_two_records_of_one_kind_have_files_of_their_own(tmp_path: Path) -> None:
    twice = [evidence.ProvenRecord("aborted", str(number), "proof") for number in range(2)]
    written = evidence.write_proofs(twice, "exchange-1", tmp_path)
    assert [record.name for _, record in written] == [
        "exchange-1.aborted.json",
        "exchange-1.aborted-2.json",
    ]


def test_fsck_takes_the_retention_key_and_no_other_partys(recorded: Recorded, capsys: Capture) -> None:
    fsck = ["ledger", "fsck", str(recorded.ledger), "--key", VKEY, "--keeping-key"]
    assert main([*fsck, RETENTION_KEY.verifying]) == 0
    assert main([*fsck, VKEY]) == 2
    assert "could sign for the ledger" in capsys.readouterr().err


def test_fsck_of_nothing_is_wrong_usage(tmp_path: Path) -> None:
    assert main(["ledger", "fsck", str(tmp_path / "nowhere")]) == 2


def test_export_leaves_says_how_many(recorded: Recorded, tmp_path: Path, capsys: Capture) -> None:
    leaves = tmp_path / "leaves"
    assert main(["ledger", "export-leaves", str(recorded.log), "--out", str(leaves)]) == 0
    assert capsys.readouterr().out == f"wrote {len(records_of(recorded.log))} leaves to {leaves}\n"


def test_an_error_of_the_core_is_one_sentence_with_its_code(tmp_path: Path, capsys: Capture) -> None:
    assert (
        main(["ledger", "export-leaves", str(tmp_path / "nowhere"), "--out", str(tmp_path / "leaves")]) == 2
    )
    error = f"{tmp_path / 'nowhere'} contains no log: give the directory of a ledger, of a shard or of a log"
    assert capsys.readouterr().err == f"proofgate: {error} [not_a_log]\n"


def test_keygen_writes_a_key_pair_and_shows_the_public_half_only(tmp_path: Path, capsys: Capture) -> None:
    assert main(["keys", "generate", "proofgate.dev/ns/demo", "--out", str(tmp_path / "keys")]) == 0
    signing, verifying = tmp_path / "keys" / "signing-key", tmp_path / "keys" / "verifying-key"
    assert stat.S_IMODE(signing.stat().st_mode) == 0o600
    assert verifying.read_text() == f"{_core.verifying_key(signing.read_text())}\n"
    output = capsys.readouterr().out
    assert verifying.read_text() in output
    assert "PRIVATE" not in output


def test_keygen_never_overwrites_a_key(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "signing-key").write_text("precious")
    assert main(["keys", "generate", "proofgate.dev/ns/demo", "--out", str(tmp_path)]) == 2
    assert (tmp_path / "signing-key").read_text() == "precious"
    assert "never overwritten" in capsys.readouterr().err


def test_keygen_refuses_a_name_that_no_key_can_have(tmp_path: Path, capsys: Capture) -> None:
    assert main(["keys", "generate", "a+b", "--out", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []
    assert "'a+b' is not a valid name for a key" in capsys.readouterr().err


NEXT_KEY, THIRD_KEY = (Key(LEDGER.name, bytes([number]) * 32) for number in (2, 3))


def rotated(folder: Path, *more: str) -> int:
    (folder / "next").write_text(NEXT_KEY.signing)
    if not (folder / "signing-key").exists():
        assert main(["keys", "generate", "proofgate.dev/ns/demo", "--out", str(folder)]) == 0
    old, new, out = (str(folder / name) for name in ("signing-key", "next", "out"))
    return main(["keys", "rotate", old, "--to", new, "--out", out, *more])


def test_keys_rotate_writes_the_key_that_follows_and_what_both_signed(
    tmp_path: Path, capsys: Capture
) -> None:
    assert rotated(tmp_path) == 0
    out = tmp_path / "out"
    written = {path.name: (stat.S_IMODE(path.stat().st_mode), path.read_text()) for path in out.iterdir()}
    assert {name: mode for name, (mode, _) in written.items()} == {
        "signing-key": 0o600,
        "signing-key-with-former": 0o600,
        "verifying-key": 0o644,
        "key-successions": 0o644,
    }
    statement = written["key-successions"][1]
    former = (tmp_path / "signing-key").read_text().strip()
    assert written["signing-key"][1] == f"{NEXT_KEY.signing}\n\n{statement}"
    assert written["signing-key-with-former"][1] == f"{NEXT_KEY.signing}\n{former}\n\n{statement}"
    assert written["verifying-key"][1] == f"{NEXT_KEY.verifying}\n\n{statement}"
    printed = capsys.readouterr().out
    assert _core.verifying_key(former) in printed
    assert "until" in printed
    assert "PRIVATE" not in printed
    assert main(["keys", "show", str(out / "verifying-key")]) == 0
    assert capsys.readouterr().out.splitlines() == printed.splitlines()[-2:]


def test_keys_rotate_carries_the_statements_of_before_on(tmp_path: Path, capsys: Capture) -> None:
    assert rotated(tmp_path) == 0
    third = tmp_path / "third"
    third.write_text(THIRD_KEY.signing)
    old = str(tmp_path / "out" / "signing-key-with-former")
    assert main(["keys", "rotate", old, "--to", str(third), "--out", str(tmp_path / "more")]) == 0
    capsys.readouterr()
    assert main(["keys", "show", str(tmp_path / "more" / "signing-key")]) == 0
    lines = capsys.readouterr().out.splitlines()
    keys = (
        _core.verifying_key((tmp_path / "signing-key").read_text()),
        NEXT_KEY.verifying,
        THIRD_KEY.verifying,
    )
    assert [line.split()[0] for line in lines] == list(keys)


def test_keys_rotate_overwrites_nothing_and_shows_no_secret_of_what_is_wrong(
    tmp_path: Path, capsys: Capture
) -> None:
    assert rotated(tmp_path) == 0
    assert rotated(tmp_path) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    (tmp_path / "signing-key").write_text(Key("proofgate.dev/other").signing)
    assert rotated(tmp_path) == 2
    told = capsys.readouterr().err
    assert "cannot follow" in told
    assert LEDGER.secret not in told
    assert main(["keys", "show", str(tmp_path / "nothing")]) == 2
    assert usage_error("keys", "rotate", str(tmp_path / "signing-key"), "--out", "x", "--grace", "-1") == 2
    assert usage_error("keys") == 2


@pytest.mark.parametrize("text", ["acme-key", "acme-key\n", "acme-key\r\n"])
def test_hash_key_reads_standard_input(text: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["keys", "hash"]) == 0
    assert capsys.readouterr().out == f"{_core.hash_api_key('acme-key')}\n"


@pytest.mark.parametrize("text", ["", "\n", "two\nlines\n", "a key", "schl\u00fcssel"])
def test_hash_key_refuses_what_cannot_be_a_key(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["keys", "hash"]) == 2
    assert text.strip() == "" or text.strip() not in capsys.readouterr().err


def test_end_user_reads_standard_input_and_prints_a_pseudonym_for_each_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def asked(*more: str, name: str = "alice@example.com\n") -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(name))
        code = main(["audit", "end-user", "--tenant", "acme", *more])
        told = capsys.readouterr()
        return code, told.out + told.err

    digest = hashlib.sha256(b"proofgate/v1/end-user\0acme\0alice@example.com").hexdigest()
    assert asked() == (0, f"{digest[:32]}\n")
    keys = [base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]
    (tmp_path / "acme").write_text("\n".join(keys))
    code, told = asked("--shred-keys", str(tmp_path))
    assert (code, len(told.splitlines())) == (0, 2)
    (tmp_path / "acme").rename(tmp_path / "globex")
    code, told = asked("--shred-keys", str(tmp_path))
    assert (code, "shred_key_missing" in told) == (1, True)
    for name in ("", "\n", "a" * 1025):
        assert asked(name=name)[0] == 2


def test_hash_key_takes_no_key_from_the_arguments() -> None:
    assert usage_error("keys", "hash", "acme-key") == 2
