"""A worker whose key is in another process signs as with its own key, and serves while this process is away."""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from proofgate_operator.build.ledger_key import SigningKey

from e2e.auditing import ask, signed
from e2e.commands import proofgate
from e2e.local_gateway import LEDGER, LocalGateway
from e2e.programs import PATIENCE, wait_until

KEY = SigningKey(LEDGER, bytes(range(32)))


def _read(stream: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = stream.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


@contextmanager
def token(path: Path) -> Iterator[None]:
    """A shim in front of a token with the protocol of docs/how-to/use-an-external-signer.md."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            # A worker that is killed during a request for a signature closes the connection.
            with stream, contextlib.suppress(OSError, EOFError):
                (length,) = struct.unpack(">H", _read(stream, 2))
                assert _read(stream, length).decode() == KEY.verifying_text
                (length,) = struct.unpack(">I", _read(stream, 4))
                signature = Ed25519PrivateKey.from_private_bytes(KEY.seed).sign(_read(stream, length))
                stream.sendall(b"\0" + signature)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        path.unlink()


@contextmanager
def gateway_with(path: Path, folder: Path) -> Iterator[LocalGateway]:
    """A gateway whose key belongs to the signer at this path."""
    (folder / "signing-key").write_text(f"SIGNER {KEY.verifying_text} {path}\n")
    gateway = LocalGateway(folder)
    gateway.start_upstream()
    gateway.write_configuration()
    try:
        yield gateway
    finally:
        gateway.stop()


def test_a_worker_serves_while_its_signer_is_away_and_is_signed_for_when_it_is_back(folder: Path) -> None:
    path = folder / "s"
    with gateway_with(path, folder) as gateway:
        with token(path):
            gateway.start_worker()
            assert gateway.worker is not None
            assert gateway.verifying_key == KEY.verifying_text
            ask(gateway, 1)
            gateway.worker.stop(signal.SIGKILL)
            # The new worker reads the killed worker's data with secrets derived from the signer's key.
            gateway.start_worker()
        before = signed(gateway)
        ask(gateway, 1)
        gateway.worker.wait_for_line("cannot sign the ledger: the signer")
        ask(gateway, 1)
        assert signed(gateway) == before
        with token(path):
            wait_until(lambda: signed(gateway) >= before + 4, PATIENCE, "a checkpoint covers what came meanwhile")
            assert gateway.worker.stop() == 0
    checked = proofgate("ledger", "fsck", gateway.ledger, "--key", KEY.verifying_text)
    assert checked.returncode == 0, checked.stdout


def test_a_worker_does_not_start_without_its_signer(folder: Path) -> None:
    with gateway_with(folder / "nobody", folder) as gateway, pytest.raises(RuntimeError, match="signer"):
        gateway.start_worker(attempts=1)
