"""The arguments of the commands of the group `gateway`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from proofgate import commands as handlers
from proofgate import output
from proofgate.argument_types import parse_address, parse_number_in_range

_Describe = Callable[..., argparse.ArgumentParser]


def haproxy_sidecar(command: _Describe) -> None:
    """Describes `haproxy-sidecar`."""
    parser = command(
        handlers.haproxy_sidecar,
        "Watches the files and applies each change atomically over HAProxy's Unix socket, "
        "without a reload. Serves GET /healthz, /readyz, /metrics, /workers and, with --ask, "
        "/answers.",
    )
    parser.add_argument(
        "--socket", type=Path, required=True, metavar="PATH", help="HAProxy's stats socket, with level admin"
    )
    parser.add_argument(
        "--map",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a map file, at the path in HAProxy's configuration; can be repeated",
    )
    parser.add_argument(
        "--tenant-shards",
        type=Path,
        metavar="DIRECTORY",
        help="add the contents of 00/keys … 31/keys and 00/owners … 31/owners to tenants.map and owners.map",
    )
    parser.add_argument(
        "--kept-maps",
        type=Path,
        metavar="DIRECTORY",
        help="write the complete tenants.map and owners.map, with all shards, to this directory; "
        "HAProxy's configuration names these files, so HAProxy loads them when it starts",
    )
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="the weights of servers; a server that is not listed keeps its configured weight",
    )
    parser.add_argument(
        "--workers",
        type=Path,
        metavar="FILE",
        help="the addresses of servers, - for a server without an address (default: resolve their names)",
    )
    parser.add_argument(
        "--server-state",
        type=Path,
        metavar="FILE",
        help="with --workers: write the state of servers to this file; HAProxy loads the file when it "
        "starts (as its server-state-file)",
    )
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="the certificate chain, at the path in HAProxy's configuration; its key is FILE.key",
    )
    parser.add_argument(
        "--client-certificate",
        type=Path,
        metavar="FILE",
        help="the client certificate that HAProxy presents to workers, at the path in HAProxy's "
        "configuration; its key is FILE.key",
    )
    parser.add_argument(
        "--ask",
        type=parse_address,
        metavar="ADDRESS",
        help="the address of HAProxy's traffic port; send GET / to it every few seconds, with TLS if "
        "--certificate is given, and report the results at GET /answers",
    )
    parser.add_argument(
        "--ask-proxied",
        action="store_true",
        help="start each probe with a PROXY header; use this if HAProxy expects one",
    )
    parser.add_argument(
        "--listen",
        type=parse_address,
        default="127.0.0.1:8405",
        metavar="ADDRESS",
        help="default: %(default)s",
    )


def prices(command: _Describe) -> None:
    """Describes `prices`."""
    parser = command(
        handlers.prices,
        "Prices are in US dollars per million tokens. Files that the configuration names are not read.",
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the worker's YAML file")
    parser.add_argument(
        "--at", metavar="DATE", help="list the prices in force at midnight UTC of this day (default: now)"
    )
    output.add_argument(parser)


def mock_upstream(command: _Describe) -> None:
    """Describes `mock-upstream`."""
    from proofgate.mock_answers import DIRECTIVES
    from proofgate.mock_logprobs import LOGPROB_PROFILES

    parser = command(
        handlers.mock_upstream,
        "Serves the endpoints that a gateway calls, with and without streaming, and GET "
        "/v1/models, /health and /mock/stats.",
        DIRECTIVES,
    )
    parser.add_argument(
        "--listen",
        type=parse_address,
        default="127.0.0.1:9000",
        metavar="ADDRESS",
        help="default: %(default)s",
    )
    parser.add_argument(
        "--tokens",
        type=_positive,
        default=8,
        metavar="N",
        help="the length of a response, in tokens (default: 8)",
    )
    parser.add_argument(
        "--token-interval-ms",
        type=_parse_integer,
        default=0,
        metavar="N",
        help="the time between the tokens of a stream (default: 0)",
    )
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="a model to serve; can be repeated (default: any name)",
    )
    parser.add_argument(
        "--character",
        choices=LOGPROB_PROFILES,
        default="a",
        help="the simulated model: b gives its tokens lower probabilities (default: a)",
    )
    parser.add_argument(
        "--api-key", metavar="KEY", help="the API key that requests need (default: any key or none)"
    )


def _parse_integer(text: str) -> int:
    return int(parse_number_in_range(text, 0, 3_600_000, whole=True))


def _positive(text: str) -> int:
    return int(parse_number_in_range(text, 1, 1_000_000, whole=True))
