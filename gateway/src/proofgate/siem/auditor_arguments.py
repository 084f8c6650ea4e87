"""An auditor's streams of events about accepted exchanges: arguments and components."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proofgate.siem.stream import EventStream

_MAX_LAG_SECONDS = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the command."""
    parser.add_argument(
        "--siem",
        action="append",
        default=[],
        metavar="URL",
        help="send every verified exchange to otlp+https://HOST:PORT or otlp+http://HOST:PORT; can be "
        "repeated. Parameters after '?': ca, authorization (a file with the header's value), "
        "format (attributes, ocsf or cef), plain=allow (for a target without TLS)",
    )
    parser.add_argument(
        "--siem-patience",
        type=float,
        default=_MAX_LAG_SECONDS,
        metavar="SECONDS",
        help="report a finding if exchanges have not been sent after this time (default: %(default)s)",
    )


def argument_error(options: argparse.Namespace) -> str | None:
    """Why the arguments contradict each other; None if they do not."""
    from proofgate.siem.sink_address import SinkAddressError, parse

    if options.siem and options.once:
        return "--siem cannot be combined with --once"
    if not 0 < options.siem_patience <= 86_400:
        return "--siem-patience: expected more than 0 and at most 86400 seconds"
    try:
        names = [parse(text, "").name for text in options.siem]
    except SinkAddressError as error:
        return f"--siem: {error}"
    return "--siem: a target is given twice" if len(set(names)) != len(names) else None


def streams(options: argparse.Namespace, ledger_key: str) -> list[EventStream]:
    """Creates the streams that the arguments request. Raises CursorError."""
    if not options.siem:
        return []
    from proofgate.siem.cursor import EventCursor
    from proofgate.siem.sink_address import parse
    from proofgate.siem.stream import EventStream

    sinks = [parse(text, ledger_key.split("+", 1)[0]) for text in options.siem]
    return [
        EventStream(
            sink, EventCursor(options.state, sink.name, ledger_key), ledger_key, options.siem_patience
        )
        for sink in sinks
    ]
