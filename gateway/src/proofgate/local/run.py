"""`proofgate quickstart --start`: runs all processes of a folder in the foreground until Ctrl-C."""

from __future__ import annotations

import os
import shlex
import signal
from dataclasses import dataclass
from pathlib import Path

from proofgate.address import reachable_address
from proofgate.config import Config, InvalidConfigError, load
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail
from proofgate.keys import VERIFYING_KEY_FILE
from proofgate.local.child import ChildProcess
from proofgate.local.folder import (
    LINKS_FOLDER,
    LOGS_FOLDER,
    READERS_FILE,
    QuickstartFolder,
    RunningGateway,
    require_free_addresses,
    setting_of,
)
from proofgate.local.log_file import MAX_LOG_BYTES, MIB
from proofgate.local.supervisor import ChildEndedError, StopRequestedError, Supervisor, warn
from proofgate.quickstart import (
    CONFIGURATION_FILE,
    LEDGER_FOLDER,
    TENANT_KEY_FILE,
    QuickstartError,
    request_command,
)

WORKER_READY = r"proofgate ready: traffic=(\S+) admin=(\S+)"
AUDITOR_READY = r"proofgate auditor: http://(\S+)"
PROVIDER_READY = r"mock-upstream ready: (\S+)"
#: Maximum tokens of a response of the simulated provider; `max_tokens` can shorten it.
_RESPONSE_TOKENS = 60


@dataclass(frozen=True)
class StartOptions:
    """The options for starting a folder."""

    explorer_listen: str
    traffic: bool = False
    command: str = "proofgate"
    """The command line with which the user starts Proofgate; printed instructions use it."""
    excluded_variables: tuple[str, ...] = ()
    """Environment variables with keys. Child processes do not inherit them, and read the keys from files."""


def run(path: Path, options: StartOptions) -> int:
    """Starts all processes, prints how to use them, and waits for a signal. Returns the exit code."""
    folder = QuickstartFolder(path)
    try:
        with folder.start_lock():
            config = load(path / CONFIGURATION_FILE)
            settings = config.settings
            require_free_addresses(
                {
                    setting_of(path, "listen"): settings.listen,
                    setting_of(path, "admin.listen"): settings.admin.listen,
                    "--explorer-listen": options.explorer_listen,
                }
            )
            folder.add_auditor(settings.ledger.name)
            (path / LOGS_FOLDER).mkdir(mode=0o700, exist_ok=True)
            return _run_supervised(folder, config, options)
    except InvalidConfigError as error:
        return fail(f"the configuration is not valid\n{error}", EXIT_USAGE)
    except QuickstartError as error:
        return fail(str(error), EXIT_USAGE)
    except OSError as error:
        return fail(f"{error.filename or path} cannot be used: {error.strerror}", EXIT_FAILED)


def _run_supervised(folder: QuickstartFolder, config: Config, options: StartOptions) -> int:
    environment = {
        name: value for name, value in os.environ.items() if name not in options.excluded_variables
    }
    supervisor = Supervisor(folder.path / LOGS_FOLDER, environment, warn)
    with supervisor.handle_signals():
        children: dict[str, ChildProcess] = {}
        ended: ChildEndedError | None = None
        try:
            _start(folder, config, options, supervisor, children)
            while True:
                supervisor.poll()
        except StopRequestedError:
            pass
        except ChildEndedError as error:
            ended = error
            warn(f"proofgate: {error}")
        except OSError:
            supervisor.stop_all()
            raise
        try:
            return _stop_all(folder, options, supervisor, children, ended)
        finally:
            supervisor.close()


def _start(
    folder: QuickstartFolder,
    config: Config,
    options: StartOptions,
    supervisor: Supervisor,
    children: dict[str, ChildProcess],
) -> None:
    former = folder.simulated_provider_url
    if former is not None:
        provider = children["provider"] = _start_provider(former, supervisor)
        assert provider.ready is not None  # noqa: S101 - it was waited for
        folder.set_simulated_provider_url(provider.ready[1])
    serve = ["serve", "--config", str(folder.path / CONFIGURATION_FILE)]
    worker = children["worker"] = supervisor.start("worker", serve, WORKER_READY)
    arguments = _auditor_arguments(folder, config, options.explorer_listen)
    auditor = children["auditor"] = supervisor.start("auditor", arguments, AUDITOR_READY)
    supervisor.wait_ready(worker, auditor)
    assert worker.ready is not None  # noqa: S101 - as above
    assert auditor.ready is not None  # noqa: S101 - as above
    running = RunningGateway(
        gateway=reachable_address(worker.ready[1]),
        admin=reachable_address(worker.ready[2]),
        explorer=reachable_address(auditor.ready[1]),
        simulated=former is not None,
    )
    folder.write_running(running)
    model = config.settings.models[0].name
    print(_usage_text(folder, running, model, options), flush=True)
    if options.traffic:
        demo = ["demo-traffic", "--directory", str(folder.path)]
        children["traffic"] = supervisor.start("demo-traffic", demo, passing=True)


def _start_provider(base_url: str, supervisor: Supervisor) -> ChildProcess:
    """Starts the simulated provider at its previous address, or at another one if that is in use."""
    address = base_url.removeprefix("http://").removesuffix("/v1")
    try:
        require_free_addresses({"": address})
    except QuickstartError:
        address = "127.0.0.1:0"
    arguments = ["gateway", "mock-upstream", "--listen", address, "--tokens", str(_RESPONSE_TOKENS)]
    provider = supervisor.start("provider", arguments, PROVIDER_READY)
    supervisor.wait_ready(provider)
    return provider


def _auditor_arguments(folder: QuickstartFolder, config: Config, listen: str) -> list[str]:
    own = folder.auditor
    return [
        *("audit", "run", "--ledger", str(config.ledger_directory), "--listen", listen),
        *("--ledger-key", str(folder.path / VERIFYING_KEY_FILE)),
        *("--state", str(own / "state"), "--signing-key", str(own / "signing-key")),
        # No checkpoint is held outside this folder: an empty state starts a new log, an existing one
        # continues.
        *("--held", str(own / "held-checkpoint")),
        # A short interval for a user who is watching.
        *("--beat", "2"),
        *("--index", str(own / "index"), "--same-volume", "--readers", str(own / READERS_FILE)),
        *("--export-key", str(own / "export" / "signing-key"), "--sign-in-links", str(own / LINKS_FOLDER)),
    ]


def _usage_text(folder: QuickstartFolder, running: RunningGateway, model: str, options: StartOptions) -> str:
    path, command = folder.path, options.command
    inside = {
        name: shlex.quote(str(path / name)) for name in (TENANT_KEY_FILE, VERIFYING_KEY_FILE, LEDGER_FOLDER)
    }
    directory = "" if str(path) == "proofgate" else f" --directory {shlex.quote(str(path))}"
    answers = "\nAnswers are simulated: no request reaches a real provider." * running.simulated
    traffic = f"  {command} demo-traffic{directory}\n"
    return f"""\
the gateway runs: http://{running.gateway}/v1{answers}

Send a request, as the tenant whose API key is in {inside[TENANT_KEY_FILE]}:
{request_command(path, running.gateway, model)}

Fetch its receipt and verify it (ID is the x-request-id of the response):
  {command} receipt ID --url http://{running.gateway} --api-key-file {inside[TENANT_KEY_FILE]} --out receipt.json
  {command} verify receipt.json --key {inside[VERIFYING_KEY_FILE]}

See everything in the explorer. The link signs you in once, within 10 minutes:
  {folder.sign_in_url(running.explorer)}
  {command} sign-in-link{directory}      # another link
{traffic if running.simulated else ""}
Check the whole ledger, and show the status:
  {command} ledger fsck {inside[LEDGER_FOLDER]} --key {inside[VERIFYING_KEY_FILE]}
  {command} status --admin http://{running.admin}

Logs are in {path / LOGS_FOLDER}: two files of about {MAX_LOG_BYTES // MIB} MiB for each process at most.
Ctrl-C drains and seals."""


def _stop_all(
    folder: QuickstartFolder,
    options: StartOptions,
    supervisor: Supervisor,
    children: dict[str, ChildProcess],
    ended: ChildEndedError | None,
) -> int:
    """Stops the processes in this order: the sender of requests; the worker, which completes open requests
    and seals its log; the auditor, which can then read the seal; and the provider, which the worker used."""
    print("draining: waiting for open requests to finish", flush=True)
    codes = {
        name: supervisor.stop(children[name])
        for name in ("traffic", "worker", "auditor", "provider")
        if name in children
    }
    supervisor.stop_all()
    if ended is None and codes.get("worker") == -signal.SIGTERM and children["worker"].ready is None:
        print("stopped before the worker was ready", flush=True)
        return EXIT_OK
    sealed = codes.get("worker") == EXIT_OK
    if sealed:
        again = f"{options.command} quickstart --start --directory {shlex.quote(str(folder.path))}"
        print(f"sealed. Start it again: {again}", flush=True)
    elif "worker" in children and codes["worker"] is not None:
        warn(f"proofgate: the worker {children['worker'].exit_description}: see {children['worker'].log}")
    if ended is not None or ("worker" in children and not sealed):
        return EXIT_FAILED
    return EXIT_OK
