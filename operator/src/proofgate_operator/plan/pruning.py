"""Ownerless objects that an earlier release labelled with a label by which GitOps tools prune objects.

Server-side apply only removes fields that it set itself, so not a label of an object that was created
otherwise or by the StatefulSet's controller.
"""

from collections.abc import Iterable

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import INSTANCE_LABEL, KEEP_ANNOTATIONS, Manifest
from proofgate_operator.plan.observed_state import ObservedState, Ref, ref_of
from proofgate_operator.plan.ownership import Ownership, classify

_KINDS = frozenset({"PersistentVolumeClaim", "Secret", "ConfigMap"})


def prune_label_patches(
    gateway: Gateway, seen: ObservedState, apply: Iterable[Manifest]
) -> dict[Ref, Manifest]:
    """Return merge patches for objects that outlive the gateway and are not annotated as such yet.

    On an annotated object, the label was already removed: a new label is intended, and the annotation
    prevents the pruning.
    """
    manifests = {ref_of(manifest): manifest for manifest in apply}
    found: dict[Ref, Manifest] = {}
    for ref, live in seen.children.items():
        if live is None or ref.kind not in _KINDS or classify(gateway, live) is not Ownership.OURS:
            continue
        metadata = live["metadata"]
        wanted = manifests.get(ref, live)["metadata"]
        annotations = metadata.get("annotations") or {}
        if metadata.get("ownerReferences") or wanted.get("ownerReferences"):
            continue
        if annotations.items() >= KEEP_ANNOTATIONS.items():
            continue
        patch: Manifest = {} if ref in manifests else {"annotations": dict(KEEP_ANNOTATIONS)}
        if (metadata.get("labels") or {}).get(INSTANCE_LABEL) == gateway.name:
            patch["labels"] = {INSTANCE_LABEL: None}
        if patch:
            found[ref] = {"metadata": patch}
    return found
