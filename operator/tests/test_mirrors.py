"""The mirrors of an auditor: its options, its files, and the connections that it may open."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from proofgate.mirror.s3 import BucketTarget
from proofgate.mirror.target_address import parse
from pydantic import ValidationError

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor, networkpolicy
from proofgate_operator.build.naming import Defaults
from tests.auditing import AUDITOR
from tests.gateways import manifest

Manifest = dict[str, Any]
DEFAULTS = Defaults("worker:1", "haproxy:1")
MIRROR: Manifest = {
    "bucket": "evidence",
    "prefix": "team/llm",
    "endpoint": "https://s3.example.com:9000",
    "objectLock": {"mode": "Compliance", "days": 400},
    "credentialsSecretRef": {"name": "mirror-key"},
}
DNS = {"ports": [{"port": port, "protocol": kind} for kind in ("UDP", "TCP") for port in (53, 5353)]}


def gateway(*mirrors: Manifest) -> Gateway:
    return Gateway.from_manifest(manifest(auditor={**AUDITOR, "mirrors": list(mirrors)}))


def pod(*mirrors: Manifest) -> Manifest:
    of = gateway(*mirrors)
    assert of.enabled_auditor is not None
    found = auditor.statefulset(of, of.enabled_auditor, "origin", "key", "", DEFAULTS)
    template: Manifest = found["spec"]["template"]
    return template


def places(*mirrors: Manifest) -> list[str]:
    [container] = pod(*mirrors)["spec"]["containers"]
    command = container["command"]
    return [command[at + 1] for at, word in enumerate(command) if word == "--mirror"]


def egress(*mirrors: Manifest, witness_ports: tuple[int, ...] = ()) -> list[Manifest] | None:
    of = gateway(*mirrors)
    assert of.enabled_auditor is not None
    spec = networkpolicy.auditor_policy(of, of.enabled_auditor, DEFAULTS, witness_ports)["spec"]
    rules: list[Manifest] | None = spec.get("egress")
    return rules


def test_the_auditor_is_told_its_mirrors_as_it_reads_them() -> None:
    first, second = places(MIRROR, {**MIRROR, "bucket": "other", "prefix": "", "region": "eu-1"})
    assert urlsplit(first)[:3] == ("s3", "evidence", "/team/llm")
    told = {name: values[0] for name, values in parse_qs(urlsplit(first).query).items()}
    assert told == {
        "lock": "compliance",
        "days": "400",
        "endpoint": "https://s3.example.com:9000",
        "region": "us-east-1",
        "credentials": "/etc/auditor-mirrors/0",
    }
    for place, name in ((first, "s3://evidence/team/llm"), (second, "s3://other")):
        target = parse(place)
        assert isinstance(target, BucketTarget) and target.name == name
    assert "region=eu-1" in second and "credentials=/etc/auditor-mirrors/1" in second


def test_the_credentials_are_mounted_and_a_secret_that_is_missing_keeps_no_auditor_from_starting() -> None:
    template = pod(MIRROR, {**MIRROR, "bucket": "b-2", "caConfigMapRef": {"name": "ca", "key": "root.pem"}})
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    [credentials] = volumes["mirror-0"]["projected"]["sources"]
    assert credentials == {"secret": {"name": "mirror-key", "optional": True}}
    authorities = volumes["mirror-1"]["projected"]["sources"][1]["configMap"]
    assert authorities["items"] == [{"key": "root.pem", "path": "ca.crt"}]
    [container] = template["spec"]["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert (mounted["mirror-0"], mounted["mirror-1"]) == ("/etc/auditor-mirrors/0", "/etc/auditor-mirrors/1")
    assert all(
        mount["readOnly"] for mount in container["volumeMounts"] if mount["name"].startswith("mirror-")
    )
    assert "AWS_SECRET" not in str(template)


def test_it_may_call_name_servers_and_its_mirrors_beside_its_witnesses_and_nobody_without_them() -> None:
    assert egress() is None
    to_it = {"ports": [{"port": 9000, "protocol": "TCP"}]}
    assert egress(MIRROR) == [DNS, to_it]
    narrow = {**MIRROR, "endpoint": "https://s3.example.com", "egress": {"allow": ["192.0.2.0/24"]}}
    ranges = {"ports": [{"port": 443, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}
    witnesses = {"ports": [{"port": 8443, "protocol": "TCP"}]}
    assert egress(narrow, witness_ports=(8443,)) == [DNS, witnesses, ranges]


@pytest.mark.parametrize(
    "wrong",
    [
        {"bucket": "Evidence"},
        {"prefix": "../other"},
        {"prefix": "a b"},
        {"prefix": "/a"},
        {"endpoint": "https://s3.example.com/path"},
        {"endpoint": "https://s3.example.com:99999"},
        {"endpoint": "https://user:secret@s3.example.com"},
        {"region": "EU"},
        {"objectLock": {"mode": "None", "days": 1}},
        {"objectLock": {"mode": "Governance", "days": 0}},
    ],
)
def test_a_mirror_that_the_auditor_could_not_read_is_refused(wrong: Manifest) -> None:
    with pytest.raises(ValidationError):
        gateway({**MIRROR, **wrong})
