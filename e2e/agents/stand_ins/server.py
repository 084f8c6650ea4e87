"""The scripted providers behind one port, each below its own path."""

from __future__ import annotations

import json
import re
import select
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from e2e.agents.stand_ins import (
    anthropic_messages,
    bedrock_converse,
    bedrock_invoke,
    google_generate,
    openai_chat,
    openai_responses,
)
from e2e.agents.stand_ins.script import Asked, Json, Move, Refusal, Script, say
from e2e.loopback_server import loopback_server, url_of
from e2e.programs import PATIENCE

KEY = "provider-key-0123456789abcdef"
GOOGLE = re.compile(r"/gemini/v1beta/models/([^/:]+):(generateContent|streamGenerateContent)(\?alt=sse)?")
CONVERSE = re.compile(r"/bedrock/model/([^/]+)/(converse|converse-stream)")
INVOKE = re.compile(r"/bedrock/model/([^/]+)/(invoke|invoke-with-response-stream)")
OF_BEDROCK = (bedrock_converse, bedrock_invoke)


@dataclass
class Providers:
    """The next behavior of the models, and their received requests."""

    url: str = ""
    script: Script = field(default_factory=lambda: say("Hello"))
    #: Faults of the next requests instead of the script's answers: a rate limit or an overload.
    faults: deque[str] = field(default_factory=deque)
    asked: list[Json] = field(default_factory=list)
    #: The accepted requests.
    seen: list[Asked] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    #: `holding` is set when a stream waits for its client to disconnect; `gone` is set when the client has.
    holding: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)

    def begin(self, script: Script, *faults: str) -> None:
        """Begins a scenario."""
        self.script, self.faults = script, deque(faults)
        self.asked.clear()
        self.seen.clear()
        self.refused.clear()
        self.holding.clear()
        self.gone.clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    providers: Providers

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.providers.asked.append(body)
        api, model, streamed = self._addressed(body)
        try:
            if api is None:
                raise Refusal("Not found", 404)
            self._check_key()
            if self.providers.faults:
                status, words = api.LIMITED if self.providers.faults.popleft() == "limited" else api.OVERLOADED
                raise Refusal(words, status)
            asked, body = self._checked(api, body, model, streamed)
        except Refusal as refusal:
            self._refuse(api or openai_chat, refusal)
            return
        self.providers.seen.append(asked)
        move = self.providers.script(asked)
        if not streamed:
            self._answer(200, json.dumps(api.whole(model, move)).encode())
            return
        options = (openai_chat.wants_usage(body),) if api is openai_chat else ()
        self._stream(api, api.stream(model, move, *options), move)

    def _addressed(self, body: Json) -> tuple[Any, str, bool]:
        """The requested API and model, and whether a stream is requested."""
        model, streamed = str(body.get("model")), bool(body.get("stream"))
        apis = {
            "/openai/v1/chat/completions": openai_chat,
            "/openai/v1/responses": openai_responses,
            "/anthropic/v1/messages": anthropic_messages,
        }
        api = apis.get(self.path.partition("?")[0])
        if api is not None:
            return api, model, streamed
        for pattern, named in ((GOOGLE, google_generate), (CONVERSE, bedrock_converse), (INVOKE, bedrock_invoke)):
            found = pattern.fullmatch(self.path)
            if found:
                return named, unquote(found[1]), "stream" in found[2].lower()
        return None, model, streamed

    def _checked(self, api: Any, body: Json, model: str, streamed: bool) -> tuple[Asked, Json]:
        headers = {name.lower(): value for name, value in self.headers.items()}
        if api in (google_generate, *OF_BEDROCK):
            given = google_generate.normal(body) if api is google_generate else body
            api.check(given, headers, model)
            return api.asked(given, model, streamed), given
        api.check(body, headers)
        return api.asked(body), body

    def _check_key(self) -> None:
        named = [self.headers.get(name) for name in ("x-api-key", "x-goog-api-key")]
        if KEY not in [*named, str(self.headers.get("authorization")).removeprefix("Bearer ")]:
            raise Refusal("Incorrect API key provided", 401)

    def _refuse(self, api: Any, refusal: Refusal) -> None:
        if refusal.status not in (429, 503, 529):
            self.providers.refused.append(refusal.message)
        fields = {}
        if api in OF_BEDROCK:
            fields["x-amzn-errortype"] = bedrock_converse.EXCEPTIONS.get(refusal.status, "InternalServerException")
        body = json.dumps(api.error(refusal.status, refusal.message, refusal.kind)).encode()
        self._answer(refusal.status, body, **fields)

    def _answer(self, status: int, body: bytes, **fields: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **fields}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, api: Any, pieces: Iterator[bytes], move: Move) -> None:
        kind = "application/vnd.amazon.eventstream" if api in OF_BEDROCK else "text/event-stream"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        written = list(pieces)
        try:
            for number, piece in enumerate(written):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                if move.holds and number == len(written) // 2:
                    self.providers.holding.set()
                    self._wait_for_the_end()
                    return
            self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            self.close_connection = True

    def _wait_for_the_end(self) -> None:
        """Waits until the other side closes the connection, as the gateway does after its client has disconnected."""
        readable, _, _ = select.select([self.connection], [], [], PATIENCE)
        if readable:
            self.providers.gone.set()
        self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""


@contextmanager
def providers() -> Iterator[Providers]:
    """Running providers on loopback."""
    state = Providers()

    class Handler(_Handler):
        providers = state

    with loopback_server(Handler) as server:
        state.url = url_of(server)
        yield state
