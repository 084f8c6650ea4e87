"""Evidence as COSE messages, for tools that read those and no signed notes.

`receipt` makes COSE receipts of records (RFC 9942), `statement` makes signed statements of tree heads
(RFC 9943). The signature of a signed note covers another text than that of a COSE message, so neither can be
made of the ledger's signatures: a holder of a key verifies the evidence and signs. `note_key` is such a key,
`sign1` signs, and `cbor` encodes.
"""
