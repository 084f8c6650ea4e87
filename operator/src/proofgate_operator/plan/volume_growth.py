"""The progress of a claim's expansion."""

from typing import Any

from proofgate_operator.build.naming import Manifest

#: Conditions of a claim (Kubernetes 1.29 to 1.36), worst first, with our reason and its meaning.
_STEPS = (
    ("ControllerResizeError", "ResizeFailed", "the driver cannot expand the volume"),
    ("NodeResizeError", "ResizeFailed", "the node cannot expand the volume's file system"),
    (
        "FileSystemResizePending",
        "ResizePending",
        "the volume's file system is expanded when a pod mounts the volume again",
    ),
    ("Resizing", "Resizing", "the driver is expanding the volume"),
)

#: Our reasons, worst first.
GROWTH_REASONS = tuple(dict.fromkeys(reason for _, reason, _ in _STEPS))


def growth(claim: Manifest) -> tuple[str, str] | None:
    """Return a reason and a message while a bound claim is being expanded or cannot be; None otherwise."""
    status: dict[str, Any] = claim.get("status") or {}
    held = {
        condition["type"]: condition
        for condition in status.get("conditions") or []
        if condition.get("status") == "True"
    }
    for kind, reason, meaning in _STEPS:
        if kind in held:
            asked = claim["spec"]["resources"]["requests"]["storage"]
            has = (status.get("capacity") or {}).get("storage", "an unknown size")
            told = held[kind].get("message")
            name = claim["metadata"]["name"]
            sentence = f"PersistentVolumeClaim {name} has {has} of the requested {asked}: {meaning}"
            return reason, f"{sentence} ({told})" if told else sentence
    return None
