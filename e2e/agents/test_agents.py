"""Coding agents with their defaults, through a gateway with all rules on, before providers that refuse."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from proofgate import _core

from e2e.agents.refusing_upstream import Provider
from e2e.local_gateway import KEYS, LocalGateway, local_gateway
from e2e.loopback_server import loopback_server, url_of

#: Where `make test-agents` has installed them.
PROGRAMS = Path(os.environ.get("PROOFGATE_AGENTS", "")) / "node_modules" / ".bin"
#: An agent starts a large program, on a machine that does other things as well.
PATIENCE = 300
PACKS = ["exfiltration", "jailbreak", "obfuscation", "pii", "prompt-injection", "secrets"]
SECRET_OF_THE_FILE = "the lighthouse is at the north end"


@dataclass
class Bench:
    """A gateway before the scripted provider, and a project that an agent works in."""

    gateway: LocalGateway
    provider: type[Provider]
    project: Path
    home: Path

    def run(self, *command: str, **environment: str) -> str:
        """Runs an agent in the project to its end and returns what it printed; fails if it did not succeed."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        run = subprocess.run(
            [str(PROGRAMS / command[0]), *command[1:]],
            cwd=self.project,
            env={**kept, "HOME": str(self.home), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        said = f"{run.stdout}\n{run.stderr}"
        assert run.returncode == 0, (
            f"{command[0]} ended with {run.returncode}: {said}\nrefused: {self.provider.refused}"
        )
        return said

    def codex(self, prompt: str) -> str:
        """One task of Codex, as its page says to set it up."""
        configuration = self.home / ".codex"
        configuration.mkdir(exist_ok=True)
        (configuration / "config.toml").write_text(
            f"""
            model = "gpt-5.5"
            model_provider = "proofgate"

            [model_providers.proofgate]
            name = "Proofgate"
            base_url = "{self.gateway.base_url}"
            env_key = "PROOFGATE_KEY"
            wire_api = "responses"
            """
        )
        return self.run("codex", "exec", "--skip-git-repo-check", prompt, PROOFGATE_KEY=KEYS["acme"])

    def tools_that_were_sent(self) -> set[str]:
        """The types of all tools that reached the provider."""
        return {tool["type"] for body in self.provider.asked for tool in body.get("tools", []) if "type" in tool}


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A bench whose tenants may use the hosted tools that the test names."""
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    note = project / "NOTE.txt"
    note.write_text(f"{SECRET_OF_THE_FILE}\n")

    class Scripted(Provider):
        path_of_file = str(note)
        asked: ClassVar[list[dict[str, Any]]] = []
        refused: ClassVar[list[str]] = []

    with loopback_server(Scripted) as server:
        providers = [
            {"name": "openai", "type": "OpenAI", "baseURL": f"{url_of(server)}/v1"},
            {"name": "anthropic", "type": "Anthropic", "baseURL": f"{url_of(server)}/v1"},
        ]
        models = [{"name": "gpt-*", "provider": "openai"}, {"name": "claude-*", "provider": "anthropic"}]
        allowed = {"hostedTools": {"allow": getattr(request, "param", [])}}
        tenants = [{"name": "acme", "keyHashes": [_core.hash_api_key(KEYS["acme"])], **allowed}]
        settings = {"tenants": tenants, "providers": providers, "models": models, "policy": {"packs": PACKS}}
        with local_gateway(tmp_path / "gateway", settings=settings) as gateway:
            yield Bench(gateway, Scripted, project, home)


def test_codex_reads_a_file_and_says_what_it_says(bench: Bench) -> None:
    assert SECRET_OF_THE_FILE in bench.codex("Read NOTE.txt")
    assert bench.provider.refused == []
    assert "web_search" not in bench.tools_that_were_sent(), "a hosted tool is left out"


def test_claude_code_reads_a_file_and_says_what_it_says(bench: Bench) -> None:
    said = bench.run(
        "claude",
        "--print",
        "Read NOTE.txt",
        "--model",
        "claude-sonnet-5",
        ANTHROPIC_BASE_URL=f"http://{bench.gateway.address}",
        ANTHROPIC_AUTH_TOKEN=KEYS["acme"],
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_TELEMETRY="1",
    )
    assert SECRET_OF_THE_FILE in said
    assert bench.provider.refused == []


@pytest.mark.parametrize("bench", [["web_search"]], indirect=True)
def test_codex_may_search_the_web_where_its_plan_allows_it(bench: Bench) -> None:
    assert SECRET_OF_THE_FILE in bench.codex("Read NOTE.txt")
    assert "web_search" in bench.tools_that_were_sent()
