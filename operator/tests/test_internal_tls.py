"""TLS between HAProxy and the workers: its objects, and how a running gateway switches to it."""

import base64
from typing import Any

import pytest
import yaml

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.build.haproxy import render_config
from proofgate_operator.build.internal_tls import haproxy_endpoint
from proofgate_operator.build.worker_config import worker_config
from proofgate_operator.plan.observed_state import Ref, child_refs, referenced_secrets
from tests.gateways import DEFAULTS, gateway, secret
from tests.hop_world import CERTIFICATES, HopWorld
from tests.internal_certificates import user_certificates

Manifest = dict[str, Any]
OWN: Manifest = {"mode": "Operator"}
NAMED: Manifest = {
    "mode": "Secret",
    "workerSecretRef": {"name": "worker-tls"},
    "haproxySecretRef": {"name": "haproxy-tls"},
}
SEEDS = range(3)


def world(seed: int = 0, **changes: Any) -> HopWorld:
    made = HopWorld(seed, **changes)
    made.world.secrets |= user_certificates()
    return made.begin()


# --- Objects


def test_without_it_nothing_is_different() -> None:
    text = render_config(gateway(), DEFAULTS)
    assert text == render_config(gateway(internalTLS={"mode": "None"}), DEFAULTS)
    assert "verify" not in text and "tls" not in worker_config(gateway(), 1 << 30, DEFAULTS)
    assert CERTIFICATES not in child_refs(gateway())


def test_haproxy_believes_a_name_and_no_address() -> None:
    text = render_config(gateway(internalTLS=OWN), DEFAULTS)
    [line] = [line for line in text.splitlines() if "default-server" in line]
    name = "demo-workers.team.svc"
    assert " ssl verify required ca-file /etc/proofgate-internal-tls/ca.pem " in line
    assert f" sni str({name}) verifyhost {name} alpn http/1.1 ssl-min-ver TLSv1.3" in line
    assert "check-ssl" not in text, "health checks go to the admin port without TLS"


def test_workers_believe_haproxy_alone() -> None:
    tls = worker_config(gateway(internalTLS=OWN), 1 << 30, DEFAULTS)["tls"]
    assert tls == {
        "certificateFile": "/etc/proofgate-internal-tls/tls.pem",
        "privateKeyFile": "/etc/proofgate-internal-tls/tls.pem.key",
        "minVersion": "1.3",
        "clientCaFile": "/etc/proofgate-internal-tls/ca.pem",
        "clientNames": ["demo-haproxy.team.svc"],
        "acceptPlain": False,
    }


def test_no_pod_mounts_the_key_of_the_authority_or_of_the_other_side() -> None:
    made = world(internalTLS=OWN)
    held = made.world.children[CERTIFICATES]
    assert held is not None and {"authority.key", "worker.key", "haproxy.key"} < held["data"].keys()
    mounted = {}
    for kind, name in (("StatefulSet", "demo-worker"), ("Deployment", "demo-haproxy")):
        template = made.template(kind, name)
        assert template is not None
        volumes = template["spec"]["volumes"]
        [volume] = [found for found in volumes if found["name"] == "internal-tls"]
        mounted[name] = {item["key"] for item in volume["secret"]["items"]}
    assert mounted == {
        "demo-worker": {"worker.crt", "worker.key", "ca.crt"},
        "demo-haproxy": {"haproxy.crt", "haproxy.key", "ca.crt"},
    }


def test_no_key_is_in_a_config_map_or_a_template() -> None:
    made = world(internalTLS=OWN)
    held = made.world.children[CERTIFICATES]
    assert held is not None
    keys = [base64.b64decode(held["data"][name]).decode() for name in held["data"] if name.endswith(".key")]
    for ref, child in made.world.children.items():
        if ref.kind != "Secret":
            text = yaml.safe_dump(child, width=10_000)
            assert not any(key.splitlines()[1] in text for key in keys), ref


def test_a_new_gateway_speaks_tls_from_the_first_connection_on() -> None:
    for wanted, held in ((OWN, "demo-internal-tls"), (NAMED, "haproxy-tls")):
        made = world(internalTLS=wanted)
        assert made.state == ([held] * 2, ["tls"] * 2)
        made.run()
        assert made.state == ([held] * 2, ["tls"] * 2)


def test_the_secret_that_the_operator_makes_goes_with_the_gateway() -> None:
    held = world(internalTLS=OWN).world.children[CERTIFICATES]
    assert held is not None and held["metadata"]["ownerReferences"][0]["name"] == "demo"


# --- Switching between kinds of connection


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("wanted", [OWN, NAMED], ids=["Operator", "Secret"])
def test_a_running_gateway_comes_to_tls_and_back_without_a_connection_that_fails(
    wanted: Manifest, seed: int
) -> None:
    made = world(seed)
    assert made.state == ([None] * 2, ["clear"] * 2)
    made.use(internalTLS=wanted)
    made.run()
    named = haproxy_endpoint(made.gateway).secret
    assert made.state == ([named] * 2, ["tls"] * 2)
    made.use(internalTLS={"mode": "None"})
    made.run()
    assert made.state == ([None] * 2, ["clear"] * 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_certificates_take_the_place_of_the_operators_without_a_connection_that_fails(
    seed: int,
) -> None:
    made = world(seed, internalTLS=OWN)
    made.run()
    made.use(internalTLS=NAMED)
    made.run()
    assert made.state == (["haproxy-tls"] * 2, ["tls"] * 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_of_mind_on_the_way_fails_no_connection(seed: int) -> None:
    made = world(seed)
    for wanted in (OWN, {"mode": "None"}, OWN, {"mode": "None"}):
        made.use(internalTLS=wanted)
        for _ in range(made.random.randrange(12)):
            possible = made._possible()
            if possible:
                made.random.choice(possible)()
                made.check()
    made.run()
    assert made.state == ([None] * 2, ["clear"] * 2)


# --- Renewal


def content(made: HopWorld) -> dict[str, str]:
    held = made.world.children[CERTIFICATES]
    assert held is not None
    return dict(held["data"])


def test_certificates_are_renewed_in_time_and_no_pod_is_replaced_for_it() -> None:
    made = world(internalTLS=OWN)
    made.run()
    before, digests = content(made), made.start_digests()
    templates = [made.template("StatefulSet", "demo-worker"), made.template("Deployment", "demo-haproxy")]
    made.now += 59 * 86_400
    assert made.plan().certificate_renewal is None
    made.now += 2 * 86_400
    made.reconcile()
    after = content(made)
    assert after["worker.crt"] != before["worker.crt"] and after["ca.crt"] == before["ca.crt"]
    renewing = made.plan()
    assert {name.rsplit("-", 1)[0] for name in renewing.pod_annotations} == {"demo-worker", "demo-haproxy"}, (
        "marks make the kubelet update the files immediately"
    )
    made.reconcile()
    assert made.start_digests() == digests
    assert templates == [
        made.template("StatefulSet", "demo-worker"),
        made.template("Deployment", "demo-haproxy"),
    ]


def test_a_new_authority_is_used_only_when_every_haproxy_was_started_with_it() -> None:
    made = world(internalTLS=OWN)
    made.run()
    made.now += 1300 * 86_400
    made.reconcile()
    made.reconcile()
    before = content(made)
    assert "next-authority.crt" in before
    made.now += 2 * 86_400
    assert made.plan().certificate_renewal is None, "HAProxy has not been replaced yet"
    made.run()
    after = content(made)
    assert "next-authority.crt" not in after and after["authority.crt"] == before["next-authority.crt"]


def test_a_certificate_is_not_renewed_while_the_gateway_is_paused() -> None:
    made = world(internalTLS=OWN)
    made.now += 80 * 86_400
    made.use(paused=True)
    assert made.plan().certificate_renewal is None


# --- Errors


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("worker-tls", None, "Secret worker-tls, named by spec.internalTLS.workerSecretRef, does not exist"),
        ("haproxy-tls", {"ca.crt": ""}, "has no text under ca.crt"),
        ("haproxy-tls", {"ca.crt": "nonsense"}, "under ca.crt"),
        ("worker-tls", {"tls.key": "nonsense"}, "no readable private key"),
        ("worker-tls", "haproxy-tls", "not for the DNS name demo-workers.team.svc"),
    ],
)
def test_certificates_that_cannot_be_used_hold_pods_back_and_the_status_says_why(
    name: str, changes: Manifest | str | None, words: str
) -> None:
    made = HopWorld(internalTLS=NAMED)
    secrets = user_certificates()
    if changes is None:
        del secrets[name]
    elif isinstance(changes, str):
        secrets[name] = secret(name, **entries(secrets[changes]))
    else:
        secrets[name] = secret(name, **(entries(secrets[name]) | changes))
    made.world.secrets |= secrets
    made.begin()
    assert Ref("StatefulSet", "demo-worker") not in made.world.children
    assert Ref("Deployment", "demo-haproxy") not in made.world.children
    condition = made.plan().status.condition(ConditionType.CONFIG_VALID)
    assert condition.status == "False" and words in condition.message
    assert "PRIVATE" not in condition.message


def entries(found: Manifest) -> dict[str, str]:
    return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}


def test_secrets_of_certificates_are_read_and_watched_as_others_are() -> None:
    assert {"worker-tls", "haproxy-tls"} <= {*referenced_secrets(gateway(internalTLS=NAMED))}


def test_a_running_gateway_whose_certificates_went_away_goes_on() -> None:
    made = world(internalTLS=NAMED)
    made.run()
    del made.world.secrets["worker-tls"]
    made.run()
    assert made.state == (["haproxy-tls"] * 2, ["tls"] * 2)


def test_a_secret_of_somebody_else_is_not_touched() -> None:
    made = HopWorld(internalTLS=OWN)
    made.world.children[CERTIFICATES] = {
        **secret("demo-internal-tls"),
        "metadata": {
            "name": "demo-internal-tls",
            "namespace": "team",
            "uid": "theirs",
            "ownerReferences": [{"kind": "Other", "name": "x", "uid": "y"}],
        },
    }
    made.begin()
    assert made.plan().certificate_renewal is None
