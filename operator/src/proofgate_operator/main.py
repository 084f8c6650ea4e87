"""The operator's process: log in, wait for the CRD, fill the store, be elected, and run until stopped."""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

import kopf

from proofgate_operator import __version__, logs, metrics
from proofgate_operator.api import API_VERSION, GROUP, PLURAL
from proofgate_operator.api.tenant import TENANT_PLURAL

# `gateways` is imported for its handler: importing registers it with kopf.
from proofgate_operator.handlers import gateways, health_server, kopf_thread  # noqa: F401
from proofgate_operator.handlers.followed_namespaces import FollowedNamespaces
from proofgate_operator.handlers.operator import Operator
from proofgate_operator.handlers.watchdog import monitor_loops
from proofgate_operator.handlers.watches import Watches
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.lease import Election, LeadershipLost
from proofgate_operator.kube.nesting_limit import raise_recursion_limit
from proofgate_operator.kube.tls import reduce_buffer_size
from proofgate_operator.settings import InvalidSettings, Settings, read_settings

_log = logging.getLogger("proofgate_operator")
#: Prefix of kopf's annotations, so that two different operators on one object do not read each other's
#: annotations.
_ANNOTATION_PREFIX = f"operator.{GROUP}"
#: Resources that the API server must serve.
_PLURALS = (PLURAL, TENANT_PLURAL)
#: Seconds between two checks whether the namespaces with gateways have changed.
_NAMESPACES_SECONDS = 0.5
#: Maximum consecutive checks to wait for a stable set of namespaces: each new set restarts kopf.
_NAMESPACES_ROUNDS = 10
#: Maximum number of namespaces that a log line names.
_MAX_LOGGED_NAMESPACES = 20
#: Maximum number of open files to request.
_MAX_OPEN_FILES = 1 << 20


def _raise_descriptors() -> None:
    """Raise the soft limit of open files to the hard limit: without HTTP/2, each watch is a connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@kopf.on.startup()
async def _configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=_ANNOTATION_PREFIX)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=_ANNOTATION_PREFIX)
    # Namespaces and the CRD are known at start. So neither is watched, and no cluster-wide permission is
    # needed.
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
    """Wait until the API server serves the operator's resources: kopf looks for them only once."""
    told = False
    while True:
        try:
            missing = [kind for kind in _PLURALS if not await client.has_resource(API_VERSION, kind)]
            if not missing:
                return
            if not told:
                _log.warning("waiting for the CRDs %s", ", ".join(f"{kind}.{GROUP}" for kind in missing))
                told = True
        except Exception as error:
            _log.warning("waiting for the API server: %s", error)
        await asyncio.sleep(1)


async def _run_unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Await `work` until it is done or `stop` is set; return whether it is done."""
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
async def _leadership(operator: Operator, stop: asyncio.Event) -> AsyncIterator[bool]:
    """Hold the leadership during the block; yield False if the process is stopped before it leads.

    Raises `LeadershipLost` at the end of the block if the Lease was lost, which also sets `stop`.
    """
    settings = operator.settings
    if not settings.leader_election:
        metrics.LEADER.set(1)
        yield True
        return
    metrics.LEADER.set(0)
    identity = f"{settings.pod_name}_{uuid.uuid4()}"
    election = Election(operator.client, settings.lease_namespace, settings.lease_name, identity)
    if not await _run_unless_stopped(stop, election.acquire()):
        yield False
        return
    metrics.LEADER.set(1)
    holding = asyncio.create_task(election.renew_until_lost())

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
    """Manage gateways until stopped."""
    operator.heartbeat.leading = True
    _log.info("serving %s", _describe_namespaces(operator.settings))
    kept = (
        operator.claims.run(),
        operator.orphans.run(),
        operator.audits.run(),
        operator.request_probes.run(),
    )
    keeping = [asyncio.create_task(keep) for keep in kept]
    followed = FollowedNamespaces(operator.client.store, operator.settings.watch_namespaces)
    try:
        while not stop.is_set():
            await _follow_gateways(operator, followed, stop)
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        await operator.loops.stop_all()


def _describe_namespaces(settings: Settings) -> str:
    served, tenants = settings.watch_namespaces, settings.tenant_namespaces
    if not served:
        return "all namespaces"
    names = ", ".join(served) if len(served) <= _MAX_LOGGED_NAMESPACES else f"{len(served)} namespaces"
    return f"{names}, and the tenants of {len(tenants)} more namespaces" if tenants else names


async def _follow_gateways(operator: Operator, followed: FollowedNamespaces, stop: asyncio.Event) -> None:
    """Run kopf until stopped, or until the set of namespaces with gateways has changed.

    The loops of the gateways continue.
    """
    served, namespaces = operator.settings.watch_namespaces, followed.namespaces()
    changed, over = asyncio.Event(), threading.Event()

    async def until_it_is_over() -> None:
        before, rounds = namespaces, 0
        while not stop.is_set() and rounds < _NAMESPACES_ROUNDS:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_NAMESPACES_SECONDS):
                    await stop.wait()
            now = followed.namespaces()
            if now == before != namespaces:
                break
            before, rounds = now, rounds + 1 if now != namespaces else 0
        changed.set()
        over.set()

    watching = asyncio.create_task(until_it_is_over())
    try:
        if served and not namespaces:
            await changed.wait()
            return
        await kopf_thread.run_kopf_in_thread(operator, tuple(filter(None, namespaces)), over)
    except Exception as error:
        # A namespace or a permission may have been deleted just now: the store reports that as well. If loops
        # never start, the liveness probe fails.
        _log.warning("restarting the watch of gateways: %s: %s", type(error).__name__, error)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    if not changed.is_set():
        await _run_unless_stopped(stop, asyncio.sleep(_NAMESPACES_SECONDS))


async def run(settings: Settings) -> None:
    """Run the operator until SIGTERM; raises `LeadershipLost`."""
    if settings.kubeconfig:
        # kopf can only be configured by this variable.
        os.environ["KUBECONFIG"] = settings.kubeconfig
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await Client.connect(settings.kubeconfig)
    operator = Operator(client, settings)
    runner = await health_server.serve(settings.health_host, settings.health_port, operator.heartbeat)
    watches = Watches(
        client,
        settings.watch_namespaces,
        operator.secret_references,
        operator.requeues,
        settings.tenant_namespaces,
    )
    watchdog = asyncio.create_task(monitor_loops(client.store, operator.heartbeat))
    try:
        if not await _run_unless_stopped(stop, _wait_for_crd(client)):
            return
        watches.start()
        operator.heartbeat.expect_watches(watches)
        if not await _run_unless_stopped(stop, watches.synced()):
            return
        # A standby replica is ready as well; otherwise no rollout would ever finish.
        operator.heartbeat.ready = True
        async with _leadership(operator, stop) as elected:
            if elected:
                await _serve(operator, stop)
    finally:
        watchdog.cancel()
        await watches.stop()
        await runner.cleanup()
        await operator.worker_reports.admin_port.close()
        await client.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `proofgate-operator` command."""
    try:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
    except InvalidSettings as error:
        sys.exit(f"proofgate-operator: {error}")
    _raise_descriptors()
    raise_recursion_limit()
    reduce_buffer_size()
    kopf.configure(
        debug=settings.log_level == "debug",
        quiet=settings.log_level in ("warning", "error"),
        log_format=kopf.LogFormat.JSON if settings.log_format == "json" else kopf.LogFormat.PLAIN,
    )
    if settings.log_format == "json":
        logs.use_json()
    # The logs of aiohttp and asyncio only repeat what the operator's log contains.
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    _log.info("proofgate-operator %s", __version__)
    try:
        asyncio.run(run(settings))
    except LeadershipLost as error:
        # A new process starts as a standby replica.
        sys.exit(f"proofgate-operator: {error}")


if __name__ == "__main__":
    main()
