"""The additions of `proofgate quickstart --start` to the folder of a quickstart: the auditor's files, and the
addresses of the running processes."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from proofgate import _core
from proofgate.http_server import ListenError, bind
from proofgate.index.sign_in_links import SignInLinks
from proofgate.keys import KeyFileError, write_key_pair, write_new_file
from proofgate.quickstart import CONFIGURATION_FILE, QuickstartError, is_quickstart, set_provider_url

AUDITOR_FOLDER = "auditor"
LOGS_FOLDER = "logs"
READERS_FILE = "readers.json"
READER_KEY_FILE = "reader-key"
LINKS_FOLDER = "sign-in-links"
_RUNNING_FILE = "running.json"
_SIMULATED_PROVIDER_FILE = "simulated-provider"
#: Name of the reader that a sign-in link signs in.
_READER_NAME = "quickstart"
_KEY_BYTES = 24


@dataclass(frozen=True)
class RunningGateway:
    """The addresses at which a gateway of this folder listens."""

    gateway: str
    admin: str
    explorer: str
    simulated: bool


@dataclass(frozen=True)
class QuickstartFolder:
    """The folder of a quickstart."""

    path: Path

    @property
    def auditor(self) -> Path:
        """The auditor's folder: its keys, state, index and readers."""
        return self.path / AUDITOR_FOLDER

    @property
    def links(self) -> SignInLinks:
        """The sign-in links of the explorer."""
        return SignInLinks(self.auditor / LINKS_FOLDER)

    def add_auditor(self, ledger_name: str) -> None:
        """Creates the auditor's folder atomically, unless it exists. Raises QuickstartError."""
        if self.auditor.exists():
            return
        try:
            with tempfile.TemporaryDirectory(prefix=".auditor-", dir=self.path) as scratch:
                made = Path(scratch) / AUDITOR_FOLDER
                made.mkdir(mode=0o700)
                write_key_pair(f"{ledger_name}-auditor", made)
                write_key_pair(f"{ledger_name}-export", made / "export")
                key = secrets.token_hex(_KEY_BYTES)
                write_new_file(made / READER_KEY_FILE, key, 0o600)
                readers = {_core.hash_api_key(key): {"name": _READER_NAME, "all": True}}
                write_new_file(made / READERS_FILE, json.dumps(readers, indent=2), 0o600)
                for name in ("state", "index", LINKS_FOLDER):
                    (made / name).mkdir(mode=0o700)
                made.rename(self.auditor)
        except KeyFileError as error:
            raise QuickstartError(str(error)) from None
        except OSError as error:
            raise QuickstartError(f"{self.auditor} cannot be created: {error.strerror}") from None

    def sign_in_url(self, explorer: str) -> str:
        """Creates a one-time sign-in link. Raises OSError."""
        # A token after the # is not sent in requests, so no log contains it.
        return f"http://{explorer}/#/sign-in/{self.links.make(_READER_NAME)}"

    @property
    def simulated_provider_url(self) -> str | None:
        """The base URL of the simulated provider in the configuration; None without such a provider."""
        try:
            return (self.path / _SIMULATED_PROVIDER_FILE).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None

    def set_simulated_provider_url(self, base_url: str) -> None:
        """Sets the simulated provider's address in the configuration. It may differ at each start.

        Raises OSError.
        """
        former = self.simulated_provider_url
        if former not in (None, base_url):
            set_provider_url(self.path, base_url, former)
        replace_file(self.path / _SIMULATED_PROVIDER_FILE, base_url)

    @contextmanager
    def start_lock(self) -> Iterator[None]:
        """Locks the folder against a second start. Raises QuickstartError."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise QuickstartError(
                    f"{self.path} is already started: stop that process first, or choose another --directory"
                ) from None
            yield
        finally:
            with suppress(FileNotFoundError):
                (self.path / _RUNNING_FILE).unlink()
            os.close(descriptor)

    def write_running(self, running: RunningGateway) -> None:
        """Writes the addresses of the running processes, for other commands. Raises OSError."""
        replace_file(self.path / _RUNNING_FILE, json.dumps(asdict(running)))

    def read_running(self) -> RunningGateway:
        """Reads the addresses of the running processes. Raises QuickstartError if none runs on this
        folder."""
        if not is_quickstart(self.path):
            raise QuickstartError(
                f"{self.path} is not the folder of a quickstart: give the folder with "
                "--directory, or create one with `proofgate quickstart --start`"
            )
        try:
            return RunningGateway(**json.loads((self.path / _RUNNING_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise QuickstartError(
                f"no quickstart runs in {self.path}: start it with `proofgate quickstart --start "
                f"--directory {self.path}`"
            ) from None


def replace_file(path: Path, text: str) -> None:
    """Replaces a file that only its owner can read. Raises OSError."""
    fresh = path.with_name(f".{path.name}")
    fresh.unlink(missing_ok=True)
    write_new_file(fresh, text, 0o600)
    fresh.replace(path)


def free_address() -> str:
    """Returns a free address on loopback."""
    from proofgate.http_server import address_of

    with bind("127.0.0.1:0") as listener:
        return address_of(listener)


def require_free_addresses(addresses: dict[str, str]) -> None:
    """Raises QuickstartError for an address that cannot be bound. The message names the setting of the
    address."""
    for setting, address in addresses.items():
        try:
            bind(address).close()
        except ListenError as error:
            raise QuickstartError(f"{error}: choose another address with {setting}") from None


def setting_of(folder: Path, field: str) -> str:
    """Describes the setting of an address in an existing folder."""
    return f"`{field}` in {folder / CONFIGURATION_FILE}"
