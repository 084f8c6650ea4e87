"""Resolves the names of workers to addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

#: A function that returns the addresses of a host. Raises OSError if the lookup fails; `socket.gaierror` with
#: EAI_NONAME if the host has no address.
Lookup = Callable[[str], Sequence[str]]

TIMEOUT_SECONDS = 2.0
_NOT_FOUND_ERRORS = (socket.EAI_NONAME, socket.EAI_NODATA)


def resolve_host(host: str) -> list[str]:
    """Returns the addresses of a host, IPv4 addresses first."""
    # With a final dot, the search list is not used.
    found = socket.getaddrinfo(f"{host.rstrip('.')}.", None, type=socket.SOCK_STREAM)
    addresses = {ipaddress.ip_address(address[0]) for *_, address in found}
    return [str(address) for address in sorted(addresses, key=lambda found: (found.version, int(found)))]


class NameResolver:
    """Resolves names in separate threads, so that a name server that does not answer delays nothing else."""

    def __init__(self, lookup: Lookup = resolve_host) -> None:
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="names")
        self._asked: dict[str, asyncio.Future[Sequence[str]]] = {}

    async def addresses(self, host: str) -> Sequence[str] | None:
        """Returns the addresses of a host, empty if it has none; None if no response comes in time."""
        question = self._asked.get(host)
        if question is None:
            loop = asyncio.get_running_loop()
            question = self._asked[host] = loop.run_in_executor(self._threads, self._lookup, host)
        answer: Sequence[str] | None
        try:
            answer = await asyncio.wait_for(asyncio.shield(question), TIMEOUT_SECONDS)
        except TimeoutError:
            if not question.done():
                # No second request is sent while one is pending.
                return None
            answer = None
        except socket.gaierror as error:
            answer = () if error.errno in _NOT_FOUND_ERRORS else None
        except OSError:
            answer = None
        self._asked.pop(host, None)
        return answer
