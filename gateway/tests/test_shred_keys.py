"""Tenants' shred keys: their place in a configuration, and the commands that create and destroy them."""

from __future__ import annotations

import base64
import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import pytest
from conftest import ConfigDirectory
from recorded_exchange import record
from retention_double import RetentionState
from signing import RETENTION_KEY, VKEY

from proofgate import _core
from proofgate._core import shred_key_ids, shred_keys
from proofgate.cli import main
from proofgate.config import load
from proofgate.config.files import current_digests
from proofgate.keeping.shred_key_files import (
    ShredKeyFolder,
    ShredKeySecret,
    ShredKeysError,
    with_new_key,
    without_keys,
)
from proofgate.reload import needs_restart

pytestmark = pytest.mark.usefixtures("fake_retention_state")

SIGNING_KEY = RETENTION_KEY.signing

Capture = pytest.CaptureFixture[str]


def line(byte: int) -> str:
    return base64.b64encode(bytes([byte]) * 32).decode() + "\n"


def key_id(byte: int) -> str:
    return shred_key_ids(line(byte))[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of keys: two of acme, newest first, and one of globex."""
    path = tmp_path / "shred-keys"
    path.mkdir()
    (path / "acme").write_text(line(2) + line(1))
    (path / "globex").write_text(line(3))
    return path


@pytest.fixture
def configured(config_directory: ConfigDirectory, folder: Path) -> ConfigDirectory:
    config_directory.replace("directory: ledger", f"directory: ledger\n  shredKeysDirectory: {folder}")
    return config_directory


def test_the_core_is_told_where_keys_lie_and_python_holds_none(
    configured: ConfigDirectory, folder: Path
) -> None:
    config = load(configured.file)
    assert config.shred_keys == {"acme": (key_id(2), key_id(1)), "globex": (key_id(3),)}
    core = config.to_core_json(shard=0)
    assert json.loads(core)["ledger"]["shredKeysDirectory"] == str(folder)
    for text in (core, repr(config), config.public_json().decode()):
        assert all(line(byte).strip() not in text for byte in (1, 2, 3))


def test_a_tenant_without_a_key_and_a_file_that_holds_none_are_refused(
    configured: ConfigDirectory, folder: Path
) -> None:
    (folder / "globex").unlink()
    assert configured.codes() == ["config_no_shred_key"]
    (folder / "globex").write_text(line(3) + "sk-very-secret\n")
    assert configured.codes() == ["config_bad_shred_keys"]


@pytest.mark.parametrize(
    ("directory", "code"), [("ledger", "config_shred_keys_inside"), ("nowhere", "config_bad_shred_keys")]
)
def test_keys_on_the_ledgers_volume_or_nowhere_are_refused(
    config_directory: ConfigDirectory, directory: str, code: str
) -> None:
    config_directory.replace("directory: ledger", f"directory: ledger\n  shredKeysDirectory: {directory}")
    assert config_directory.codes() == [code]


def test_another_key_is_another_configuration_that_needs_no_restart_and_is_noticed(
    configured: ConfigDirectory, folder: Path
) -> None:
    before = load(configured.file)
    assert current_digests(before.files) == before.files
    ShredKeyFolder(folder).rotate("acme")
    assert current_digests(before.files) != before.files
    after = load(configured.file)
    assert after != before
    assert not needs_restart(before, after)
    assert after.digest() == before.digest(), "the key is recorded in admissions, not in the digest"
    # A Kubernetes mount changes by the target of one link.
    for target in ("..1", "..2"):
        (folder / target).mkdir()
        (folder / "..data").unlink(missing_ok=True)
        (folder / "..data").symlink_to(target)
        assert current_digests(after.files) != after.files
        after = load(configured.file)


def test_a_folder_where_a_file_belongs_is_looked_at_once(config_directory: ConfigDirectory) -> None:
    config_directory.replace("openai-key", "ledger")
    files = load(config_directory.file).files
    assert current_digests(files) == files


def test_a_new_key_comes_first_and_no_more_than_64_may_be() -> None:
    text = with_new_key(line(1))
    assert text.endswith(f"\n{line(1)}")
    assert with_new_key(line(1)) != text
    assert len(shred_key_ids(with_new_key(""))) == 1
    with pytest.raises(ShredKeysError, match="shred old keys first"):
        with_new_key("".join(line(byte) for byte in range(1, 65)))
    assert without_keys(line(2) + line(1), [key_id(2)]) == line(1)
    with pytest.raises(ShredKeysError, match="strict base64"):
        without_keys("sk-very-secret\n", [key_id(2)])


def test_keys_are_made_and_removed_in_a_folder(folder: Path, capsys: Capture) -> None:
    (folder / "acme").chmod(0o640)
    assert main(["ledger", "shred-keys", "rotate", str(folder), "acme", "team/new"]) == 0
    assert (folder / "_team_new").stat().st_mode & 0o777 == 0o600
    keys = (folder / "acme").read_text()
    assert keys.endswith(line(2) + line(1))
    assert (folder / "acme").stat().st_mode & 0o777 == 0o640
    assert main(["ledger", "shred-keys", "list", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert f"{key_id(2)} {key_id(1)}\n" in shown
    assert line(1).strip() not in shown
    assert main(["ledger", "shred-keys", "drop", str(folder), "acme", "--key", key_id(2)]) == 0
    assert (folder / "acme").read_text() == keys.replace(line(2), "")
    assert main(["ledger", "shred-keys", "rotate", str(folder / "nowhere"), "acme"]) == 2


def test_the_last_key_gives_way_to_a_new_one_and_is_overwritten_where_it_lay(folder: Path) -> None:
    with (folder / "globex").open("rb") as old:
        ShredKeyFolder(folder).drop("globex", [key_id(3)])
        assert old.read() == bytes(len(line(3)))
    left = ShredKeyFolder(folder).ids()["globex"]
    assert len(left) == 1
    assert left != [key_id(3)]


def test_a_key_is_overwritten_only_when_no_loss_of_power_brings_its_file_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    old = (folder / "globex").stat().st_ino
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        status = os.fstat(descriptor)
        if S_ISDIR(status.st_mode):
            calls.append("folder")
        elif status.st_ino == old:
            calls.append("overwritten")
        sync(descriptor)

    def replaced(path: Path, target: Path) -> Path:
        calls.append("renamed")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    with (folder / "globex").open("rb") as old_file:
        ShredKeyFolder(folder).drop("globex", [key_id(3)])
        assert old_file.read() == bytes(len(line(3)))
    assert calls[:3] == ["renamed", "folder", "overwritten"]


def test_a_replaced_file_stays_its_owners_and_a_new_one_is_the_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, int, int]] = []

    def give(descriptor: int, uid: int, gid: int) -> None:
        given.append((Path(f"/proc/self/fd/{descriptor}").readlink().name, uid, gid))

    as_root_sees_it(monkeypatch, folder)
    monkeypatch.setattr(os, "fchown", give)
    ShredKeyFolder(folder).rotate("acme")
    ShredKeyFolder(folder).rotate("initech")
    assert given == [(".acme.tmp", 7001, 8001), (".initech.tmp", 7002, 8002)]


def test_a_file_that_its_owner_could_not_read_any_more_is_not_replaced(
    shred: list[str], folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    as_root_sees_it(monkeypatch, folder)
    monkeypatch.setattr(os, "fchown", deny)
    before = (folder / "acme").read_text()
    assert main(["ledger", "shred-keys", "rotate", str(folder), "acme"]) == 2
    assert (
        "acme: it belongs to 7001:8001, and you may not create files with that owner"
    ) in capsys.readouterr().err
    assert main([*shred, "--shred-keys", str(folder), "--yes"]) == 1
    shown = capsys.readouterr()
    assert "acme cannot be written: it belongs to 7001:8001" in shown.err
    assert "kubectl" in shown.out
    assert (folder / "acme").read_text() == before
    assert sorted(path.name for path in folder.iterdir()) == ["acme", "globex"]
    # The worker's user may be the one who creates a new file.
    assert main(["ledger", "shred-keys", "rotate", str(folder), "initech"]) == 0


def as_root_sees_it(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Makes the file of acme and the folder belong to other users."""
    look = os.fstat
    owners = {(folder / "acme").stat().st_ino: (7001, 8001), folder.stat().st_ino: (7002, 8002)}

    def looked(descriptor: int) -> os.stat_result:
        status = look(descriptor)
        uid, gid = owners.get(status.st_ino, (status.st_uid, status.st_gid))
        return os.stat_result((*status[:4], uid, gid, *status[6:10]))

    monkeypatch.setattr(os, "fstat", looked)


def test_keys_are_made_and_removed_in_a_secret_that_passes_through(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    data = {"acme": base64.b64encode((line(2) + line(1)).encode()).decode()}
    secret = {"kind": "Secret", "metadata": {"name": "keys", "resourceVersion": "7"}, "data": data}

    def passed(*arguments: str) -> dict[str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(secret)))
        assert main(["ledger", "shred-keys", *arguments]) == 0
        changed = json.loads(capsys.readouterr().out)
        assert changed | {"data": data} == secret, "all other fields stay"
        return {name: base64.b64decode(entry).decode() for name, entry in changed["data"].items()}

    assert passed("drop", "-", "acme", "--key", key_id(2)) == {"acme": line(1)}
    left = passed("drop", "-", "acme", "--key", key_id(2), "--key", key_id(1))
    assert shred_key_ids(left["acme"])[0] not in (key_id(1), key_id(2))
    assert passed("rotate", "-", "acme")["acme"].endswith(line(2) + line(1))
    for text in ("", "[]", '{"kind": "Secret", "data": {"acme": 1}}', '{"kind": "List"}'):
        with pytest.raises(ShredKeysError):
            ShredKeySecret(text)


@pytest.fixture
def shred(tmp_path: Path) -> list[str]:
    """The command for a started retention job, with two ledgers and the retention key in the same folder."""
    (tmp_path / "key").write_text(f"{SIGNING_KEY}\n")
    for name in ("ledger", "other"):
        (tmp_path / name).mkdir()
    keys = ("--ledger-key", VKEY, "--signing-key", str(tmp_path / "key"))
    assert main(["ledger", "hold", "begin", "--state", str(tmp_path / "state"), *keys]) == 0
    RetentionState.shreds.clear()
    RetentionState.held.clear()
    ledgers = ("--ledger", str(tmp_path / "ledger"), "--ledger", str(tmp_path / "other"))
    more = ("--tenant", "acme", "--override-minimum", "--reason", "the contract ended", "--author", "jo")
    return ["ledger", "shred", *ledgers, *keys, "--state", str(tmp_path / "state"), *more]


def test_without_yes_no_key_is_destroyed(shred: list[str], folder: Path, capsys: Capture) -> None:
    assert main([*shred, "--shred-keys", str(folder)]) == 0
    assert not any(call[-1] for call in RetentionState.shreds)
    assert (folder / "acme").read_text() == line(2) + line(1)
    shown = capsys.readouterr().out
    assert f"will be destroyed: key {key_id(1)}, with the salts of 4 exchanges\n" in shown
    assert "--yes would destroy 2 keys of acme and keep 0" in shown


def test_what_was_signed_for_all_volumes_is_removed_from_the_folder(
    shred: list[str], folder: Path, capsys: Capture
) -> None:
    assert main([*shred, "--shred-keys", str(folder), "--yes", "--json"]) == 0
    signed = [call for call in RetentionState.shreds if call[-1]]
    assert [Path(call[0]).name for call in signed] == ["ledger", "other"]
    assert signed[0][3] == sorted([key_id(1), key_id(2)])
    report = json.loads(capsys.readouterr().out)
    assert (report["done"], report["stay"], report["left_to_you"]) == (True, 0, None)
    assert len(ShredKeyFolder(folder).ids()["acme"]) == 1
    assert not {key_id(1), key_id(2)} & set(ShredKeyFolder(folder).ids()["acme"])
    assert ShredKeyFolder(folder).ids()["globex"] == [key_id(3)]


def test_a_hold_on_one_volume_keeps_a_key_for_all(
    shred: list[str], tmp_path: Path, folder: Path, capsys: Capture
) -> None:
    RetentionState.held[str(tmp_path / "other")] = {key_id(1)}
    assert main([*shred, "--shred-keys", str(folder), "--yes"]) == 1
    assert {tuple(call[3]) for call in RetentionState.shreds if call[-1]} == {(key_id(2),)}
    assert (folder / "acme").read_text() == line(1)
    shown = capsys.readouterr().out
    assert f"kept: key {key_id(1)}" in shown
    assert "  held: hold 1 touches records of it" in shown


@pytest.mark.parametrize(("volume", "signed"), [("ledger", ["ledger"]), ("other", ["ledger", "other"])])
def test_a_key_that_must_stay_since_the_plan_stays_for_all(
    shred: list[str],
    tmp_path: Path,
    folder: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    volume: str,
    signed: list[str],
) -> None:
    planned = RetentionState.shred

    def later(self: RetentionState, *arguments: Any) -> str:
        if arguments[-2]:
            RetentionState.held[str(tmp_path / volume)] = {key_id(1)}
        return planned(self, *arguments)

    monkeypatch.setattr(RetentionState, "shred", later)
    command = [*shred, "--shred-keys", str(folder), "--key", key_id(1), "--yes"]
    assert main([*command, "--json"]) == 1
    assert (folder / "acme").read_text() == line(2) + line(1)
    assert [Path(call[0]).name for call in RetentionState.shreds if call[-1]] == signed
    report = json.loads(capsys.readouterr().out)
    assert (report["stay"], report["left_to_you"]) == (1, None)
    assert [(key["action"], key["exchanges"]) for key in report["keys"]] == [("stay", 4)]
    assert [reason["code"] for reason in report["keys"][0]["reasons"]] == ["held"]
    # In a second run, the plan already reports it.
    assert main(command) == 1
    shown = capsys.readouterr().out
    assert f"kept: key {key_id(1)}" in shown
    assert "destroyed" not in shown


def test_where_keys_lie_in_a_secret_the_command_that_removes_them_is_printed(
    shred: list[str], capsys: Capture
) -> None:
    assert main([*shred, "--key", key_id(1), "--secret", "team/llm-shred-keys", "--yes"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        "  kubectl -n team get secret llm-shred-keys -o json"
        f" | proofgate ledger shred-keys drop - acme --key {key_id(1)} | kubectl -n team replace -f -"
    )


def test_a_folder_that_cannot_be_written_leaves_the_rest_to_you(
    shred: list[str], folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system", str(folder))

    monkeypatch.setattr(ShredKeyFolder, "_replace", refuse)
    assert main([*shred, "--shred-keys", str(folder), "--yes"]) == 1
    shown = capsys.readouterr()
    assert "Read-only file system" in shown.err
    assert "kubectl -n NAMESPACE get secret GATEWAY-shred-keys" in shown.out


def test_a_file_that_is_spoiled_since_the_plan_leaves_the_rest_to_you(
    shred: list[str], folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop = ShredKeyFolder.drop

    def spoiled(self: ShredKeyFolder, tenant: str, keys: list[str]) -> None:
        (folder / "acme").write_bytes(b"\xff")
        drop(self, tenant, keys)

    monkeypatch.setattr(ShredKeyFolder, "drop", spoiled)
    assert main([*shred, "--shred-keys", str(folder), "--yes"]) == 1
    shown = capsys.readouterr()
    assert "contains no shred keys" in shown.err
    assert "Remove them:" in shown.out


def test_two_who_make_keys_at_once_lose_none_and_no_name_leads_out_of_the_folder(folder: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        made = set(threads.map(lambda _: ShredKeyFolder(folder).rotate("acme"), range(12)))
    assert len(made) == 12
    assert made <= set(ShredKeyFolder(folder).ids()["acme"])
    for tenant in ("../acme", "/etc/passwd", "..", "", "a/../b", "a/b/c"):
        with pytest.raises(ShredKeysError, match="not a valid tenant name"):
            ShredKeyFolder(folder).rotate(tenant)


def test_a_key_that_nobody_knows_is_not_said_to_be_destroyed(
    shred: list[str], folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetentionState, "exchanges", 0)
    assert main([*shred, "--shred-keys", str(folder), "--key", key_id(9), "--yes"]) == 2
    assert f"{key_id(9)} is not a shred key of acme" in capsys.readouterr().err
    assert not any(call[-1] for call in RetentionState.shreds)
    assert main([*shred, "--shred-keys", str(folder), "--key", key_id(1), "--yes"]) == 0


def test_nothing_to_shred_and_what_contradicts_itself_are_told(shred: list[str], capsys: Capture) -> None:
    assert main([*shred, "--yes"]) == 1
    assert "no shred key is known" in capsys.readouterr().out
    assert main([*shred, "--tenant-minimum", "acme=1d"]) == 2


def test_what_cannot_be_read_of_an_exchange_is_told_and_the_rest_is_proved(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"kind": "admission", "index": 3, "record": "{}", "proof": "c2sp.org/tlog-proof@v1\n"}
    record["salt_unreadable"] = "read 0/X/salts: Input/output error [ledger_io]"
    unproven = ["record 9 of 0/Y: open 0/Y/checkpoint: Permission denied [ledger_io]"]
    proven = json.dumps({"records": [record], "unproven": unproven})
    monkeypatch.setattr(_core, "prove", lambda *_: proven)
    prove = ["ledger", "prove", "exchange-1", "--ledger", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(prove) == 10
    told = capsys.readouterr()
    assert "its salt cannot be read, so it cannot prove a body: read 0/X/salts: Input" in told.err
    assert "record 9 of 0/Y: open 0/Y/checkpoint: Permission denied [ledger_io]" in told.err
    assert "wrote " in told.out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "exchange-1.admission.json",
        "exchange-1.admission.tlog-proof",
    ]
    (tmp_path / "body").write_text("hello")
    reveal = ["ledger", "reveal", "exchange-1", "--ledger", str(tmp_path), "--body", str(tmp_path / "body")]
    assert main([*reveal, "--key", VKEY]) != 0
    assert "its salt cannot be read" in capsys.readouterr().err


def test_a_salt_whose_key_is_not_there_is_told_by_name(
    configured: ConfigDirectory, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    recorded = record(configured)
    ledger = str(recorded.ledger)
    prove = ["ledger", "prove", recorded.request_id, "--ledger", ledger, "--out", str(tmp_path / "out")]
    newest = shred_keys(str(folder))["acme"][0]
    assert main(prove) == 0
    assert f"needs the shred key {newest}, which is missing [shred_key_missing]" in (capsys.readouterr().out)
    assert main([*prove, "--shred-keys", str(folder)]) == 0
    assert "shred_key_missing" not in capsys.readouterr().out
    body = tmp_path / "body"
    body.write_bytes(recorded.body)
    reveal = ["ledger", "reveal", recorded.request_id, "--ledger", ledger, "--body", str(body), "--key", VKEY]
    assert main(reveal) != 0
    assert "[shred_key_missing]" in capsys.readouterr().err
    assert main([*reveal, "--shred-keys", str(folder)]) == 0
    capsys.readouterr()
    for options, unchecked in (((), 1), (("--shred-keys", str(folder)), 0)):
        assert main(["ledger", "fsck", ledger, "--key", VKEY, "--json", *options]) == 0
        [log] = json.loads(capsys.readouterr().out)["incarnations"]
        assert log["unchecked_salts"] == unchecked
