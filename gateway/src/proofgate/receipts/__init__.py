"""Receipts: the signed proofs of an exchange, which its tenant fetches and verifies.

`verified_receipt` reads and verifies a receipt; `fetch` requests it from a gateway; `Witness` stores earlier
checkpoints, so that it detects a ledger that was rolled back or forked; `WitnessedTransport` does all of this
for the clients of OpenAI and Anthropic. They need only the standard library and the core.
"""

from proofgate.evidence import EvidenceError
from proofgate.receipts.fetch import GatewayResponse, UrlSource, fetch
from proofgate.receipts.transport import WitnessedExchange, WitnessedTransport
from proofgate.receipts.verified_receipt import ContradictedError, Receipt, VerifiedReceipt
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
