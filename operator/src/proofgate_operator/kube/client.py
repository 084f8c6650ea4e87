"""One small client over `kubernetes.aio`: plain dictionaries in and out, one connection pool per process."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientResponse, ClientTimeout
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from proofgate_operator.api import API_VERSION, KIND, PLURAL

Manifest = dict[str, Any]

#: Seconds one request may take; a loop that waits longer learns nothing.
_TIMEOUT_SECONDS = 15
#: Seconds after which the API server ends a watch, and after which one without a word is given up: the server
#: sends a bookmark about once a minute.
_WATCH_SECONDS = 300
_SILENCE_SECONDS = 120
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Resource:
    """Where a kind lives in the API."""

    api_version: str
    plural: str

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """Return the URL path; without a namespace, of all of them."""
        prefix = "/apis" if "/" in self.api_version else "/api"
        parts = [prefix, self.api_version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        return "/".join(filter(None, [*parts, name, subresource]))


RESOURCES: Mapping[str, Resource] = {
    KIND: Resource(API_VERSION, PLURAL),
    "ConfigMap": Resource("v1", "configmaps"),
    "Deployment": Resource("apps/v1", "deployments"),
    "Event": Resource("v1", "events"),
    "NetworkPolicy": Resource("networking.k8s.io/v1", "networkpolicies"),
    "PersistentVolumeClaim": Resource("v1", "persistentvolumeclaims"),
    "Pod": Resource("v1", "pods"),
    "PodDisruptionBudget": Resource("policy/v1", "poddisruptionbudgets"),
    "Secret": Resource("v1", "secrets"),
    "Service": Resource("v1", "services"),
    "ServiceAccount": Resource("v1", "serviceaccounts"),
    "StatefulSet": Resource("apps/v1", "statefulsets"),
}


class ApiError(Exception):
    """The API server refused a request; `status` is the HTTP status, `reason` the API's own word for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


def _answer(status: int, raw: bytes) -> Manifest:
    """Return a parsed answer; raises `ApiError` for any status from 400."""
    try:
        answer: Manifest = json.loads(raw)
    except ValueError:
        answer = {"message": raw[:200].decode(errors="replace")}
    if status >= 400:
        raise ApiError(status, answer.get("reason", "Unknown"), answer.get("message", ""))
    return answer


class Client:
    """Requests to one API server."""

    def __init__(self, api_client: Any) -> None:
        self._api = api_client

    @classmethod
    async def connect(cls, kubeconfig: str | None = None) -> "Client":
        """Log in by the pod's service account, or by a kubeconfig where there is none.

        `kubeconfig` is a file to use instead of both.
        """
        configuration = kubernetes_client.Configuration()
        if kubeconfig:
            await kubernetes_config.load_kube_config(kubeconfig, client_configuration=configuration)
        else:
            try:
                kubernetes_config.load_incluster_config(configuration)
            except kubernetes_config.ConfigException:
                await kubernetes_config.load_kube_config(client_configuration=configuration)
        return cls(kubernetes_client.ApiClient(configuration))

    async def close(self) -> None:
        """Close the connection pool."""
        await self._api.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Manifest:
        """Send one request and return the parsed answer; raises `ApiError` for any status from 400."""
        response = await self._send(
            method,
            f"{path}?{urlencode(query)}" if query else path,
            {"Accept": accept, "Content-Type": content_type},
            body,
            _TIMEOUT_SECONDS,
        )
        return _answer(response.status, await response.read())

    async def _send(
        self, method: str, target: str, headers: dict[str, str], body: Any, timeout: float | ClientTimeout
    ) -> ClientResponse:
        serialized = await self._api.param_serialize(
            method, target, header_params=headers, auth_settings=["BearerToken"]
        )
        method, url, headers, _, _ = serialized
        wrapped = await self._api.call_api(
            method, url, header_params=headers, body=body, _request_timeout=timeout
        )
        response: ClientResponse = wrapped.response
        return response

    async def changes(
        self, kind: str, namespace: str | None, selector: str = ""
    ) -> AsyncIterator[tuple[str, str]]:
        """Yield namespace and name of every object that is made, changed or deleted from now on, for ever.

        The API server sends metadata only, whatever the objects hold. Raises `ApiError` when it cannot go on
        from where it was, and what the connection raises: whoever follows then starts anew.
        """
        path = RESOURCES[kind].path(namespace)
        query = {"labelSelector": selector} if selector else {}
        # One item is enough to learn the version of the whole list.
        begin = await self.request("GET", path, query={**query, "limit": "1"}, accept=_METADATA_LIST)
        version: str = begin["metadata"]["resourceVersion"]
        query |= {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(_WATCH_SECONDS)}
        headers = {"Accept": _METADATA}
        silence = ClientTimeout(sock_connect=_TIMEOUT_SECONDS, sock_read=_SILENCE_SECONDS)
        while True:
            target = f"{path}?{urlencode({**query, 'resourceVersion': version})}"
            async with await self._send("GET", target, dict(headers), None, silence) as response:
                if response.status >= 400:
                    _answer(response.status, await response.read())
                while line := await response.content.readline():
                    event = json.loads(line)
                    found = event["object"]
                    if event["type"] == "ERROR":
                        raise ApiError(
                            found["code"], found.get("reason", "Unknown"), found.get("message", "")
                        )
                    version = found["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield found["metadata"]["namespace"], found["metadata"]["name"]

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object, or None if there is none."""
        try:
            found = await self.request("GET", RESOURCES[kind].path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        # A list gives its items neither; here they are always told.
        return {**found, "apiVersion": RESOURCES[kind].api_version, "kind": kind}

    async def list(self, kind: str, namespace: str | None, selector: str = "") -> list[Manifest]:
        """Return the objects of a kind that bear the labels of `selector`."""
        query = {"labelSelector": selector} if selector else None
        answer = await self.request("GET", RESOURCES[kind].path(namespace), query=query)
        items: list[Manifest] = answer["items"]
        return items

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Delete the object with this uid; one that is gone, or another one of the name, is left alone."""
        try:
            await self.request(
                "DELETE",
                RESOURCES[kind].path(namespace, name),
                body={"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}},
            )
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def serves(self, api_version: str, plural: str) -> bool:
        """Return whether the API server knows a resource yet."""
        try:
            answer = await self.request("GET", f"/apis/{api_version}")
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return any(resource["name"] == plural for resource in answer.get("resources", []))
