"""A worker's mounted files as the kubelet lays them out, read by the worker's own loader."""

import base64
from pathlib import Path
from typing import Any

from proofgate.config import Config, load

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import gateway_secrets, worker_config
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.build.owners import WorkerShares
from proofgate_operator.plan.configuration import Configuration, read_configuration
from proofgate_operator.plan.decide import desired_manifests
from proofgate_operator.plan.haproxy_sidecar import desired_haproxy_state
from proofgate_operator.plan.observed_state import ObservedState, Ref
from tests.gateways import DEFAULTS, manifest, secret, user_secrets
from tests.internal_certificates import user_certificates
from tests.retention import KEY as RETENTION_KEY

Manifest = dict[str, Any]
SIGNING_KEY = SigningKey("proofgate.dev/team/demo", bytes(range(32)))
AUDITOR_KEY = SigningKey("audit.example.com/demo", bytes(range(1, 33)))
EXPORT_KEY = SigningKey("exports.example.com/demo", bytes(range(2, 34)))


def configuration(gateway: Gateway, secrets: dict[str, Manifest | None] | None = None) -> Configuration:
    """Return the operator's configuration of a gateway whose generated Secrets exist."""
    children = {
        Ref("Secret", "demo-admin"): gateway_secrets.admin_secret(gateway, "admin-token-of-the-tests"),
        Ref("Secret", "demo-ledger"): gateway_secrets.ledger_secret(
            gateway, SIGNING_KEY.signing_text, "verifying"
        ),
    }
    return read_configuration(
        gateway, ObservedState(children, user_secrets() if secrets is None else secrets), DEFAULTS
    )


def load_worker_config(folder: Path, more: dict[str, Manifest] | None = None, **changes: Any) -> Config:
    """Return the configuration that a worker of the gateway loads; raises the loader's InvalidConfigError.

    `more`: additional Secrets and ConfigMaps, by name.
    """
    gateway = Gateway.from_manifest(manifest(**changes))
    certificates = user_certificates() if gateway.tls_transition.workers_serve_tls else {}
    auditor = {
        "auditor-key": secret("auditor-key", key=AUDITOR_KEY.signing_text),
        "readers": secret("readers", **{"readers.json": "{}"}),
        "export-key": secret("export-key", key=EXPORT_KEY.signing_text),
        "retention-key": secret("retention-key", key=RETENTION_KEY.signing_text),
    } | certificates
    found = configuration(gateway, {**user_secrets(), **auditor, **(more or {})})
    assert not found.problems and not found.faults, (found.problems, found.faults)
    door = desired_haproxy_state(gateway, found, 2, WorkerShares(2))
    made = {
        (m["kind"], m["metadata"]["name"]): m
        for m in desired_manifests(gateway, ObservedState(), found, door, 2, DEFAULTS)
    }
    made |= {("Secret", name): secret for name, secret in user_secrets().items() if secret}
    made |= {(item["kind"], name): item for name, item in (more or {}).items()}
    made |= {("Secret", name): secret for name, secret in certificates.items()}
    made[("Secret", "demo-admin")] = gateway_secrets.admin_secret(gateway, "admin-token-of-the-tests")
    made[("Secret", "demo-ledger")] = gateway_secrets.ledger_secret(
        gateway, SIGNING_KEY.signing_text, "verifying"
    )
    mounted, ledger, held = folder / "config", folder / "ledger", folder / "held"
    ledger.mkdir(parents=True)
    held.mkdir()
    pod = made[("StatefulSet", "demo-worker")]["spec"]["template"]["spec"]
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "configuration"]
    for source in volume["projected"]["sources"]:
        for path, content in _entries(source, made).items():
            (mounted / path).parent.mkdir(parents=True, exist_ok=True)
            assert not (mounted / path).exists(), f"{path} is mounted twice"
            (mounted / path).write_bytes(content)
            (mounted / path).chmod(volume["projected"]["defaultMode"])
    shown = folder / "internal-tls"
    shown.mkdir()
    for mount in (volume for volume in pod["volumes"] if volume["name"] == "internal-tls"):
        source = {"name": mount["secret"]["secretName"], "items": mount["secret"]["items"]}
        for path, content in _entries({"secret": source}, made).items():
            (shown / path).write_bytes(content)
    file = mounted / worker_config.CONFIG_FILE
    # INTERNAL_TLS_FOLDER starts with CONFIG_FOLDER, so it must be replaced first.
    text = file.read_text().replace(worker_config.INTERNAL_TLS_FOLDER, str(shown))
    text = text.replace(worker_config.CONFIG_FOLDER, str(mounted))
    text = text.replace(worker_config.LEDGER_FOLDER, str(ledger)).replace(
        worker_config.HELD_CHECKPOINTS_FOLDER, str(held)
    )
    file.write_text(text)
    return load(file)


def _entries(source: Manifest, made: dict[tuple[str, str], Manifest]) -> dict[str, bytes]:
    kind, part = ("ConfigMap", source["configMap"]) if "configMap" in source else ("Secret", source["secret"])
    optional = part.get("optional", False)
    found = made.get((kind, part["name"])) if optional else made[(kind, part["name"])]
    texts = (found or {}).get("data", {})
    data = {
        key: text.encode() if kind == "ConfigMap" else base64.b64decode(text) for key, text in texts.items()
    }
    items = part.get("items") or [{"key": key, "path": key} for key in data]
    # For an optional source, the kubelet skips missing entries.
    return {item["path"]: data[item["key"]] for item in items if not optional or item["key"] in data}
