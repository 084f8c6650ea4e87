"""The operator's process: log in, wait for the CRD, run until told to stop."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, cast

import kopf

from proofgate_operator import __version__
from proofgate_operator.api import API_VERSION, GROUP, PLURAL

# `daemon` is imported for its handlers: importing registers them with kopf.
from proofgate_operator.handlers import children, daemon, probe  # noqa: F401
from proofgate_operator.handlers.operator import Operator
from proofgate_operator.handlers.secrets import follow_secrets
from proofgate_operator.kube.client import Client
from proofgate_operator.settings import InvalidSettings, Settings, read_settings

_log = logging.getLogger("proofgate_operator")
#: Two operators of different make on one object must not take each other's marks for their own.
_PREFIX = f"operator.{GROUP}"


@kopf.on.startup()
async def _configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.finalizer = f"{GROUP}/operator"
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
    children.narrow_watches(settings)


@kopf.on.login(errors=kopf.ErrorsMode.PERMANENT)
async def _login(memo: Any, **kwargs: Any) -> Any:
    operator: Operator = memo.operator
    if operator.settings.kubeconfig:
        return kopf.login_with_kubeconfig(**kwargs)
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a log record tells anything: that a wake-up call succeeded does not."""
    return not record.getMessage().startswith(("Handler 'wake_", "Daemon 'keep_reconciling' succeeded"))


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


async def run(settings: Settings) -> None:
    """Run the operator until SIGTERM."""
    if settings.kubeconfig:
        # The variable is the only way to tell kopf.
        os.environ["KUBECONFIG"] = settings.kubeconfig
    client = await Client.connect(settings.kubeconfig)
    operator = Operator(client, settings)
    runner = await probe.serve(settings.health_host, settings.health_port, operator.pulse)
    tasks: list[asyncio.Task[None]] = []
    try:
        await _wait_for_crd(client)
        tasks.append(asyncio.create_task(probe.watch_over(client, settings.watch_namespaces, operator.pulse)))
        for namespace in settings.watch_namespaces or (None,):
            following = follow_secrets(client, namespace, operator.readers, operator.wakes)
            tasks.append(asyncio.create_task(following))
        operator.pulse.ready = True
        _log.info("serving %s", ", ".join(settings.watch_namespaces) or "all namespaces")
        await kopf.operator(
            standalone=True,
            # Without peers nobody reads it; left out, kopf looks up the user, whom a container need not know.
            identity=cast(Any, "proofgate-operator"),
            clusterwide=not settings.watch_namespaces,
            namespaces=settings.watch_namespaces,
            memo=kopf.Memo(operator=operator),
        )
    finally:
        for task in tasks:
            task.cancel()
        await runner.cleanup()
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
    asyncio.run(run(settings))


if __name__ == "__main__":
    main()
