"""The auditor's index of exchanges: its storage, its readers, and the status of it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proofgate.index.readers import ReadersError, parse_readers

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.build import readers
from proofgate_operator.build.readers import InvalidReaders
from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.audit_reports import UNREACHABLE_AUDITOR, IndexStatus
from proofgate_operator.plan.observed_state import Ref
from tests.auditing import AUDITOR, ROLLBACK, report
from tests.gateways import secret
from tests.test_auditor import WHOLE, Audited, made

Manifest = dict[str, Any]
STATEFULSET, READERS = Ref("StatefulSet", "demo-auditor"), Ref("Secret", "demo-auditor")
DIGEST, OTHER = "9f" * 32, "60" * 32
OFFICER = json.dumps({DIGEST: {"name": "officer", "all": True}})
BOTH = json.dumps({**json.loads(OFFICER), OTHER: {"name": "acme's", "tenant": "acme"}})
NAMED = {"readersSecretRef": {"name": "llm-readers", "key": "readers.json"}}


def indexed(**index: Any) -> Manifest:
    return {**AUDITOR, "memory": "512Mi", "index": index}


def read_by(content: str | None, **index: Any) -> Audited:
    """Return an auditor whose readers are in a Secret."""
    audited = Audited(auditor=indexed(**{**NAMED, **index}))
    put(audited, content)
    return audited


def put(audited: Audited, content: str | None) -> None:
    made = None if content is None else secret("llm-readers", **{"readers.json": content})
    audited.world.secrets["llm-readers"] = made
    audited.world.settle()


def template(audited: Audited) -> Manifest:
    found: Manifest = audited.world.child(STATEFULSET.kind, STATEFULSET.name)["spec"]["template"]["spec"]
    return found


def command(audited: Audited) -> list[str]:
    found: list[str] = template(audited)["containers"][0]["command"]
    return found


def option(audited: Audited, name: str) -> str:
    return command(audited)[command(audited).index(name) + 1]


def rolled_out(audited: Audited) -> str | None:
    live = audited.world.children.get(READERS)
    return entry(live, "readers.json") if live else None


def test_an_index_lies_on_the_auditors_own_volume_and_nobody_may_ask_it_unless_the_spec_names_who() -> None:
    audited = Audited(auditor=indexed(retentionDays=90))
    mounts = {mount["name"]: mount for mount in template(audited)["containers"][0]["volumeMounts"]}
    assert option(audited, "--index").startswith(mounts["state"]["mountPath"] + "/")
    assert option(audited, "--index-days") == "90"
    assert "--readers" not in command(audited) and made(audited.world) == WHOLE
    assert "env" not in template(audited)["containers"][0]
    without = Audited()
    assert "--index" not in command(without)
    for off in (Audited(auditor=indexed()), Audited(auditor=indexed(enabled=False, **NAMED))):
        assert "--index-days" not in command(off) and "--readers" not in command(off)
    assert command(Audited(auditor=indexed(enabled=False, **NAMED))) == command(without)


def test_the_readers_that_can_be_used_are_mounted_and_a_change_of_them_replaces_no_pod() -> None:
    audited = read_by(OFFICER)
    assert rolled_out(audited) == OFFICER
    [volume] = [volume for volume in template(audited)["volumes"] if volume["name"] == "readers"]
    assert volume["secret"]["secretName"] == READERS.name
    mounts = {mount["name"]: mount for mount in template(audited)["containers"][0]["volumeMounts"]}
    assert mounts["readers"]["readOnly"] is True
    assert option(audited, "--readers") == mounts["readers"]["mountPath"] + "/readers.json"
    # Commands in the container write their lines to the same access log.
    state = {"name": "PROOFGATE_ACCESS_LOG", "value": option(audited, "--state")}
    assert template(audited)["containers"][0]["env"] == [state]
    before = template(audited)
    put(audited, BOTH)
    assert (rolled_out(audited), template(audited)) == (BOTH, before)
    assert audited.condition(report(3))[:2] == ("True", "NothingFound")


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (None, "SecretMissing", "does not exist"),
        ("[]", "ReadersInvalid", "is not a JSON object of readers"),
        (json.dumps({"reader-key-in-clear": {"name": "a", "all": True}}), "ReadersInvalid", "keys hash"),
    ],
)
def test_readers_that_cannot_be_used_are_not_rolled_out_and_those_before_stay(
    content: str | None, reason: str, words: str
) -> None:
    audited = read_by(OFFICER)
    before = template(audited)
    put(audited, content)
    assert (rolled_out(audited), template(audited)) == (OFFICER, before)
    status, told, message = audited.condition(report(3))
    assert (status, told) == ("False", reason) and words in message
    assert "spec.auditor.index.readersSecretRef" in message and "in-clear" not in message
    assert audited.plan().status.condition(ConditionType.CONFIG_VALID).is_true
    assert audited.plan().status.faults[0]["reason"] == reason
    put(audited, "{}")
    assert rolled_out(audited) == "{}", "no reader is left"
    assert audited.condition(report(3))[:2] == ("True", "NothingFound")


def test_what_was_found_is_told_also_while_the_readers_cannot_be_used() -> None:
    audited = read_by(OFFICER)
    assert audited.condition(report(3))[:2] == ("True", "NothingFound")
    put(audited, "[]")
    assert audited.condition(report(3))[:2] == ("False", "ReadersInvalid")
    status, reason, message = audited.condition(report(4, ROLLBACK))
    assert (status, reason) == ("False", "LedgerDiverged") and "it was set back" in message
    assert audited.plan().status.faults[0]["reason"] == "ReadersInvalid"
    audited.hear(report(4, ROLLBACK))
    assert audited.condition(UNREACHABLE_AUDITOR)[1] == "LedgerDiverged", (
        "evidence stays when its auditor is unreachable"
    )
    assert audited.condition(report(5))[:2] == ("False", "ReadersInvalid")
    assert audited.condition(report(2))[:2] == ("False", "AuditorStateSetBack")


def test_an_auditor_whose_first_readers_cannot_be_used_is_not_started() -> None:
    audited = read_by("{")
    assert not {STATEFULSET, READERS} & audited.world.children.keys()
    assert audited.condition()[:2] == ("False", "ReadersInvalid")
    assert Ref("StatefulSet", "demo-worker") in audited.world.children


def test_a_secret_of_somebody_else_under_the_auditors_name_is_left_alone() -> None:
    audited = Audited(auditor=indexed(**NAMED))
    theirs = {"metadata": {"name": READERS.name, "namespace": "team"}, "data": {}}
    audited.world.children[READERS] = theirs
    put(audited, OFFICER)
    assert audited.world.children[READERS] == theirs
    assert audited.condition(report(3))[:2] == ("False", "NameTaken")


def test_an_index_that_does_not_go_on_is_told_and_costs_the_auditors_word_nothing() -> None:
    audited = read_by(OFFICER)
    stuck = report(3, index=IndexStatus(7, "index_full"))
    audited.hear(stuck)
    assert audited.status["index"] == {"recordsBehind": 7, "problem": "index_full"}
    status, reason, message = audited.condition(stuck)
    assert (status, reason) == ("True", "NothingFound") and "index_full" in message
    assert audited.condition(report(3, ROLLBACK, index=IndexStatus(7, "index_full")))[1] == "LedgerDiverged"
    audited.hear(report(3, index=IndexStatus(0, "")))
    assert audited.status["index"] == {"recordsBehind": 0}


REFUSED = [
    *("", "[]", "null", "{", '"a"', "[" * 100_000, "\ufeff{}"),
    json.dumps({DIGEST.upper(): {"name": "a", "all": True}}),
    json.dumps({hashlib.sha256(b"test").hexdigest(): {"name": "a", "all": True}}),
    *(
        json.dumps({DIGEST: reader})
        for reader in (
            "acme",
            {"name": "a"},
            {"name": "", "all": True},
            {"name": "a", "all": False},
            {"name": "a", "all": True, "tenant": "acme"},
            {"name": "a", "tenant": ""},
            {"name": "a", "tenant": 7},
            {"name": ["a"], "tenant": "acme"},
            {"name": "a", "all": True, "notAfter": "soon"},
            {"name": "a", "all": True, "notAfter": 1801440000},
            {"name": "a", "all": True, "notAfter": "1970-01-01T00:00:00+02:00"},
        )
    ),
    f'{{"{DIGEST}": {{"name":"a","all":true}}, "{DIGEST}": {{"name":"b","all":true}}}}',
    json.dumps({DIGEST: {"name": "a" * (1 << 20), "all": True}}),
]


@pytest.mark.parametrize("content", REFUSED)
def test_a_file_of_readers_that_is_none_is_refused(content: str) -> None:
    with pytest.raises(InvalidReaders):
        readers.check(content)


def test_the_key_of_a_reader_may_expire() -> None:
    for until in ("2027-01-31", "2027-01-31T12:00:00Z"):
        readers.check(json.dumps({DIGEST: {"name": "a", "tenant": "acme", "notAfter": until}}))


ENTRIES = st.dictionaries(
    st.sampled_from(["name", "tenant", "all", "more", "notAfter"]),
    st.sampled_from(["a", "", True, False, 1, 7, None, ["a"], {}, "2027-01-31", "1970-01-01T00:00:00+02:00"]),
    max_size=4,
)
DOCUMENTS = st.dictionaries(st.sampled_from([DIGEST, OTHER, DIGEST.upper(), "x", ""]), ENTRIES, max_size=2)


@given(DOCUMENTS.map(json.dumps) | st.text(max_size=40))
def test_what_is_taken_here_the_auditor_takes_too(tmp_path_factory: Any, content: str) -> None:
    try:
        readers.check(content)
    except InvalidReaders:
        return
    path: Path = tmp_path_factory.getbasetemp() / "readers.json"
    path.write_text(content)
    try:
        parse_readers(path)
    except ReadersError as error:
        pytest.fail(f"the auditor refuses it: {error}")
