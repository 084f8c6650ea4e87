"""A distant API server: a proxy that delays requests, and fails some of them.

python3 -m e2e.unkind.slow_api --listen ADDRESS --upstream ADDRESS:PORT --certificate … --key … --authority …

Failing requests get, in turn, 429, 500, 503, or a connection that is closed without an answer. A forwarded watch ends
when the server ends it. Prints its listening port.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import ssl
from itertools import cycle

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

#: Hop-by-hop headers (RFC 9110, section 7.6.1), and headers that aiohttp sets.
_OF_A_CONNECTION = {
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "host",
}
#: None closes the connection.
_FAILURES: tuple[int | None, ...] = (429, 500, 503, None)
#: A fixed seed, so that all runs fail the same share of requests.
_SEED = 11


class Distance:
    """The distance between the operator and the API server, whose URL is `upstream`.

    A request takes `seconds` longer, and a `share` of them (0 to 1) fails.
    """

    def __init__(self, session: ClientSession, upstream: str, seconds: float, share: float) -> None:
        self._session = session
        self._upstream = upstream
        self._seconds = seconds
        self._share = share
        self._chance = random.Random(_SEED)
        self._failures = cycle(_FAILURES)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request, after the delay."""
        await asyncio.sleep(self._seconds)
        if self._chance.random() < self._share:
            return self._fail(request)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_A_CONNECTION}
        url = f"{self._upstream}{request.raw_path}"
        body = await request.read()
        async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _OF_A_CONNECTION}
            passed = web.StreamResponse(status=answer.status, headers=kept)
            await passed.prepare(request)
            async for part in answer.content.iter_any():
                await passed.write(part)
            await passed.write_eof()
            return passed

    def _fail(self, request: web.Request) -> web.StreamResponse:
        status = next(self._failures)
        if status is None:
            if request.transport:
                request.transport.abort()
            return web.Response()
        told = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": "on purpose"}
        return web.json_response(told, status=status, headers={"Retry-After": "1"} if status == 429 else {})


async def serve(options: argparse.Namespace) -> None:
    """Serves until it is terminated."""
    trusted = ssl.create_default_context(cafile=options.authority)
    presented = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    presented.load_cert_chain(options.certificate, options.key)
    connector = TCPConnector(ssl=trusted, limit=0)
    async with ClientSession(connector=connector, timeout=ClientTimeout(total=None), auto_decompress=False) as session:
        distance = Distance(session, f"https://{options.upstream}", options.milliseconds / 1000, options.percent / 100)
        application = web.Application(client_max_size=64 << 20)
        application.router.add_route("*", "/{path:.*}", distance.handle)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, options.listen, 0, ssl_context=presented)
        await site.start()
        print(f"listening on port {runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Serves with the settings in its arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", required=True, help="the address to listen on")
    parser.add_argument("--upstream", required=True, help="the API server's address and port")
    parser.add_argument("--certificate", required=True, help="a file with the certificate that clients see")
    parser.add_argument("--key", required=True, help="a file with its key")
    parser.add_argument("--authority", required=True, help="a file with the authority of the API server's certificate")
    parser.add_argument("--milliseconds", type=float, default=300, help="what is added to each request (default 300)")
    parser.add_argument("--percent", type=float, default=2, help="how many requests fail (default 2)")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
