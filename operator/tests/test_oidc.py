"""Readers of the auditor's index who sign in with an OpenID provider, and the key for their exports."""

import json
from pathlib import Path
from typing import Any

import pytest
from proofgate.index import oidc_settings
from pydantic import ValidationError

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import networkpolicy
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.observed_state import Ref
from tests.auditing import AUDITOR, KEY, ORIGIN, report
from tests.certificates import write_certificate
from tests.gateways import DEFAULTS, manifest, secret
from tests.test_auditor import Audited
from tests.test_index import STATEFULSET, command, option, rolled_out, template

Manifest = dict[str, Any]
SECRET, NEXT = "client-secret-0123", "client-secret-4567"
OIDC: Manifest = {
    "issuer": "https://login.example.com/realms/bank",
    "clientId": "proofgate-auditor",
    "clientSecretRef": {"name": "oidc-client", "key": "secret"},
    "redirectUri": "https://auditor.example.com/oidc/callback",
    "groups": [{"name": "officers", "all": True}, {"name": "acme-team", "tenant": "acme"}],
}
EXPORT_KEY = SigningKey("exports.example.com/team/demo", b"\x0b" * 32)
GENERATED = Ref("Secret", "demo-export-key")


def signed_in(**changes: Any) -> Manifest:
    """Return an auditor whose readers sign in."""
    oidc = {name: value for name, value in {**OIDC, **changes}.items() if value is not None}
    return indexed(oidc=oidc)


def indexed(**index: Any) -> Manifest:
    return {**AUDITOR, "memory": "512Mi", "index": index}


def audited(auditor: Manifest, **secrets: Manifest | None) -> Audited:
    """Return a settled gateway with an auditor; `secrets` are the Secrets that the spec refers to."""
    found = Audited(auditor=auditor)
    found.world.secrets |= {name.replace("_", "-"): content for name, content in secrets.items()}
    found.world.settle()
    return found


def with_secret(content: str | None = SECRET, **changes: Any) -> Audited:
    client = None if content is None else secret("oidc-client", secret=content)
    return audited(signed_in(**changes), oidc_client=client)


def pod(of: Audited) -> Manifest:
    found: Manifest = of.world.child(STATEFULSET.kind, STATEFULSET.name)["spec"]["template"]
    return found


def sources(of: Audited) -> list[Manifest]:
    [volume] = [volume for volume in template(of)["volumes"] if volume["name"] == "oidc"]
    found: list[Manifest] = volume["projected"]["sources"]
    return found


def file_in(folder: Path, of: Audited) -> Path:
    """Return the file as the auditor's pod has it, with the client's secret in the same folder."""
    [item] = sources(of)[0]["downwardAPI"]["items"]
    assert item["fieldRef"] == {"fieldPath": "metadata.annotations['proofgate.dev/oidc']"}
    path = folder / str(item["path"])
    path.write_text(pod(of)["metadata"]["annotations"]["proofgate.dev/oidc"])
    (folder / "client-secret").write_text(SECRET)
    return path


def test_the_auditor_reads_what_the_manifest_says_of_the_provider(tmp_path: Path) -> None:
    of = with_secret(groupsClaim="roles", sessionSeconds=3600)
    mounts = {mount["name"]: mount for mount in template(of)["containers"][0]["volumeMounts"]}
    assert option(of, "--oidc") == f"{mounts['oidc']['mountPath']}/oidc.json" and mounts["oidc"]["readOnly"]
    read = oidc_settings.read_oidc_settings(file_in(tmp_path, of))
    assert (read.issuer, read.client_id) == (OIDC["issuer"], OIDC["clientId"])
    assert (read.client_secret, read.redirect_uri) == (SECRET, OIDC["redirectUri"])
    assert list(read.groups.items()) == [("officers", None), ("acme-team", "acme")], (
        "the first of two entries counts"
    )
    assert (read.groups_claim, read.session_seconds, read.name_claim) == ("roles", 3600, "preferred_username")


def test_people_can_sign_in_where_nobody_has_a_key() -> None:
    of = with_secret()
    assert rolled_out(of) == "{}" and option(of, "--readers").endswith("/readers.json")
    assert of.condition(report(3))[:2] == ("True", "NothingFound")
    off = Audited(auditor={**signed_in(), "index": {**signed_in()["index"], "enabled": False}})
    assert command(off) == command(Audited()) and "oidc" not in str(pod(off))


def test_the_clients_secret_is_mounted_and_stands_nowhere_else() -> None:
    of = with_secret()
    assert sources(of)[1] == {
        "secret": {"name": "oidc-client", "items": [{"key": "secret", "path": "client-secret"}]}
    }
    everything = json.dumps([live for live in of.world.children.values() if live])
    assert SECRET not in everything and SECRET not in str(of.plan().status)
    public = audited(signed_in(clientSecretRef=None))
    assert len(sources(public)) == 1
    assert "clientSecretFile" not in pod(public)["metadata"]["annotations"]["proofgate.dev/oidc"]


def test_a_changed_secret_of_the_client_and_a_changed_provider_replace_the_pod() -> None:
    of = with_secret()
    before = pod(of)
    of.world.secrets["oidc-client"] = secret("oidc-client", secret=NEXT)
    of.world.settle()
    renewed = pod(of)
    assert renewed != before and renewed["spec"] == before["spec"]
    of.world.manifest["spec"]["auditor"] = signed_in(groups=[{"name": "others", "all": True}])
    of.world.settle()
    assert pod(of)["metadata"] != renewed["metadata"] and pod(of)["spec"] == before["spec"]


@pytest.mark.parametrize(
    ("content", "changes", "reason", "words"),
    [
        (None, {}, "SecretMissing", "does not exist"),
        ("", {}, "SecretInvalid", "has no text under secret"),
        ("two\nlines", {}, "SecretInvalid", "is not one line"),
        (SECRET, {"issuer": "https://256.1.1.1/"}, "SpecInvalid", "not an IPv4 address"),
        (SECRET, {"egress": {"allow": ["10.0.0.1/8"]}}, "SpecInvalid", "index.oidc: egress.allow"),
    ],
)
def test_what_cannot_be_used_leaves_a_running_auditor_as_it_is(
    content: str | None, changes: Manifest, reason: str, words: str
) -> None:
    of = with_secret()
    before, policy = pod(of), of.world.child("NetworkPolicy", "demo-auditor")
    of.world.secrets["oidc-client"] = None if content is None else secret("oidc-client", secret=content)
    of.world.manifest["spec"]["auditor"] = signed_in(**changes)
    of.world.settle()
    assert pod(of) == before
    status, told, message = of.condition(report(3))
    assert (status, told) == ("False", reason)
    assert words in message and "spec.auditor.index.oidc" in message
    assert not content or content not in message
    assert of.plan().status.condition(ConditionType.CONFIG_VALID).is_true
    if "egress" in changes:
        assert of.world.child("NetworkPolicy", "demo-auditor") == policy


def test_authorities_of_the_provider_are_mounted_and_checked(tmp_path: Path) -> None:
    named = {"caSecretRef": {"name": "authorities", "key": "root.pem"}}
    client = secret("oidc-client", secret=SECRET)
    of = audited(
        signed_in(**named), oidc_client=client, authorities=secret("authorities", **{"root.pem": "x"})
    )
    assert of.condition()[1] == "CertificateInvalid" and STATEFULSET not in of.world.children
    write_certificate(tmp_path / "ca.crt")
    text = (tmp_path / "ca.crt").read_text()
    of.world.secrets["authorities"] = secret("authorities", **{"root.pem": text})
    of.world.settle()
    assert sources(of)[2]["secret"]["items"] == [{"key": "root.pem", "path": "ca.crt"}]
    assert oidc_settings.read_oidc_settings(file_in(tmp_path, of)).ca_file == "/etc/auditor-oidc/ca.crt"


@pytest.mark.parametrize(
    ("issuer", "egress", "rule"),
    [
        ("https://login.example.com/realms/bank", None, {"ports": [{"port": 443, "protocol": "TCP"}]}),
        (
            "https://login.example.com:8443",
            {"allow": ["192.0.2.0/24"]},
            {"ports": [{"port": 8443, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
        ),
    ],
)
def test_it_may_call_the_provider_at_the_issuers_port(
    issuer: str, egress: Manifest | None, rule: Manifest
) -> None:
    of = Gateway.from_manifest(manifest(auditor=signed_in(issuer=issuer, egress=egress)))
    assert of.enabled_auditor is not None
    _, *rules = networkpolicy.auditor_policy(of, of.enabled_auditor, DEFAULTS)["spec"]["egress"]
    assert rules == [rule]


@pytest.mark.parametrize(
    "changes", [{"groups": []}, {"sessionSeconds": 59}, {"issuer": None}, {"clientId": "a b"}]
)
def test_a_provider_that_no_auditor_could_use_is_refused(changes: Manifest) -> None:
    with pytest.raises(ValidationError):
        Gateway.from_manifest(manifest(auditor=signed_in(**changes)))


def export_key_of(of: Audited) -> str | None:
    return of.hear(report(3)).status.auditor.get("exportVerifyingKey")


def test_the_operator_makes_a_key_for_exports_once() -> None:
    of = audited(
        indexed(readersSecretRef={"name": "readers", "key": "r"}, exportKey={}),
        readers=secret("readers", r="{}"),
    )
    live = of.world.child("Secret", "demo-export-key")
    assert option(of, "--export-key") == "/etc/auditor-export-key/signing-key"
    [volume] = [volume for volume in template(of)["volumes"] if volume["name"] == "export-key"]
    assert volume["secret"]["secretName"] == "demo-export-key"
    assert live["metadata"]["ownerReferences"], "the key is deleted with the gateway"
    assert export_key_of(of) == entry(live, "verifying-key")
    assert (entry(live, "signing-key") or "").split("+")[2] == "exports.proofgate.dev/team/demo"
    before = pod(of)
    of.world.settle()
    assert (of.world.children[GENERATED], pod(of)) == (live, before)
    del of.world.children[GENERATED]
    assert of.plan().secrets_to_generate == ("demo-export-key",)


def test_without_exportkey_the_generated_key_signs_nothing_and_stays_for_earlier_exports() -> None:
    readers = {"readersSecretRef": {"name": "readers", "key": "r"}}
    of = audited(indexed(**readers, exportKey={}), readers=secret("readers", r="{}"))
    live, public = of.world.children[GENERATED], export_key_of(of)
    of.world.manifest["spec"]["auditor"] = indexed(**readers)
    of.world.settle()
    assert "--export-key" not in str(template(of))
    assert (of.world.children[GENERATED], export_key_of(of)) == (live, public)
    of.world.manifest["spec"]["auditor"] = indexed(**readers, exportKey={})
    of.world.settle()
    assert option(of, "--export-key") == "/etc/auditor-export-key/signing-key"
    assert (of.world.children[GENERATED], export_key_of(of)) == (live, public)


def test_a_key_of_ones_own_signs_exports_and_a_new_one_replaces_the_pod() -> None:
    own = signed_in()
    own["index"]["exportKey"] = {"secretRef": {"name": "export-key"}}
    client = secret("oidc-client", secret=SECRET)
    of = audited(
        own, oidc_client=client, export_key=secret("export-key", signing_key=EXPORT_KEY.signing_text)
    )
    assert export_key_of(of) == EXPORT_KEY.verifying_text and GENERATED not in of.world.children
    before = pod(of)
    renewed = SigningKey(EXPORT_KEY.name, b"\x0c" * 32)
    of.world.secrets["export-key"] = secret("export-key", signing_key=renewed.signing_text)
    of.world.settle()
    assert pod(of) != before and pod(of)["spec"] == before["spec"]


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (None, "SecretMissing", "does not exist"),
        ("no key", "SecretInvalid", "is not a signing key"),
        (KEY.signing_text, "SecretInvalid", "the key is also another key of this gateway"),
        (
            SigningKey(f"{ORIGIN}/exports", b"\x0b" * 32).signing_text,
            "SecretInvalid",
            "a path below the other",
        ),
    ],
)
def test_a_key_that_may_not_sign_exports_is_reported(content: str | None, reason: str, words: str) -> None:
    own = signed_in(clientSecretRef=None)
    own["index"]["exportKey"] = {"secretRef": {"name": "export-key"}}
    of = audited(own, export_key=None if content is None else secret("export-key", signing_key=content))
    assert STATEFULSET not in of.world.children
    status, told, message = of.condition()
    assert (status, told) == ("False", reason)
    assert words in message and "spec.auditor.index.exportKey.secretRef" in message
