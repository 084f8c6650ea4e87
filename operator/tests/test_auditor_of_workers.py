"""The auditor of workers with a volume each: the workers that it queries, and its options."""

import json
from typing import Any

from proofgate.reading.token import auditor_token

from proofgate_operator.plan.api_keys import entry
from proofgate_operator.plan.auditor import workers_digest
from proofgate_operator.plan.configuration import read_configuration
from proofgate_operator.plan.observed_state import ObservedState, Ref
from tests.auditing import AUDITOR
from tests.gateways import DEFAULTS, secret
from tests.test_auditor import WHOLE, Audited, made
from tests.test_mirrors import MIRROR

WORKERS = Ref("Secret", "demo-auditor")
PER_WORKER = {"volume": {"mode": "PerWorker"}}
READERS = json.dumps({"9f" * 32: {"name": "officer", "all": True}})


def of_workers(**changes: Any) -> Audited:
    return Audited(**{"ledger": PER_WORKER, **changes})


def listed(audited: Audited) -> dict[str, str]:
    found: dict[str, str] = json.loads(entry(audited.world.children[WORKERS] or {}, "workers.json") or "")
    return found


def test_every_worker_is_listed_by_the_name_that_its_pod_keeps() -> None:
    audited = of_workers(replicas=3)
    domain = "demo-workers.team.svc.cluster.local:9090"
    assert listed(audited) == {str(shard): f"http://demo-worker-{shard}.{domain}" for shard in range(3)}
    assert made(audited.world) == WHOLE | {WORKERS}


def test_its_token_is_the_one_that_workers_make_of_theirs_and_not_theirs() -> None:
    audited = of_workers()
    admin = entry(audited.world.child("Secret", "demo-admin"), "token")
    assert admin
    token = entry(audited.world.children[WORKERS] or {}, "auditor-token")
    assert token == auditor_token(admin) != admin


def test_it_mounts_no_volume_of_the_ledger() -> None:
    template = of_workers().world.child("StatefulSet", "demo-auditor")["spec"]["template"]["spec"]
    claims = [
        volume["persistentVolumeClaim"] for volume in template["volumes"] if "persistentVolumeClaim" in volume
    ]
    assert [claim["claimName"] for claim in claims] == ["demo-auditor"]
    secrets = [volume["secret"]["secretName"] for volume in template["volumes"] if "secret" in volume]
    assert secrets == ["demo-auditor", "auditor-key"]
    command = template["containers"][0]["command"]
    assert "--ledger" not in command and "--workers" in command


def test_a_list_that_has_changed_replaces_no_pod_and_marks_it() -> None:
    audited = of_workers(replicas=2)
    before = audited.world.child("StatefulSet", "demo-auditor")["spec"]["template"]

    def mark(workers: int) -> str | None:
        seen = ObservedState(audited.world.children, audited.world.secrets)
        configuration = read_configuration(audited.world.gateway, seen, DEFAULTS)
        return workers_digest(audited.world.gateway, configuration, workers)

    assert audited.plan().pod_annotations["demo-auditor-0"] == {"proofgate.dev/config-digest": mark(2)}
    assert mark(2) != mark(3)
    audited.world.manifest["spec"]["replicas"] = 3
    audited.world.settle()
    assert list(listed(audited)) == ["0", "1", "2"]
    assert audited.world.child("StatefulSet", "demo-auditor")["spec"]["template"] == before


def test_an_auditor_that_mounts_the_ledger_is_marked_with_nothing() -> None:
    audited = Audited()
    assert "demo-auditor-0" not in audited.plan().pod_annotations and WORKERS not in made(audited.world)


def indexed(**index: Any) -> Audited:
    """Return an auditor of workers with an index and valid readers."""
    named = {"name": "readers", "key": "readers.json"}
    asked = {**AUDITOR, "memory": "512Mi", "index": {"readersSecretRef": named, **index}}
    audited = of_workers(auditor=asked)
    audited.world.secrets["readers"] = secret("readers", **{"readers.json": READERS})
    audited.world.settle()
    return audited


def command(audited: Audited) -> list[str]:
    template = audited.world.child("StatefulSet", "demo-auditor")["spec"]["template"]["spec"]
    found: list[str] = template["containers"][0]["command"]
    return found


def test_an_index_of_workers_reads_copies_on_the_auditors_own_claim() -> None:
    words = command(indexed())
    assert words[words.index("--replica") + 1] == "/var/lib/proofgate-auditor/replica"
    assert words[words.index("--index") + 1] == "/var/lib/proofgate-auditor/index"
    assert "--replica" not in command(of_workers())
    assert "--replica" not in command(Audited(auditor={**AUDITOR, "memory": "512Mi", "index": {}}))


def test_sinks_of_workers_read_copies_too() -> None:
    sinks = [{"url": "otlp+https://siem.example.com:4318"}]
    assert "--replica" in command(of_workers(auditor={**AUDITOR, "siem": sinks}))


def test_mirrors_of_workers_read_copies_too_and_may_call_their_buckets_beside_the_workers() -> None:
    audited = of_workers(auditor={**AUDITOR, "mirrors": [MIRROR]})
    words = command(audited)
    assert words[words.index("--replica") + 1] == "/var/lib/proofgate-auditor/replica"
    assert words[words.index("--mirror") + 1].startswith("s3://evidence/team/llm?lock=compliance&days=400")
    policy = audited.world.child("NetworkPolicy", "demo-auditor")["spec"]
    ports = [[port["port"] for port in rule["ports"]] for rule in policy["egress"]]
    assert ports[1:] == [[9090], [9000]]
    mounted = audited.world.child("StatefulSet", "demo-auditor")["spec"]["template"]["spec"]["volumes"]
    assert {"workers", "mirror-0", "state"} <= {volume["name"] for volume in mounted}


def test_readers_stay_beside_the_workers_while_the_ones_that_the_spec_names_cannot_be_used() -> None:
    audited = indexed()
    assert entry(audited.world.children[WORKERS] or {}, "readers.json") == READERS
    audited.world.secrets["readers"] = secret("readers", **{"readers.json": "no readers"})
    audited.world.settle()
    held = audited.world.children[WORKERS] or {}
    assert entry(held, "readers.json") == READERS
    assert entry(held, "auditor-token") and set(listed(audited)) == {"0", "1"}


def test_readers_go_from_beside_the_workers_with_the_index() -> None:
    audited = indexed()
    audited.world.manifest["spec"]["auditor"] = AUDITOR
    audited.world.settle()
    held = audited.world.children[WORKERS] or {}
    assert entry(held, "readers.json") is None and entry(held, "auditor-token")
