"""Receipts: the signed proofs of an exchange, as the tenant that had it gets and checks them.

`bundle` reads and checks one; `fetch` asks a gateway for it; `Witness` remembers what was signed before, so
that a ledger that was rolled back or forked is told; `WitnessedTransport` does all of it beside a client of
OpenAI's or Anthropic's. None of them needs anything but the standard library and the core.
"""

from proofgate.evidence import EvidenceError
from proofgate.receipts.bundle import ContradictedError, Receipt, VerifiedReceipt
from proofgate.receipts.fetch import GatewayResponse, UrlSource, fetch
from proofgate.receipts.transport import WitnessedExchange, WitnessedTransport
from proofgate.receipts.witness import Witness

__all__ = [
    "ContradictedError",
    "EvidenceError",
    "GatewayResponse",
    "Receipt",
    "UrlSource",
    "VerifiedReceipt",
    "Witness",
    "WitnessedExchange",
    "WitnessedTransport",
    "fetch",
]
