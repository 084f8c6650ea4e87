"""Workers with an identity in three clouds and without a key: their requests for credentials, and to models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from e2e.cloud_upstream import ACCOUNT, AUDIENCE, LOCATION, PROJECT, REGION, ROLE, CloudUpstream, cloud_upstream
from e2e.local_gateway import KEYS, LocalGateway
from e2e.programs import PATIENCE, wait_until

HELLO: list[Any] = [{"role": "user", "content": "hello there"}]
#: The prefix of each kind's issued credentials.
ISSUED = {
    "AWSWebIdentity": "sts-issued-",
    "AWSPodIdentity": "pod-issued-",
    "AzureWorkloadIdentity": "entra-issued-",
    "GCPWorkloadIdentity": "impersonated-issued-",
    "GCPMetadataServer": "metadata-issued-",
}
#: The remaining lifetime at a renewal is many times the duration of a renewal, even on a busy machine.
SHORT_SECONDS = 60


def provider_of(kind: str, upstream: CloudUpstream, token: Path) -> dict[str, Any]:
    """A provider with an identity of this kind, in the form that a manifest is converted to."""
    url, file = upstream.url, {"tokenFile": str(token)}
    bedrock = {"type": "Bedrock", "region": REGION, "baseURL": url}
    vertex = {"type": "VertexAI", "project": PROJECT, "location": LOCATION, "baseURL": f"{url}/v1"}
    behind: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "AWSWebIdentity": (bedrock, {"roleARN": ROLE, "stsURL": f"{url}/sts", **file}),
        "AWSPodIdentity": (bedrock, {"credentialsURL": f"{url}/v1/credentials", **file}),
        "AzureWorkloadIdentity": (
            {"type": "AzureOpenAI", "baseURL": f"{url}/v1"},
            {"clientID": "client-1", "tenantID": "tenant-1", "authorityURL": url, **file},
        ),
        "GCPWorkloadIdentity": (
            vertex,
            {
                **{"audience": AUDIENCE, "serviceAccount": ACCOUNT},
                **{"stsURL": f"{url}/v1/token", "iamCredentialsURL": url, **file},
            },
        ),
        "GCPMetadataServer": (vertex, {}),
    }
    fields, auth = behind[kind]
    return {"name": kind.lower(), **fields, "auth": {"type": kind, **auth}}


@contextmanager
def gateway_at(folder: Path, upstream: CloudUpstream, *kinds: str) -> Iterator[LocalGateway]:
    """A worker with a provider of each kind, and a model with the kind's name for each provider."""
    folder.mkdir(exist_ok=True)
    gateway, token = LocalGateway(folder), folder / "token"
    token.write_text(upstream.subject + "\n")
    names = {kind: "gemini-3-pro" if kind.startswith("GCP") else "gpt" for kind in kinds}
    models = [{"name": kind.lower(), "provider": kind.lower(), "upstreamModel": name} for kind, name in names.items()]
    gateway.settings = {
        "providers": [provider_of(kind, upstream, token) for kind in kinds],
        "models": models,
    }
    try:
        gateway.write_configuration()
        gateway.start_worker({"GCE_METADATA_HOST": upstream.url.removeprefix("http://")})
        yield gateway
    finally:
        gateway.stop()


def chat(gateway: LocalGateway, kind: str) -> str:
    with openai.OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:
        completion = client.chat.completions.create(model=kind.lower(), messages=HELLO)
    return completion.choices[0].message.content or ""


def assert_tells_no_secret(gateway: LocalGateway, upstream: CloudUpstream) -> None:
    assert gateway.worker is not None
    told = gateway.worker.log.read_text() + gateway.admin_text("/status") + gateway.admin_text("/metrics")
    told += json.dumps(gateway.records())
    assert not any(secret in told for secret in upstream.secrets)


def sources(gateway: LocalGateway) -> dict[str, dict[str, Any]]:
    return {source["type"]: source for source in gateway.status()["credentials"]}


@pytest.fixture(scope="module")
def upstream() -> Iterator[CloudUpstream]:
    with cloud_upstream() as found:
        yield found


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, upstream: CloudUpstream) -> Iterator[LocalGateway]:
    with gateway_at(tmp_path_factory.mktemp("clouds"), upstream, *ISSUED) as found:
        yield found


@pytest.mark.parametrize("kind", ISSUED)
def test_a_request_carries_what_the_cloud_issued(gateway: LocalGateway, upstream: CloudUpstream, kind: str) -> None:
    assert chat(gateway, kind)
    _, status, used = upstream.requests[-1]
    assert status == 200
    assert used.startswith(ISSUED[kind])


def test_status_and_metrics_say_for_how_long_and_nothing_says_what(
    gateway: LocalGateway, upstream: CloudUpstream
) -> None:
    found = sources(gateway)
    assert set(found) == set(ISSUED)
    assert all(source["error"] is None and 3000 < source["seconds_left"] <= 3600 for source in found.values())
    metrics = gateway.admin_text("/metrics")
    assert 'proofgate_credential_renewals_total{provider="awswebidentity",result="renewed"} 1' in metrics
    assert 'proofgate_credential_seconds_left{provider="gcpmetadataserver"} 3' in metrics
    assert metrics.endswith("# EOF\n")
    assert_tells_no_secret(gateway, upstream)


def test_credentials_are_renewed_with_the_newest_token_and_no_request_fails(tmp_path: Path) -> None:
    with cloud_upstream() as upstream:
        upstream.lifetime_seconds = SHORT_SECONDS
        with gateway_at(tmp_path, upstream, *ISSUED) as gateway:
            assert all(chat(gateway, kind) for kind in ISSUED)
            # Replace the token file, as the kubelet does.
            upstream.subject = "eyJ.service-account-2.signature"
            (tmp_path / "token.new").write_text(upstream.subject)
            (tmp_path / "token.new").replace(tmp_path / "token")

            def renewed() -> bool:
                assert all(chat(gateway, kind) for kind in ISSUED)
                used = {used for _, _, used in upstream.requests}
                return all(sum(text.startswith(prefix) for text in used) >= 2 for prefix in ISSUED.values())

            wait_until(renewed, PATIENCE, "requests to each carry what was issued later")
            assert {status for _, status, _ in upstream.requests} == {200}
            assert_tells_no_secret(gateway, upstream)


@pytest.mark.parametrize("kind", ["AWSWebIdentity", "AzureWorkloadIdentity"])
def test_without_credentials_requests_are_refused_until_they_come(tmp_path: Path, kind: str) -> None:
    with cloud_upstream() as upstream:
        upstream.is_down = True
        with gateway_at(tmp_path, upstream, kind) as gateway:
            with pytest.raises(openai.InternalServerError) as refused:
                chat(gateway, kind)
            assert (refused.value.status_code, refused.value.code) == (503, "provider_key_missing")
            wait_until(lambda: sources(gateway)[kind]["error"] == "unavailable", PATIENCE, "the failure is reported")
            assert "answers HTTP 503" in sources(gateway)[kind]["message"]
            assert 'result="failed"} 0' not in gateway.admin_text("/metrics")
            upstream.is_down = False
            wait_until(lambda: sources(gateway)[kind]["error"] is None, PATIENCE, "credentials come")
            assert chat(gateway, kind)
            assert {status for _, status, _ in upstream.requests} == {200}
            assert_tells_no_secret(gateway, upstream)


def test_what_is_refused_is_told_and_what_there_is_serves_until_its_end(tmp_path: Path) -> None:
    kind = "AWSPodIdentity"
    with cloud_upstream() as upstream:
        upstream.lifetime_seconds = SHORT_SECONDS
        with gateway_at(tmp_path, upstream, kind) as gateway:
            assert chat(gateway, kind)
            # From now on, the agent accepts a different token than the pod's.
            upstream.subject = "eyJ.of-somebody-else.signature"
            wait_until(lambda: sources(gateway)[kind]["error"] == "refused", PATIENCE, "the refusal is reported")

            def is_refused() -> bool:
                try:
                    chat(gateway, kind)
                except openai.InternalServerError as error:
                    # A request in flight when the credentials expire may fail at the provider.
                    assert error.code in ("provider_key_missing", "upstream_auth_failed")
                    return error.code == "provider_key_missing"
                return False

            wait_until(is_refused, PATIENCE, "what there was has ended")
            assert sources(gateway)[kind]["seconds_left"] == 0
