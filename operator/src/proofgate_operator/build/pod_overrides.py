"""Merges a user's additions into the pod templates that the operator creates.

The operator's fields stay: `override` leaves out additions that would replace one, and `collisions` names
them.
"""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from proofgate_operator.api import GROUP
from proofgate_operator.api.pod_template import PodTemplate
from proofgate_operator.build.naming import Manifest
from proofgate_operator.build.pods import container_security

_RESOURCE_NAMES = ("cpu", "memory")


def override(template: Manifest, wanted: PodTemplate | None) -> Manifest:
    """Return a pod template with a user's additions; `template` itself is not changed.

    Variables and mounts are added to the first container, the main one.
    """
    if wanted is None:
        return template
    metadata, spec = template["metadata"], dict(template["spec"])
    main, *others = spec["containers"]
    added = wanted.to_document()
    for field, container_field, key in (
        ("env", "env", "name"),
        ("volumeMounts", "volumeMounts", "mountPath"),
    ):
        found = _merge_named(main.get(container_field, []), added.get(field, []), key)
        main = {**main, container_field: found} if found else main
    sidecars = [_with_restricted_security(container) for container in added.get("sidecars", [])]
    spec["containers"] = _merge_named([main, *others], sidecars, "name")
    for field, key in (("volumes", "name"), ("imagePullSecrets", "name"), ("initContainers", "name")):
        more = added.get(field, [])
        if field == "initContainers":
            more = [_with_restricted_security(container) for container in more]
        if more:
            spec[field] = _merge_named(spec.get(field, []), more, key)
    if wanted.topology_spread_constraints:
        own = spec.get("topologySpreadConstraints") or [{}]
        selector = {key: value for key, value in own[0].items() if key == "labelSelector"}
        spec["topologySpreadConstraints"] = [
            {**selector, **constraint} for constraint in added["topologySpreadConstraints"]
        ]
    if wanted.tolerations:
        spec["tolerations"] = [*spec.get("tolerations", []), *added["tolerations"]]
    if wanted.node_selector:
        spec["nodeSelector"] = {**wanted.node_selector, **spec.get("nodeSelector", {})}
    for field in ("affinity", "priorityClassName"):
        if field in added:
            spec.setdefault(field, added[field])
    return {
        "metadata": {
            **metadata,
            **{
                field: {
                    **{key: value for key, value in getattr(wanted, field).items() if not _is_ours(key)},
                    **metadata.get(field, {}),
                }
                for field in ("labels", "annotations")
            },
        },
        "spec": spec,
    }


def _is_ours(key: str) -> bool:
    """Return whether a label or an annotation key belongs to the operator."""
    return key.partition("/")[0] in (GROUP, f"operator.{GROUP}")


def _merge_named(own: list[Manifest], more: Iterable[Manifest], key: str) -> list[Manifest]:
    """Return a list extended by items with other names."""
    taken = {item[key] for item in own}
    return [*own, *(item for item in more if item[key] not in taken)]


def _with_restricted_security(container: Manifest) -> Manifest:
    """Return a container with the restricted security profile, unless it has its own securityContext."""
    return {"securityContext": container_security(), **container}


def collisions(template: Manifest, wanted: PodTemplate, *, guaranteed: bool) -> Iterator[str]:
    """Yield the faults of additions to `template`, each as a field and a message.

    `guaranteed`: every added container must keep the pod in the QoS class Guaranteed.
    """
    for field in ("labels", "annotations"):
        own = template["metadata"].get(field, {})
        for key in getattr(wanted, field):
            if key in own or _is_ours(key):
                yield f"{field}[{key}]: the operator sets this entry"
    spec = template["spec"]
    main = spec["containers"][0]
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    yield from _name_conflicts("env", wanted.env, main.get("env", []))
    yield from _name_conflicts("volumes", wanted.volumes, spec.get("volumes", []))
    yield from _name_conflicts("sidecars", wanted.sidecars, containers)
    yield from _name_conflicts("initContainers", wanted.init_containers, [*containers, *wanted.sidecars])
    for mount in wanted.volume_mounts:
        path = PurePosixPath(mount["mountPath"])
        for own_mount in main.get("volumeMounts", []):
            if path.is_relative_to(own_mount["mountPath"]):
                yield f"volumeMounts[{path}]: the operator mounts {own_mount['mountPath']}"
    if guaranteed:
        for field, added in (("sidecars", wanted.sidecars), ("initContainers", wanted.init_containers)):
            for container in added:
                yield from _qos_problems(field, container)


def _name_conflicts(field: str, added: Iterable[Manifest], own: Iterable[Manifest]) -> Iterator[str]:
    names = {item["name"] for item in own}
    for item in added:
        if item["name"] in names:
            yield f"{field}[{item['name']}]: the name is taken"


def _qos_problems(field: str, container: Manifest) -> Iterator[str]:
    """Yield why a container would take its pod out of the QoS class Guaranteed."""
    resources: Any = container.get("resources")
    resources = resources if isinstance(resources, dict) else {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for size in _RESOURCE_NAMES:
        if size not in limits:
            yield f"{field}[{container['name']}]: resources.limits.{size} is missing"
        elif size in requests and str(requests[size]) != str(limits[size]):
            yield (
                f"{field}[{container['name']}]: resources.requests.{size} must be written "
                f"like its limit, {limits[size]}"
            )
