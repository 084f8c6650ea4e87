"""Requests from inside the cluster's network, by threads of this process that enter it, without further processes."""

from __future__ import annotations

import ctypes
import http.client
import os
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit

from e2e.cluster.layout import NODES
from e2e.cluster.network import NAMESPACES

_CLONE_NEWNET = 0x40000000
#: Maximum seconds of one request; not a performance goal.
_TIMEOUT = 60
_P = ParamSpec("_P")
_T = TypeVar("_T")
_S = TypeVar("_S")
_THREADS = ThreadPoolExecutor(16, "lab-network")


def _enter(node: Path) -> None:
    """Moves only the calling thread into a network namespace, to which its new sockets then belong."""
    try:
        entrance = os.open(node, os.O_RDONLY)
    except FileNotFoundError:
        raise RuntimeError(f"there is no {node}: only the local cluster has a network to enter") from None
    try:
        if ctypes.CDLL(None, use_errno=True).setns(entrance, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(node))
    finally:
        os.close(entrance)


def inside(function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """Calls a function in the network of the cluster's first node, from which Services and pods are reachable."""
    return _THREADS.submit(_from_within, lambda: function(*arguments, **named)).result()


def each_inside(function: Callable[[_S], _T], arguments: Iterable[_S]) -> list[_T]:
    """Calls a function in that network for every argument, sixteen at a time."""
    return list(_THREADS.map(lambda argument: _from_within(lambda: function(argument)), arguments))


def _from_within(function: Callable[[], _T]) -> _T:
    # The network is entered each time, because a restarted lab has a new network.
    _enter(NAMESPACES / NODES[0].namespace)
    return function()


@dataclass(frozen=True)
class Answer:
    """The status, headers and body of an answer; the names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    text: str


def exchange(method: str, url: str, body: str | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    """Sends one request on a new connection, like a new client."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_TIMEOUT)
    try:
        given = {"Connection": "close", **({} if body is None else {"Content-Type": "application/json"})}
        connection.request(method, parts.path, body, {**given, **(headers or {})})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
    finally:
        connection.close()


@contextmanager
def open_stream(url: str, body: str, headers: Mapping[str, str]) -> Iterator[None]:
    """A started answer whose body is not read. It ends at the end of the block at the latest."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_TIMEOUT)
    inside(connection.connect)
    try:
        connection.request("POST", parts.path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        if answer.status != 200 or not answer.readline():
            raise RuntimeError(f"{url} answers {answer.status}: {answer.read().decode(errors='replace')}")
        yield
    finally:
        connection.close()


def connects(address: str, port: int) -> bool:
    """Whether a port accepts a connection."""
    try:
        socket.create_connection((address, port), 5).close()
    except OSError:
        return False
    return True


def certificate(address: str, port: int, name: str, authority: Path) -> bytes | None:
    """The certificate, in DER, of a new connection to `name`; None if there is none or it is not trusted."""
    trusted = ssl.create_default_context(cafile=str(authority))
    try:
        with (
            socket.create_connection((address, port), _TIMEOUT) as plain,
            trusted.wrap_socket(plain, server_hostname=name) as secured,
        ):
            return secured.getpeercert(binary_form=True)
    except OSError:
        return None
