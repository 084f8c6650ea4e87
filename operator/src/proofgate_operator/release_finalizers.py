"""Take the operator's leave: end the operators and take their finalizer off every gateway.

The chart runs it before it is uninstalled, as `python -m proofgate_operator.release_finalizers`. Gateways
stay and go on serving; whoever deletes one afterwards need not wait for an operator that is gone, and what
belongs to it goes by garbage collection.
"""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Sequence

from proofgate_operator.api import GROUP, KIND
from proofgate_operator.kube.client import RESOURCES, ApiError, Client

FINALIZER = f"{GROUP}/operator"
_ATTEMPTS = 5
_JSON_PATCH = "application/json-patch+json"

_log = logging.getLogger("proofgate_operator.release_finalizers")


class OperatorsRemain(Exception):
    """Operators still run: they would put their finalizer back."""


async def end_operators(
    client: Client, namespace: str, deployment: str, selector: str, seconds: float, pause: float = 1.0
) -> None:
    """Scale the operators' Deployment to 0 and wait until no pod of `selector` is left.

    `seconds` bounds the wait, `pause` is the time between two looks. A Deployment that is gone already is
    none to scale. Raises `OperatorsRemain`, or `ApiError`.
    """
    try:
        await client.request(
            "PATCH",
            RESOURCES["Deployment"].path(namespace, deployment, "scale"),
            body={"spec": {"replicas": 0}},
            content_type="application/merge-patch+json",
        )
    except ApiError as error:
        if error.status != 404:
            raise
    deadline = time.monotonic() + seconds
    while pods := await client.list("Pod", namespace, selector):
        if time.monotonic() > deadline:
            left = ", ".join(pod["metadata"]["name"] for pod in pods)
            raise OperatorsRemain(f"still there after {seconds:g} s: {left}")
        await asyncio.sleep(pause)


async def _release(client: Client, namespace: str, name: str) -> bool:
    """Take our finalizer off one gateway and leave those of others; return whether it bore ours."""
    path = RESOURCES[KIND].path(namespace, name)
    for attempt in range(1, _ATTEMPTS + 1):
        found = await client.get(KIND, namespace, name)
        finalizers = (found or {}).get("metadata", {}).get("finalizers") or []
        if FINALIZER not in finalizers:
            return False
        place = f"/metadata/finalizers/{finalizers.index(FINALIZER)}"
        # Who else edits the list meanwhile makes the test fail; then the list is read again.
        patch = [{"op": "test", "path": place, "value": FINALIZER}, {"op": "remove", "path": place}]
        try:
            await client.request("PATCH", path, body=patch, content_type=_JSON_PATCH)
            return True
        except ApiError as error:
            if error.status == 404:
                return False
            if error.status not in (409, 422) or attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")


async def release_all(client: Client, namespaces: Sequence[str]) -> int:
    """Take the finalizer off the gateways of `namespaces`, or of all if there are none given.

    Returns how many bore it. Without the CRD there are no gateways, and none in a namespace that is gone.
    Raises `ApiError`.
    """
    released = 0
    for watched in namespaces or (None,):
        try:
            gateways = await client.list(KIND, watched)
        except ApiError as error:
            # A namespace that is gone has taken its gateways along, and the Role that would let us look.
            if error.status == 403 and watched:
                _log.warning("passed over namespace %s, which is gone or bars us: %s", watched, error.reason)
            elif error.status != 404:
                raise
            continue
        for gateway in gateways:
            namespace, name = gateway["metadata"]["namespace"], gateway["metadata"]["name"]
            if await _release(client, namespace, name):
                released += 1
                _log.info("released %s/%s", namespace, name)
    return released


async def _run(options: argparse.Namespace) -> int:
    client = await Client.connect(options.kubeconfig)
    try:
        if options.deployment:
            namespace, _, name = options.deployment.partition("/")
            await end_operators(client, namespace, name, options.selector, options.seconds)
        namespaces = [part for part in options.namespaces.split(",") if part]
        released = await release_all(client, namespaces)
    except (ApiError, OperatorsRemain) as error:
        _log.error("%s", error)
        return 1
    finally:
        await client.close()
    _log.info("gateways released: %d; they go on serving", released)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m proofgate_operator.release_finalizers",
        description=f"Ends the operators and takes the finalizer {FINALIZER} off the gateways, which stay.",
    )
    parser.add_argument("--namespaces", default="", help="served namespaces, by commas; empty: all of them")
    parser.add_argument(
        "--deployment", metavar="NAMESPACE/NAME", help="the operators' own; absent: none runs"
    )
    parser.add_argument("--selector", default="", help="labels of the operators' pods; with --deployment")
    parser.add_argument("--seconds", type=float, default=90, help="longest wait for their end (default: 90)")
    parser.add_argument("--kubeconfig", help="absent: the service account, else ~/.kube/config")
    options = parser.parse_args(arguments)
    if options.deployment and ("/" not in options.deployment or not options.selector):
        parser.error("--deployment takes NAMESPACE/NAME, and --selector with it")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    return asyncio.run(_run(options))


if __name__ == "__main__":
    sys.exit(main())
