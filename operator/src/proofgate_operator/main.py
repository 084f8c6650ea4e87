"""The operator's process: log in, wait for the CRD, know the cluster, be elected, run until told to stop."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, cast

import kopf

from proofgate_operator import __version__, metrics
from proofgate_operator.api import API_VERSION, GROUP, KIND, PLURAL
from proofgate_operator.api.tenant import TENANT_PLURAL

# `gateways` is imported for its handler: importing registers it with kopf.
from proofgate_operator.handlers import gateways, probe  # noqa: F401
from proofgate_operator.handlers.operator import Operator
from proofgate_operator.handlers.watchdog import watch_over
from proofgate_operator.handlers.watches import Watches
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.lease import Election, LeadershipLost
from proofgate_operator.kube.nesting import allow_for_parsers
from proofgate_operator.settings import InvalidSettings, Settings, read_settings

_log = logging.getLogger("proofgate_operator")
#: Two operators of different make on one object must not take each other's marks for their own.
_PREFIX = f"operator.{GROUP}"
#: Resources that have to be served.
_PLURALS = (PLURAL, TENANT_PLURAL)
#: How often it is found out whether other namespaces can be listed than before.
_NAMESPACES_SECONDS = 1.0


@kopf.on.startup()
async def _configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=_PREFIX)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=_PREFIX)
    # Namespaces and the CRD are known at start, so neither is watched and no cluster-wide grant is needed.
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.execution.default_backoff = 5
    settings.networking.request_timeout = 15
    settings.networking.connect_timeout = 5
    settings.watching.connect_timeout = 5
    settings.background.instant_exit_timeout = 0.1


@kopf.on.login(errors=kopf.ErrorsMode.PERMANENT)
async def _login(memo: Any, **kwargs: Any) -> Any:
    operator: Operator = memo.operator
    if operator.settings.kubeconfig:
        return kopf.login_with_kubeconfig(**kwargs)
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


async def _wait_for_crd(client: Client) -> None:
    """Wait until the API server serves our resources: kopf looks for its own only once."""
    told = False
    while True:
        try:
            missing = [kind for kind in _PLURALS if not await client.serves(API_VERSION, kind)]
            if not missing:
                return
            if not told:
                _log.warning("waiting for the CRDs %s", ", ".join(f"{kind}.{GROUP}" for kind in missing))
                told = True
        except Exception as error:
            _log.warning("waiting for the API server: %s", error)
        await asyncio.sleep(1)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Await `work`, or its end by `stop`; return whether it was done."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        return task.done()
    finally:
        task.cancel()
        stopped.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)


@contextlib.asynccontextmanager
async def _elected(operator: Operator, stop: asyncio.Event) -> AsyncIterator[bool]:
    """Be the one that acts, for the length of the block; False when told to stop before that.

    Raises `LeadershipLost` at the end of a block that lost the Lease, which `stop` ended.
    """
    settings = operator.settings
    if not settings.leader_election:
        metrics.LEADER.set(1)
        yield True
        return
    metrics.LEADER.set(0)
    identity = f"{settings.pod_name}_{uuid.uuid4()}"
    election = Election(operator.client, settings.lease_namespace, settings.lease_name, identity)
    if not await _unless(stop, election.acquire()):
        yield False
        return
    metrics.LEADER.set(1)
    holding = asyncio.create_task(election.hold())

    def end(_: object) -> None:
        operator.client.fence()
        stop.set()

    holding.add_done_callback(end)
    try:
        yield True
    finally:
        metrics.LEADER.set(0)
        if holding.done():
            holding.result()
        holding.remove_done_callback(end)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        await election.release()


async def _serve(operator: Operator, stop: asyncio.Event) -> None:
    """Act on gateways until told to stop."""
    served = operator.settings.watch_namespaces
    operator.heartbeat.leading = True
    _log.info("serving %s", ", ".join(served) or "all namespaces")
    kept = (
        operator.claims.keep(),
        operator.orphans.keep(),
        operator.audits.keep(),
        operator.answers.keep(),
    )
    keeping = [asyncio.create_task(keep) for keep in kept]
    try:
        while not stop.is_set():
            await _follow_gateways(operator, stop)
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        await operator.loops.stop()


async def _follow_gateways(operator: Operator, stop: asyncio.Event) -> None:
    """Have kopf tell of gateways, until told to stop or until other namespaces can be listed than now.

    kopf gives up as a whole when one of its namespaces is gone, so it gets only those that can be listed. The
    loops of gateways outlast it.
    """
    served, store = operator.settings.watch_namespaces, operator.client.store
    barred = store.barred(KIND)
    namespaces = [namespace for namespace in served if namespace not in barred]
    over = asyncio.Event()

    async def until_it_is_over() -> None:
        while not stop.is_set() and store.barred(KIND) == barred:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_NAMESPACES_SECONDS):
                    await stop.wait()
        over.set()

    watching = asyncio.create_task(until_it_is_over())
    try:
        if served and not namespaces:
            await over.wait()
            return
        await kopf.operator(
            standalone=True,
            # Without peers nobody reads it; left out, kopf looks up the user, whom a container need not know.
            identity=cast(Any, "proofgate-operator"),
            clusterwide=not namespaces,
            namespaces=namespaces,
            memo=kopf.Memo(operator=operator),
            stop_flag=over,
        )
        if not over.is_set():
            # By a signal, which kopf took for itself.
            stop.set()
    except Exception as error:
        # A namespace that has just gone, or a grant: the store hears of it as well. Where loops never begin,
        # the liveness probe fails.
        _log.warning("gateways are followed anew: %s: %s", type(error).__name__, error)
        await _unless(stop, asyncio.sleep(_NAMESPACES_SECONDS))
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def run(settings: Settings) -> None:
    """Run the operator until SIGTERM; raises `LeadershipLost`."""
    if settings.kubeconfig:
        # The variable is the only way to tell kopf.
        os.environ["KUBECONFIG"] = settings.kubeconfig
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Until kopf takes the signals over.
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await Client.connect(settings.kubeconfig)
    operator = Operator(client, settings)
    runner = await probe.serve(settings.health_host, settings.health_port, operator.heartbeat)
    watches = Watches(client, settings.watch_namespaces, operator.readers, operator.requeues)
    watchdog = asyncio.create_task(watch_over(client.store, operator.heartbeat))
    try:
        if not await _unless(stop, _wait_for_crd(client)):
            return
        watches.start()
        operator.heartbeat.listen(watches)
        if not await _unless(stop, watches.synced()):
            return
        # A replica that stands by is ready as well, or no roll-out would ever end.
        operator.heartbeat.ready = True
        async with _elected(operator, stop) as elected:
            if elected:
                await _serve(operator, stop)
    finally:
        watchdog.cancel()
        await watches.stop()
        await runner.cleanup()
        await operator.workers.admin_port.close()
        await client.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `proofgate-operator` command."""
    try:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
    except InvalidSettings as error:
        sys.exit(f"proofgate-operator: {error}")
    allow_for_parsers()
    kopf.configure(
        debug=settings.log_level == "debug",
        quiet=settings.log_level in ("warning", "error"),
        log_format=kopf.LogFormat.JSON if settings.log_format == "json" else kopf.LogFormat.PLAIN,
    )
    # aiohttp and asyncio have nothing to say that our own log does not.
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    _log.info("proofgate-operator %s", __version__)
    try:
        asyncio.run(run(settings))
    except LeadershipLost as error:
        # A new process begins as one that stands by.
        sys.exit(f"proofgate-operator: {error}")


if __name__ == "__main__":
    main()
