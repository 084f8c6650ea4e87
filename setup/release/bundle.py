"""The operator's bundle for OperatorHub and OLM: the CRDs, and a ClusterServiceVersion made from the chart.

https://olm.operatorframework.io/docs/tasks/creating-operator-bundle/
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from setup.release.archives import compressed, sha256, tar
from setup.release.errors import ReleaseError
from setup.release.oci import CONFIG, LAYER, Descriptor, Layout, artefact
from setup.release.version import ROOT, Source

PACKAGE = "proofgate-operator"
CHANNEL = "alpha"
#: The version in the chart's kubeVersion.
_LEAST_KUBERNETES = "1.30.0"
_SHOWN = {"GovernanceGateway": "Governance gateway", "GatewayTenant": "Gateway tenant"}
_EXAMPLES = ("quickstart.yaml", "tenant.yaml")


def files(source: Source, chart: Path, helm: Path) -> dict[str, bytes]:
    """The bundle's files by their paths. Raises ReleaseError if the chart cannot be rendered."""
    crds = {path.name: path.read_bytes() for path in sorted((ROOT / "crds").glob("*.yaml"))}
    objects = _rendered(chart, helm)
    version = _cluster_service_version(source, objects, [yaml.safe_load(text) for text in crds.values()])
    return {
        f"manifests/{PACKAGE}.clusterserviceversion.yaml": _yaml(version),
        **{f"manifests/{name}": text for name, text in _beside(objects)},
        **{f"manifests/{name}": text for name, text in crds.items()},
        "metadata/annotations.yaml": _yaml({"annotations": _annotations()}),
    }


def archive(source: Source, found: dict[str, bytes]) -> bytes:
    """The files in an archive, for a pull request to a catalogue."""
    return compressed(tar({f"{source.version}/{path}": text for path, text in found.items()}, source.epoch))


def layout(source: Source, found: dict[str, bytes]) -> tuple[Layout, Descriptor]:
    """The files as an image, which is what catalogues refer to."""
    made = Layout()
    layer = tar(found, source.epoch, folders=True)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Labels": _annotations()},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer)}"]},
    }
    described = {"org.opencontainers.image.version": source.version, "org.opencontainers.image.revision": source.commit}
    packed = made.add(compressed(layer), LAYER)
    descriptor = artefact(made, made.add_json(config, CONFIG), [packed], described)
    made.tag(descriptor, source.version)
    return made, descriptor


def _annotations() -> dict[str, str]:
    prefix = "operators.operatorframework.io.bundle"
    return {
        f"{prefix}.mediatype.v1": "registry+v1",
        f"{prefix}.manifests.v1": "manifests/",
        f"{prefix}.metadata.v1": "metadata/",
        f"{prefix}.package.v1": PACKAGE,
        f"{prefix}.channels.v1": CHANNEL,
        f"{prefix}.channel.default.v1": CHANNEL,
    }


def _rendered(chart: Path, helm: Path) -> list[dict[str, Any]]:
    command = [
        str(helm),
        "template",
        "proofgate",
        str(chart),
        "--namespace",
        "operators",
        "--set",
        "listNamespaces=true",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"the chart cannot be rendered for the bundle: {done.stderr.strip()}")
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def _beside(objects: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """The objects that OLM creates beside the operator: its Service, and the roles that extend `view` and `edit`."""
    for one in objects:
        aggregated = any(label.startswith("rbac.authorization.k8s.io/") for label in one["metadata"].get("labels", {}))
        if one["kind"] == "Service" or (one["kind"] == "ClusterRole" and aggregated):
            metadata = {"name": one["metadata"]["name"], "labels": _labels(one)}
            yield f"{metadata['name']}.{one['kind'].lower()}.yaml", _yaml({**one, "metadata": metadata})


def _labels(one: dict[str, Any]) -> dict[str, str]:
    """The labels without those by which Helm marks its objects."""
    return {
        name: value
        for name, value in one["metadata"].get("labels", {}).items()
        if name not in ("helm.sh/chart", "app.kubernetes.io/managed-by")
    }


def _cluster_service_version(
    source: Source, objects: list[dict[str, Any]], crds: list[dict[str, Any]]
) -> dict[str, Any]:
    (deployment,) = (one for one in objects if one["kind"] == "Deployment")
    deployment["spec"]["template"]["metadata"]["labels"] = _labels(deployment["spec"]["template"])
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    environment = {one["name"]: one.get("value", "") for one in container["env"]}
    for variable in container["env"]:
        if variable["name"] == "WATCH_NAMESPACES":
            # The namespaces that the OperatorGroup selects, joined by commas; empty for every namespace.
            del variable["value"]
            variable["valueFrom"] = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
    examples = [
        document for name in _EXAMPLES for document in yaml.safe_load_all((ROOT / "examples" / name).read_text())
    ]
    related = {
        "operator": container["image"],
        "worker": environment["WORKER_IMAGE"],
        "haproxy": environment["HAPROXY_IMAGE"],
    }
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{PACKAGE}.v{source.version}",
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": json.dumps(examples, indent=2),
                "capabilities": "Full Lifecycle",
                "categories": "AI/Machine Learning, Security",
                "containerImage": container["image"],
                "description": "LLM gateways whose answers can be proved",
                "repository": "https://github.com/proofgate/proofgate",
                "support": "https://github.com/proofgate/proofgate/issues",
            },
        },
        "spec": {
            "displayName": "Proofgate",
            "version": source.version,
            "description": (ROOT / "operator" / "README.md").read_text().split("\n## ")[0],
            "keywords": ["llm", "gateway", "governance", "transparency-log"],
            "maintainers": [{"name": "proofgate", "email": "proofgate@users.noreply.github.com"}],
            "provider": {"name": "Proofgate", "url": "https://github.com/proofgate/proofgate"},
            "links": [{"name": "Documentation", "url": "https://github.com/proofgate/proofgate/tree/main/docs"}],
            "maturity": "alpha",
            "minKubeVersion": _LEAST_KUBERNETES,
            "installModes": [
                {"type": kind, "supported": True}
                for kind in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "customresourcedefinitions": {"owned": [_owned(crd) for crd in crds]},
            "relatedImages": [{"name": name, "image": image} for name, image in related.items()],
            "install": {
                "strategy": "deployment",
                "spec": {
                    "permissions": [{"serviceAccountName": account, "rules": _rules(objects, "Role")}],
                    "clusterPermissions": [{"serviceAccountName": account, "rules": _rules(objects, "ClusterRole")}],
                    "deployments": [
                        {
                            "name": deployment["metadata"]["name"],
                            "label": _labels(deployment),
                            "spec": deployment["spec"],
                        }
                    ],
                },
            },
        },
    }


def _rules(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The rules of the operator's roles, without the roles that extend the cluster's `view`, `edit` and `admin`."""
    bound = {one["roleRef"]["name"] for one in objects if one["kind"] == f"{kind}Binding"}
    found = [
        rule for one in objects if one["kind"] == kind and one["metadata"]["name"] in bound for rule in one["rules"]
    ]
    return [rule for number, rule in enumerate(found) if rule not in found[:number]]


def _owned(crd: dict[str, Any]) -> dict[str, Any]:
    version = crd["spec"]["versions"][0]
    kind = crd["spec"]["names"]["kind"]
    return {
        "name": crd["metadata"]["name"],
        "kind": kind,
        "version": version["name"],
        "displayName": _SHOWN[kind],
        "description": version["schema"]["openAPIV3Schema"]["description"],
    }


def _yaml(document: dict[str, Any]) -> bytes:
    return yaml.safe_dump(document, sort_keys=False, width=1000, allow_unicode=True).encode()
