"""Keeps the results of the operator's writes in memory. After a restart, each write is tried once more."""

from collections.abc import Mapping

from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.apply import FIELD_MANAGER
from proofgate_operator.kube.client import Client
from proofgate_operator.plan.drift import (
    ApplyResult,
    differences,
    is_contested,
    manifest_digest,
    record_apply,
)
from proofgate_operator.plan.observed_state import Ref, ref_of


class ApplyHistory:
    """The newest write to each object, grouped by gateway."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], dict[Ref, ApplyResult]] = {}
        self._tried: dict[tuple[str, str], dict[Ref, str]] = {}

    def results(self, namespace: str, gateway: str) -> Mapping[Ref, ApplyResult]:
        """Return the results of the writes to a gateway's objects."""
        return dict(self._of.get((namespace, gateway), {}))

    def attempted_digests(self, namespace: str, gateway: str) -> Mapping[Ref, str]:
        """Return the digest of the manifest that was last applied to each object, also if it was refused."""
        return dict(self._tried.get((namespace, gateway), {}))

    def record_attempt(self, gateway: str, manifest: Manifest) -> None:
        """Record that a manifest is about to be applied, whatever the result."""
        key = (manifest["metadata"]["namespace"], gateway)
        self._tried.setdefault(key, {})[ref_of(manifest)] = manifest_digest(manifest)

    async def record_result(
        self,
        client: Client,
        gateway: str,
        manifest: Manifest,
        live: Manifest | None,
        answer: Manifest,
        now: float,
    ) -> ApplyResult:
        """Record the result of applying a manifest to `live`. If the object is reverted repeatedly, find out
        which field manager does it."""
        key, ref = (manifest["metadata"]["namespace"], gateway), ref_of(manifest)
        kept = self._of.setdefault(key, {})
        found = record_apply(kept.get(ref), manifest, answer, now)
        if is_contested(found) and live is not None:
            whole = await client.get(ref.kind, key[0], ref.name) or answer
            found = _find_conflict(found, ref, live, whole, manifest)
        kept[ref] = found
        return found

    def remove_gateway(self, namespace: str, gateway: str) -> None:
        """Drop the records of a deleted gateway."""
        self._of.pop((namespace, gateway), None)
        self._tried.pop((namespace, gateway), None)


def _find_conflict(
    found: ApplyResult, ref: Ref, live: Manifest, whole: Manifest, manifest: Manifest
) -> ApplyResult:
    place = next(differences(live, manifest), ())
    others = sorted(
        {
            entry.get("manager", "unknown")
            for entry in whole["metadata"].get("managedFields") or []
            if entry.get("manager") != FIELD_MANAGER and entry.get("subresource") != "status"
        }
    )
    who = " or ".join(others) or "an admission webhook"
    text = f"{ref}: {'.'.join(place) or 'the object'} is repeatedly overwritten by {who}"
    return ApplyResult(found.uid, found.manifest_digest, found.fingerprint, found.since, found.attempts, text)
