"""A gateway with all rules in front of the scripted providers, and the project that the clients work in."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

from proofgate import _core

from e2e.agents.stand_ins.server import KEY, Providers, providers
from e2e.local_gateway import KEYS, LocalGateway, local_gateway
from e2e.loopback_server import loopback_server, url_of
from suites.steps import ROOT

PACKS = ["exfiltration", "jailbreak", "obfuscation", "pii", "prompt-injection", "secrets"]
#: The answer in the scenarios without tools.
GREETING = "A lighthouse says good evening to every ship that passes it in the night."
SECRET_OF_THE_FILE = "the lighthouse is at the north end"
#: A model of each provider, by the provider's name for it.
MODELS = {
    "OpenAI": "gpt-5.1",
    "Anthropic": "claude-sonnet-4-5",
    "Gemini": "gemini-3-pro-preview",
    "Bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
}
#: Model names that some clients use for other requests, such as a title.
OTHERS = {"OpenAI": ("gpt-5.5", "gpt-*"), "Anthropic": ("claude-sonnet-5", "claude-*"), "Gemini": ("gemini-*",)}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC"
)


class _Trap(BaseHTTPRequestHandler):
    """A proxy that refuses every request and records its target."""

    seen: ClassVar[list[str]]

    def _refuse(self) -> None:
        self.seen.append(self.path)
        self.send_error(502)

    do_CONNECT = do_GET = do_POST = do_PUT = do_HEAD = _refuse

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""


@dataclass
class Bench:
    """The parts that a scenario needs."""

    gateway: LocalGateway
    providers: Providers
    folder: Path
    project: Path
    proxy: str
    #: Targets that clients requested besides the gateway.
    outside: list[str]
    files: list[str] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return f"http://{self.gateway.address}"

    @property
    def key(self) -> str:
        return KEYS["acme"]

    @property
    def no_way_out(self) -> dict[str, str]:
        """Variables that send all requests to other machines to the refusing proxy."""
        ways = {name: self.proxy for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
        ways["NO_PROXY"] = "127.0.0.1,localhost"
        return ways | {name.lower(): value for name, value in ways.items()}


def pdf() -> bytes:
    """A PDF of one page with a text, and with a correct cross-reference table."""
    text = b"BT /F1 12 Tf 20 20 Td (A lighthouse) Tj ET"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 120 60]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        page,
        b"<</Length %d>>stream\n%b\nendstream" % (len(text), text),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    written, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(written))
        written += b"%d 0 obj%b\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 6\n0000000000 65535 f \n"
    end = b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(written)
    return written + head + table + end


def fill(project: Path) -> list[str]:
    """Creates notes, a picture, a document and twenty files of this repository in a project; returns these twenty."""
    (project / "NOTE.txt").write_text(f"{SECRET_OF_THE_FILE}\n")
    (project / "OTHER.txt").write_text("the keeper is at home\n")
    (project / "picture.png").write_bytes(PNG)
    (project / "paper.pdf").write_bytes(pdf())
    names: list[str] = []
    for file in sorted((ROOT / "gateway/src/proofgate").glob("*.py")):
        if len(names) < 20 and 1500 < file.stat().st_size < 12_000:
            (project / file.name).write_bytes(file.read_bytes())
            names.append(str(project / file.name))
    assert len(names) == 20
    return names


def settings(address: str, key_file: str, hosted_tools: list[str], drops: tuple[str, ...]) -> dict[str, Any]:
    """A provider of each type with models under their own names, and a tenant."""
    paths = {"OpenAI": "/openai/v1", "Anthropic": "/anthropic/v1", "Gemini": "/gemini/v1beta", "Bedrock": "/bedrock"}
    return {
        "providers": [
            {
                "name": kind.lower(),
                "type": kind,
                "baseURL": f"{address}{path}",
                "auth": {"type": "APIKey", "apiKeyFile": key_file},
            }
            | ({"region": "us-east-1"} if kind == "Bedrock" else {})
            | ({"untranslatableFields": "Drop"} if kind in drops else {})
            for kind, path in paths.items()
        ],
        "models": [
            {"name": name, "provider": kind.lower()}
            for kind in MODELS
            for name in (MODELS[kind], *OTHERS.get(kind, ()))
        ],
        "tenants": [
            {
                "name": "acme",
                "keyHashes": [_core.hash_api_key(KEYS["acme"])],
                "hostedTools": {"allow": hosted_tools},
            }
        ],
        "policy": {"packs": PACKS},
    }


@contextmanager
def bench(folder: Path, hosted_tools: list[str] | None = None, drops: tuple[str, ...] = ()) -> Iterator[Bench]:
    """A running gateway before running providers."""
    project = folder / "project"
    project.mkdir()
    files = fill(project)
    key_file = folder / "provider-key"
    key_file.touch(mode=0o600)
    key_file.write_text(KEY)

    class Trap(_Trap):
        seen: ClassVar[list[str]] = []

    with providers() as scripted, loopback_server(Trap) as trap:
        given = settings(scripted.url, str(key_file), hosted_tools or [], drops)
        with local_gateway(folder / "gateway", settings=given) as gateway:
            yield Bench(gateway, scripted, folder, project, url_of(trap), Trap.seen, files)
