"""The witnesses of an auditor: its policy, the connections that it may open, and the status."""

import base64
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proofgate import _core
from proofgate.auditor.witnesses import WitnessUrlError, check_urls

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.build import checkpoint, witness_policy
from proofgate_operator.build.ledger_key import SigningKey
from proofgate_operator.build.witness_policy import InvalidWitnessPolicy
from proofgate_operator.plan.audit_reports import UNREACHABLE_AUDITOR, AuditReport, WitnessStatus
from proofgate_operator.plan.observed_state import Ref
from tests.auditing import (
    AUDITOR,
    KEY,
    ORIGIN,
    POLICY,
    ROLLBACK,
    WITNESS_KEYS,
    WITNESSED,
    note,
    report,
    witness_key,
)
from tests.certificates import write_certificate
from tests.gateways import secret
from tests.test_auditor import POD, Audited

Manifest = dict[str, Any]
A, B = WITNESS_KEYS
STATEFULSET = Ref("StatefulSet", "demo-auditor")
NETWORK_POLICY = Ref("NetworkPolicy", "demo-auditor")


def witnessed(**changes: Any) -> Manifest:
    return {**AUDITOR, "witnesses": {"policy": POLICY, **changes}}


def template(audited: Audited) -> Manifest:
    found: Manifest = audited.world.child(STATEFULSET.kind, STATEFULSET.name)["spec"]["template"]
    return found


def egress(audited: Audited) -> Any:
    return audited.world.child(NETWORK_POLICY.kind, NETWORK_POLICY.name)["spec"].get("egress")


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_the_policy_is_a_part_of_the_pods_template_and_the_auditor_reads_it_from_there() -> None:
    found = template(Audited(auditor=WITNESSED))
    assert found["metadata"]["annotations"]["proofgate.dev/witness-policy"] == POLICY
    [container] = found["spec"]["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}["witnesses"]
    [volume] = [volume for volume in found["spec"]["volumes"] if volume["name"] == "witnesses"]
    [source] = volume["projected"]["sources"]
    [item] = source["downwardAPI"]["items"]
    assert item["fieldRef"] == {"fieldPath": "metadata.annotations['proofgate.dev/witness-policy']"}
    assert option(container["command"], "--witness-policy") == f"{mounted}/{item['path']}"
    assert "--allow-http-witnesses" not in container["command"] and "--witness-ca" not in container["command"]
    without = template(Audited())
    assert "witness" not in str(without)


def test_another_policy_replaces_the_pod_and_one_that_cannot_be_used_leaves_it_as_it_is() -> None:
    audited = Audited(auditor=WITNESSED)
    before, open_to = template(audited), egress(audited)
    audited.world.manifest["spec"]["auditor"] = witnessed(policy=f"{POLICY}quorum both\n")
    audited.world.settle()
    assert (template(audited), egress(audited)) == (before, open_to)
    status, reason, message = audited.condition(report(3))
    assert (status, reason) == ("False", "WitnessPolicyInvalid")
    assert message == "spec.auditor.witnesses.policy: line 7: there is already a quorum line"
    assert audited.plan().status.condition(ConditionType.CONFIG_VALID).is_true
    assert audited.plan().status.faults[0]["reason"] == "WitnessPolicyInvalid"
    audited.world.manifest["spec"]["auditor"] = witnessed(
        policy=f"witness a {A} https://a.example\nquorum a\n"
    )
    audited.world.settle()
    assert template(audited) != before
    assert audited.condition(report(3))[:2] == ("True", "NothingFound")


def test_an_auditor_whose_first_policy_cannot_be_used_is_not_started() -> None:
    audited = Audited(auditor=witnessed(policy="quorum all\n"))
    assert not {STATEFULSET, NETWORK_POLICY} & audited.world.children.keys()
    assert audited.condition()[:2] == ("False", "WitnessPolicyInvalid")
    assert Ref("StatefulSet", "demo-worker") in audited.world.children


DNS = {"ports": [{"port": port, "protocol": kind} for kind in ("UDP", "TCP") for port in (53, 5353)]}


def test_it_may_call_name_servers_and_the_ports_of_the_policys_urls() -> None:
    to_them = {"ports": [{"port": 443, "protocol": "TCP"}, {"port": 8443, "protocol": "TCP"}]}
    assert egress(Audited(auditor=WITNESSED)) == [DNS, to_them]
    narrow = witnessed(egress={"allow": ["192.0.2.0/24", "2001:db8::/32"]})
    ranges = [{"ipBlock": {"cidr": "192.0.2.0/24"}}, {"ipBlock": {"cidr": "2001:db8::/32"}}]
    assert egress(Audited(auditor=narrow)) == [DNS, {**to_them, "to": ranges}]


@pytest.mark.parametrize(
    "policy",
    ["quorum none\n", f"witness a {A}\nquorum none\n", f"witness a {A} http://127.0.0.1:9092\nquorum a\n"],
    ids=["no witness", "none with a URL", "one beside it in its pod"],
)
def test_without_anybody_to_call_it_calls_nobody(policy: str) -> None:
    assert egress(Audited(auditor=witnessed(policy=policy))) is None


def test_without_witnesses_any_more_it_calls_nobody() -> None:
    audited = Audited(auditor=WITNESSED)
    audited.world.manifest["spec"]["auditor"] = AUDITOR
    audited.world.settle()
    assert egress(audited) is None and "witness" not in str(template(audited))


def test_ranges_that_are_none_are_told() -> None:
    audited = Audited(auditor=witnessed(egress={"allow": ["10.0.0.1/8"]}))
    status, reason, message = audited.condition()
    assert (status, reason) == ("False", "SpecInvalid")
    assert message.startswith("spec.auditor.witnesses.egress.allow: ")


def test_ranges_of_mirrors_and_sinks_that_are_none_are_told_too() -> None:
    away = {"egress": {"allow": ["10.0.0.1/8"]}}
    mirror = {"bucket": "evidence", "endpoint": "https://s3.example.com", **away}
    mirror |= {"objectLock": {"mode": "Compliance", "days": 1}, "credentialsSecretRef": {"name": "key"}}
    for field, one in (("mirrors", mirror), ("siem", {"url": "otlp+https://siem.example.com", **away})):
        audited = Audited(auditor={**AUDITOR, field: [one]})
        status, reason, message = audited.condition()
        assert (status, reason) == ("False", "SpecInvalid")
        assert message.startswith(f"spec.auditor.{field}: egress.allow: ")
        assert NETWORK_POLICY not in audited.world.children


def test_plain_http_is_for_a_network_that_somebody_trusts() -> None:
    policy = f"witness a {A} http://a.example\nquorum a\n"
    audited = Audited(auditor=witnessed(policy=policy))
    assert audited.condition()[1] == "WitnessPolicyInvalid" and "allowHttp" in audited.condition()[2]
    trusted = Audited(auditor=witnessed(policy=policy, allowHttp=True))
    assert "--allow-http-witnesses" in template(trusted)["spec"]["containers"][0]["command"]
    assert egress(trusted)[1] == {"ports": [{"port": 80, "protocol": "TCP"}]}


@pytest.mark.parametrize(
    ("field", "source"),
    [("caSecretRef", "secret"), ("caConfigMapRef", "configMap")],
    ids=["Secret", "ConfigMap"],
)
def test_authorities_of_their_own_are_mounted_beside_the_policy(
    field: str, source: str, tmp_path: Path
) -> None:
    audited = Audited(auditor=witnessed(**{field: {"name": "authorities", "key": "root.pem"}}))
    if field == "caSecretRef":
        assert audited.condition()[1] == "SecretMissing"
        audited.world.secrets["authorities"] = secret("authorities", **{"root.pem": "none"})
        assert audited.condition()[1] == "CertificateInvalid" and "root.pem" in audited.condition()[2]
        write_certificate(tmp_path / "ca.crt")
        text = (tmp_path / "ca.crt").read_text()
        audited.world.secrets["authorities"] = secret("authorities", **{"root.pem": text})
    audited.world.settle()
    found = template(audited)["spec"]
    assert option(found["containers"][0]["command"], "--witness-ca") == "/etc/auditor-witnesses/ca.crt"
    [volume] = [volume for volume in found["volumes"] if volume["name"] == "witnesses"]
    mounted = {"name": "authorities", "items": [{"key": "root.pem", "path": "ca.crt"}], "optional": True}
    assert volume["projected"]["sources"][1] == {source: mounted}


ML_DSA = (
    (Path(__file__).parents[2] / "rust-core/crates/ledger/tests/vectors/ml-dsa-44-cosignatures.txt")
    .read_text()
    .split("\n", 1)[0]
)
REFUSED = [
    ("", "there is no quorum line"),
    ("quorum a\n", "line 1: no line above defines a"),
    ("quorum none\nquorum none\n", "line 2: there is already a quorum line"),
    ("quorum\n", "line 1: expected: quorum NAME, or quorum none"),
    ("witnesses a b\nquorum none\n", "line 1: expected a line that begins with log, witness"),
    ("quorum none\r\n", "line 1: a control character"),
    (f"witness a {A} https://a.example extra\n", "line 1: expected: witness NAME VKEY [URL]"),
    (f"witness none {A}\n", "line 1: the name none is taken"),
    (f"witness a {A}\nwitness a {B}\n", "line 2: the name a is taken"),
    (f"witness a {A}\nwitness b {A}\n", "line 2: another witness line has this public key"),
    (f"witness a {A[:-4]}AAAA\n", "line 1: the hash of a key does not match"),
    ("witness a b\n", "line 1: a key does not have the form"),
    ("witness a name+00000000+\N{SNOWMAN}\n", "line 1: a key does not have the form"),
    (f"witness a {KEY.verifying_text}\n", "type 0x04"),
    (f"witness a {KEY.verifying_text}\n", "type 0x06"),
    (f"log {A}\n", "type 0x01"),
    (f"log {ML_DSA}\n", "type 0x01"),
    (f"witness a {ML_DSA[:-8]}\n", "line 1: a key does not have the form"),
    (f"witness a {ML_DSA}\nwitness b {ML_DSA}\n", "line 2: another witness line has this public key"),
    (f"log {KEY.verifying_text}\n" * 2, "line 2: another log line has this public key"),
    (f"witness a {A}\ngroup g 2 a\n", "line 2: expected all, any, or a number from 1 to 1"),
    (f"witness a {A}\ngroup g 0 a\n", "line 2: expected all, any, or a number from 1 to 1"),
    (f"witness a {A}\ngroup g any\n", "line 2: expected: group NAME all|any|K NAME..."),
    (f"witness a {A}\ngroup g any a a\n", "line 2: a is already a member of a group"),
    (f"witness a {A}\ngroup g all a\ngroup h all a g\n", "line 3: a is already a member of a group"),
    (f"witness a {A} ftp://a.example\n", "line 1: write an http or https URL"),
    (f"witness a {A} https://a.example:99999\n", "line 1: write an http or https URL"),
    (f"witness a {A} https://[::1\n", "line 1: write an http or https URL"),
    (f"witness a {A} https://u:hunter2@a.example\n", "line 1: remove the user name and password"),
    (f"witness a {A} https://a.example/?x\n", "line 1: remove '?' or '#' and everything after it"),
    (f"witness a {A} http://a.example\n", "line 1: use https"),
    (f"witness a {A}\nquorum a\n", "the witnesses that have a URL cannot form a quorum"),
    (f"log {SigningKey(ORIGIN, bytes(32)).verifying_text}\nquorum none\n", f"add `log {KEY.verifying_text}`"),
]


def test_a_witness_may_have_a_key_of_ml_dsa_44() -> None:
    policy = f"witness a {A} https://a.example\nwitness b {ML_DSA} https://b.example:444\ngroup g all a b\n"
    assert witness_policy.parse_witness_ports(f"{policy}quorum g\n", None, False) == (443, 444)


@pytest.mark.parametrize(("policy", "words"), REFUSED)
def test_what_is_wrong_with_a_policy_is_told_with_its_line(policy: str, words: str) -> None:
    with pytest.raises(InvalidWitnessPolicy) as refused:
        witness_policy.parse_witness_ports(policy, KEY.verifying_text, False)
    assert words in str(refused.value) and "hunter2" not in str(refused.value)


def taken_by_the_auditor(policy: str, folder: Path) -> bool:
    """Return whether the auditor itself starts with a policy."""
    ledger = SigningKey("proofgate.dev/team/demo", bytes(32)).verifying_text
    paths = str(folder / "ledger"), str(folder / "state")
    try:
        auditor = _core.Auditor(*paths, KEY.signing_text, ledger, 1, 1, 1, True, policy=policy.encode())
        check_urls(auditor.witness_urls(), False)
    except _core.AuditorError as error:
        assert error.code == "auditor_policy"
        return False
    except WitnessUrlError:
        return False
    return True


@pytest.mark.parametrize("policy", [policy for policy, _ in REFUSED])
def test_what_is_refused_here_the_auditor_would_not_start_with(policy: str, tmp_path: Path) -> None:
    text = policy if "quorum" in policy or not policy else f"{policy}quorum none\n"
    assert not taken_by_the_auditor(text, tmp_path)


LINES = [
    *(f"witness a {A} {url}" for url in ("https://a.example/x", "http://127.0.0.1:9", "https://[::1]:7/")),
    *(f"witness {name} {key}" for name in "ab" for key in WITNESS_KEYS),
    *(
        f"group {name} {least} {members}"
        for name in "gh"
        for least in ("all", "any", "1", "2")
        for members in ("a", "a b")
    ),
    *(
        "group h all g",
        "quorum a",
        "quorum g",
        "quorum h",
        "quorum none",
        "# a",
        "\t",
        f"log {KEY.verifying_text}",
    ),
    f"witness b\t{B}  https://b.example:8443 ",
]


@given(st.lists(st.sampled_from(LINES), max_size=8))
def test_what_the_auditor_starts_with_is_not_refused_here(lines: list[str]) -> None:
    policy = "\n".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        taken = taken_by_the_auditor(policy, Path(folder))
    try:
        witness_policy.parse_witness_ports(policy, KEY.verifying_text, False)
    except InvalidWitnessPolicy:
        assert not taken
    else:
        assert taken


def test_a_policy_names_no_more_witnesses_and_groups_than_the_format_asks_for() -> None:
    keys = [witness_key(f"w.example/{number}", bytes([number]) * 32) for number in range(1, 34)]
    lines = [f"witness w{number} {key}" for number, key in enumerate(keys)]
    groups = [f"group g{number} any w{number}" for number in range(32)]
    assert (
        witness_policy.parse_witness_ports("\n".join([*lines[:32], *groups, "quorum none"]), None, False)
        == ()
    )
    with pytest.raises(InvalidWitnessPolicy, match="line 33: more than 32 witnesses"):
        witness_policy.parse_witness_ports("\n".join([*lines, "quorum none"]), None, False)
    with pytest.raises(InvalidWitnessPolicy, match="line 65: more than 32 groups"):
        witness_policy.parse_witness_ports(
            "\n".join([*lines[:32], *groups, "group more any g1"]), None, False
        )


WORDS = [
    *("log", "witness", "group", "quorum", "a", "b", "none", "all", "any", "2", "#", "\n", "\t"),
    *("https://a.example", "http://[::1]:9", "https://a.example:7", A, B, KEY.verifying_text),
]


@given(
    st.lists(st.sampled_from(WORDS) | st.text(max_size=8)),
)
def test_whatever_is_written_is_a_policy_or_refused(words: list[str]) -> None:
    try:
        ports = witness_policy.parse_witness_ports(" ".join(words), None, True)
    except InvalidWitnessPolicy:
        return
    assert all(0 < port < 65_536 for port in ports)


def standing(*, b: str = "cosigned", size: int = 3) -> tuple[WitnessStatus, ...]:
    return WitnessStatus("a", "cosigned", 3, 1_800_000_000.0), WitnessStatus("b", b, size, 0.0)


def told(size: int | None = 3, uncosigned: int = 0, **more: Any) -> AuditReport:
    more.setdefault("witnesses", standing())
    found = {"checkpoint": ""} if size is None else {}
    return report(size or 0, cosignature_wait_seconds=uncosigned, **found, **more)


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        (told(), ("True", "NothingFound"), "3 tree heads"),
        (told(uncosigned=299), ("True", "NothingFound"), "3 tree heads"),
        (
            told(uncosigned=300, witnesses=standing(b="unreachable")),
            ("False", "NotCosigned"),
            "tree heads have waited for 300 s for a quorum of witnesses: b (unreachable)",
        ),
        (
            told(None, witnesses=standing(b="")),
            ("Unknown", "NotCosigned"),
            "no quorum of witnesses has cosigned the log of tree heads yet: b (no request yet)",
        ),
        (told(None, 300), ("False", "NotCosigned"), "heads have waited for 300 s"),
        (told(None, stale=True), ("Unknown", "AuditorStalled"), "more than a minute"),
        (told(None, last_poll_at=0.0), ("Unknown", "AuditorStarting"), "first poll"),
        (told(checkpoint="no note"), ("Unknown", "AuditorKeyDiffers"), ORIGIN),
    ],
)
def test_that_no_quorum_cosigns_is_said_with_who_does_not_and_why(
    answer: AuditReport, expected: tuple[str, str], words: str
) -> None:
    status, reason, message = Audited(auditor=WITNESSED).condition(answer)
    assert (status, reason) == expected and words in message


def test_what_was_found_is_said_before_who_has_not_cosigned() -> None:
    found = report(0, ROLLBACK, checkpoint="", cosignature_wait_seconds=900, witnesses=standing(b="fork"))
    assert Audited(auditor=WITNESSED).condition(found)[:2] == ("False", "LedgerDiverged")


def test_how_long_heads_may_wait_is_the_specs_to_say() -> None:
    patient = Audited(auditor=witnessed(deadlineSeconds=3600))
    assert patient.condition(told(uncosigned=3599))[0] == "True"
    assert patient.condition(told(uncosigned=3600))[:2] == ("False", "NotCosigned")


def test_an_auditor_without_a_policy_that_tells_no_checkpoint_is_not_believed() -> None:
    assert Audited().condition(told(None))[:2] == ("Unknown", "AuditorKeyDiffers")


def test_the_status_tells_how_each_witness_stands_also_before_a_quorum_has_cosigned() -> None:
    audited = Audited(auditor=WITNESSED)
    audited.hear(told(None, 7, witnesses=standing(b="unknown_log", size=0)))
    assert audited.status["witnesses"] == [
        {"name": "a", "size": 3, "lastResult": "cosigned", "cosignedTime": "2027-01-15T08:00:00Z"},
        {"name": "b", "size": 0, "lastResult": "unknown_log"},
    ]
    assert audited.status["cosigningLagSeconds"] == 7 and "size" not in audited.status
    assert audited.held == {}, "an unpublished checkpoint is not held"
    audited.hear(told())
    assert audited.status["size"] == 3 and len(audited.held) == 1
    before = audited.status
    audited.hear(UNREACHABLE_AUDITOR)
    assert audited.status == before


def test_why_the_auditor_itself_refuses_its_policy_is_told_in_its_own_words() -> None:
    audited = Audited(auditor=WITNESSED)
    for code, reason in (
        ("auditor_policy", "WitnessPolicyInvalid"),
        ("auditor_witness_ca", "CertificateInvalid"),
    ):
        ended = {"terminated": {"message": f"proofgate: line 3: it is none [{code}]\n"}}
        audited.pod = {**POD, "status": {"containerStatuses": [{"state": ended}]}}
        assert audited.condition(UNREACHABLE_AUDITOR) == ("False", reason, f"line 3: it is none [{code}]")


def cosigned(size: int, lines: Iterable[str]) -> str:
    return note(size) + "".join(lines)


def test_a_checkpoint_that_all_witnesses_have_cosigned_is_held_as_it_is() -> None:
    audited = Audited(auditor=WITNESSED)
    name, line = "witness.example/" + "w" * 300, base64.b64encode(bytes(76)).decode()
    published = cosigned(9, [f"— {name}{number} {line}\n" for number in range(32)])
    audited.hear(told(checkpoint=published))
    assert list(audited.held.values()) == [published]
    with pytest.raises(checkpoint.InvalidCheckpoint, match="too long"):
        checkpoint.read_aggregate_checkpoint(published + "— x\n" * 10_000, KEY.verifying_text)
