"""Cloud identities: the request to each endpoint, the use of its answer, and secrets that are never shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from conftest import refusing_port
from pydantic import SecretStr, ValidationError
from token_endpoints import SECRET, SERVICE_ACCOUNT_TOKEN, Endpoints, token_endpoints

from proofgate.config.auth import Auth
from proofgate.identity.aws import PodIdentity, WebIdentity, session_name, sts_url
from proofgate.identity.azure import EntraWorkloadIdentity
from proofgate.identity.endpoint import MAX_RESPONSE_BYTES
from proofgate.identity.google import FederatedIdentity, MetadataServer, ServiceAccountKey
from proofgate.identity.issued_credentials import AccessToken, AwsSession, IdentityError
from proofgate.identity.sources import Identity

ROLE = "arn:aws:iam::123456789012:role/proofgate"
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/eks"
ACCOUNT = "worker@p.iam.gserviceaccount.com"
VARIABLES = (
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_AUTHORITY_HOST",
    "GCE_METADATA_HOST",
)


@pytest.fixture(autouse=True)
def _outside_of_clouds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def endpoints() -> Iterator[Endpoints]:
    with token_endpoints() as found:
        yield found


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(SERVICE_ACCOUNT_TOKEN + "\n")
    return file


def auth(kind: str, **fields: Any) -> Auth:
    return Auth.model_validate({"type": kind, **fields})


def identities(endpoints: Endpoints, token_file: Path) -> dict[str, Identity]:
    """One identity of each kind."""
    token = {"tokenFile": str(token_file)}
    url = endpoints.url
    web = auth("AWSWebIdentity", roleARN=ROLE, stsURL=f"{url}/sts", **token)
    pod = auth("AWSPodIdentity", credentialsURL=f"{url}/v1/credentials", **token)
    azure = {"clientID": "client-1", "tenantID": "tenant-1", "authorityURL": url}
    google = {"audience": AUDIENCE, "stsURL": f"{url}/v1/token", **token}
    impersonated = auth("GCPWorkloadIdentity", serviceAccount=ACCOUNT, iamCredentialsURL=url, **google)
    return {
        "AWSWebIdentity": WebIdentity(web, "eu-west-1"),
        "AWSPodIdentity": PodIdentity(pod),
        "AzureWorkloadIdentity": EntraWorkloadIdentity(auth("AzureWorkloadIdentity", **azure, **token)),
        "GCPWorkloadIdentity": FederatedIdentity(auth("GCPWorkloadIdentity", **google)),
        "impersonated": FederatedIdentity(impersonated),
    }


#: The token with which the golden files were written (e2e/identity_goldens.py).
GOLDEN_TOKEN = "eyJhbGciOiJSUzI1NiJ9.subject.signature"
KINDS = ("AWSWebIdentity", "AWSPodIdentity", "AzureWorkloadIdentity", "GCPWorkloadIdentity", "impersonated")
ODD_LIFETIMES = ("null", "true", "NaN", "Infinity", "-1", "1" + "0" * 400, '"x"', "[]")
ODD_ENDS = ("null", "[]", "0", '"9999-12-31"', '"2026-13-01T00:00:00Z"', '"now"')
AGENTS = '{"AccessKeyId": "a", "SecretAccessKey": "a", "Token": "a", "Expiration": ENDS}'
ISSUED = ("entra", "federated", "impersonated")


def failure(identity: Identity) -> IdentityError:
    with pytest.raises(IdentityError) as caught:
        identity.fetch()
    assert SECRET not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_role_is_taken_on_with_the_token_of_the_service_account(
    endpoints: Endpoints, token_file: Path, kind: str
) -> None:
    issued = identities(endpoints, token_file)[kind].fetch()
    assert isinstance(issued, AwsSession)
    assert issued.access_key_id == "ASIAEXAMPLE"
    assert issued.secret_access_key == f"{SECRET}/key"
    assert issued.session_token == f"{SECRET}/session=="
    assert 3500 < issued.lifetime_seconds <= 3600


@pytest.mark.parametrize(
    ("kind", "token"),
    [(kind, f"{SECRET}-{whose}") for kind, whose in zip(KINDS[2:], ISSUED, strict=True)],
)
def test_an_access_token_is_had_for_the_token_of_the_service_account(
    endpoints: Endpoints, token_file: Path, kind: str, token: str
) -> None:
    issued = identities(endpoints, token_file)[kind].fetch()
    assert isinstance(issued, AccessToken)
    assert issued.text == token
    assert 3500 < issued.lifetime_seconds <= 3600


def test_what_the_webhooks_of_clouds_set_is_enough(
    endpoints: Endpoints, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ROLE_ARN": ROLE,
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token_file),
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{endpoints.url}/v1/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token_file),
        "AZURE_CLIENT_ID": "client-1",
        "AZURE_TENANT_ID": "tenant-1",
        "AZURE_FEDERATED_TOKEN_FILE": str(token_file),
        "AZURE_AUTHORITY_HOST": f"{endpoints.url}/",
        "GCE_METADATA_HOST": endpoints.url.removeprefix("http://"),
    }.items():
        monkeypatch.setenv(name, value)
    web = auth("AWSWebIdentity", stsURL=f"{endpoints.url}/sts")
    assert WebIdentity(web, "eu-west-1").fetch().access_key_id == "ASIAEXAMPLE"
    assert PodIdentity(auth("AWSPodIdentity")).fetch().access_key_id == "ASIAEXAMPLE"
    assert EntraWorkloadIdentity(auth("AzureWorkloadIdentity")).fetch().text == f"{SECRET}-entra"
    assert MetadataServer().fetch().text == f"{SECRET}-metadata"


@pytest.mark.parametrize("kind", KINDS)
def test_the_token_file_is_read_anew_each_time(endpoints: Endpoints, token_file: Path, kind: str) -> None:
    identity = identities(endpoints, token_file)[kind]
    token_file.write_text("eyJ.of-before.signature")
    assert failure(identity).code == "refused"
    token_file.write_text(SERVICE_ACCOUNT_TOKEN)
    assert identity.fetch().lifetime_seconds > 0


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("AWSWebIdentity", "InvalidIdentityToken"),
        ("AWSPodIdentity", "ResourceNotFoundException"),
        ("AzureWorkloadIdentity", "invalid_client, AADSTS700213"),
        ("GCPWorkloadIdentity", "invalid_grant"),
        ("impersonated", "invalid_grant"),
    ],
)
def test_a_refusal_is_told_by_its_code_alone(
    endpoints: Endpoints, token_file: Path, kind: str, told: str
) -> None:
    token_file.write_text("eyJ.of-another.signature")
    refused = failure(identities(endpoints, token_file)[kind])
    assert refused.code == "refused"
    assert f"({told})" in str(refused)
    assert "of-another" not in str(refused)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (503, SECRET, "unavailable"),
        (429, SECRET, "unavailable"),
        (302, SECRET, "refused"),
        (403, f'{{"error": "{SECRET}"}}', "refused"),
        (200, SECRET, "bad_answer"),
        (200, "[]", "bad_answer"),
        (200, "{}", "bad_answer"),
        (200, '<!DOCTYPE a [<!ENTITY b "b">]><a>&b;</a>', "bad_answer"),
        (200, "[" * 50_000, "bad_answer"),
        *((200, f'{{"access_token": "a", "expires_in": {ends}}}', "bad_answer") for ends in ODD_LIFETIMES),
        *((200, AGENTS.replace("ENDS", ends), "bad_answer") for ends in ODD_ENDS),
        (200, " " * (MAX_RESPONSE_BYTES + 1), "too_large"),
    ],
)
def test_an_answer_that_is_none_says_nothing_of_itself(
    endpoints: Endpoints, token_file: Path, kind: str, status: int, body: str, code: str
) -> None:
    endpoints.scripted = (status, body.encode())
    assert failure(identities(endpoints, token_file)[kind]).code == code


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ahead", [-7200.0, 7200.0])
def test_the_end_is_reckoned_by_the_clock_of_whoever_issues(
    endpoints: Endpoints, token_file: Path, kind: str, ahead: float
) -> None:
    endpoints.ahead = ahead
    assert 3500 < identities(endpoints, token_file)[kind].fetch().lifetime_seconds <= 3601


@pytest.mark.parametrize("kind", KINDS)
def test_a_clock_that_is_off_is_named_beside_a_refusal(
    endpoints: Endpoints, token_file: Path, kind: str
) -> None:
    endpoints.ahead = -7200.0
    token_file.write_text("eyJ.of-another.signature")
    assert re.search(r"clock differs by \+7\d{3} s", str(failure(identities(endpoints, token_file)[kind])))


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_ended_already_is_nothing(endpoints: Endpoints, token_file: Path, kind: str) -> None:
    endpoints.lifetime = -1
    assert failure(identities(endpoints, token_file)[kind]).code == "bad_answer"


@pytest.mark.parametrize(
    ("kind", "library", "paths"),
    [
        ("AWSWebIdentity", "sts", {"/sts": "/"}),
        ("AWSPodIdentity", "agent", {}),
        ("AzureWorkloadIdentity", "entra", {}),
        ("impersonated", "google", {}),
    ],
)
def test_what_is_asked_is_what_the_clouds_own_libraries_ask(
    endpoints: Endpoints,
    token_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    library: str,
    paths: dict[str, str],
) -> None:
    monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "proofgate-pod")
    theirs = json.loads((Path(__file__).parent / "identity_goldens.json").read_text())[library]
    ours = identities(endpoints, token_file)[kind]
    ours.fetch()
    assert len(endpoints.asked) == len(theirs)
    for (method, path, headers, body), golden in zip(endpoints.asked, theirs, strict=True):
        kind_of_body = headers.get("content-type", "")
        sent: Any = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        sent = json.loads(body) if kind_of_body == "application/json" else sent or ""
        wanted = golden["body"]
        if isinstance(wanted, dict):
            wanted = {name: value for name, value in wanted.items() if value is not None}
        said = json.dumps(sent).replace(SERVICE_ACCOUNT_TOKEN, GOLDEN_TOKEN)
        assert (method, paths.get(path, path)) == (golden["method"], golden["path"])
        assert json.loads(said) == wanted
        assert kind_of_body == golden["headers"].get("content-type", "").partition(";")[0]
        bearer = headers.get("authorization", "")
        bearer = bearer.replace(SERVICE_ACCOUNT_TOKEN, GOLDEN_TOKEN).replace(
            f"{SECRET}-federated", "federated"
        )
        assert bearer == golden["headers"].get("authorization", "")


@pytest.mark.parametrize("content", [None, "", "two\nlines", "a" * 70_000, "\u00e4"])
def test_a_file_without_a_token_is_told_and_nobody_is_asked(
    endpoints: Endpoints, token_file: Path, content: str | None
) -> None:
    token_file.unlink()
    if content is not None:
        token_file.write_text(content)
    for identity in identities(endpoints, token_file).values():
        assert failure(identity).code == "token_file"
    assert endpoints.asked == []


def test_what_is_neither_configured_nor_in_the_environment_is_named() -> None:
    told = {
        str(failure(WebIdentity(auth("AWSWebIdentity"), "eu-west-1"))),
        str(failure(PodIdentity(auth("AWSPodIdentity")))),
        str(failure(EntraWorkloadIdentity(auth("AzureWorkloadIdentity")))),
    }
    assert told == {
        "neither auth.roleARN nor AWS_ROLE_ARN is set",
        "neither auth.tokenFile nor AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE names the token's file",
        "neither auth.tenantID nor AZURE_TENANT_ID is set",
    }


def test_nobody_is_asked_without_tls_but_this_machine_and_the_agents(
    token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", "metadata.example.com")
    assert failure(MetadataServer()).code == "not_configured"
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.169.254/v1/credentials")
    agent = auth("AWSPodIdentity", tokenFile=str(token_file))
    assert failure(PodIdentity(agent)).code == "not_configured"
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "http://login.example.com/")
    entra = auth("AzureWorkloadIdentity", clientID="c", tenantID="t", tokenFile=str(token_file))
    assert failure(EntraWorkloadIdentity(entra)).code == "not_configured"


@pytest.mark.parametrize(
    ("field", "url"),
    [
        ("stsURL", "http://sts.example.com"),
        ("authorityURL", "http://10.0.0.1"),
        ("iamCredentialsURL", "ftp://example.com"),
        ("stsURL", "https://sts.example.com/?a=b"),
        ("stsURL", "https://me:key@sts.example.com"),
        ("credentialsURL", "http://169.254.169.254/latest"),
        ("stsURL", "http://169.254.170.23/"),
    ],
)
def test_an_endpoint_that_is_read_on_its_way_is_refused(field: str, url: str) -> None:
    with pytest.raises(ValidationError):
        auth("AWSWebIdentity", **{field: url})


@pytest.mark.parametrize(
    "url", ["http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/v1/credentials", "http://[::1]:1/"]
)
def test_the_agents_of_a_node_are_asked_as_they_are(url: str) -> None:
    assert auth("AWSPodIdentity", credentialsURL=url).credentials_url == url.rstrip("/")


def test_who_is_away_is_unreachable(token_file: Path) -> None:
    with refusing_port() as port:
        web = auth(
            "AWSWebIdentity", roleARN=ROLE, stsURL=f"http://127.0.0.1:{port}", tokenFile=str(token_file)
        )
        assert failure(WebIdentity(web, "eu-west-1")).code == "unreachable"


@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("eu-west-1", "https://sts.eu-west-1.amazonaws.com"),
        ("us-gov-west-1", "https://sts.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn"),
        ("us-iso-east-1", "https://sts.us-iso-east-1.c2s.ic.gov"),
        ("us-isob-east-1", "https://sts.us-isob-east-1.sc2s.sgov.gov"),
        ("eusc-de-east-1", "https://sts.eusc-de-east-1.amazonaws.eu"),
    ],
)
def test_sts_is_asked_in_the_providers_region(region: str, url: str) -> None:
    assert sts_url(region) == url


def test_a_sessions_name_is_one_that_sts_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ROLE_SESSION_NAME", raising=False)
    assert session_name().startswith("proofgate-")
    monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "a b/" + "c" * 100)
    assert session_name() == "a-b-" + "c" * 60


def test_a_private_key_that_is_none_is_told_without_it() -> None:
    key = {"client_email": "a@b", "private_key": SECRET, "token_uri": "http://127.0.0.1:1/token"}
    assert failure(ServiceAccountKey(SecretStr(json.dumps(key)))).code == "bad_key"
