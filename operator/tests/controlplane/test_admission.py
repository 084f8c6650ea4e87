"""What the API server lets in, and the sentence it refuses the rest with."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.conftest import Namespace, gateway_manifest
from tests.controlplane.server import ControlPlane

pytestmark = pytest.mark.controlplane

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))
OPENAI = {"name": "openai", "type": "openai", "baseURL": "https://api.example.com/v1"}
MODEL = {"name": "gpt", "provider": "openai"}
TENANT = {"name": "acme", "apiKeysSecretRef": {"name": "acme-keys"}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"replicas": 65}, "spec.replicas: Invalid value: 65"),
        ({"replicas": 0}, "spec.replicas: Invalid value: 0"),
        ({"worker": {"cpu": "500m"}}, "spec.worker.cpu must be a whole number of cores"),
        ({"worker": {"cpu": 0}}, "spec.worker.cpu must be a whole number of cores"),
        ({"worker": {"memory": "lots"}}, "spec.worker.memory"),
        ({"providers": [OPENAI, OPENAI]}, 'spec.providers[1]: Duplicate value: {"name":"openai"}'),
        ({"models": [MODEL, MODEL]}, 'spec.models[1]: Duplicate value: {"name":"gpt"}'),
        ({"tenants": [TENANT, TENANT]}, 'spec.tenants[1]: Duplicate value: {"name":"acme"}'),
        ({"providers": [{**OPENAI, "type": "other"}]}, "spec.providers[0].type: Unsupported value"),
        ({"providers": [{**OPENAI, "baseURL": "ftp://x"}]}, "spec.providers[0].baseURL"),
        (
            {"models": [{"name": "gpt", "provider": "azure"}]},
            "spec.models: the provider of every model must be in spec.providers",
        ),
        (
            {"tenants": [{**TENANT, "models": ["unknown"]}]},
            "spec.tenants: every model of a tenant must be in spec.models",
        ),
        ({"tenants": []}, "spec.tenants"),
        (
            {"timeouts": {"drainSeconds": 60}},
            "spec.timeouts.drainSeconds must be at least 13 below spec.worker.terminationGracePeriodSeconds",
        ),
        (
            {"ledger": {"volume": {"storageClassName": "a", "existingClaim": "b"}}},
            "spec.ledger.volume: set existingClaim or storageClassName, not both",
        ),
        ({"ledger": {"durability": "queued"}}, "spec.ledger.durability: Unsupported value"),
        ({"polices": {}}, 'unknown field "spec.polices"'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_refusal_names_the_field(plane: ControlPlane, changes: dict[str, Any], sentence: str) -> None:
    assert sentence in plane.refusal(gateway_manifest(**changes))


def test_a_name_that_is_too_long_for_its_pods_is_refused(plane: ControlPlane) -> None:
    manifest = gateway_manifest()
    manifest["metadata"]["name"] = "a" * 41
    assert "metadata.name must be at most 40 characters" in plane.refusal(manifest)


@pytest.mark.parametrize(
    ("volume", "sentence"),
    [
        (
            {"storageClassName": "lab-shared", "size": "512Mi"},
            "spec.ledger.volume.size can grow but not shrink",
        ),
        ({"storageClassName": "other", "size": "1Gi"}, "spec.ledger.volume.storageClassName is immutable"),
        ({"size": "1Gi"}, "spec.ledger.volume.storageClassName is immutable"),
        ({"existingClaim": "mine", "size": "1Gi"}, "spec.ledger.volume.existingClaim is immutable"),
    ],
)
def test_the_volume_cannot_be_exchanged(namespace: Namespace, volume: dict[str, str], sentence: str) -> None:
    namespace.apply(gateway_manifest())
    assert sentence in namespace.plane.refusal(gateway_manifest(ledger={"volume": volume}), namespace.name)


def test_the_volume_may_grow(namespace: Namespace) -> None:
    namespace.apply(gateway_manifest())
    namespace.apply(gateway_manifest(ledger={"volume": {"storageClassName": "lab-shared", "size": "1500Mi"}}))


def test_the_largest_gateway_the_schema_allows_is_let_in(namespace: Namespace) -> None:
    """CEL rules have a budget at run time too; a gateway within the bounds must never exhaust it."""
    models = [{"name": f"{'m' * 92}-{number:03d}", "provider": "openai"} for number in range(64)]
    allowed = [model["name"] for model in models[-32:]]
    tenants = [
        {"name": f"tenant-{number}", "apiKeysSecretRef": {"name": "keys"}, "models": allowed}
        for number in range(128)
    ]
    manifest = gateway_manifest(models=models, tenants=tenants)
    # Client-side apply would keep a copy in an annotation, which has a limit of its own.
    namespace.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(manifest))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted_in_a_restricted_namespace(namespace: Namespace, path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text()))
    output = namespace.plane.kubectl("apply", "--dry-run=server", "-n", namespace.name, "-f", str(path))
    assert len(output.stdout.splitlines()) == len(documents)
    assert "would violate PodSecurity" not in output.stderr


def test_kubectl_get_shows_the_columns(namespace: Namespace) -> None:
    namespace.apply(gateway_manifest())
    heads = namespace.kubectl("get", "ggw").splitlines()[0].split()
    assert heads == ["NAME", "DESIRED", "READY", "LB", "STATUS", "REASON", "AGE"]
