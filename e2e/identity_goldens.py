"""Makes gateway/tests/identity_goldens.json: the requests for credentials that the clouds' libraries send.

botocore and azure-identity are in no image and no test environment (docs/reference/dependencies.md says why), so this
runs by itself, from the repository's root, in an environment that has them, google-auth and requests:

    PYTHONPATH=. python -m e2e.identity_goldens > gateway/tests/identity_goldens.json
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from unittest import mock
from urllib.parse import parse_qs

import azure.identity
import botocore
import botocore.session
import google.auth.version
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import WorkloadIdentityCredential
from botocore import credentials, utils
from google.auth import identity_pool
from google.auth.transport import requests as google_requests

TOKEN = "eyJhbGciOiJSUzI1NiJ9.subject.signature"
ROLE = "arn:aws:iam::123456789012:role/proofgate"
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/eks"
ACCOUNT = "worker@p.iam.gserviceaccount.com"
CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
#: Fields about the library itself or the machine.
PASSING = {"accept-encoding", "connection", "content-length", "host", "user-agent"}
PASSING |= {"amz-sdk-invocation-id", "amz-sdk-request", "x-goog-api-client", "x-ms-client-request-id"}


class Recorder(BaseHTTPRequestHandler):
    """Records each request, and sends an answer that all the libraries accept."""

    seen: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        """Records a request."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in PASSING}
        is_form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        sent: Any = {name: values[0] for name, values in parse_qs(body).items()} if is_form else body
        if headers.get("content-type") == "application/json":
            sent = json.loads(body)
        self.seen.append({"method": self.command, "path": self.path, "headers": headers, "body": sent})
        ends = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        if self.path == "/":
            action = "AssumeRoleWithWebIdentity"
            found = (
                f"<AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
                f"<Expiration>{ends}</Expiration>"
            )
            answer = (
                f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>'
                f"{found}</Credentials></{action}Result></{action}Response>"
            ).encode()
        else:
            answer = json.dumps(
                {
                    **{"access_token": "federated", "expires_in": 3600, "token_type": "Bearer"},
                    **{"accessToken": "impersonated", "expireTime": ends, "issued_token_type": "x"},
                    **{"AccessKeyId": "ASIA", "SecretAccessKey": "s", "Token": "t", "Expiration": ends},
                }
            ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/xml" if self.path == "/" else "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def of_sts(url: str, file: str) -> None:
    """The AssumeRoleWithWebIdentity request of botocore's chain."""
    variables = {
        **{"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_SESSION_NAME": "proofgate-pod"},
        **{"AWS_ENDPOINT_URL_STS": url, "AWS_DEFAULT_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true"},
    }
    with mock.patch.dict(os.environ, variables):
        found = botocore.session.Session().get_credentials()
        assert found is not None and found.get_frozen_credentials().access_key == "ASIA"


def of_agent(url: str, file: str) -> None:
    """The request of botocore to the agent of EKS Pod Identity."""
    variables = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/v1/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file,
    }
    provider = credentials.ContainerProvider(environ=variables, fetcher=utils.ContainerMetadataFetcher())
    assert provider.load().get_frozen_credentials().token == "t"


def of_entra(url: str, file: str) -> None:
    """The request of azure-identity to Entra ID. It uses only https, so its transport is redirected to our server."""

    class Turned(RequestsTransport):  # type: ignore[misc]
        def send(self, request: Any, **options: Any) -> Any:
            request.url = url + "/" + request.url.split("/", 3)[3]
            return super().send(request, **options)

    credential = WorkloadIdentityCredential(
        tenant_id="tenant-1",
        client_id="client-1",
        token_file_path=file,
        transport=Turned(),
        disable_instance_discovery=True,
    )
    credential.get_token("https://cognitiveservices.azure.com/.default")


def of_google(url: str, file: str) -> None:
    """The requests of google-auth for a federated identity that impersonates a service account."""
    federated = identity_pool.Credentials(  # type: ignore[no-untyped-call]
        audience=AUDIENCE,
        subject_token_type="urn:ietf:params:oauth:token-type:jwt",
        token_url=f"{url}/v1/token",
        credential_source={"file": file},
        service_account_impersonation_url=f"{url}/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken",
        scopes=[CLOUD_PLATFORM],
    )
    federated.refresh(google_requests.Request())  # type: ignore[no-untyped-call]
    assert federated.token == "impersonated"


def main() -> None:
    """Prints the goldens."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    found: dict[str, Any] = {
        "versions": {
            "botocore": botocore.__version__,
            "azure-identity": azure.identity.__version__,
            "google-auth": google.auth.version.__version__,
        }
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "token"
        file.write_text(TOKEN)
        for name, send in (("sts", of_sts), ("agent", of_agent), ("entra", of_entra), ("google", of_google)):
            Recorder.seen = []
            send(url, str(file))
            found[name] = [request for request in Recorder.seen if "openid-configuration" not in request["path"]]
    server.shutdown()
    json.dump(found, sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
