"""One small client over `kubernetes.aio`: plain dictionaries in and out, one connection pool per process."""

import asyncio
import json
import math
import random
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientResponse, ClientTimeout
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from proofgate_operator import metrics
from proofgate_operator.api import API_VERSION, KIND, PLURAL
from proofgate_operator.api.tenant import TENANT_KIND, TENANT_PLURAL
from proofgate_operator.build.naming import MANAGED_BY_LABEL, OPERATOR
from proofgate_operator.kube.store import Store

Manifest = dict[str, Any]

#: Seconds one request may take; a loop that waits longer learns nothing.
_TIMEOUT_SECONDS = 15
#: Seconds after which the API server ends a watch, at least, and after which one without a word is given up:
#: the server sends a bookmark about once a minute.
_WATCH_SECONDS = 300
_SILENCE_SECONDS = 120
#: How long it is believed that the API server knows a kind, or does not.
_OFFER_SECONDS = 600
#: Requests in flight, watches aside: every further connection costs memory, and the API server is no faster.
_REQUESTS = 16
#: Objects in one answer to a list.
_PAGE = 250
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
    TENANT_KIND: Resource(API_VERSION, TENANT_PLURAL),
    "ConfigMap": Resource("v1", "configmaps"),
    "Deployment": Resource("apps/v1", "deployments"),
    "Event": Resource("v1", "events"),
    "Lease": Resource("coordination.k8s.io/v1", "leases"),
    "NetworkPolicy": Resource("networking.k8s.io/v1", "networkpolicies"),
    "PersistentVolumeClaim": Resource("v1", "persistentvolumeclaims"),
    "Pod": Resource("v1", "pods"),
    "PodMonitor": Resource("monitoring.coreos.com/v1", "podmonitors"),
    "PodDisruptionBudget": Resource("policy/v1", "poddisruptionbudgets"),
    "Secret": Resource("v1", "secrets"),
    "Service": Resource("v1", "services"),
    "ServiceAccount": Resource("v1", "serviceaccounts"),
    "StatefulSet": Resource("apps/v1", "statefulsets"),
}


class ApiError(Exception):
    """The API server refused a request; `status` is the HTTP status, `reason` the API's own word for it.

    `retry_after` is the time in seconds after which the server wants to be asked again, if it told one.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later: the server is overloaded or ill."""
        # A field that no schema knows is the manifest's fault, although server-side apply answers with 500.
        unknown_field = self.message.startswith("failed to create typed patch object")
        return self.status == 429 or (self.status >= 500 and not unknown_field)


class Fenced(Exception):
    """This process is no longer the one that acts."""


def _answer(status: int, raw: bytes, retry_after: str | None = None) -> Manifest:
    """Return a parsed answer; raises `ApiError` for any status from 400."""
    try:
        answer: Manifest = json.loads(raw)
    except ValueError:
        answer = {"message": raw[:200].decode(errors="replace")}
    if status >= 400:
        # RFC 9110, section 10.2.3; the API server tells seconds, never a date.
        pause = float(retry_after) if retry_after and retry_after.isdecimal() else None
        raise ApiError(status, answer.get("reason", "Unknown"), answer.get("message", ""), pause)
    return answer


class Client:
    """Requests to one API server, and `store`, what is known of it without a request."""

    def __init__(self, api_client: Any) -> None:
        self._api = api_client
        self.store = Store()
        self._fenced = False
        self._gate = asyncio.Semaphore(_REQUESTS)
        self._offers: dict[str, tuple[float, bool]] = {}

    def fence(self) -> None:
        """Refuse every further request with `Fenced`: another process acts."""
        self._fenced = True

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
        # Every watch holds a connection: a pool with a limit would be full of them.
        configuration.connection_pool_maxsize = 0
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
        """Send one request and return the parsed answer; raises `ApiError` for any status from 400.

        The store learns what a write made at once: the next look must not repeat it because its echo is late.
        """
        if self._fenced:
            raise Fenced("another replica acts")
        try:
            async with self._gate:
                answer = await self._exchange(
                    method, path, query=query, body=body, content_type=content_type, accept=accept
                )
        except ApiError as error:
            metrics.REQUESTS.labels(method, str(error.status)).inc()
            raise
        metrics.REQUESTS.labels(method, "ok").inc()
        if method in ("POST", "PUT", "PATCH"):
            self._learn(answer)
        return answer

    def _learn(self, written: Manifest) -> None:
        kind, metadata = written.get("kind", ""), written.get("metadata") or {}
        ours = (metadata.get("labels") or {}).get(MANAGED_BY_LABEL) == OPERATOR
        # Other objects without the label are not watched: nobody would tell of their further fate.
        if self.store.synced and self.store.watches(kind) and (ours or kind in (KIND, TENANT_KIND, "Secret")):
            self.store.put(kind, written)

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        accept: str,
    ) -> Manifest:
        response = await self._send(
            method,
            f"{path}?{urlencode(query)}" if query else path,
            {"Accept": accept, "Content-Type": content_type},
            body,
            _TIMEOUT_SECONDS,
        )
        return _answer(response.status, await response.read(), response.headers.get("Retry-After"))

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

    async def pages(
        self, kind: str, namespace: str | None, selector: str = "", *, metadata_only: bool = False
    ) -> AsyncIterator[Manifest]:
        """Yield the objects of a kind as lists of some hundreds, each with the version of the whole."""
        query = {"limit": str(_PAGE)} | ({"labelSelector": selector} if selector else {})
        accept = _METADATA_LIST if metadata_only else "application/json"
        while True:
            page = await self.request("GET", RESOURCES[kind].path(namespace), query=query, accept=accept)
            yield page
            rest = page["metadata"].get("continue")
            if not rest:
                return
            query["continue"] = rest

    async def changes(
        self,
        kind: str,
        namespace: str | None,
        selector: str,
        version: str,
        *,
        metadata_only: bool = False,
    ) -> AsyncIterator[Manifest]:
        """Yield the events of one watch from a version on, bookmarks among them, until the server ends it.

        Raises `ApiError` when the watch is refused or the version is too old (410), `TimeoutError` when the
        server has not said a word for two minutes, and what else the connection raises.
        """
        query = {"labelSelector": selector} if selector else {}
        query |= {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(_WATCH_SECONDS * random.uniform(1, 2))),
            "resourceVersion": version,
        }
        target = f"{RESOURCES[kind].path(namespace)}?{urlencode(query)}"
        headers = {"Accept": _METADATA if metadata_only else "application/json"}
        silence = ClientTimeout(sock_connect=_TIMEOUT_SECONDS, sock_read=_SILENCE_SECONDS)
        async with await self._send("GET", target, headers, None, silence) as response:
            if response.status >= 400:
                _answer(response.status, await response.read(), response.headers.get("Retry-After"))
            # An object may be longer than any line that the stream's own reader takes.
            pieces: list[bytes] = []
            async for chunk in response.content.iter_any():
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    text = b"".join([*pieces, line])
                    pieces.clear()
                    if text:
                        yield _event(text)
                if rest:
                    pieces.append(rest)

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Ask for an object; None if there is none."""
        try:
            found = await self.request("GET", RESOURCES[kind].path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        # A list gives its items neither; here they are always told.
        return {**found, "apiVersion": RESOURCES[kind].api_version, "kind": kind}

    async def namespaces(self, selector: str) -> list[str]:
        """Return the names of the namespaces with the labels of `selector`."""
        found: list[str] = []
        query = {"limit": str(_PAGE)} | ({"labelSelector": selector} if selector else {})
        while True:
            page = await self.request("GET", "/api/v1/namespaces", query=query, accept=_METADATA_LIST)
            found += [item["metadata"]["name"] for item in page["items"] or ()]
            rest = page["metadata"].get("continue")
            if not rest:
                return found
            query["continue"] = rest

    async def list(
        self, kind: str, namespace: str | None, selector: str = "", fields: str = ""
    ) -> list[Manifest]:
        """Ask for the objects of a kind with the labels of `selector` and the values of `fields`."""
        query = {"labelSelector": selector} if selector else {}
        query |= {"fieldSelector": fields} if fields else {}
        answer = await self.request("GET", RESOURCES[kind].path(namespace), query=query)
        items: list[Manifest] = answer["items"]
        return items

    async def delete(self, kind: str, namespace: str, name: str, uid: str, version: str = "") -> None:
        """Delete the object with this uid; one that is gone, or another one of the name, is left alone.

        With a version, one that has changed since is left alone as well.
        """
        preconditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        try:
            answer = await self.request("DELETE", RESOURCES[kind].path(namespace, name), body=body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return
        if answer.get("kind") == kind:
            # It has a grace period or a finalizer, and stays until then.
            self._learn(answer)
        else:
            self.store.bury(kind, namespace, name, uid)

    async def offers(self, kind: str) -> bool:
        """Return whether the API server knows a kind that not every cluster has; asked every ten minutes."""
        asked, served = self._offers.get(kind, (-math.inf, False))
        now = time.monotonic()
        if now - asked >= _OFFER_SECONDS:
            served = await self.serves(RESOURCES[kind].api_version, RESOURCES[kind].plural)
            self._offers[kind] = (now, served)
        return served

    async def serves(self, api_version: str, plural: str) -> bool:
        """Return whether the API server knows a resource yet."""
        try:
            answer = await self.request("GET", f"/apis/{api_version}")
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return any(resource["name"] == plural for resource in answer.get("resources", []))


def _event(line: bytes) -> Manifest:
    event: Manifest = json.loads(line)
    if event["type"] == "ERROR":
        told = event["object"]
        raise ApiError(told.get("code", 500), told.get("reason", "Unknown"), told.get("message", ""))
    return event
