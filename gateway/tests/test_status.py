"""`proofgate status`: the output for a cluster and a worker, and the message when nothing answers."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import refusing_port, serving
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from test_cli import TOKEN, usage_error

from proofgate.cli import main
from proofgate.status import text
from proofgate.status.cluster import checkpoint_head, parse_gateway
from proofgate.status.limits import merge_limits, parse_limits
from proofgate.status.status_model import Gateway, Limits, LimitUsage, Tenant
from proofgate.status.worker import parse_worker

HERE = Path(__file__).parent
OBJECTS = HERE / "objects"
GOLDEN = HERE / "golden"
NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)

Capture = pytest.CaptureFixture[str]


def stored(name: str) -> Any:
    return json.loads((OBJECTS / name).read_text())


def seen(*notes: str) -> Gateway:
    """The gateway from the stored objects, with these notes."""
    return parse_gateway(
        stored("gateway.json"), stored("tenants.json")["items"], stored("checkpoints.json")["data"], notes
    )


def assert_golden(name: str, shown: str) -> None:
    path = GOLDEN / name
    if os.environ.get("PROOFGATE_GOLDEN") == "write":
        path.write_text(shown)
    assert shown == path.read_text()


def test_a_gateway_is_shown_with_workers_tenants_logs_and_conditions() -> None:
    assert_golden("status.txt", text.format_gateway(seen(), NOW))


def test_what_could_not_be_read_is_said() -> None:
    told = "GatewayTenants are not shown: kubectl: Error from server (Forbidden): no"
    assert f"\nnote: {told}\n" in text.format_gateway(seen(told), NOW)


def test_a_gateway_that_no_operator_has_seen_is_shown_all_the_same() -> None:
    item = stored("gateway.json")
    del item["status"]
    assert_golden("status-new.txt", text.format_gateway(parse_gateway(item, [], {}), NOW))


def test_of_thousands_of_tenants_those_with_trouble_are_shown() -> None:
    item = stored("gateway.json")
    item["spec"]["tenants"] = [{"name": f"t-{number:04}"} for number in range(2000)]
    item["status"]["faults"] = [
        {"field": "spec.tenants[t-1999]", "reason": "NoKeys", "message": "the tenant has no key"}
    ]
    shown = text.format_gateway(parse_gateway(item, [], {}), NOW)
    first = shown[shown.index("TENANT") :].splitlines()[1]
    assert first.startswith("t-1999")
    assert first.endswith("NoKeys")
    assert "and 1960 more: --output json lists all" in shown
    assert "t-1000" not in shown


@pytest.mark.parametrize(
    ("spec", "owner"),
    [
        ({"replicas": 2, "tenants": [{"name": "acme"}]}, None),
        ({"replicas": 2, "tenants": [{"name": "acme", "placement": 1}]}, 1),
        ({"replicas": 2, "tenants": [{"name": "acme", "placement": 2}]}, None),
    ],
)
def test_a_tenant_has_an_owner_where_somebody_but_the_ring_decides(
    spec: dict[str, Any], owner: int | None
) -> None:
    item = {**stored("gateway.json"), "spec": spec}
    assert [tenant.worker for tenant in parse_gateway(item, [], {}).tenants] == [owner]


def test_the_trouble_of_a_tenant_is_said_once_and_not_again_by_its_summary() -> None:
    item, tenants = stored("gateway.json"), stored("tenants.json")["items"]
    refused = {"status": "False", "reason": "PlanUnknown", "message": "it has none"}
    for own in tenants:
        own["status"] = {"conditions": [{**refused, "type": kind} for kind in ("Ready", "Accepted")]}
    found = [tenant for tenant in parse_gateway(item, tenants, {}).tenants if "/" in tenant.name]
    assert found
    assert {tenant.trouble for tenant in found} == {"Accepted=False PlanUnknown"}


def test_the_only_worker_has_every_tenant() -> None:
    item = stored("gateway.json")
    item["status"]["shards"] = item["status"]["shards"][:1]
    assert {tenant.worker for tenant in parse_gateway(item, [], {}).tenants} == {0}


def test_a_tenant_of_another_gateway_is_not_shown() -> None:
    tenants = stored("tenants.json")["items"]
    assert {item["spec"]["gatewayRef"]["name"] for item in tenants} == {"llm", "other"}
    assert not [tenant for tenant in seen().tenants if tenant.name.endswith("/elsewhere")]


def test_what_stands_in_a_message_steers_no_terminal() -> None:
    item = stored("gateway.json")
    item["status"]["shards"][1]["message"] = "\x1b[2Jgone\nAvailable"
    shown = text.format_gateway(parse_gateway(item, [], {}, ["\x1b]0;title\x07"]), NOW)
    assert " [2Jgone Available\n" in shown
    assert not {"\x1b", "\x07"} & set(shown)


@pytest.mark.parametrize("note", [None, "", "a\nb\nc\n", "one line"])
def test_what_is_no_checkpoint_is_no_head(note: str | None) -> None:
    assert checkpoint_head(note) is None


def test_an_expired_key_is_told() -> None:
    item = stored("gateway.json")
    shown = text.format_gateway(parse_gateway(item, [], {}), datetime(2028, 1, 1, tzinfo=UTC))
    assert "old (expired)" in shown


def test_a_worker_is_shown_with_its_log_and_its_trouble() -> None:
    metrics = "proofgate_limit_refusals_total 17\nproofgate_connections 3\n"
    assert_golden("status-worker.txt", text.format_worker(parse_worker(stored("worker.json"), metrics)))


class Kubectl:
    """A kubectl on PATH that answers from files and records its arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = folder / "asked"
        self.answers: dict[str, Any] = {
            "governancegateways.proofgate.dev": {"items": [stored("gateway.json")]},
            "gatewaytenants.proofgate.dev": stored("tenants.json"),
            "configmap": stored("checkpoints.json"),
        }
        self.refusals: dict[str, str] = {}

    def write(self) -> None:
        """Writes the program and its answers."""
        for kind, answer in self.answers.items():
            (self.folder / kind).write_text(json.dumps(answer))
        for kind, refusal in self.refusals.items():
            (self.folder / kind).unlink(missing_ok=True)
            (self.folder / f"{kind}.refused").write_text(refusal)
        program = self.folder / "kubectl"
        program.write_text(
            "#!/bin/sh\n"
            f'cd {self.folder}\necho "$*" >> asked\n'
            'if [ -e "$2" ]; then cat "$2"; else cat "$2.refused" >&2; exit 1; fi\n'
        )
        program.chmod(0o755)

    def commands(self) -> list[str]:
        """The recorded commands, one per line."""
        return self.asked.read_text().splitlines()


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Kubectl(tmp_path)


def test_the_cluster_is_asked_by_the_context_that_is_set(kubectl: Kubectl, capsys: Capture) -> None:
    kubectl.write()
    # One of the workers is retiring, so the exit code is 1.
    assert main(["status"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("team/llm: WorkersMissing, 1 of 2 workers ready, http://llm.team")
    assert "proofgate.dev/team/llm/0/01M7YTCV9E8AJ3ZE65Z1JTVHAD" in told
    options = "--output=json --request-timeout=10s"
    assert kubectl.commands() == [
        f"get governancegateways.proofgate.dev {options}",
        f"get gatewaytenants.proofgate.dev --all-namespaces {options}",
        f"get configmap llm-checkpoints --namespace team --ignore-not-found {options}",
    ]


def test_no_secret_is_asked_for(kubectl: Kubectl) -> None:
    kubectl.write()
    main(["status", "-A"])
    assert not [command for command in kubectl.commands() if "secret" in command]


def test_a_gateway_that_is_ready_is_the_exit_code(kubectl: Kubectl) -> None:
    item = stored("gateway.json")
    for condition in item["status"]["conditions"]:
        condition["status"] = "True"
    kubectl.answers["governancegateways.proofgate.dev"] = {"items": [item]}
    kubectl.write()
    assert main(["status"]) == 0


def test_one_gateway_by_name_in_another_namespace_and_context(kubectl: Kubectl, capsys: Capture) -> None:
    kubectl.answers["governancegateways.proofgate.dev"] = stored("gateway.json")
    kubectl.write()
    main(["status", "llm", "-n", "team", "--context", "prod"])
    assert capsys.readouterr().out.startswith("team/llm: ")
    first, second, third = kubectl.commands()
    assert first.startswith("get governancegateways.proofgate.dev llm --namespace=team --context=prod ")
    assert " --all-namespaces --context=prod " in second
    assert " --namespace team --ignore-not-found --context=prod " in third


def test_the_heads_of_all_gateways_of_a_namespace_are_read_at_once(kubectl: Kubectl, capsys: Capture) -> None:
    items = [stored("gateway.json") for _ in range(3)]
    for item, (namespace, name) in zip(items, [("b", "y"), ("a", "llm"), ("b", "x")], strict=True):
        item["metadata"] |= {"namespace": namespace, "name": name}
    held = stored("checkpoints.json")
    kubectl.answers["governancegateways.proofgate.dev"] = {"items": items}
    kubectl.answers["configmap"] = {"items": [{**held, "metadata": {"name": "y-checkpoints"}}]}
    kubectl.write()
    main(["status", "-A", "--output", "json"])
    found = json.loads(capsys.readouterr().out)["gateways"]
    logs = [(it["namespace"], it["name"], it["shards"][0]["log"] is not None) for it in found]
    assert logs == [("a", "llm", False), ("b", "x", False), ("b", "y", True)]
    asked = [command for command in kubectl.commands() if "configmap" in command]
    assert [command.split(" --")[0] for command in asked] == [
        "get configmap llm-checkpoints",
        "get configmap x-checkpoints y-checkpoints",
    ]


def test_a_gateway_whose_heads_nobody_holds_yet_is_shown_without(kubectl: Kubectl, capsys: Capture) -> None:
    kubectl.answers["configmap"] = {}
    kubectl.write()
    main(["status"])
    assert "0       Ready     1d4622ae  -        -" in capsys.readouterr().out


def test_json_has_everything(kubectl: Kubectl, capsys: Capture) -> None:
    kubectl.write()
    main(["status", "--output", "json"])
    [found] = json.loads(capsys.readouterr().out)["gateways"]
    assert found["shards"][0]["log"] == {
        "origin": "proofgate.dev/team/llm/0/01M7YTCV9E8AJ3ZE65Z1JTVHAD",
        "size": 120,
    }
    assert {tenant["name"]: tenant["worker"] for tenant in found["tenants"]}["team-shop/shop"] == 1


def test_a_cluster_without_the_kind_of_tenants_or_the_right_to_read_heads_is_shown_without(
    kubectl: Kubectl, capsys: Capture
) -> None:
    kubectl.refusals = {
        "gatewaytenants.proofgate.dev": 'error: the server doesn\'t have a resource type "gatewaytenants"',
        "configmap": "Error from server (Forbidden): configmaps is forbidden",
    }
    kubectl.write()
    main(["status"])
    told = capsys.readouterr().out
    assert "note: tree heads are not shown: kubectl: Error from server (Forbidden)" in told
    assert "GatewayTenants are not shown" not in told


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (
            'error: the server doesn\'t have a resource type "governancegateways"',
            "has no GovernanceGateway",
        ),
        ("E1124 memcache\nThe connection to the server was refused", "kubectl: The connection to the server"),
        ("error: current-context is not set", "kubectl: current-context is not set"),
        ("", "kubectl: failed without output"),
    ],
)
def test_a_cluster_that_cannot_be_asked_is_told(
    kubectl: Kubectl, refusal: str, told: str, capsys: Capture
) -> None:
    kubectl.refusals = {"governancegateways.proofgate.dev": refusal}
    kubectl.write()
    assert main(["status"]) == 2
    assert told in capsys.readouterr().err


def test_a_namespace_without_gateways_is_told(kubectl: Kubectl, capsys: Capture) -> None:
    kubectl.answers["governancegateways.proofgate.dev"] = {"items": []}
    kubectl.write()
    assert main(["status"]) == 2
    assert "there is no GovernanceGateway in this namespace" in capsys.readouterr().err


def test_without_kubectl_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["status"]) == 2
    assert "kubectl is not on PATH" in capsys.readouterr().err


def test_a_kubectl_that_speaks_otherwise_is_told(kubectl: Kubectl, capsys: Capture) -> None:
    kubectl.answers["governancegateways.proofgate.dev"] = ["a list"]
    kubectl.write()
    assert main(["status"]) == 2
    assert "did not return JSON" in capsys.readouterr().err


def used(tenant: str, **limits: tuple[int, int]) -> dict[str, Any]:
    """A tenant's usage of its limits, as the admin port reports it."""
    names = ("requests_per_minute", "tokens_per_minute", "tokens_per_day", "concurrency")
    told = {
        name: None if name not in limits else dict(zip(("used", "limit"), limits[name], strict=True))
        for name in names
    }
    return {"tenant": tenant, **told}


LIMITS = {
    "tenants": [
        used(
            "team-shop/shop", tokens_per_minute=(99_999, 100_000), tokens_per_day=(1_234_567, 2_000_000_000)
        ),
        used("acme", requests_per_minute=(120, 600), concurrency=(0, 4)),
    ],
    "more": 3,
}
LIMITS_SHOWN = """\
LIMITS USED     REQUESTS/MIN  TOKENS/MIN      TOKENS/DAY  IN FLIGHT
team-shop/shop  -             99.9k/100k 99%  1.2M/2G 0%  -
acme            120/600 20%   -               -           0/4 0%
and 3 more with lower use
"""


def told_by(status: dict[str, Any], limits: dict[str, Any] | None = None) -> FastAPI:
    """An admin port that reports this status and these limits."""
    app = FastAPI()
    app.get("/tenants/limits")(lambda: LIMITS if limits is None else limits)
    app.get("/status")(lambda: status)
    app.get("/metrics")(lambda: PlainTextResponse("proofgate_limit_refusals_total 17\n"))
    return app


def test_a_worker_is_asked_by_its_admin_port(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with serving(told_by(stored("worker.json"))) as url:
        arguments = ["status", "--admin", url, "--token-file", str(tmp_path / "token")]
        assert main(arguments) == 1
        golden = (GOLDEN / "status-worker.txt").read_text()
        assert capsys.readouterr().out.lstrip() == f"{golden}\n{LIMITS_SHOWN}"
        assert main([*arguments, "--output", "json"]) == 1
        told = json.loads(capsys.readouterr().out)["worker"]
        assert told["log"]["size"] == 41
        assert told["limits"]["tenants"][1]["requests_per_minute"] == {"used": 120, "limit": 600}
        assert main(arguments[:3]) == 1
        assert capsys.readouterr().out.lstrip() == golden


def test_who_tells_no_limits_is_told(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with serving(told_by(stored("worker.json"), {"tenants": [{"tenant": "acme"}]})) as url:
        assert main(["status", "--admin", url, "--token-file", str(tmp_path / "token")]) == 2
    assert "reports no limits" in capsys.readouterr().err


def test_limits_fit_a_terminal_and_of_many_tenants_the_most_used_are_shown() -> None:
    most = (1 << 64) - 1
    names = ("requests_per_minute", "tokens_per_minute", "tokens_per_day", "concurrency")
    told = [used(f"tenant-{number:04}", **dict.fromkeys(names, (999_999, 999_999))) for number in range(1000)]
    lines = text._limits(parse_limits({"tenants": told, "more": 9000}))
    assert max(map(len, lines)) <= 80
    assert (len(lines), lines[-1]) == (42, "and 9960 more with lower use")
    assert text._format_usage(LimitUsage(most, most)) == "18446744T/18446744T 100%"
    assert text._limits(parse_limits({"tenants": [], "more": 0})) == ["no tenant has limits"]


def test_limits_that_a_namespace_shares_are_shown_among_those_of_tenants_and_the_most_is_the_newest() -> None:
    def told(spent: int) -> dict[str, object]:
        shared = used("", requests_per_minute=(spent, 10)) | {"namespace": "team-blue", "plan": "gold"}
        tenants = [used("acme", requests_per_minute=(5, 10))]
        return {"tenants": tenants, "more": 0, "namespaces": [shared], "more_namespaces": 1}

    limits = merge_limits([parse_limits(told(8)), parse_limits(told(9))])
    assert [(one.tenant, one.limits["requests_per_minute"]) for one in limits.namespaces] == [
        ("team-blue/* (gold)", LimitUsage(9, 10))
    ]
    assert limits.more_namespaces == 1
    lines = text._limits(limits)
    assert lines[1].startswith("team-blue/* (gold)")
    assert lines[2].startswith("acme")
    assert lines[-1] == "and 1 more with lower use"


def test_of_budgets_the_one_that_is_used_most_is_shown_where_there_are_any() -> None:
    rich = used("rich", requests_per_minute=(1, 4))
    rich["nanodollars_per_day"] = {"used": 1_999, "limit": 10_000}
    rich["nanodollars_per_month"] = {"used": 90_000, "limit": 100_000}
    limits = parse_limits({"tenants": [rich, used("plain", concurrency=(0, 4))], "more": 0})
    assert [line.split() for line in text._limits(limits)] == [
        ["LIMITS", "USED", "REQUESTS/MIN", "IN", "FLIGHT", "BUDGET"],
        ["rich", "1/4", "25%", "-", "90%"],
        ["plain", "-", "0/4", "0%", "-"],
    ]
    assert limits.tenants[0].max_used_share == 0.9


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (9999, "9999"), (10_000, "10k"), (12_345, "12.3k"), (999_999, "999k"), (1_050_000, "1M")],
)
def test_a_long_number_is_cut(number: int, shown: str) -> None:
    assert text._abbreviate(number) == shown


def forwarding(kubectl: Kubectl, pod: str, said: str) -> None:
    """Makes `kubectl port-forward` of a pod print this text."""
    (kubectl.folder / "pod").mkdir(exist_ok=True)
    (kubectl.folder / "pod" / pod).write_text(said)


def test_the_workers_of_a_gateway_are_asked_for_limits_with_its_token(
    kubectl: Kubectl, tmp_path: Path, capsys: Capture
) -> None:
    item = stored("gateway.json")
    item["status"]["shards"][1]["phase"] = "Retiring"
    kubectl.answers["governancegateways.proofgate.dev"] = item
    kubectl.write()
    (tmp_path / "token").write_text(TOKEN)
    with serving(told_by({})) as url:
        port = url.rpartition(":")[2]
        forwarding(kubectl, "llm-worker-0", f"Forwarding from 127.0.0.1:{port} -> 9090\n")
        forwarding(kubectl, "llm-worker-1", "error: unable to forward port because pod is not running\n")
        main(["status", "llm", "--context", "prod", "--token-file", str(tmp_path / "token")])
    told = capsys.readouterr().out
    assert f"\n\n{LIMITS_SHOWN}\n" in told
    reason = "kubectl port-forward: unable to forward port because pod is not running"
    assert f"note: limits are shown without worker 1: {reason}\n" in told
    assert sorted(command for command in kubectl.commands() if "forward" in command) == [
        f"port-forward pod/llm-worker-{number} :9090 --address=127.0.0.1 --namespace=team --context=prod"
        for number in (0, 1)
    ]
    assert not [command for command in kubectl.commands() if "secret" in command]


def test_a_worker_that_does_not_serve_is_not_asked_for_limits(
    kubectl: Kubectl, tmp_path: Path, capsys: Capture
) -> None:
    item = stored("gateway.json")
    for shard in item["status"]["shards"]:
        shard["phase"] = "Starting"
    kubectl.answers["governancegateways.proofgate.dev"] = item
    kubectl.write()
    (tmp_path / "token").write_text(TOKEN)
    main(["status", "llm", "--token-file", str(tmp_path / "token"), "--output", "json"])
    assert json.loads(capsys.readouterr().out)["gateways"][0]["limits"] is None
    assert not [command for command in kubectl.commands() if "forward" in command]


def test_of_what_workers_tell_of_one_tenant_the_most_counts() -> None:
    def told(*tenants: dict[str, Any], more: int = 0) -> Limits:
        return parse_limits({"tenants": tenants, "more": more})

    first = told(used("a", concurrency=(1, 4)), used("b", concurrency=(3, 4)), more=2)
    second = told(used("a", concurrency=(2, 4)), used("c", tokens_per_day=(1, 10)))
    found = merge_limits([first, second])
    assert [(tenant.tenant, tenant.max_used_share) for tenant in found.tenants] == [
        ("b", 0.75),
        ("a", 0.5),
        ("c", 0.1),
    ]
    assert found.more == 1
    assert merge_limits([]) == Limits((), 0)


def test_a_worker_that_wants_traffic_is_the_exit_code() -> None:
    with serving(told_by({**stored("worker.json"), "not_ready": None})) as url:
        assert main(["status", "--admin", url]) == 0


def test_who_is_no_worker_is_told(tmp_path: Path, capsys: Capture) -> None:
    assert main(["status", "--admin", "ftp://127.0.0.1"]) == 2
    assert "is not an http URL" in capsys.readouterr().err
    assert main(["status", "--admin", "http://127.0.0.1:1", "--token-file", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    with serving(told_by({"some": "other program"})) as url:
        assert main(["status", "--admin", url]) == 2
        assert "is this a Proofgate admin port?" in capsys.readouterr().err
    with refusing_port() as port:
        assert main(["status", "--admin", f"http://127.0.0.1:{port}"]) == 2
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--token-file", "token"],
        ["llm", "--admin", "http://127.0.0.1:1"],
        ["--context", "prod", "--admin", "http://127.0.0.1:1"],
        ["llm", "--all-namespaces"],
    ],
)
def test_arguments_that_belong_to_something_else_are_refused(arguments: list[str]) -> None:
    assert main(["status", *arguments]) == 2


def test_a_namespace_and_all_of_them_exclude_each_other() -> None:
    assert usage_error("status", "-n", "a", "-A") == 2


def test_a_tenant_without_a_key_has_none() -> None:
    row = text._tenant(Tenant("acme", None, (), None, ""), NOW)
    assert row == ("acme", "by ring", "-", "none", "ok")


def test_the_worker_of_the_folder_of_the_quickstart_is_asked_without_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    with refusing_port() as port:
        place = f"127.0.0.1:{port}"
        quickstart = ["quickstart", "--base-url", "http://127.0.0.1:1/v1", "--admin-listen", place]
        assert main(quickstart) == 0
        capsys.readouterr()
        assert main(["status"]) == 2
    said = capsys.readouterr().err
    assert f"proofgate/gateway.yaml: the worker at http://{place} does not answer" in said
    assert "proofgate serve --config proofgate/gateway.yaml" in said


def test_without_a_folder_and_a_cluster_it_says_what_it_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["status"]) == 2
    assert (
        "The current directory has no proofgate/gateway.yaml, gateway.yaml either" in capsys.readouterr().err
    )
