"""The command line: what each command prints and writes, and its exit code."""

from __future__ import annotations

import base64
import io
import json
import stat
import subprocess
import sys
from argparse import _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

import core_double
import pytest
from conftest import ConfigDirectory, Controls, attached, serving

from proofgate import evidence
from proofgate.admin import create_app
from proofgate.cli import _parser, main
from proofgate.config import load

TOKEN = "0123456789abcdef-admin"
VKEY = "proofgate.dev/ns/demo+1a2b3c4d+cHVibGlj"
COMMANDS = (
    *("quickstart", "status", "serve", "validate", "policy", "mock-upstream"),
    *("receipt", "prove", "verify", "reveal", "consistency", "fsck", "export-leaves"),
    *("hold", "prune", "erase", "auditor", "keygen", "keys", "hash-key", "end-user"),
)

JWT = """
jwt:
  issuers:
    - issuer: https://login.example.com/
      jwksFile: jwks.json
      audiences: [proofgate]
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def proven(tmp_path: Path, capsys: Capture) -> Path:
    """A directory with the record of exchange-1 and its proof."""
    assert main(["prove", "exchange-1", "--ledger", str(tmp_path), "--out", str(tmp_path / "evidence")]) == 0
    capsys.readouterr()
    return tmp_path / "evidence"


@pytest.fixture
def admin_url(config_directory: ConfigDirectory) -> Iterator[str]:
    worker = core_double.Worker(load(config_directory.file).to_core_json(0))
    with attached(worker) as typed, serving(create_app(typed, Controls(worker, TOKEN))) as url:
        yield url


def usage_error(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def verify(directory: Path, *, record: str = "exchange-1.admission.json", key: str = VKEY) -> int:
    proof = directory / "exchange-1.admission.tlog-proof"
    return main(["verify", str(proof), "--record", str(directory / record), "--key", key])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: Capture) -> None:
    assert usage_error(command, "--help") == 0
    assert f"usage: proofgate {command}" in capsys.readouterr().out


def test_the_help_lists_every_command_and_the_exit_codes(capsys: Capture) -> None:
    assert usage_error("--help") == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)
    assert "exit codes:" in text


def test_the_reference_has_every_option_of_the_commands_that_it_lists() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "command-line.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `proofgate ")]
    [commands] = [action.choices for action in _parser()._actions if isinstance(action, _SubParsersAction)]
    told_by_help_alone = {"mock-upstream", "front-door", "policy"}
    for name in set(commands) - told_by_help_alone:
        listed = " ".join(row for row in rows if row.startswith(f"| `proofgate {name}"))
        assert listed, name
        for option in commands[name]._option_string_actions.keys() - {"-h", "--help"}:
            assert option in listed, f"{name} {option}"


def test_the_version_is_that_of_the_core(capsys: Capture) -> None:
    assert usage_error("--version") == 0
    assert capsys.readouterr().out == "proofgate 0.0.0\n"


def test_the_module_is_the_command_line() -> None:
    source = Path(__file__).parents[1] / "src"
    script = (
        "import sys, runpy; sys.path[:0] = sys.argv[1:3]; import core_double;"
        "sys.modules['proofgate._core'] = core_double; sys.argv = ['proofgate', '--version'];"
        "runpy.run_module('proofgate', run_name='__main__')"
    )
    command = [sys.executable, "-c", script, str(source), str(Path(__file__).parent)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "proofgate 0.0.0\n"


@pytest.mark.parametrize("option", [[], ["--config"]])
def test_validate_accepts_a_good_configuration(
    config_directory: ConfigDirectory, option: list[str], capsys: Capture
) -> None:
    assert main(["validate", *option, str(config_directory.file)]) == 0
    digest = load(config_directory.file).digest()
    expected = f"{config_directory.file}: valid (digest {digest})\nverifying key: {VKEY}\n"
    assert capsys.readouterr().out == expected


def test_validate_asks_the_core_as_well(config_directory: ConfigDirectory, capsys: Capture) -> None:
    (config_directory.ledger / "refuse-config").write_text("rule injection: the pattern is too large")
    assert main(["validate", str(config_directory.file)]) == 2
    error = capsys.readouterr().err
    assert f"{config_directory.file}:2: rule injection: the pattern is too large" in error


def test_validate_gives_a_key_set_to_the_core(config_directory: ConfigDirectory, capsys: Capture) -> None:
    config_directory.write("jwks.json", '{"keys": ["not an object"]}')
    config_directory.append(JWT)
    assert main(["validate", str(config_directory.file)]) == 2
    assert ":36: jwt.issuers[0].jwksFile: the key set is not JSON" in capsys.readouterr().err


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


def test_prove_writes_the_stored_bytes_and_how_to_verify_them(tmp_path: Path, capsys: Capture) -> None:
    assert main(["prove", "exchange-1", "--ledger", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    record = tmp_path / "out" / "exchange-1.admission.json"
    proof = tmp_path / "out" / "exchange-1.admission.tlog-proof"
    assert record.read_bytes() == core_double.RECORD.encode()
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
    assert main(["prove", "req-1", "--admin", admin_url, "--token-file", str(file)]) == 2
    told = capsys.readouterr().err
    assert "not one token on one line" in told
    assert "secret" not in told


def test_prove_asks_a_running_worker(tmp_path: Path, admin_url: str, token_file: str) -> None:
    asked = ["prove", "exchange-1", "--admin", admin_url, "--out", str(tmp_path)]
    assert main([*asked, "--token-file", token_file]) == 0
    assert (tmp_path / "exchange-1.admission.json").read_bytes() == core_double.RECORD.encode()


@pytest.mark.parametrize(("request_id", "code"), [("nobody", "unknown_request"), ("not-covered", "ledger")])
def test_prove_repeats_why_a_worker_refused(
    admin_url: str, token_file: str, request_id: str, code: str, capsys: Capture
) -> None:
    assert main(["prove", request_id, "--admin", admin_url, "--token-file", token_file]) == 2
    assert f"[{code}]" in capsys.readouterr().err


def test_prove_without_the_token_says_what_is_missing(admin_url: str, capsys: Capture) -> None:
    assert main(["prove", "exchange-1", "--admin", admin_url]) == 2
    assert "[missing_token]" in capsys.readouterr().err


@pytest.mark.parametrize("admin", ["file:///etc/passwd", "127.0.0.1:9090", "http://"])
def test_prove_asks_over_http_only(admin: str, capsys: Capture) -> None:
    assert main(["prove", "exchange-1", "--admin", admin]) == 2
    assert "is not an http URL" in capsys.readouterr().err


@pytest.mark.parametrize("request_id", ["../escape", ".hidden", "a/b", "a b", ""])
def test_a_request_id_never_becomes_a_path(tmp_path: Path, request_id: str) -> None:
    assert main(["prove", request_id, "--ledger", str(tmp_path), "--out", str(tmp_path)]) == 2
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
    monkeypatch.setattr(core_double, "prove", lambda *_: answer)
    assert main(["prove", "exchange-1", "--ledger", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert "is not a list of proven records" in capsys.readouterr().err


def test_verify_accepts_the_stored_bytes(proven: Path, capsys: Capture) -> None:
    assert verify(proven) == 0
    assert (
        capsys.readouterr().out == "origin: proofgate.dev/ns/demo/0/01JDOUBLE\nindex: 3\nsize: 7\nverified\n"
    )


def test_verify_takes_the_key_from_a_file(proven: Path) -> None:
    key = proven / "verifying-key"
    key.write_text(f"{VKEY}\n")
    assert verify(proven, key=str(key)) == 0


def test_a_changed_record_does_not_verify(proven: Path, capsys: Capture) -> None:
    (proven / "changed.json").write_bytes(core_double.RECORD.encode() + b"\n")
    assert verify(proven, record="changed.json") == 40
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "proofgate: not verified: the record is not the one that the proof is for [proof_mismatch]\n"
    )


def test_a_missing_record_is_wrong_usage(proven: Path) -> None:
    assert verify(proven, record="nowhere.json") == 2


def test_a_signing_key_given_as_verifying_key_is_not_repeated(proven: Path, capsys: Capture) -> None:
    signing_key = "PRIVATE+KEY+proofgate.dev/ns/demo+1a2b3c4d+c2VjcmV0"
    (proven / "signing-key").write_text(signing_key)
    assert verify(proven, key=signing_key) == 2
    assert verify(proven, key=str(proven / "signing-key")) == 2
    assert "c2VjcmV0" not in capsys.readouterr().err


@pytest.mark.parametrize("exit_class", [0, 10, 30, 40])
def test_fsck_exits_with_its_class(tmp_path: Path, exit_class: int, capsys: Capture) -> None:
    (tmp_path / "verdict").write_text(str(exit_class))
    assert main(["fsck", str(tmp_path), "--key", VKEY]) == exit_class
    assert "origin: a/0/01JDOUBLE\n" in capsys.readouterr().out


def test_fsck_can_print_json(tmp_path: Path, capsys: Capture) -> None:
    assert main(["fsck", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["signatures"] is False


def test_fsck_takes_checkpoints_that_were_kept(tmp_path: Path, capsys: Capture) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("a note\n")
    kept = ["--against", str(tmp_path / "a"), "--against", str(tmp_path / "b")]
    assert main(["fsck", str(tmp_path), "--key", VKEY, "--json", *kept]) == 0
    assert json.loads(capsys.readouterr().out)["against"] == 2
    assert main(["fsck", str(tmp_path), *kept]) == 2
    assert "--against needs --key" in capsys.readouterr().err
    (tmp_path / "b").write_text("refused")
    assert main(["fsck", str(tmp_path), "--key", VKEY, *kept]) == 2
    assert "note 1: the signature does not verify [bad_note]" in capsys.readouterr().err
    assert main(["fsck", str(tmp_path), "--key", VKEY, "--against", str(tmp_path / "nowhere")]) == 2


def test_two_checkpoints_are_compared_by_the_ledger_or_by_a_proof(tmp_path: Path, capsys: Capture) -> None:
    old, new, proof = (tmp_path / name for name in ("old", "new", "proof"))
    old.write_text("a note\n")
    new.write_text("a note\n")
    compare = ["consistency", str(old), str(new), "--key", VKEY]
    assert main([*compare, "--ledger", str(tmp_path), "--out", str(proof)]) == 0
    assert "old: 3\nnew: 7\nverified\n" in capsys.readouterr().out
    assert main([*compare, "--proof", str(proof)]) == 0
    proof.write_text("bm90IGEgaGFzaA==\n")
    assert main([*compare, "--proof", str(proof)]) == 2
    new.write_text("forked\n")
    assert main([*compare, "--ledger", str(tmp_path)]) == 40
    assert "not consistent" in capsys.readouterr().err


def test_a_body_is_revealed_by_a_proof_or_from_the_ledger(
    proven: Path, tmp_path: Path, capsys: Capture
) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"the body")
    record = str(proven / "exchange-1.admission.json")
    by_proof = ["reveal", str(proven / "exchange-1.admission.tlog-proof"), "--record", record]
    from_ledger = ["reveal", "exchange-1", "--ledger", str(tmp_path)]
    for command in (by_proof, from_ledger):
        assert main([*command, "--body", str(body), "--key", VKEY]) == 0
        assert capsys.readouterr().out == f"{body} is the request that was recorded\nverified\n"
    body.write_bytes(b"another body")
    assert main([*by_proof, "--body", str(body), "--key", VKEY]) == 40
    assert main([*from_ledger, "--body", str(body), "--key", VKEY]) == 2
    assert main(["reveal", "exchange-1", "--body", str(body), "--key", VKEY]) == 2


def test_an_exchange_that_is_not_near_its_time_is_found_by_a_scan(tmp_path: Path, capsys: Capture) -> None:
    command = ["prove", "old-clock", "--ledger", str(tmp_path), "--out", str(tmp_path)]
    assert main(command) == 2
    assert "--scan reads everything" in capsys.readouterr().err
    assert main([*command, "--scan"]) == 0


def test_two_records_of_one_kind_have_files_of_their_own(tmp_path: Path) -> None:
    twice = [evidence.ProvenRecord("aborted", str(number), "proof") for number in range(2)]
    written = evidence.write_proofs(twice, "exchange-1", tmp_path)
    assert [record.name for _, record in written] == [
        "exchange-1.aborted.json",
        "exchange-1.aborted-2.json",
    ]


def test_fsck_takes_the_keepers_key_and_no_other_partys(tmp_path: Path, capsys: Capture) -> None:
    keeping = VKEY.replace("demo", "keeping")
    assert main(["fsck", str(tmp_path), "--key", VKEY, "--keeping-key", keeping]) == 0
    assert main(["fsck", str(tmp_path), "--key", VKEY, "--keeping-key", VKEY]) == 2
    assert "could speak for the ledger" in capsys.readouterr().err


def test_fsck_of_nothing_is_wrong_usage(tmp_path: Path) -> None:
    assert main(["fsck", str(tmp_path / "nowhere")]) == 2


def test_export_leaves_says_how_many(tmp_path: Path, capsys: Capture) -> None:
    assert main(["export-leaves", str(tmp_path), "--out", str(tmp_path / "leaves")]) == 0
    assert capsys.readouterr().out == f"wrote 1 leaves to {tmp_path / 'leaves'}\n"


def test_an_error_of_the_core_is_one_sentence_with_its_code(tmp_path: Path, capsys: Capture) -> None:
    assert main(["export-leaves", str(tmp_path / "nowhere"), "--out", str(tmp_path / "leaves")]) == 1
    assert (
        capsys.readouterr().err
        == f"proofgate: {tmp_path / 'nowhere'} is not an incarnation [ledger_not_found]\n"
    )


def test_keygen_writes_a_key_pair_and_shows_the_public_half_only(tmp_path: Path, capsys: Capture) -> None:
    assert main(["keygen", "proofgate.dev/ns/demo", "--out", str(tmp_path / "keys")]) == 0
    signing, verifying = tmp_path / "keys" / "signing-key", tmp_path / "keys" / "verifying-key"
    assert stat.S_IMODE(signing.stat().st_mode) == 0o600
    assert verifying.read_text() == f"{VKEY}\n"
    output = capsys.readouterr().out
    assert VKEY in output
    assert "PRIVATE" not in output


def test_keygen_never_overwrites_a_key(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "signing-key").write_text("precious")
    assert main(["keygen", "proofgate.dev/ns/demo", "--out", str(tmp_path)]) == 2
    assert (tmp_path / "signing-key").read_text() == "precious"
    assert "never overwritten" in capsys.readouterr().err


def test_keygen_refuses_a_name_that_no_key_can_have(tmp_path: Path, capsys: Capture) -> None:
    assert main(["keygen", "a+b", "--out", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []
    assert "a+b cannot name a key" in capsys.readouterr().err


NEXT_KEY = "PRIVATE+KEY+proofgate.dev/ns/demo+5e6f7a8b+bmV4dA=="


def rotated(folder: Path, *more: str) -> int:
    (folder / "next").write_text(NEXT_KEY)
    if not (folder / "signing-key").exists():
        assert main(["keygen", "proofgate.dev/ns/demo", "--out", str(folder)]) == 0
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
    assert written["signing-key"][1] == f"{NEXT_KEY}\n\n{statement}"
    assert written["signing-key-with-former"][1] == f"{NEXT_KEY}\n{former}\n\n{statement}"
    assert written["verifying-key"][1] == f"{core_double.verifying_key(NEXT_KEY)}\n\n{statement}"
    printed = capsys.readouterr().out
    assert VKEY in printed
    assert "until" in printed
    assert "PRIVATE" not in printed
    assert main(["keys", "show", str(out / "verifying-key")]) == 0
    assert capsys.readouterr().out.splitlines() == printed.splitlines()[-2:]


def test_keys_rotate_carries_the_statements_of_before_on(tmp_path: Path, capsys: Capture) -> None:
    assert rotated(tmp_path) == 0
    third = tmp_path / "third"
    third.write_text("PRIVATE+KEY+proofgate.dev/ns/demo+00000003+dGhpcmQ=")
    old = str(tmp_path / "out" / "signing-key-with-former")
    assert main(["keys", "rotate", old, "--to", str(third), "--out", str(tmp_path / "more")]) == 0
    capsys.readouterr()
    assert main(["keys", "show", str(tmp_path / "more" / "signing-key")]) == 0
    assert [line.split("+")[1] for line in capsys.readouterr().out.splitlines()] == [
        "1a2b3c4d",
        "5e6f7a8b",
        "00000003",
    ]


def test_keys_rotate_overwrites_nothing_and_shows_no_secret_of_what_is_wrong(
    tmp_path: Path, capsys: Capture
) -> None:
    assert rotated(tmp_path) == 0
    assert rotated(tmp_path) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    (tmp_path / "signing-key").write_text("PRIVATE+KEY+proofgate.dev/other+1a2b3c4d+c2VjcmV0")
    assert rotated(tmp_path) == 2
    told = capsys.readouterr().err
    assert "cannot follow" in told
    assert "c2VjcmV0" not in told
    assert main(["keys", "show", str(tmp_path / "nothing")]) == 2
    assert usage_error("keys", "rotate", str(tmp_path / "signing-key"), "--out", "x", "--grace", "-1") == 2
    assert usage_error("keys") == 2


@pytest.mark.parametrize("text", ["acme-key", "acme-key\n", "acme-key\r\n"])
def test_hash_key_reads_standard_input(text: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["hash-key"]) == 0
    assert capsys.readouterr().out == f"{core_double.hash_api_key('acme-key')}\n"


@pytest.mark.parametrize("text", ["", "\n", "two\nlines\n", "a key", "schl\u00fcssel"])
def test_hash_key_refuses_what_cannot_be_a_key(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["hash-key"]) == 2
    assert text.strip() == "" or text.strip() not in capsys.readouterr().err


def test_end_user_reads_standard_input_and_prints_a_pseudonym_for_each_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def asked(*more: str, name: str = "alice@example.com\n") -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(name))
        code = main(["end-user", "--tenant", "acme", *more])
        told = capsys.readouterr()
        return code, told.out + told.err

    assert asked() == (0, "acme alice@example.com\n")
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
    assert usage_error("hash-key", "acme-key") == 2
