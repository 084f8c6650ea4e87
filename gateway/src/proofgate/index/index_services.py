"""The index of an auditor and its port for readers: arguments and components."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proofgate import _core
from proofgate.index.command import location_error

if TYPE_CHECKING:
    from proofgate.index.audited_index import AuditedIndex
    from proofgate.index.oidc import OidcClient
    from proofgate.index.routes import ReaderPort

_MAX_DAYS = 36_500


@dataclass(frozen=True)
class IndexServices:
    """The optional services of an auditor: an index, and the port that answers readers from it; None if not
    configured."""

    index: AuditedIndex | None = None
    reader_port: ReaderPort | None = None

    @property
    def enqueue(self) -> Callable[[list[tuple[str, str]]], None] | None:
        """The function that receives accepted data as pairs of log directory and signed note; None without an
        index."""
        return None if self.index is None else self.index.enqueue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the command."""
    parser.add_argument(
        "--index",
        type=Path,
        metavar="DIR",
        help="keep an index of verified exchanges in this directory, not on the ledger's volume",
    )
    parser.add_argument(
        "--index-days",
        type=_days,
        metavar="DAYS",
        help="how many days of exchanges the index keeps; older exchanges are removed (default: all)",
    )
    parser.add_argument("--same-volume", action="store_true", help="allow the index on the ledger's volume")
    parser.add_argument(
        "--readers",
        type=Path,
        metavar="FILE",
        help="a JSON file of the readers that may query the index over the port, with the digests of "
        "their keys (default: none)",
    )
    parser.add_argument(
        "--export-key",
        type=Path,
        metavar="FILE",
        help="sign the exports that readers download with this key, created by `keys generate`; it must not "
        "be the auditor's signing key",
    )
    parser.add_argument(
        "--oidc",
        type=Path,
        metavar="FILE",
        help="a JSON file with an OpenID provider and the groups of this provider that may read (default: "
        "readers sign in only with keys)",
    )
    parser.add_argument(
        "--sign-in-links",
        type=Path,
        metavar="DIR",
        help="accept the one-time sign-in links in this directory, which `proofgate sign-in-link` "
        "creates (default: none)",
    )


def argument_error(options: argparse.Namespace) -> str | None:
    """Why the arguments contradict each other; None if they do not."""
    if options.index is None:
        if options.index_days is not None:
            return "--index-days needs --index"
        if options.readers is not None:
            return "--readers needs --index"
        more = _reader_only_options(options)
        named = next((name for name, value in more.items() if value is not None), None)
        return None if named is None else f"{named} needs --index and --readers"
    for name, value in _reader_only_options(options).items():
        if value is not None and options.readers is None:
            return f"{name} needs --readers"
    if options.once:
        return "--index cannot be combined with --once: use `proofgate audit index`"
    if options.ledger is None:
        # Copies of what workers serve are on the auditor's own volume, where the index may be too.
        return None
    return location_error(options.index, options.ledger, same_volume=options.same_volume)


def _reader_only_options(options: argparse.Namespace) -> dict[str, Path | None]:
    """Options that need readers."""
    return {
        "--export-key": options.export_key,
        "--oidc": options.oidc,
        "--sign-in-links": options.sign_in_links,
    }


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_DAYS:
        raise argparse.ArgumentTypeError(f"expected a whole number of days from 1 to {_MAX_DAYS}")
    return int(text)


def _export_key(options: argparse.Namespace) -> str | None:
    """Reads the signing key for exports; None without one. Raises OSError, and ValueError if it is not a
    signing key."""
    if options.export_key is None:
        return None
    key: str = options.export_key.read_text(encoding="utf-8").strip()
    _core.verifying_key(key)
    return key


def _oidc(options: argparse.Namespace) -> OidcClient | None:
    """Creates the OpenID Connect client; None without one. Raises OidcSettingsError."""
    if options.oidc is None:
        return None
    from proofgate.index.oidc import OidcClient
    from proofgate.index.oidc_settings import read_oidc_settings

    return OidcClient(read_oidc_settings(options.oidc))


@contextmanager
def open_index_services(
    options: argparse.Namespace, ledger_key: str, auditor: _core.Auditor
) -> Iterator[IndexServices]:
    """Opens the index and the port for readers that the arguments request. An unusable index is reported and
    retried.

    Raises ReadersError, and OSError for the access log.
    """
    with ExitStack() as stack:
        if options.index is None:
            yield IndexServices()
            return
        from proofgate.index.audited_index import AuditedIndex

        index = AuditedIndex(options.index, ledger_key, options.index_days, ledger=options.files)
        desk = None
        if options.readers is not None:
            from proofgate.index import command_line_reads
            from proofgate.index.access_log import AccessLog
            from proofgate.index.readers import ReadersFile
            from proofgate.index.routes import ReaderPort
            from proofgate.index.sign_in_links import SignInLinks

            access_log = AccessLog(options.state, time.time_ns() // 1000, auditor.recorded_access_log_head())
            if access_log.changed is not None:
                auditor.report_access_log_mismatch(access_log.changed)
            stack.callback(access_log.close)
            readers = ReadersFile(options.readers)
            desk = ReaderPort(
                options.index,
                options.files,
                readers,
                access_log,
                index.status,
                _export_key(options),
                _oidc(options),
                None if options.sign_in_links is None else SignInLinks(options.sign_in_links),
            )
            stack.callback(desk.flush, ending=True)
            command_line_reads.write_access_log_location(options.index, options.state)
        stack.enter_context(index)
        yield IndexServices(index, desk)
