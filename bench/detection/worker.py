"""python -m bench.detection.worker SETS [--files 150] [--each 2] [--turns 10] [--policy FILE]

What a real worker does to honest traffic with all packs: files of ordinary repositories as results of tools, alone and
in sessions of agents that send their history again with each turn, as Chat Completions and as Messages; prompts of real
agents in every role; the history of a repository. A provider beside it keeps what reaches it, which is compared with
what was sent. `bench/detection/__init__.py` says how to get the sets.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import yaml
from proofgate import _core

from bench.detection import sessions
from bench.detection.agent import CHAT, DIALECTS, ROLES, Dialect, Result, in_turns
from bench.detection.judge import parses
from bench.proofgate_worker import POLICY
from bench.request import CLAUDE, KEY, MODEL
from e2e.kept import KeepingProvider
from e2e.local_gateway import LocalGateway
from e2e.worker.judging import before_provider

_PATIENCE = 120
_REPOSITORY = Path(__file__).resolve().parents[2]
#: Bytes of `git log -p` that a tool returns at once.
_PIECE = 30_000
_PROMPTS = frozenset({".md", ".txt", ".snap", ".j2", ".jinja", ".prompt", ".yaml"})


@dataclass(frozen=True)
class Sent:
    """The outcome of a request: the error of a refusal, and the tool results that arrived changed."""

    status: int
    error: str = ""
    rules: str = ""
    altered: dict[int, str] = field(default_factory=dict)
    unlike: bool = False
    """Whether anything except a tool result arrived changed."""


@dataclass
class Worker:
    """A worker, the provider behind it, and a connection that stays open."""

    gateway: LocalGateway
    provider: KeepingProvider
    connection: HTTPConnection

    def send(self, dialect: Dialect, body: bytes) -> Sent:
        """Sends a request, and compares the arrived request with it."""
        self.provider.take()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        self.connection.request("POST", dialect.path, body, headers)
        response = self.connection.getresponse()
        told = response.read()
        if response.status != 200:
            return Sent(response.status, json.loads(told)["error"]["message"])
        [asked] = self.provider.take()
        if asked.body == body:
            return Sent(200)
        before, after = json.loads(body), asked.read()
        pairs = enumerate(zip(dialect.results(before), dialect.results(after), strict=True))
        altered = {number: new for number, (old, new) in pairs if old != new}
        rules = response.headers.get("x-proofgate-redacted") or response.headers.get("x-proofgate-masked") or ""
        return Sent(200, rules=rules, altered=altered, unlike=not altered)

    def counted(self, name: str) -> int:
        lines = self.gateway.admin_text("/metrics").splitlines()
        return sum(int(line.split()[-1]) for line in lines if line.startswith(f"proofgate_{name} "))


@contextmanager
def running(folder: Path, policy: dict[str, Any]) -> Iterator[Worker]:
    """A worker with these rules."""
    tenants = [{"name": "bench", "keyHashes": [_core.hash_api_key(KEY)]}]
    with before_provider(folder, tenants, models=(MODEL, CLAUDE), policy=policy) as (gateway, provider):
        host, port = gateway.address.rsplit(":", 1)
        connection = HTTPConnection(host, int(port), timeout=_PATIENCE)
        yield Worker(gateway, provider, connection)
        connection.close()


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, help="the folder that holds the sets")
    parser.add_argument("--files", type=int, default=150, help="files of each repository at most (default 150)")
    parser.add_argument("--each", type=int, default=2, help="sessions of each size and repository (default 2)")
    parser.add_argument("--turns", type=int, default=10, help="turns of a session (default 10)")
    parser.add_argument("--commits", type=int, default=100, help="commits of this repository (default 100)")
    parser.add_argument("--policy", type=Path, help="the policy of the worker's configuration (default: all packs)")
    options = parser.parse_args()
    policy = yaml.safe_load(options.policy.read_text()) if options.policy else POLICY
    files = sessions.files(options.sets / "ordinary", options.files)
    with tempfile.TemporaryDirectory(prefix="proofgate-sessions-") as scratch, running(Path(scratch), policy) as worker:
        for dialect in DIALECTS:
            alone = _alone(worker, dialect, files)
            _sessions(worker, dialect, alone, options.each, options.turns)
        _history(worker, options.commits)
        _prompts(worker, options.sets / "agent-prompts")
        hits, misses = (worker.counted(f'prefix_verdicts_total{{result="{result}"}}') for result in ("hit", "miss"))
        print(f"\nTexts that were known: {hits} of {hits + misses}.")
    return 0


def _alone(worker: Worker, dialect: Dialect, files: Sequence[sessions.File]) -> dict[sessions.File, Sent]:
    """Sends each file alone, as the only result of a tool."""
    judged = {
        file: sent
        for file in files
        for sent in [worker.send(dialect, body) for body in dialect.session([[Result(file.path, file.text)]])]
    }
    print(f"\n## {dialect.name}\n\n| files | refused | altered | no longer parsed, of altered ones that could be |")
    print("|---|---|---|---|")
    refused = [file for file, sent in judged.items() if sent.status != 200]
    altered = {file: sent.altered[0] for file, sent in judged.items() if sent.altered}
    readable = [file for file in altered if parses(file.path, file.text)]
    broken = [file for file in readable if not parses(file.path, altered[file])]
    print(
        f"| {len(files)} | {_share(len(refused), len(files))} | {_share(len(altered), len(files))} "
        f"| {len(broken)} of {len(readable)} |\n"
    )
    for file in refused:
        print(f"refused: {file.repository}/{file.path}: {judged[file].error}")
    for file in broken:
        print(f"no longer parsed: {file.repository}/{file.path}: {judged[file].rules}")
    print(f"altered by: {_by_rule(judged.values())}")
    unlike = sum(sent.unlike for sent in judged.values())
    print(f"altered elsewhere than in the file: {unlike}")
    return judged


def _sessions(
    worker: Worker, dialect: Dialect, alone: dict[sessions.File, Sent], each: int, turns: int, seed: int = 1
) -> None:
    """Sends, for each size, `each` sessions of every repository that has enough files."""
    by_repository: dict[str, list[sessions.File]] = {}
    for file in alone:
        by_repository.setdefault(file.repository, []).append(file)
    print("\n| files | sessions | requests | with a refused file | others refused | altered, of all read | not alone |")
    print("|---|---|---|---|---|---|---|")
    for size in sessions.SIZES:
        made = [
            random.Random(f"{seed}-{name}-{size}-{number}").sample(found, size)
            for name, found in sorted(by_repository.items())
            if len(found) >= size
            for number in range(each)
        ]
        requests, known, dead, altered, newly, broken = 0, 0, [], 0, 0, []
        for session in made:
            if any(alone[file].status != 200 for file in session):
                known += 1
                continue
            results = [Result(file.path, file.text) for file in session]
            for body in dialect.session(in_turns(results, turns)):
                sent = worker.send(dialect, body)
                requests += 1
                if sent.status != 200:
                    dead.append(f"{session[0].repository}, {size} files: {sent.status} {sent.error}")
                    break
            altered += len(sent.altered)
            newly += sum(not alone[session[number]].altered for number in sent.altered)
            changed = [(session[number], text) for number, text in sent.altered.items()]
            broken += [
                file.path for file, new in changed if parses(file.path, file.text) and not parses(file.path, new)
            ]
        read = size * (len(made) - known)
        shares = f"{len(dead)} | {_share(altered, read)} | {newly}"
        print(f"| {size} | {len(made)} | {requests} | {known} | {shares} |", flush=True)
        if dead or broken:
            print("\n" + "\n".join([*dead, *(f"no longer parsed: {path}" for path in broken)]) + "\n")


def _history(worker: Worker, commits: int) -> None:
    """Sends the history of this repository in the output formats of `git log`."""
    print("\n| the last commits of this repository | pieces | refused | altered | by |\n|---|---|---|---|---|")
    for options in ([], ["--stat"], ["-p"]):
        command = ["git", "-C", str(_REPOSITORY), "log", f"-{commits}", *options]
        text = subprocess.run(command, check=True, capture_output=True).stdout.decode(errors="replace")
        pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
        sent = [worker.send(CHAT, body) for piece in pieces for body in CHAT.session([[Result("log", piece)]])]
        refused, altered = sum(one.status != 200 for one in sent), sum(bool(one.altered) for one in sent)
        print(f"| `{' '.join(['git log', *options])}` | {len(sent)} | {refused} | {altered} | {_by_rule(sent)} |")
        for one in sent:
            if one.error:
                print(f"\n{one.error}\n")


def _prompts(worker: Worker, folder: Path) -> None:
    """Sends prompts of real agents in every role."""
    if not folder.is_dir():
        print(f"\n{folder} is not there.")
        return
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _PROMPTS and path.is_file())
    texts = {path: path.read_bytes().decode(errors="ignore") for path in paths}
    texts = {path: text for path, text in texts.items() if text.strip() and len(text) <= sessions.LARGEST}
    print("\n| prompts of agents as | texts | refused | altered | by |\n|---|---|---|---|---|")
    refusals = []
    for role, messages in ROLES.items():
        sent = {}
        for path, text in texts.items():
            sent[path] = worker.send(CHAT, CHAT.body([json.dumps(message) for message in messages(text)]))
        refused = [
            f"refused as {role}: {path.relative_to(folder)}: {one.error}" for path, one in sent.items() if one.error
        ]
        altered = sum(bool(one.altered) or one.unlike for one in sent.values())
        shares = f"{_share(len(refused), len(texts))} | {_share(altered, len(texts))}"
        print(f"| {role} | {len(texts)} | {shares} | {_by_rule(sent.values())} |")
        refusals += refused
    print("\n" + "\n".join(refusals))


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.2%})" if whole else "0"


def _by_rule(sent: Iterable[Sent]) -> str:
    rules = Counter(rule.partition("=")[0] for one in sent for rule in one.rules.split(", ") if rule)
    return ", ".join(f"{rule} {count}" for rule, count in rules.most_common(12)) or "none"


if __name__ == "__main__":
    sys.exit(main())
