"""The section `exportKey`: the key by which the auditor signs downloads of readers."""

from proofgate_operator.api.fields import Section
from proofgate_operator.api.ledger import SigningKeyRef


class ExportKey(Section):
    """The key that signs the exports that readers download. It must not be the ledger's, the auditor's or the
    retention key."""

    secret_ref: SigningKeyRef | None = None
    """Entry of a Secret with your own key, as `proofgate keys generate` writes it. A new key replaces the
    auditor's pod. Absent: the operator creates a key once, in the Secret `<gateway>-export-key`. The Secret
    stays when `exportKey` is removed, so that the same key signs again when `exportKey` is set again. The
    Secret is deleted with the gateway. `status.auditor.exportVerifyingKey` is the public key."""
