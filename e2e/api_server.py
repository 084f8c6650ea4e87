"""Requests to the cluster's API server over one open connection, without starting kubectl for each."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx

Object = dict[str, Any]

#: Seconds during which a request is repeated if the API server does not answer or is unavailable.
_PATIENCE = 60
#: 500 is not retried, because server-side apply also uses it for an unknown field.
_RETRIED = {429, 502, 503, 504}
_MANAGER = "proofgate-e2e"
#: Every requested kind: its API path, its resource, and the other names that kubectl knows.
_RESOURCES = (
    ("/api/v1", "namespaces", "namespace"),
    ("/api/v1", "persistentvolumes", "persistentvolume", "pv"),
    ("/api/v1", "configmaps", "configmap"),
    ("/api/v1", "events", "event"),
    ("/api/v1", "persistentvolumeclaims", "persistentvolumeclaim", "pvc"),
    ("/api/v1", "pods", "pod"),
    ("/api/v1", "secrets", "secret"),
    ("/api/v1", "serviceaccounts", "serviceaccount"),
    ("/api/v1", "services", "service"),
    ("/apis/apps/v1", "deployments", "deployment"),
    ("/apis/apps/v1", "statefulsets", "statefulset"),
    ("/apis/autoscaling/v2", "horizontalpodautoscalers", "horizontalpodautoscaler", "hpa"),
    ("/apis/batch/v1", "cronjobs", "cronjob"),
    ("/apis/batch/v1", "jobs", "job"),
    ("/apis/coordination.k8s.io/v1", "leases", "lease"),
    ("/apis/networking.k8s.io/v1", "networkpolicies", "networkpolicy"),
    ("/apis/policy/v1", "poddisruptionbudgets", "poddisruptionbudget"),
    ("/apis/proofgate.dev/v1alpha1", "gatewaytenants", "gatewaytenant", "gwt"),
    ("/apis/proofgate.dev/v1alpha1", "governancegateways", "governancegateway", "ggw"),
    ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", "rolebinding"),
)
_PATHS = {name: (prefix, plural) for prefix, plural, *others in _RESOURCES for name in (plural, *others)}
_OF_NO_NAMESPACE = {"namespaces", "persistentvolumes"}


class ApiError(RuntimeError):
    """A refusal of the API server, with its text; `status` is the HTTP status."""

    def __init__(self, method: str, path: str, answer: httpx.Response) -> None:
        try:
            told = answer.json()["message"]
        except (ValueError, KeyError, TypeError):
            told = answer.text[:1000]
        super().__init__(f"{method} {path}: {answer.status_code}: {told}")
        self.status = answer.status_code


def path_of(kind: str, namespace: str | None, name: str = "") -> str:
    """The path of objects of a kind, by any of kubectl's names for it, or of one of them."""
    prefix, plural = _PATHS[kind.lower()]
    home = "" if plural in _OF_NO_NAMESPACE else f"/namespaces/{namespace}"
    return f"{prefix}{home}/{plural}" + (f"/{name}" if name else "")


class ApiServer:
    """The API server that a kubeconfig names, in its current context."""

    def __init__(self, kubeconfig: Path) -> None:
        # The import takes half a second, and not every caller needs it.
        from kubernetes import client, config

        self._configuration = client.Configuration()
        config.load_kube_config(str(kubeconfig), client_configuration=self._configuration)
        trusted = ssl.create_default_context(cafile=self._configuration.ssl_ca_cert)
        if self._configuration.cert_file:
            trusted.load_cert_chain(self._configuration.cert_file, self._configuration.key_file)
        self._http = httpx.Client(base_url=self._configuration.host, verify=trusted, timeout=_PATIENCE, trust_env=False)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Sends a request, repeats it while the server is unavailable, and returns the answer. Raises ApiError."""
        headers = {"Content-Type": content_type}
        token = self._configuration.get_api_key_with_prefix("authorization", alias="BearerToken")
        if token:
            headers["Authorization"] = token
        content = None if body is None else json.dumps(body).encode()
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                answer = self._http.request(method, path, content=content, headers=headers, params=dict(query or {}))
            except httpx.TransportError:
                if time.monotonic() > deadline:
                    raise
            else:
                if answer.is_success:
                    found: Object = answer.json()
                    return found
                if answer.status_code not in _RETRIED or time.monotonic() > deadline:
                    raise ApiError(method, path, answer)
            time.sleep(0.5)

    def get(self, kind: str, namespace: str | None, name: str) -> Object | None:
        """The object, or None."""
        return self._unless_gone("GET", path_of(kind, namespace, name))

    def list(self, kind: str, namespace: str | None, selector: str = "", fields: str = "") -> list[Object]:
        """All objects of a kind in a namespace that a label and a field selector select."""
        query = {"labelSelector": selector, "fieldSelector": fields}
        answer = self.request(
            "GET", path_of(kind, namespace), query={name: text for name, text in query.items() if text}
        )
        items: list[Object] = answer["items"]
        return items

    def apply(self, namespace: str | None, manifest: Object) -> Object:
        """Applies a manifest. For the product's kinds, the manifest replaces the whole spec."""
        head = manifest["metadata"]
        home = head.get("namespace", namespace)
        path = path_of(manifest["kind"], home, head["name"])
        if manifest["apiVersion"].startswith("proofgate.dev/") and self.get(manifest["kind"], home, head["name"]):
            replaced = [{"op": "replace", "path": "/spec", "value": manifest["spec"]}]
            return self.request("PATCH", path, replaced, content_type="application/json-patch+json")
        query = {"fieldManager": _MANAGER, "force": "true", "fieldValidation": "Strict"}
        return self.request("PATCH", path, manifest, content_type="application/apply-patch+yaml", query=query)

    def patch(self, kind: str, namespace: str | None, name: str, change: Object) -> Object:
        """Applies a merge patch."""
        path = path_of(kind, namespace, name)
        return self.request("PATCH", path, change, content_type="application/merge-patch+json")

    def delete(self, kind: str, namespace: str | None, name: str, grace: int | None = None) -> None:
        """Starts the deletion of an object, if it exists, with `grace` seconds of grace if given."""
        options = {"propagationPolicy": "Background", **({} if grace is None else {"gracePeriodSeconds": grace})}
        self._unless_gone("DELETE", path_of(kind, namespace, name), options)

    def _unless_gone(self, method: str, path: str, body: Any = None) -> Object | None:
        try:
            return self.request(method, path, body)
        except ApiError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise


@cache
def api_server(kubeconfig: Path) -> ApiServer:
    """The shared connection of this process to an API server."""
    return ApiServer(kubeconfig)
