"""The scenarios of every client, and their expected results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from e2e.agents import mcp_server
from e2e.agents.driven import Outcome
from e2e.agents.gateway import GREETING, SECRET_OF_THE_FILE, Bench
from e2e.agents.stand_ins.script import ask_a_server, read_at_once, read_one_by_one, say
from e2e.programs import PATIENCE


class Client(Protocol):
    """A client that runs scenarios: a library or a command."""

    def ask(self, does: str, prompt: str) -> Outcome:
        """Runs `turn`, `work` (with tools), `think` (`work` with thoughts), `mcp` (with the server's tool),
        `interrupt` or `models`.
        """


class Lacking(Exception):
    """The client does not support the scenario."""


class Unmet(Exception):
    """The client did not behave as expected; the text describes what it did."""


def _text(client: Client, does: str, prompt: str) -> str:
    outcome = client.ask(does, prompt)
    if outcome.not_offered:
        raise Lacking
    if outcome.failed:
        raise Unmet(outcome.failed)
    return outcome.text


def _expect(wanted: str, text: str) -> None:
    if wanted not in text:
        raise Unmet(f"expected {wanted!r}, and it said: {text[-1500:]}")


def turn(client: Client, bench: Bench) -> None:
    bench.providers.begin(say(GREETING))
    _expect(GREETING, _text(client, "turn", "Say good evening."))


def tools(client: Client, bench: Bench) -> None:
    paths = [str(bench.project / name) for name in ("NOTE.txt", "OTHER.txt")]
    bench.providers.begin(read_at_once(paths))
    text = _text(client, "work", "Read NOTE.txt and OTHER.txt.")
    _expect(SECRET_OF_THE_FILE, text)
    _expect("the keeper is at home", text)


def mcp(client: Client, bench: Bench) -> None:
    bench.providers.begin(ask_a_server(mcp_server.TOOL, {"light": "north end"}))
    _expect(mcp_server.keeper_of("north end"), _text(client, "mcp", "Who keeps the light at the north end?"))


def media(client: Client, bench: Bench) -> None:
    paths = [str(bench.project / name) for name in ("picture.png", "paper.pdf")]
    bench.providers.begin(read_at_once(paths))
    _expect("application/pdf, image/png", _text(client, "work", "What do picture.png and paper.pdf show?"))


def thinking(client: Client, bench: Bench) -> None:
    bench.providers.begin(read_one_by_one(bench.files[:5]))
    _expect("Read 5 files", _text(client, "think", "Read five files."))
    if not any(asked.thinks for asked in bench.providers.seen):
        # A command that requests no thoughts by default has only read files.
        raise Lacking


def session(client: Client, bench: Bench) -> None:
    bench.providers.begin(read_one_by_one(bench.files))
    text = _text(client, "work", "Read all files.")
    _expect("Read 20 files", text)
    # Clients number lines and cut long ones, so one line of each file is checked.
    _expect(_first_line(bench.files[-1]), text)


def _first_line(path: str) -> str:
    return Path(path).read_text().splitlines()[0].strip('"')[:40]


def interruption(client: Client, bench: Bench) -> None:
    # Rules check a part of an answer before the client gets it.
    bench.providers.begin(say(200 * GREETING, holds=True))
    _text(client, "interrupt", "Say good evening.")
    if not bench.providers.gone.wait(PATIENCE):
        raise Unmet("the provider was not told that the client had gone")
    bench.providers.begin(say(GREETING))
    _expect(GREETING, _text(client, "turn", "Say good evening."))


def retries(client: Client, bench: Bench) -> None:
    bench.providers.begin(say(GREETING), "limited", "overloaded")
    _expect(GREETING, _text(client, "turn", "Say good evening."))
    if bench.providers.faults:
        raise Unmet("it did not ask again")


def models(client: Client, bench: Bench) -> None:
    bench.providers.begin(say(GREETING))
    listed = _text(client, "models", "Say good evening.")
    for wanted in ("claude-sonnet-4-5", "claude-sonnet-5"):
        _expect(wanted, listed)


#: The last fault makes the gateway fall back from a provider that was overloaded.
SCENARIOS: dict[str, Callable[[Client, Bench], None]] = {
    "turn": turn,
    "tools": tools,
    "mcp": mcp,
    "media": media,
    "thinking": thinking,
    "session": session,
    "interruption": interruption,
    "models": models,
    "retries": retries,
}


def result_of(scenario: str, client: Client, bench: Bench) -> str:
    """`works`, `none` if the client does not support the scenario, `refused: …` by the gateway, or `fails: …`."""
    try:
        SCENARIOS[scenario](client, bench)
    except Lacking:
        return "none"
    except Unmet as unmet:
        by = "fails" if bench.providers.refused or not _is_refusal(str(unmet)) else "refused"
        said = f"; the provider refused: {bench.providers.refused[0]}" if bench.providers.refused else ""
        return f"{by}: {unmet}{said}"
    if bench.outside:
        return f"fails: it wanted to go to {', '.join(sorted(set(bench.outside)))}"
    return "works"


#: Error codes of the gateway's refusals.
REFUSALS = (
    "endpoint_not_supported_by_model",
    "has no counterpart",
    "hosted_tool_not_allowed",
    "is not served here",
    "not_translatable",
    "The provider of this model supports",
)


def _is_refusal(text: str) -> bool:
    return any(code in text for code in REFUSALS)
