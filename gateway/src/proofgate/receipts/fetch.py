"""Requests a receipt from a gateway until a checkpoint covers it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Protocol

from proofgate.evidence import EvidenceError
from proofgate.receipts.verified_receipt import Checkpoint, Receipt

MAX_RESPONSE_BYTES = 16 << 20
# Statuses of temporary errors: no checkpoint yet, too many concurrent requests, a limit.
_RETRYABLE_STATUSES = frozenset({409, 429, 503})
_MAX_PAUSE_SECONDS = 5.0


@dataclass(frozen=True)
class GatewayResponse:
    """A gateway's response."""

    status: int
    body: bytes
    retry_after: str | None = None


class ReceiptSource(Protocol):
    """A gateway that returns receipts, with the key of a tenant."""

    def get(self, path: str, timeout_seconds: float) -> GatewayResponse:
        """Returns the response to `GET <gateway><path>`. Raises EvidenceError if there is none."""


@dataclass(frozen=True)
class UrlSource:
    """A gateway at a URL, such as `http://127.0.0.1:8080`. Certificates are checked with Python's defaults."""

    url: str
    api_key: str

    def get(self, path: str, timeout_seconds: float) -> GatewayResponse:
        try:
            parts = urllib.parse.urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            usable = False
        if not usable:
            raise EvidenceError(f"{self.url} is not an http URL: write for example http://127.0.0.1:8080")
        if not (self.api_key.isascii() and self.api_key.isprintable()) or " " in self.api_key:
            # The HTTP library's error would contain the whole key.
            raise EvidenceError("the API key is not one line of visible ASCII")
        request = urllib.request.Request(self.url.rstrip("/") + path)  # noqa: S310 - the scheme is checked above
        try:
            request.add_header("Authorization", f"Bearer {self.api_key}")
            with urllib.request.urlopen(request, timeout=timeout_seconds) as response:  # noqa: S310 - as above
                return GatewayResponse(response.status, response.read(MAX_RESPONSE_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                return GatewayResponse(
                    error.code, error.read(MAX_RESPONSE_BYTES), error.headers.get("retry-after")
                )
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise EvidenceError(f"the gateway at {self.url} does not answer: {reason}") from None


def fetch(
    source: ReceiptSource, request_id: str, timeout_seconds: float = 10, held: Checkpoint | None = None
) -> tuple[Receipt, str]:
    """Fetches a receipt, and returns it with its text. Retries for `timeout_seconds` while no receipt is
    available or the exchange has no end.

    With a `held` checkpoint, the gateway must also prove that its log continues from it. Raises
    EvidenceError.
    """
    path = f"/v1/receipts/{urllib.parse.quote(request_id, safe='')}"
    if held is not None:
        path += f"?since={held.size}&origin={urllib.parse.quote(held.origin, safe='')}"
    give_up = time.monotonic() + timeout_seconds
    while True:
        left = max(give_up - time.monotonic(), 0)
        answer = source.get(path, left + 10)
        over = time.monotonic() >= give_up
        if answer.status == 200:
            text = answer.body.decode(errors="replace")
            receipt = Receipt.parse(text)
            if receipt.complete or over:
                return receipt, text
        elif over or answer.status not in _RETRYABLE_STATUSES:
            raise EvidenceError(f"the gateway returned no receipt for {request_id}: {_refusal(answer)}")
        time.sleep(min(_pause(answer), max(give_up - time.monotonic(), 0)))


def _pause(answer: GatewayResponse) -> float:
    try:
        asked = float(answer.retry_after or 1)
    except ValueError:
        asked = 1.0
    # The value may be NaN or negative, which is no valid sleep time.
    return min(asked, _MAX_PAUSE_SECONDS) if asked >= 0 else 1.0


def _refusal(answer: GatewayResponse) -> str:
    try:
        detail = json.loads(answer.body)["error"]
        return f"{detail['message']} [{detail['code']}]"
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status}"
