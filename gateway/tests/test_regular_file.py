"""Files of a directory that other users can write."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from conftest import PATIENCE_SECONDS

from proofgate import key_statements
from proofgate.regular_file import open_regular, read_regular


def bounded(work: object) -> object:
    """Returns a call's result; fails if the call blocks."""
    assert callable(work)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert found, "the call blocks"
    return found[0]


def test_a_file_is_read_and_what_is_none_of_that_size_is_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"1234")
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    assert (read_regular(file, 4), read_regular(file, 3)) == (b"1234", None)
    for name in ("link", "pipe", ".", "missing", "file/below"):
        assert bounded(lambda name=name: [read_regular(tmp_path / name, 4)]) == [None]


def test_a_link_to_a_file_is_opened_and_what_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"1234"

    def refused(name: str) -> OSError | None:
        try:
            open_regular(tmp_path / name).close()
        except OSError as error:
            return error
        return None

    for name in ("pipe", ".", "missing", "file/below"):
        assert isinstance(bounded(lambda name=name: refused(name)), OSError), name


def test_a_pipe_among_the_statements_of_keys_is_left_out_and_waited_for_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_statements, "_chain_keys", lambda text: [text])
    (tmp_path / key_statements.STATEMENTS).mkdir()
    os.mkfifo(tmp_path / key_statements.STATEMENTS / f"{'a' * 32}.note")
    assert bounded(lambda: [key_statements.chain_statements(tmp_path, "vkey")]) == [[]]
