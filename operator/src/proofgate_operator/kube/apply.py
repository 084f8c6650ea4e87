"""Writes: server-side apply under one field manager, creation of what is never overwritten, and marks on what
is not ours."""

from collections.abc import Mapping

from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.resources import RESOURCES

FIELD_MANAGER = "proofgate-operator"
_APPLY = "application/apply-patch+yaml"


async def apply(client: Client, manifest: Manifest, subresource: str = "") -> Manifest:
    """Make `manifest` so: what it holds is set, what an earlier one held and it does not is removed."""
    metadata = manifest["metadata"]
    return await client.request(
        "PATCH",
        RESOURCES[manifest["kind"]].path(metadata["namespace"], metadata["name"], subresource),
        # Fields that somebody else set are taken back: the gateway's manifest is where they are to be
        # changed.
        query={"fieldManager": FIELD_MANAGER, "force": "true"},
        body=manifest,
        content_type=_APPLY,
    )


async def create(client: Client, manifest: Manifest) -> bool:
    """Create an object unless one of the name exists; return whether it was created."""
    try:
        await client.request(
            "POST",
            RESOURCES[manifest["kind"]].path(manifest["metadata"]["namespace"]),
            query={"fieldManager": FIELD_MANAGER},
            body=manifest,
        )
    except ApiError as error:
        if error.status == 409:
            return False
        raise
    return True


async def annotate(
    client: Client, kind: str, namespace: str, name: str, annotations: Mapping[str, str]
) -> None:
    """Set annotations of an object that a controller made; one that is gone is left alone."""
    await merge_patch(client, kind, namespace, name, {"metadata": {"annotations": dict(annotations)}})


async def merge_patch(client: Client, kind: str, namespace: str, name: str, patch: Manifest) -> None:
    """Merge a patch (RFC 7396) into an object; one that is gone is left alone.

    Server-side apply makes what it does not find, and takes away nothing that another one set.
    """
    try:
        await client.request(
            "PATCH",
            RESOURCES[kind].path(namespace, name),
            query={"fieldManager": FIELD_MANAGER},
            body=patch,
            content_type="application/merge-patch+json",
        )
    except ApiError as error:
        if error.status != 404:
            raise
