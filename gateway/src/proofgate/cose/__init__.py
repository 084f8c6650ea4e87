"""Evidence as COSE messages, for tools that cannot read signed notes.

`receipt` makes COSE receipts of records (RFC 9942), `statement` makes signed statements of tree heads
(RFC 9943). The signature of a signed note covers another text than the signature of a COSE message. So
neither can be made from the ledger's signatures: the holder of a key verifies the evidence and signs again.
`note_key` reads this key, `sign1` signs, and `cbor` encodes.
"""
