"""Writes: server-side apply with one field manager, creation without overwriting, and patches of foreign
objects."""

from collections.abc import Mapping

from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.resources import RESOURCES

FIELD_MANAGER = "proofgate-operator"
_APPLY = "application/apply-patch+yaml"


async def apply(client: Client, manifest: Manifest, subresource: str = "") -> Manifest:
    """Apply `manifest`: set the fields it has, and remove the fields that only an earlier manifest had."""
    metadata = manifest["metadata"]
    return await client.request(
        "PATCH",
        RESOURCES[manifest["kind"]].path(metadata["namespace"], metadata["name"], subresource),
        # Force: fields that another client set are overwritten. Users change them in the gateway's manifest.
        query={"fieldManager": FIELD_MANAGER, "force": "true"},
        body=manifest,
        content_type=_APPLY,
    )


async def create(client: Client, manifest: Manifest) -> bool:
    """Create an object unless one with its name exists; return whether it was created."""
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
    """Set annotations of an object that a controller created; a deleted object is ignored."""
    await merge_patch(client, kind, namespace, name, {"metadata": {"annotations": dict(annotations)}})


async def merge_patch(client: Client, kind: str, namespace: str, name: str, patch: Manifest) -> None:
    """Merge a patch (RFC 7396) into an object; a deleted object is ignored.

    Server-side apply would create a missing object, and cannot remove a field that another client set.
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
