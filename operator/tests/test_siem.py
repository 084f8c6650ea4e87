"""The receivers of an auditor's stream: its options, its files, and the connections that it may open."""

from typing import Any

import pytest
from proofgate.siem.sink_address import parse
from pydantic import ValidationError

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor, networkpolicy
from proofgate_operator.build.naming import Defaults
from tests.auditing import AUDITOR
from tests.gateways import manifest

Manifest = dict[str, Any]
DEFAULTS = Defaults("worker:1", "haproxy:1")
OTLP: Manifest = {
    "url": "otlp+https://collector.example.com:4318/base",
    "authorizationSecretRef": {"name": "collector", "key": "token"},
}
SIEM: Manifest = {"url": "otlp+https://siem.example.com"}


def gateway(*sinks: Manifest) -> Gateway:
    return Gateway.from_manifest(manifest(auditor={**AUDITOR, "siem": list(sinks)}))


def template(*sinks: Manifest) -> Manifest:
    of = gateway(*sinks)
    assert of.enabled_auditor is not None
    found: Manifest = auditor.statefulset(of, of.enabled_auditor, "origin", "key", "", DEFAULTS)["spec"][
        "template"
    ]
    return found


def places(*sinks: Manifest) -> list[str]:
    [container] = template(*sinks)["spec"]["containers"]
    command = container["command"]
    return [command[at + 1] for at, word in enumerate(command) if word == "--siem"]


def test_the_auditor_is_told_its_sinks_as_it_reads_them() -> None:
    plain = {"url": "otlp+http://siem.example.com:5140", "allowPlain": True}
    told = places(OTLP, SIEM, plain)
    assert told == [
        "otlp+https://collector.example.com:4318/base?authorization=/etc/auditor-siem/0/authorization",
        "otlp+https://siem.example.com",
        "otlp+http://siem.example.com:5140?plain=allow",
    ]
    names = [parse(place, "ledger").name for place in told]
    assert names == [OTLP["url"], SIEM["url"], plain["url"]]


@pytest.mark.parametrize("name", ["OCSF", "CEF"])
def test_a_sink_gets_the_format_that_it_is_said_to_read(name: str) -> None:
    [place] = places({**SIEM, "format": name})
    assert place == f"{SIEM['url']}?format={name.lower()}"
    parse(place, "ledger")
    assert places({**SIEM, "format": "Attributes"}) == [SIEM["url"]]


def test_only_what_has_files_gets_a_volume_and_a_missing_one_keeps_no_auditor_from_starting() -> None:
    trusting = {**SIEM, "caConfigMapRef": {"name": "ca", "key": "root.pem"}}
    found = template(OTLP, trusting, {"url": "otlp+https://other.example.com"})
    volumes = {volume["name"]: volume for volume in found["spec"]["volumes"]}
    assert {name for name in volumes if name.startswith("siem-")} == {"siem-0", "siem-1"}
    [authorization] = volumes["siem-0"]["projected"]["sources"]
    assert authorization["secret"] == {
        "name": "collector",
        "items": [{"key": "token", "path": "authorization"}],
        "optional": True,
    }
    [authorities] = volumes["siem-1"]["projected"]["sources"]
    assert authorities["configMap"]["items"] == [{"key": "root.pem", "path": "ca.crt"}]
    [container] = found["spec"]["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert (mounted["siem-0"], mounted["siem-1"]) == ("/etc/auditor-siem/0", "/etc/auditor-siem/1")
    assert "ca=/etc/auditor-siem/1/ca.crt" in places(OTLP, trusting)[1]


def test_it_may_call_its_sinks_at_their_ports() -> None:
    of = gateway(
        OTLP,
        {**SIEM, "egress": {"allow": ["192.0.2.0/24"]}},
        {"url": "otlp+http://siem.example.com", "allowPlain": True},
    )
    assert of.enabled_auditor is not None
    _, *rules = networkpolicy.auditor_policy(of, of.enabled_auditor, DEFAULTS)["spec"]["egress"]
    assert rules == [
        {"ports": [{"port": 4318, "protocol": "TCP"}]},
        {"ports": [{"port": 443, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
        {"ports": [{"port": 80, "protocol": "TCP"}]},
    ]


@pytest.mark.parametrize(
    "url",
    [
        "https://collector.example.com",
        "otlp+https://user:secret@collector.example.com",
        "otlp+https://collector.example.com:99999",
        "otlp+https://collector.example.com?authorization=/x",
        "otlp+https://",
        "syslog+tls://siem.example.com",
    ],
)
def test_a_url_that_the_auditor_could_not_read_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        gateway({"url": url})
