"""Who signs the tests' tokens: a pod that publishes its keys over https, with a certificate of the tests' authority."""

from __future__ import annotations

import base64
import json
import time
import uuid
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from e2e.kubernetes import IMAGES, Namespace, Object
from e2e.tests.authority import Authority

NAME = "issuer"
AUDIENCE = "proofgate"
_SERVER = """
import http.server, ssl
class Keys(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = open("/etc/issuer/jwks.json", "rb").read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("", 8443), Keys)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/etc/issuer/tls.crt", "/etc/issuer/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


class Issuer:
    """An issuer of tokens in a namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self._key = Ed25519PrivateKey.generate()
        self._host = f"{NAME}.{namespace.name}.svc.cluster.local"
        self.authority = Authority()
        self.url = f"https://{self._host}/"

    def section(self) -> dict[str, Any]:
        """What a gateway's spec says of it."""
        return {"issuers": [{"issuer": self.url, "audiences": [AUDIENCE], "jwksURL": f"{self.url}keys"}]}

    def token(self, tenant: str) -> str:
        """A token for a tenant, unlike any other."""
        claims = {"iss": self.url, "aud": AUDIENCE, "exp": int(time.time()) + 3600, "tenant": tenant}
        signed = f"{_encoded({'alg': 'EdDSA', 'kid': 'one'})}.{_encoded({**claims, 'jti': uuid.uuid4().hex})}"
        return f"{signed}.{_text(self._key.sign(signed.encode()))}"

    def manifests(self) -> list[Object]:
        """Its pod, its Service, its keys and its certificate."""
        public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        key = {"kty": "OKP", "crv": "Ed25519", "kid": "one", "alg": "EdDSA", "use": "sig", "x": _text(public)}
        keys = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{NAME}-keys"},
            "data": {"jwks.json": json.dumps({"keys": [key]})},
        }
        certificate, _ = self.authority.secret(f"{NAME}-tls", self._host)
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME},
            "spec": {"selector": {"app": NAME}, "ports": [{"port": 443, "targetPort": 8443}]},
        }
        return [keys, certificate, service, _pod()]


def _pod() -> Object:
    container = {
        "name": NAME,
        "image": IMAGES["workerImage"],
        "imagePullPolicy": "IfNotPresent",
        "command": ["/opt/proofgate/bin/python", "-c", _SERVER],
        "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "issuer", "mountPath": "/etc/issuer", "readOnly": True}],
    }
    sources = [{"configMap": {"name": f"{NAME}-keys"}}, {"secret": {"name": f"{NAME}-tls"}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "labels": {"app": NAME}},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "fsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "issuer", "projected": {"defaultMode": 0o440, "sources": sources}}],
        },
    }


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _encoded(section: dict[str, Any]) -> str:
    return _text(json.dumps(section).encode())
