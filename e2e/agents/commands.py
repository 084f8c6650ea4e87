"""Coding agents run without a terminal: one process for each task, configured as their documentation says."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.agents import mcp_server
from e2e.agents.driven import PATIENCE, Outcome, node_modules, python_of
from e2e.agents.gateway import Bench
from e2e.agents.results import version_of
from e2e.programs import Program, wait_until


@dataclass(frozen=True)
class Asking:
    """An agent's configuration and its prompt."""

    bench: Bench
    home: Path
    api: str
    model: str
    does: str
    prompt: str

    @property
    def server(self) -> list[str]:
        """The command of the MCP server; empty for a task without it."""
        return [str(python_of("agents")), mcp_server.__file__] if self.does == "mcp" else []


@dataclass(frozen=True)
class Task:
    """A process to run: the program with its arguments, and its environment variables."""

    command: Sequence[str]
    variables: dict[str, str]


class Command:
    """A coding agent."""

    def __init__(self, name: str, api: str, model: str, bench: Bench) -> None:
        self._name, self._api, self._model, self._bench = name, api, model, bench
        self._task = TASKS[name]
        self._home = bench.folder / "home"
        self._home.mkdir(exist_ok=True)

    def ask(self, does: str, prompt: str) -> Outcome:
        """Runs one task to its end; if it is to be interrupted, until the provider waits. Raises TimeoutError."""
        if does in NOT_OFFERED.get(self._name, ()):
            return Outcome(not_offered=True)
        return self._models(prompt) if does == "models" else self._run(does, prompt)

    def _models(self, prompt: str) -> Outcome:
        """The model list that Claude Code caches. It requests the list during another task, without waiting for it."""
        kept = self._home / ".claude" / "cache" / "gateway-models.json"
        for _ in range(TRIES):
            outcome = self._run("models", prompt)
            if outcome.failed or kept.exists():
                break
        # With the models, it requests its vendor's list of MCP servers, and continues if nothing answers.
        self._bench.outside[:] = [place for place in self._bench.outside if place != "api.anthropic.com:443"]
        return Outcome(kept.read_text() if kept.exists() else "", outcome.failed)

    def _run(self, does: str, prompt: str) -> Outcome:
        task = self._task(Asking(self._bench, self._home, self._api, self._model, does, prompt))
        variables = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        variables |= {"HOME": str(self._home), **self._bench.no_way_out, **task.variables}
        program = Program.start(
            self._name, self._bench.folder, [], task.command, cwd=self._bench.project, env=variables,
            start_new_session=True,
        )  # fmt: skip
        try:
            if does == "interrupt":
                program.wait_until(self._bench.providers.holding.is_set, "the provider has said a half", PATIENCE)
                return Outcome("interrupted")
            wait_until(lambda: program.process.poll() is not None, PATIENCE, f"{self._name} ends: {program.printed}")
        finally:
            self._end(program)
        if program.process.returncode:
            return Outcome(failed=program.report)
        return Outcome(program.printed)

    @staticmethod
    def _end(program: Program) -> None:
        """Ends the agent and its child processes, unless the agent has already ended."""
        if program.process.poll() is None:
            os.killpg(program.process.pid, signal.SIGKILL)
            program.process.wait(PATIENCE)


#: Maximum runs of a task until the agent has cached its model list.
TRIES = 10
#: Scenarios that an agent does not support. Only Claude Code lists a provider's models.
NOT_OFFERED = {
    "codex": ("models",),
    "opencode": ("models",),
    "gemini": ("models",),
    "aider": ("models", "work", "think", "mcp"),
}


def _bin(name: str) -> str:
    return str(node_modules() / ".bin" / name)


def _started_by_json(server: list[str]) -> dict[str, dict[str, object]]:
    """The MCP server in the configuration of Claude Code and Gemini CLI; empty if there is none."""
    return {mcp_server.SERVER: {"command": server[0], "args": server[1:]}} if server else {}


def claude_code(asked: Asking) -> Task:
    """`docs/clients/claude-code.md`."""
    servers = {"mcpServers": _started_by_json(asked.server)}
    tools = ["Read", f"mcp__{mcp_server.SERVER}__{mcp_server.TOOL}"]
    command = [_bin("claude"), "--print", asked.prompt, "--model", asked.model, "--allowedTools", ",".join(tools)]
    variables = {
        "ANTHROPIC_BASE_URL": asked.bench.base_url,
        "ANTHROPIC_AUTH_TOKEN": asked.bench.key,
        "DISABLE_TELEMETRY": "1",
        # Otherwise it starts without any MCP server that is slow to start.
        "MCP_CONNECTION_NONBLOCKING": "false",
        "MCP_CONNECT_TIMEOUT_MS": str(1000 * PATIENCE),
        "MCP_TIMEOUT": str(1000 * PATIENCE),
    }
    # If nonessential traffic is disabled, it does not request models either.
    discovery = ("CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "DISABLE_AUTOUPDATER")
    names = discovery if asked.does == "models" else ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",)
    variables |= dict.fromkeys(names, "1")
    return Task([*command, "--mcp-config", json.dumps(servers)], variables)


def _server_in_toml(server: list[str]) -> str:
    """The MCP server in the configuration of Codex; empty if there is none."""
    if not server:
        return ""
    return f"""
        [mcp_servers.{mcp_server.SERVER}]
        command = {json.dumps(server[0])}
        args = {json.dumps(server[1:])}
        required = true
        startup_timeout_sec = {PATIENCE}
        tool_timeout_sec = {PATIENCE}
        """


def codex(asked: Asking) -> Task:
    """`docs/clients/codex.md`."""
    folder = asked.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        f"""
        model = "{asked.model}"
        model_provider = "proofgate"
        check_for_update_on_startup = false

        [features]
        apps = false
        plugins = false

        [analytics]
        enabled = false

        [model_providers.proofgate]
        name = "Proofgate"
        base_url = "{asked.bench.base_url}/v1"
        env_key = "PROOFGATE_KEY"
        wire_api = "{asked.api}"
        {_server_in_toml(asked.server)}
        """
    )
    command = [_bin("codex"), "exec", "--skip-git-repo-check", asked.prompt]
    return Task(command, {"PROOFGATE_KEY": asked.bench.key})


def _write(file: Path, document: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def _no_plugin_to_install(folder: Path) -> None:
    """Opencode installs the package that plugins import from the registry, unless it finds it in this folder."""
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    wanted = {"dependencies": {"@opencode-ai/plugin": version_of("opencode-ai")}}
    _write(folder / "package.json", wanted)
    _write(folder / "package-lock.json", {"lockfileVersion": 3, "packages": {"": wanted}})


#: The package by which opencode speaks each API.
OF_OPENCODE = {"chat": "@ai-sdk/openai-compatible", "responses": "@ai-sdk/openai", "messages": "@ai-sdk/anthropic"}


def opencode(asked: Asking) -> Task:
    """`docs/clients/opencode.md`."""
    model = asked.model
    known = {"name": model, "attachment": True, "tool_call": True, "modalities": {"input": ["text", "image", "pdf"],
             "output": ["text"]}, "limit": {"context": 200_000, "output": 16_000}}  # fmt: skip
    provider = {
        "npm": OF_OPENCODE[asked.api],
        "options": {"baseURL": f"{asked.bench.base_url}/v1", "apiKey": "{env:PROOFGATE_KEY}"},
        "models": {model: known},
    }
    configuration = {"$schema": "https://opencode.ai/config.json", "provider": {"proofgate": provider},
                     "autoupdate": False, "share": "disabled"}  # fmt: skip
    if asked.server:
        server = {"type": "local", "command": asked.server, "enabled": True, "timeout": 1000 * PATIENCE}
        configuration["mcp"] = {mcp_server.SERVER: server}
    _write(asked.home / ".config" / "opencode" / "opencode.json", configuration)
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE", "EXTERNAL_SKILLS")
    variables = {f"OPENCODE_DISABLE_{name}": "true" for name in off}
    _no_plugin_to_install(asked.home / ".config" / "opencode")
    command = [_bin("opencode"), "run", "--model", f"proofgate/{model}", asked.prompt]
    return Task(command, {"PROOFGATE_KEY": asked.bench.key, **variables})


def gemini_cli(asked: Asking) -> Task:
    """`docs/clients/gemini-cli.md`."""
    servers = {
        name: {**server, "timeout": 1000 * PATIENCE, "trust": True}
        for name, server in _started_by_json(asked.server).items()
    }
    configuration = {
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "mcpServers": servers,
    }
    _write(asked.home / ".gemini" / "settings.json", configuration)
    return Task(
        [_bin("gemini"), "--model", asked.model, "--prompt", asked.prompt],
        {
            "GOOGLE_GEMINI_BASE_URL": asked.bench.base_url,
            "GEMINI_API_KEY": asked.bench.key,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        },
    )


def aider(asked: Asking) -> Task:
    """`docs/clients/aider.md`."""
    # It downloads the price list unless it has one from today.
    _write(asked.home / ".aider" / "caches" / "model_prices_and_context_window.json", {"none": {}})
    program = python_of("aider").with_name("aider")
    quiet = ["--no-check-update", "--no-show-release-notes", "--analytics-disable", "--no-git", "--yes-always"]
    quiet += ["--no-show-model-warnings", "--no-detect-urls", "--no-pretty", "--map-tokens", "0"]
    url, key = asked.bench.base_url, asked.bench.key
    of_api = {
        "chat": ("openai", {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": key}),
        "messages": ("anthropic", {"ANTHROPIC_API_BASE": url, "ANTHROPIC_API_KEY": key}),
    }
    prefix, variables = of_api[asked.api]
    variables["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    return Task([str(program), "--model", f"{prefix}/{asked.model}", *quiet, "--message", asked.prompt], variables)


TASKS: dict[str, Callable[[Asking], Task]] = {
    "claude": claude_code,
    "codex": codex,
    "opencode": opencode,
    "gemini": gemini_cli,
    "aider": aider,
}
