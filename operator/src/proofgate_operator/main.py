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
from proofgate_operator.api import API_VERSION, GROUP, PLURAL

# `daemon` is imported for its handlers: importing registers them with kopf.
from proofgate_operator.handlers import daemon, probe  # noqa: F401
from proofgate_operator.handlers.operator import Operator
from proofgate_operator.handlers.watches import Watches
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.lease import Election, LeadershipLost
from proofgate_operator.settings import InvalidSettings, Settings, read_settings

_log = logging.getLogger("proofgate_operator")
#: Two operators of different make on one object must not take each other's marks for their own.
_PREFIX = f"operator.{GROUP}"


@kopf.on.startup()
async def _configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.finalizer = probe.FINALIZER
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


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a log record tells anything: that a loop began or ended does not."""
    return record.levelno > logging.INFO or not record.getMessage().startswith("Daemon 'keep_reconciling'")


async def _wait_for_crd(client: Client) -> None:
    """Wait until the API server serves our resource: kopf looks for it only once."""
    told = False
    while True:
        try:
            if await client.serves(API_VERSION, PLURAL):
                return
            if not told:
                _log.warning("waiting for the CRD %s.%s", PLURAL, GROUP)
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
    namespaces = operator.settings.watch_namespaces
    operator.pulse.leading = True
    _log.info("serving %s", ", ".join(namespaces) or "all namespaces")
    await kopf.operator(
        standalone=True,
        # Without peers nobody reads it; left out, kopf looks up the user, whom a container need not know.
        identity=cast(Any, "proofgate-operator"),
        clusterwide=not namespaces,
        namespaces=namespaces,
        memo=kopf.Memo(operator=operator),
        stop_flag=stop,
    )


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
    runner = await probe.serve(settings.health_host, settings.health_port, operator.pulse)
    watches = Watches(client, settings.watch_namespaces, operator.readers, operator.wakes)
    watchdog = asyncio.create_task(probe.watch_over(client.store, operator.pulse))
    try:
        if not await _unless(stop, _wait_for_crd(client)):
            return
        watches.start()
        operator.pulse.listen(watches)
        if not await _unless(stop, watches.synced()):
            return
        # A replica that stands by is ready as well, or no roll-out would ever end.
        operator.pulse.ready = True
        async with _elected(operator, stop) as elected:
            if elected:
                await _serve(operator, stop)
    finally:
        watchdog.cancel()
        await watches.stop()
        await runner.cleanup()
        await operator.workers.close()
        await client.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `proofgate-operator` command."""
    try:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
    except InvalidSettings as error:
        sys.exit(f"proofgate-operator: {error}")
    kopf.configure(
        debug=settings.log_level == "debug",
        quiet=settings.log_level in ("warning", "error"),
        log_format=kopf.LogFormat.JSON if settings.log_format == "json" else kopf.LogFormat.PLAIN,
    )
    logging.getLogger("kopf.objects").addFilter(_is_news)
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
