"""The certificate that HAProxy presents to clients or to workers, and its key."""

from __future__ import annotations

import hashlib
import re
import ssl
from pathlib import Path

from proofgate.haproxy_sidecar.runtime_api import RuntimeApi
from proofgate.haproxy_sidecar.target import CHECK_SECONDS, RefusedError

# HAProxy reads a command with its payload into one buffer, for which Proofgate configures 32 KiB.
_MAX_PAYLOAD_BYTES = 30_000
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n.+?\n-----END CERTIFICATE-----", re.DOTALL)
_PEM = re.compile(r"[A-Za-z0-9+/= :,-]*")
_FINGERPRINT = re.compile(r"^SHA1 FingerPrint: ([0-9A-F]{40})$", re.MULTILINE)
_NOT_AFTER = re.compile(r"^notAfter: (.+)$", re.MULTILINE)


class CertificateFile:
    """A certificate chain in the file at `path`, with its key in `<path>.key`, as HAProxy names the files.

    HAProxy replaces both together, or neither if they do not match.
    """

    check_seconds = CHECK_SECONDS

    def __init__(self, path: Path, api: RuntimeApi, name: str = "certificate") -> None:
        self.name = name
        self._path = path
        self._api = api
        self._loaded: str | None = None
        self._expires: float = 0

    def read(self) -> str | None:
        key_path = self._path.with_name(self._path.name + ".key")
        try:
            chain, key = self._path.read_text("ascii"), key_path.read_text("ascii")
            # The kubelet replaces both files together. A key that was read after the replacement belongs to
            # another certificate.
            if self._path.read_text("ascii") != chain:
                return None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not ASCII"
            raise RefusedError(f"{self._path} or its key cannot be read: {reason}") from None
        return f"{chain.strip()}\n{key.strip()}\n"

    async def reconcile(self, content: str) -> str | None:
        text = _payload(content)
        leaf = _fingerprint(text)
        shown = await self._active_fingerprint()
        # The fingerprint covers only the leaf, so the loaded content is compared too, because the chain may
        # change.
        if content == self._loaded and shown == leaf:
            return None
        try:
            await self._command("set", text)
            await self._command("commit")
        except RefusedError:
            await self._api.send_command(f"abort ssl cert {self._path}")
            raise
        if await self._active_fingerprint() != leaf:
            raise RefusedError("HAProxy still uses another certificate")
        self._loaded = content
        return None if shown == leaf else f"SHA-1 {leaf[:16]}, instead of {shown[:16]}"

    def errors(self) -> list[str]:
        return []

    def gauges(self) -> dict[str, float]:
        return {"expires_timestamp_seconds": self._expires}

    async def _active_fingerprint(self) -> str:
        answer = await self._api.send_command(f"show ssl cert {self._path}")
        found, not_after = _FINGERPRINT.search(answer), _NOT_AFTER.search(answer)
        if found is None:
            raise RefusedError(f"HAProxy does not know {self._path}")
        if not_after is not None:
            self._expires = ssl.cert_time_to_seconds(not_after[1])
        return found[1]

    async def _command(self, verb: str, payload: str | None = None) -> None:
        answer = await self._api.send_command(f"{verb} ssl cert {self._path}", payload)
        if not answer.startswith("Transaction") and "Success!" not in answer:
            raise RefusedError(f"HAProxy refuses it: {answer.splitlines()[0][:200]}")


def _payload(content: str) -> str:
    """Returns the text as a payload. It must not contain an empty line, which would end the payload. Raises
    RefusedError."""
    text = "".join(f"{line}\n" for line in map(str.strip, content.splitlines()) if line)
    if len(text) > _MAX_PAYLOAD_BYTES:
        raise RefusedError(f"chain and key are longer than {_MAX_PAYLOAD_BYTES} bytes")
    # If a payload ended early, HAProxy would execute the rest as commands.
    if not all(_PEM.fullmatch(line) for line in text.splitlines()):
        raise RefusedError("chain and key must be PEM and nothing else")
    return text


def _fingerprint(text: str) -> str:
    """The leaf's SHA-1, as HAProxy prints it. It only identifies the leaf, and proves nothing."""
    found = _CERTIFICATE.search(text)
    try:
        der = ssl.PEM_cert_to_DER_cert(found[0] if found else "")
    except ValueError:
        raise RefusedError("its file does not begin with a PEM certificate") from None
    return hashlib.sha1(der, usedforsecurity=False).hexdigest().upper()
