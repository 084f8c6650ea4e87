"""Requests to an API server over one kept connection: kubectl would start a process for each request."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import httpx

Manifest = dict[str, Any]

#: Timeout of one request, in seconds.
_PATIENCE = 120
_MANAGER = "user"
_NAMESPACED = (
    ("/api/v1", "ConfigMap", "configmaps", "cm"),
    ("/api/v1", "Event", "events"),
    ("/api/v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc"),
    ("/api/v1", "Pod", "pods"),
    ("/api/v1", "Secret", "secrets"),
    ("/api/v1", "Service", "services", "svc"),
    ("/api/v1", "ServiceAccount", "serviceaccounts", "sa"),
    ("/apis/apps/v1", "Deployment", "deployments", "deploy"),
    ("/apis/apps/v1", "StatefulSet", "statefulsets", "sts"),
    ("/apis/batch/v1", "CronJob", "cronjobs"),
    ("/apis/batch/v1", "Job", "jobs"),
    ("/apis/coordination.k8s.io/v1", "Lease", "leases"),
    ("/apis/networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol"),
    ("/apis/policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb"),
    ("/apis/proofgate.dev/v1alpha1", "GatewayTenant", "gatewaytenants", "gwt"),
    ("/apis/proofgate.dev/v1alpha1", "GovernanceGateway", "governancegateways", "ggw"),
    ("/apis/rbac.authorization.k8s.io/v1", "Role", "roles"),
    ("/apis/rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
)
_OF_THE_CLUSTER = (
    ("/api/v1", "Namespace", "namespaces"),
    (
        "/apis/admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ),
    ("/apis/apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "crd"),
    ("/apis/rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
    ("/apis/rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
    ("/apis/storage.k8s.io/v1", "StorageClass", "storageclasses"),
)
#: The API path, the plural and whether a kind has namespaces, by each name that kubectl accepts for the kind.
_RESOURCES = {
    name.lower(): (prefix, plural, namespaced)
    for known, namespaced in ((_NAMESPACED, True), (_OF_THE_CLUSTER, False))
    for prefix, kind, plural, *short in known
    for name in (kind, plural, *short)
}


class Refused(AssertionError):
    """A request that the API server refused, with the server's message."""

    def __init__(self, request: str, status: int, message: str) -> None:
        super().__init__(f"{request}: {status}: {message}")
        self.status = status
        self.message = message


def path_of(kind: str, name: str = "", namespace: str = "", subresource: str = "") -> str:
    """Return the path of an object, or of all objects of its kind; without a namespace, of all namespaces."""
    prefix, plural, namespaced = _RESOURCES[kind.lower()]
    home = f"/namespaces/{namespace}" if namespaced and namespace else ""
    return "/".join(filter(None, [f"{prefix}{home}/{plural}", name, subresource]))


def resource_of(kind: str) -> str:
    """Return a kind as kubectl writes it before an object's name: `deployment.apps`."""
    prefix, plural, _ = _RESOURCES[kind.lower()]
    group = prefix.split("/")[2] if prefix.startswith("/apis/") else ""
    singular = next(found[1].lower() for found in (*_NAMESPACED, *_OF_THE_CLUSTER) if found[2] == plural)
    return f"{singular}.{group}" if group else singular


class Api:
    """A client of an API server for one user."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        # The API server makes its certificate when it starts, so no CA can verify it.
        self._http = httpx.Client(
            base_url=url, headers=headers, verify=False, timeout=_PATIENCE, trust_env=False
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Manifest:
        """Send a request and return its answer; raises `Refused`."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        answer = self._http.request(
            method, path, content=content, headers={"Content-Type": content_type}, params=dict(query or {})
        )
        if answer.is_success:
            found: Manifest = answer.json()
            return found
        try:
            message = answer.json()["message"]
        except (ValueError, KeyError, TypeError):
            message = answer.text
        raise Refused(f"{method} {path}", answer.status_code, message)

    def get(self, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """Read an object; return None if it does not exist."""
        return self._unless_gone("GET", path_of(kind, name, namespace))

    def find(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> list[Manifest]:
        """Read the objects of a kind with these labels and fields."""
        asked = {"labelSelector": selector, "fieldSelector": fields}
        query = {name: text for name, text in asked.items() if text}
        items: list[Manifest] = self.request("GET", path_of(kind, namespace=namespace), query=query)["items"]
        return items

    def apply(self, manifest: Manifest, namespace: str = "") -> Manifest:
        """Apply a user's manifest server-side."""
        path = path_of(manifest["kind"], manifest["metadata"]["name"], namespace)
        query = {"fieldManager": _MANAGER, "force": "true", "fieldValidation": "Strict"}
        return self.request("PATCH", path, manifest, content_type="application/apply-patch+yaml", query=query)

    def refusal(self, manifest: Manifest, namespace: str) -> str:
        """Send the manifest as a dry run that must fail; return the API server's message."""
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        query = {"fieldValidation": "Strict", "dryRun": "All"}
        try:
            live = self.get(kind, name, namespace)
            if live is None:
                self.request("POST", path_of(kind, namespace=namespace), manifest, query=query)
            else:
                wanted = {**manifest, "metadata": live["metadata"]}
                self.request("PUT", path_of(kind, name, namespace), wanted, query=query)
        except Refused as refused:
            return refused.message
        raise AssertionError(f"accepted: {manifest}")

    def patch(
        self, kind: str, name: str, change: Manifest, namespace: str = "", subresource: str = ""
    ) -> Manifest:
        """Apply a merge patch."""
        path = path_of(kind, name, namespace, subresource)
        return self.request("PATCH", path, change, content_type="application/merge-patch+json")

    def patch_status(self, kind: str, name: str, status: Manifest, namespace: str) -> None:
        """Write a status as the responsible component would; ignore an object that does not exist."""
        try:
            self.patch(kind, name, {"status": status}, namespace, "status")
        except Refused as refused:
            if refused.status != httpx.codes.NOT_FOUND:
                raise

    def delete(self, kind: str, name: str, namespace: str = "", grace: int | None = None) -> None:
        """Start to delete an object, if it exists."""
        options = {"propagationPolicy": "Background"} | (
            {} if grace is None else {"gracePeriodSeconds": grace}
        )
        self._unless_gone("DELETE", path_of(kind, name, namespace), options)

    def token(self, account: str, namespace: str) -> str:
        """Return a token of a service account."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self.request("POST", path_of("ServiceAccount", account, namespace, "token"), asked)
        return str(answer["status"]["token"])

    def may(self, user: str, verb: str, resource: str, namespace: str = "", name: str = "") -> bool:
        """Return whether a user may do something with `resource`: `PLURAL[.GROUP][/SUBRESOURCE]`."""
        whole, _, subresource = resource.partition("/")
        plural, _, group = whole.partition(".")
        attributes = {
            **{"verb": verb, "group": group, "resource": plural, "subresource": subresource},
            **{"namespace": namespace, "name": name},
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": _groups_of(user), "resourceAttributes": attributes},
        }
        answer = self.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    def _unless_gone(self, method: str, path: str, body: Any = None) -> Manifest | None:
        try:
            return self.request(method, path, body)
        except Refused as refused:
            if refused.status == httpx.codes.NOT_FOUND:
                return None
            raise


def _groups_of(user: str) -> list[str]:
    """Return the groups of a service account or of another user, as the API server assigns them."""
    groups = ["system:authenticated"]
    if user.startswith("system:serviceaccount:"):
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
    return groups


def secret(name: str, **entries: str) -> Manifest:
    """Return a Secret's manifest; an underscore in an entry's name becomes a dash."""
    data = {
        key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in entries.items()
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
