"""Cloud identities: the workers' mounts and settings, and missing credentials."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.fields import LENIENT
from proofgate_operator.api.gateway import GatewaySpec
from proofgate_operator.build import networkpolicy, serviceaccounts, statefulset, worker_config
from proofgate_operator.build.naming import START_ANNOTATION, Manifest
from proofgate_operator.plan.reports import UnrenewedCredentials, WorkerReport, parse_worker_report
from proofgate_operator.workers.admin_port import AdminPort
from proofgate_operator.workers.reports import WorkerReports
from tests.gateways import DEFAULTS, SPEC, gateway
from tests.worker_files import load_worker_config
from tests.world import World

TOKENS = "/var/run/secrets/proofgate.dev/tokens"
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/eks"
ROLE = "arn:aws:iam::123456789012:role/proofgate"
PROVIDERS: dict[str, dict[str, Any]] = {
    "AWSWebIdentity": {"type": "Bedrock", "region": "eu-west-1", "baseURL": "https://bedrock.example"},
    "AWSPodIdentity": {"type": "Bedrock", "region": "eu-west-1", "baseURL": "https://bedrock.example"},
    "AzureWorkloadIdentity": {"type": "AzureOpenAI", "baseURL": "https://r.openai.azure.com/openai/v1"},
    "GCPWorkloadIdentity": {"type": "VertexAI", "project": "p", "location": "global"},
    "GCPMetadataServer": {"type": "VertexAI", "project": "p", "location": "global"},
}
FIELDS: dict[str, dict[str, Any]] = {
    "AWSWebIdentity": {"roleARN": ROLE},
    "AzureWorkloadIdentity": {"clientID": "client-1", "tenantID": "tenant-1"},
    "GCPWorkloadIdentity": {"audience": AUDIENCE, "serviceAccount": "w@p.iam.gserviceaccount.com"},
}
AUDIENCES = {
    "AWSWebIdentity": "sts.amazonaws.com",
    "AWSPodIdentity": "pods.eks.amazonaws.com",
    "AzureWorkloadIdentity": "api://AzureADTokenExchange",
    "GCPWorkloadIdentity": f"https:{AUDIENCE}",
}


def provider(kind: str, **fields: Any) -> dict[str, Any]:
    return {"name": "openai", **PROVIDERS[kind], "auth": {"type": kind, **fields}}


def template(*providers: dict[str, Any], **worker: Any) -> Manifest:
    wanted = gateway(providers=list(providers), worker=worker)
    found: Manifest = statefulset.statefulset(wanted, DEFAULTS, 1, "")["spec"]["template"]
    return found


@pytest.mark.parametrize("kind", AUDIENCES)
def test_workers_mount_a_token_for_the_cloud_and_none_for_the_api_server(tmp_path: Path, kind: str) -> None:
    wanted = provider(kind, **FIELDS.get(kind, {}))
    pod = template(wanted)["spec"]
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "identity-tokens"]
    (source,) = volume["projected"]["sources"]
    token = {"path": "openai", "audience": AUDIENCES[kind], "expirationSeconds": 3600}
    assert source == {"serviceAccountToken": token}
    mount = {"name": "identity-tokens", "mountPath": TOKENS, "readOnly": True}
    assert mount in pod["containers"][0]["volumeMounts"]
    assert pod["automountServiceAccountToken"] is False
    (read,) = load_worker_config(tmp_path, providers=[wanted]).settings.providers
    assert read.auth is not None
    assert (read.auth.type, read.auth.token_file) == (kind, f"{TOKENS}/openai")


def test_what_a_manifest_says_of_an_identity_reaches_the_workers() -> None:
    more = {"stsURL": "https://sts.example/v1/token", "iamCredentialsURL": "https://iam.example"}
    wanted = provider("GCPWorkloadIdentity", **FIELDS["GCPWorkloadIdentity"], **more)
    content = worker_config.worker_config(gateway(providers=[wanted]), 1 << 30, DEFAULTS)
    (written,) = content["providers"]
    assert written["auth"] == {**wanted["auth"], "tokenFile": f"{TOKENS}/openai"}


@pytest.mark.parametrize("kind", ["AWSWebIdentity", "AzureWorkloadIdentity", "GCPMetadataServer"])
def test_what_a_clouds_webhook_mounts_is_left_to_it(tmp_path: Path, kind: str) -> None:
    wanted = provider(kind)
    found = template(wanted)
    assert not [volume for volume in found["spec"]["volumes"] if volume["name"] == "identity-tokens"]
    asked = found["metadata"]["labels"].get("azure.workload.identity/use")
    assert asked == ("true" if kind == "AzureWorkloadIdentity" else None)
    (read,) = load_worker_config(tmp_path, providers=[wanted]).settings.providers
    assert read.auth is not None and read.auth.token_file is None


def test_an_identity_that_is_written_out_needs_no_webhook() -> None:
    found = template(provider("AzureWorkloadIdentity", **FIELDS["AzureWorkloadIdentity"]))
    assert "azure.workload.identity/use" not in found["metadata"]["labels"]


def test_the_service_account_has_the_annotations_that_clouds_read() -> None:
    annotations = {"eks.amazonaws.com/role-arn": ROLE}
    wanted = gateway(worker={"serviceAccount": {"annotations": annotations}})
    workers, haproxy = serviceaccounts.service_accounts(wanted)
    assert workers["metadata"]["name"] == "demo-worker"
    assert workers["metadata"]["annotations"] == annotations
    assert workers["automountServiceAccountToken"] is False
    assert "annotations" not in haproxy["metadata"]


def test_other_annotations_roll_the_workers_for_webhooks_read_them_when_a_pod_is_made() -> None:
    annotations = {"iam.gke.io/gcp-service-account": "worker@p.iam.gserviceaccount.com"}
    worlds = (World(), World(worker={"serviceAccount": {"annotations": annotations}}))
    digests = {
        world.settle().child("StatefulSet", "demo-worker")["spec"]["template"]["metadata"]["annotations"][
            START_ANNOTATION
        ]
        for world in worlds
    }
    assert len(digests) == len(worlds)


def test_workers_run_as_an_account_of_the_users_and_the_operator_makes_none() -> None:
    account = {"serviceAccount": {"name": "llm-gateway"}}
    assert template(SPEC["providers"][0], **account)["spec"]["serviceAccountName"] == "llm-gateway"
    found = serviceaccounts.service_accounts(gateway(worker=account))
    assert [manifest["metadata"]["name"] for manifest in found] == ["demo-haproxy"]


def test_workers_may_reach_every_endpoint_that_issues_credentials() -> None:
    policy = networkpolicy.worker_policy(gateway(providers=[provider("AWSPodIdentity")]), DEFAULTS)
    assert policy["spec"]["policyTypes"] == ["Ingress"]


def told(*found: tuple[str | None, int | None]) -> dict[int, WorkerReport]:
    """Return reports of workers, from each error and the seconds for which the credentials are valid."""
    return {
        number: parse_worker_report(
            {
                **{"not_ready": None, "in_flight": 0, "connections": 0},
                "credentials": [
                    {
                        **{"provider": "openai", "type": "AWSWebIdentity", "seconds_left": left},
                        **{
                            "error": error,
                            "message": "sts.eu-west-1.amazonaws.com answers HTTP 403 (AccessDenied)",
                        },
                    }
                ],
            }
        )
        for number, (error, left) in enumerate(found)
    }


@pytest.mark.parametrize(
    ("reports", "reason", "state"),
    [
        (((None, 3000), (None, 3000)), "Resolved", ""),
        ((("refused", None), ("refused", 0)), "CredentialsUnavailable", "2 of 2 workers have no credentials"),
        ((("refused", None), (None, 3000)), "CredentialsNotRenewed", "1 of 2 workers have no credentials"),
        (((None, 3000), ("refused", 900)), "CredentialsNotRenewed", "the current credentials stay in use"),
    ],
)
def test_credentials_that_do_not_come_are_a_fault_of_their_provider(
    reports: tuple[tuple[str | None, int | None], ...], reason: str, state: str
) -> None:
    world = World(providers=[provider("AWSWebIdentity", roleARN=ROLE)])
    world.settle()
    world.reports = told(*reports)
    for kind, name in (("StatefulSet", "demo-worker"), ("Deployment", "demo-haproxy")):
        world.child(kind, name)["status"] = {"readyReplicas": 2}
    _, found, message = world.condition(ConditionType.RESOLVED_REFS)
    assert found == reason
    assert state in message
    if state:
        assert "refused: sts.eu-west-1.amazonaws.com answers HTTP 403 (AccessDenied)" in message
    # There is no other provider, so no request can be served without credentials.
    without = world.condition(ConditionType.AVAILABLE)[2].startswith("no provider has a key")
    assert without == (reason == "CredentialsUnavailable")


def test_a_worker_that_waits_for_credentials_is_asked_again_soon() -> None:
    now, failing = [0.0], told(("refused", 0))[0]
    answers = [failing, failing, WorkerReport()]

    class Port(AdminPort):
        async def fetch_worker_report(self, pod: Manifest) -> WorkerReport:
            return answers.pop(0)

    workers = WorkerReports(Port(), clock=lambda: now[0])
    pod = {"metadata": {"name": "demo-worker-0", "uid": "1"}, "status": {"podIP": "10.0.0.1"}}
    left = []
    for now[0] in (0.0, 29.0, 30.0, 59.0, 60.0, 359.0):
        asyncio.run(workers.reports("team", "demo", [pod], frozenset()))
        left.append((len(answers), workers.awaits_reload("team", "demo")))
    assert left == [(2, True), (2, True), (1, True), (1, True), (0, False), (0, False)]


def test_a_report_that_is_none_of_credentials_is_passed_over() -> None:
    status = {"in_flight": 0, "connections": 0}
    for found in (None, "x", [None, 3, {"error": None}], {}):
        assert parse_worker_report({**status, "credentials": found}).unrenewed_credentials == ()
    (odd,) = parse_worker_report(
        {**status, "credentials": [{"error": 7, "seconds_left": "x"}]}
    ).unrenewed_credentials
    assert odd == UnrenewedCredentials("", False, "7: ")


@pytest.mark.parametrize(
    ("kind", "field", "url", "is_taken"),
    [
        ("AWSPodIdentity", "credentialsURL", "http://169.254.170.23/v1/credentials", True),
        ("AWSPodIdentity", "credentialsURL", "http://[fd00:ec2::23]/v1/credentials", True),
        ("AWSPodIdentity", "credentialsURL", "https://agent.example:8443", True),
        ("AWSPodIdentity", "credentialsURL", "http://169.254.169.254/v1/credentials", False),
        ("AWSWebIdentity", "stsURL", "https://vpce-1.sts.eu-west-1.vpce.amazonaws.com", True),
        ("AWSWebIdentity", "stsURL", "http://sts.example", False),
        ("AzureWorkloadIdentity", "authorityURL", "https://login.microsoftonline.us/", True),
        ("AzureWorkloadIdentity", "authorityURL", "https://login.example/?a=b", False),
    ],
)
def test_a_manifest_names_no_endpoint_that_workers_refuse(
    tmp_path: Path, kind: str, field: str, url: str, is_taken: bool
) -> None:
    wanted = provider(kind, **FIELDS.get(kind, {}), **{field: url})
    if is_taken:
        assert load_worker_config(tmp_path, providers=[wanted]).settings.providers[0].auth is not None
    else:
        with pytest.raises(ValidationError):
            gateway(providers=[wanted])


@pytest.mark.parametrize("kind", PROVIDERS)
def test_each_identity_reads_as_it_is_written(kind: str) -> None:
    wanted = provider(kind, **FIELDS.get(kind, {}))
    spec = yaml.safe_load(yaml.safe_dump({**SPEC, "providers": [wanted]}))
    (read,) = GatewaySpec.model_validate(spec, **LENIENT).providers
    assert read.auth is not None
    assert read.auth.to_document() == wanted["auth"]
