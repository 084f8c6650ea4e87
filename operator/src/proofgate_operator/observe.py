"""One look at everything that matters for a gateway.

Objects are read from the API server, not from a cache: what is decided rests on what is, and a write of the
last loop is never made a second time because its echo was late.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, TypeVar

from proofgate_operator.api.types import Gateway
from proofgate_operator.build import statefulset
from proofgate_operator.build.naming import selector_labels
from proofgate_operator.kube.client import Client
from proofgate_operator.plan.observed import Observed, child_refs, named_secrets

T = TypeVar("T")

#: Requests in flight for one gateway: a hundred tenants' Secrets must not crowd out another gateway.
_CONCURRENCY = 8


async def _all(requests: Iterable[Awaitable[T]]) -> list[T]:
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def gated(request: Awaitable[T]) -> T:
        async with gate:
            return await request

    return await asyncio.gather(*(gated(request) for request in requests))


async def observe(client: Client, gateway: Gateway, manifest: dict[str, Any]) -> Observed:
    """Read the gateway's objects, the Secrets it names and its workers' pods; `manifest` is the gateway
    itself."""
    refs = child_refs(gateway)
    secret_names = named_secrets(gateway)
    selector = ",".join(
        f"{key}={value}" for key, value in selector_labels(gateway, statefulset.COMPONENT).items()
    )
    objects, pods = await asyncio.gather(
        _all(
            [
                *(client.get(ref.kind, gateway.namespace, ref.name) for ref in refs),
                *(client.get("Secret", gateway.namespace, name) for name in secret_names),
            ]
        ),
        client.list("Pod", gateway.namespace, selector),
    )
    conditions = (manifest.get("status") or {}).get("conditions") or []
    return Observed(
        children=dict(zip(refs, objects[: len(refs)], strict=True)),
        secrets=dict(zip(secret_names, objects[len(refs) :], strict=True)),
        worker_pods=tuple(pods),
        conditions=tuple(conditions),
    )
