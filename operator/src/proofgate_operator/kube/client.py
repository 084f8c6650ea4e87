"""A small client based on `kubernetes.aio`: plain dictionaries, and one connection pool per process."""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientError, ClientResponse
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config
from yarl import URL

from proofgate_operator import metrics
from proofgate_operator.api import KIND
from proofgate_operator.api.tenant import TENANT_KIND
from proofgate_operator.build.naming import MANAGED_BY_LABEL, OPERATOR, Manifest
from proofgate_operator.kube.errors import ApiError, ClientFenced, parse_response
from proofgate_operator.kube.proxy import proxy_from_environment
from proofgate_operator.kube.reads import (
    ReadFailed,
    ReadOutcome,
    ReadRequest,
    ReadResult,
    is_unknown_kind,
    outcome_of,
    wrap_read_errors,
)
from proofgate_operator.kube.resources import RESOURCES
from proofgate_operator.kube.store import Store
from proofgate_operator.kube.streams import Streams
from proofgate_operator.kube.watch_stream import IDLE_TIMEOUT_SECONDS, EventDecoder, watch_query

#: Timeout of one request in seconds.
_TIMEOUT_SECONDS = 15
#: Seconds for which the answer whether the API server serves a kind is cached.
_DISCOVERY_CACHE_SECONDS = 600
#: Concurrent requests, not counting watches: more connections need more memory and do not make the API server
#: faster.
_MAX_CONCURRENT_REQUESTS = 16
_LEASE_PATH = f"/apis/{RESOURCES['Lease'].api_version}/"
#: Objects per page of a list.
_PAGE_SIZE = 250
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Client:
    """A client of one API server. `store` holds the state that is known without a request."""

    def __init__(self, api_client: Any) -> None:
        self._api = api_client
        self.store = Store()
        self._streams = Streams(api_client)
        self._fenced = False
        self._gate = asyncio.Semaphore(_MAX_CONCURRENT_REQUESTS)
        self._offers: dict[str, tuple[float, bool]] = {}

    def fence(self) -> None:
        """Refuse all further requests with `ClientFenced`, because another process is active."""
        self._fenced = True

    @classmethod
    async def connect(cls, kubeconfig: str | None = None) -> "Client":
        """Log in with the pod's service account, or with a kubeconfig if there is no service account.

        `kubeconfig` is a file that is used instead of both.
        """
        configuration = kubernetes_client.Configuration()
        if kubeconfig:
            await kubernetes_config.load_kube_config(kubeconfig, client_configuration=configuration)
        else:
            try:
                kubernetes_config.load_incluster_config(configuration)
            except kubernetes_config.ConfigException:
                await kubernetes_config.load_kube_config(client_configuration=configuration)
        return cls.from_configuration(configuration)

    @classmethod
    def from_configuration(cls, configuration: kubernetes_client.Configuration) -> "Client":
        """Return a client for the API server of a configuration. The proxy of the environment is used if
        there is one."""
        # Where watches cannot share connections, each needs one: a limited pool would be exhausted by
        # watches.
        configuration.connection_pool_maxsize = 0
        # Otherwise aiohttp looks up the proxy, and a file of passwords, in threads for each request.
        configuration.client_session_kwargs = {"trust_env": False}
        configuration.proxy = configuration.proxy or proxy_from_environment(URL(configuration.host))
        return cls(kubernetes_client.ApiClient(configuration))

    async def close(self) -> None:
        """Close the connections."""
        self._streams.close()
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
        """Send one request and return the parsed answer; raises `ApiError` for any status of 400 or higher.

        The result of a write is stored immediately, so that the next reconcile does not repeat the write
        because its watch event is late.
        """
        if self._fenced:
            raise ClientFenced("another replica is active")
        # Renewals of the Lease bypass the queue, so that a busy leader does not lose its leadership.
        urgent = path.startswith(_LEASE_PATH)
        try:
            async with contextlib.nullcontext() if urgent else self._gate:
                answer = await self._exchange(
                    method, path, query=query, body=body, content_type=content_type, accept=accept
                )
        except ApiError as error:
            metrics.REQUESTS.labels(method, str(error.status)).inc()
            raise
        metrics.REQUESTS.labels(method, "ok").inc()
        if method in ("POST", "PUT", "PATCH"):
            self._update_store(answer)
        return answer

    def _update_store(self, written: Manifest) -> None:
        kind, metadata = written.get("kind", ""), written.get("metadata") or {}
        ours = (metadata.get("labels") or {}).get(MANAGED_BY_LABEL) == OPERATOR
        # Foreign objects without the label are not watched, so later changes of them would be missed.
        if (
            self.store.synced
            and self.store.is_watched(kind)
            and (ours or kind in (KIND, TENANT_KIND, "Secret"))
        ):
            self.store.upsert(kind, written)

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
        target = f"{path}?{urlencode(query)}" if query else path
        asked = {"Accept": accept, "Content-Type": content_type}
        url, headers = await self._resolve_url(method, target, asked)
        wrapped = await self._api.call_api(
            method, url, header_params=headers, body=body, _request_timeout=_TIMEOUT_SECONDS
        )
        response: ClientResponse = wrapped.response
        return parse_response(response.status, await response.read(), response.headers.get("Retry-After"))

    async def _resolve_url(
        self, method: str, target: str, headers: dict[str, str]
    ) -> tuple[str, dict[str, str]]:
        """Return the URL of a target, and the headers including the authentication."""
        serialized = await self._api.param_serialize(
            method, target, header_params=headers, auth_settings=["BearerToken"]
        )
        _, url, headers, _, _ = serialized
        return url, headers

    async def pages(
        self, kind: str, namespace: str | None, selector: str = "", *, metadata_only: bool = False
    ) -> AsyncIterator[Manifest]:
        """Yield the objects of a kind in pages of some hundred objects; each page has the resource version of
        the list."""
        query = {"limit": str(_PAGE_SIZE)} | ({"labelSelector": selector} if selector else {})
        accept = _METADATA_LIST if metadata_only else "application/json"
        while True:
            with wrap_read_errors(ReadRequest("list", kind, namespace)):
                page = await self.request("GET", RESOURCES[kind].path(namespace), query=query, accept=accept)
            yield page
            rest = page["metadata"].get("continue")
            if not rest:
                return
            query["continue"] = rest

    async def watch(
        self,
        kind: str,
        namespace: str | None,
        selector: str,
        version: str,
        *,
        metadata_only: bool = False,
    ) -> AsyncIterator[Manifest]:
        """Yield the events of one watch, including bookmarks, from a version on until the server ends it.

        Raises `ApiError` if the watch is refused or the version is too old (410), `TimeoutError` if the
        server has sent nothing for two minutes, and any exception of the connection.
        """
        target = f"{RESOURCES[kind].path(namespace)}?{urlencode(watch_query(selector, version))}"
        accept = _METADATA if metadata_only else "application/json"
        url, headers = await self._resolve_url("GET", target, {"Accept": accept})
        async with self._streams.open(url, headers) as answer:
            decoder, read = EventDecoder(), ReadRequest("watch", kind, namespace)
            pieces = answer.chunks(IDLE_TIMEOUT_SECONDS)
            if answer.status >= 400:
                whole = b"".join([piece async for piece in pieces])
                with wrap_read_errors(read):
                    parse_response(answer.status, whole, answer.retry_after)
            async for chunk in pieces:
                with wrap_read_errors(read):
                    events = [*decoder.feed(chunk)]
                for event in events:
                    yield event

    async def read(self, kind: str, namespace: str, name: str) -> ReadResult:
        """Read an object; return the outcome, whether the read succeeded or failed."""
        read = ReadRequest("get", kind, namespace, name)
        try:
            found = await self.request("GET", RESOURCES[kind].path(namespace, name))
            if (found.get("metadata") or {}).get("name") != name:
                raise ApiError(502, "InvalidAnswer", "the response is another object, or empty")
        except (ApiError, ClientError, OSError, TimeoutError) as error:
            outcome = outcome_of(read, error)
            if outcome is ReadOutcome.NOT_FOUND:
                return ReadResult(outcome)
            if isinstance(error, ApiError) and is_unknown_kind(error):
                self._offers.pop(kind, None)
            return ReadResult(outcome, failure=ReadFailed(read, outcome, error))
        # Items of a list have neither kind nor version; the results of this client always have both.
        whole = {**found, "apiVersion": RESOURCES[kind].api_version, "kind": kind}
        return ReadResult(ReadOutcome.FOUND, whole)

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Read an object; None if the API server says that it does not exist. Raises `ReadFailed`."""
        look = await self.read(kind, namespace, name)
        if look.failure:
            raise look.failure
        return look.manifest

    async def namespaces(self, selector: str) -> list[str]:
        """Return the names of the namespaces with the labels of `selector`. Raises `ReadFailed`."""
        found: list[str] = []
        query = {"limit": str(_PAGE_SIZE)} | ({"labelSelector": selector} if selector else {})
        while True:
            with wrap_read_errors(ReadRequest("list", "Namespace", None)):
                page = await self.request("GET", "/api/v1/namespaces", query=query, accept=_METADATA_LIST)
            found += [item["metadata"]["name"] for item in page["items"] or ()]
            rest = page["metadata"].get("continue")
            if not rest:
                return found
            query["continue"] = rest

    async def list(
        self, kind: str, namespace: str | None, selector: str = "", fields: str = ""
    ) -> list[Manifest]:
        """List the objects of a kind that match the label selector `selector` and the field selector
        `fields`. Raises `ReadFailed`."""
        query = {"labelSelector": selector} if selector else {}
        query |= {"fieldSelector": fields} if fields else {}
        with wrap_read_errors(ReadRequest("list", kind, namespace)):
            answer = await self.request("GET", RESOURCES[kind].path(namespace), query=query)
        items: list[Manifest] = answer["items"]
        return items

    async def delete(self, kind: str, namespace: str, name: str, uid: str, version: str = "") -> None:
        """Delete the object with this uid. An object that was deleted or replaced is ignored.

        With a version, an object that has changed since is ignored too.
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
            # The object has a grace period or a finalizer, and exists until then.
            self._update_store(answer)
        else:
            self.store.record_deletion(kind, namespace, name, uid)

    async def has_kind(self, kind: str) -> bool:
        """Return whether the API server serves a kind that not every cluster has. The answer is cached for
        ten minutes. If the API server cannot be asked, the previous answer applies."""
        asked, served = self._offers.get(kind, (-math.inf, False))
        now = time.monotonic()
        if now - asked >= _DISCOVERY_CACHE_SECONDS:
            try:
                served = await self.has_resource(RESOURCES[kind].api_version, RESOURCES[kind].plural)
            except ApiError:
                return served
            self._offers[kind] = (now, served)
        return served

    async def has_resource(self, api_version: str, plural: str) -> bool:
        """Return whether the API server already serves a resource."""
        try:
            answer = await self.request("GET", f"/apis/{api_version}")
        except ApiError as error:
            if is_unknown_kind(error):
                return False
            raise
        return any(resource["name"] == plural for resource in answer.get("resources", []))
