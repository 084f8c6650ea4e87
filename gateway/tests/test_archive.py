"""Configurations stored with the ledger: written once, verified by name, and no obstacle for a worker."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ACME_HASH, ConfigDirectory

from proofgate import archive
from proofgate.archive import FOLDER, Archive, ArchiveError, find_configuration
from proofgate.cli import main
from proofgate.config import load


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def files(ledger: Path) -> list[str]:
    return sorted(path.name for path in (ledger / FOLDER).iterdir())


def test_a_configuration_is_kept_once_under_its_digest_and_found_by_it(tmp_path: Path) -> None:
    for content in (b"{}", b"[]", b"{}"):
        Archive(tmp_path).store(content)
    assert files(tmp_path) == sorted(f"{digest_of(content)}.json" for content in (b"{}", b"[]"))
    digest = digest_of(b"{}")
    assert find_configuration(tmp_path, digest) == find_configuration(tmp_path, digest[:16]) == b"{}"


def test_what_is_archived_has_the_digest_that_records_name_and_nothing_secret(
    config_directory: ConfigDirectory,
) -> None:
    config = load(config_directory.file)
    content = config.public_json()
    assert digest_of(content) == config.digest()
    assert ACME_HASH not in content.decode()
    for secret in (config.signing_key, *config.provider_keys.values()):
        assert secret is not None
        assert secret.get_secret_value() not in content.decode()
    document = json.loads(content)
    assert [tenant["name"] for tenant in document["tenants"]] == [
        tenant.name for tenant in config.settings.tenants
    ]


def test_what_was_changed_is_never_shown_and_a_worker_writes_it_anew(tmp_path: Path) -> None:
    kept = Archive(tmp_path)
    kept.store(b"{}")
    digest = digest_of(b"{}")
    path = tmp_path / FOLDER / f"{digest}.json"

    def make_it_a_pipe() -> None:
        path.unlink()
        os.mkfifo(path)

    def make_it_a_link() -> None:
        path.unlink()
        path.symlink_to("/dev/zero")

    spoils: list[Callable[[], object]] = [
        lambda: path.write_bytes(b"[]"),
        lambda: path.write_bytes(b""),
        make_it_a_pipe,
        make_it_a_link,
    ]
    for spoil in spoils:
        spoil()
        with pytest.raises(ArchiveError) as refused:
            find_configuration(tmp_path, digest)
        assert refused.value.code == "configuration_changed"
        kept.store(b"{}")
        assert find_configuration(tmp_path, digest) == b"{}"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Archive(tmp_path).store(b"0123456789")
    monkeypatch.setattr(archive, "_MAX_CONFIGURATION_BYTES", 9)
    with pytest.raises(ArchiveError):
        find_configuration(tmp_path, digest_of(b"0123456789"))


def test_what_cannot_be_written_now_is_written_later(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    kept = Archive(ledger)
    kept.store(b"{}")
    kept.store(b"[]")
    assert not kept.is_complete
    kept.retry()
    assert not kept.is_complete
    ledger.mkdir()
    kept.retry()
    assert kept.is_complete
    assert find_configuration(ledger, digest_of(b"{}")) == b"{}"
    assert find_configuration(ledger, digest_of(b"[]")) == b"[]"


@pytest.mark.parametrize("digest", ["", "ab", "../../etc/passwd", "AB" * 8, "ab" * 33, "ab" * 9])
def test_what_is_no_digest_is_refused_before_anything_is_read(tmp_path: Path, digest: str) -> None:
    with pytest.raises(ValueError, match="not a digest"):
        find_configuration(tmp_path, digest)


def test_the_command_prints_what_is_there_and_says_what_is_not(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    Archive(tmp_path).store(b"{}")
    digest = digest_of(b"{}")
    assert main(["ledger", "configuration", str(tmp_path), digest]) == 0
    assert capfdbinary.readouterr().out == b"{}\n"
    assert main(["ledger", "configuration", str(tmp_path), "0" * 64]) == 1
    assert b"[configuration_unknown]" in capfdbinary.readouterr().err
    assert main(["ledger", "configuration", str(tmp_path), "x"]) == 2
    (tmp_path / FOLDER / f"{digest}.json").write_bytes(b"[]")
    assert main(["ledger", "configuration", str(tmp_path), digest]) == 40
    assert b"[configuration_changed]" in capfdbinary.readouterr().err
