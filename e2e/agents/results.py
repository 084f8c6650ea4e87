"""The results of a run: for each client, API and provider, the result of each scenario."""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

HERE = Path(__file__).parent
#: The file for the results, if the run writes one.
VARIABLE = "PROOFGATE_AGENTS_RESULTS"

#: The result by client, API, provider and scenario: `works`, `none`, or a kind and a reason.
Results = dict[str, dict[str, dict[str, dict[str, str]]]]


def version_of(client: str) -> str:
    """The pinned version of a client. Raises KeyError if no lock file has it."""
    for file in (HERE / "package.json", HERE / "sdk" / "package.json"):
        found = json.loads(file.read_text())["dependencies"].get(client)
        if found is not None:
            return str(found)
    named = {"llama-index": "llama-index-core", "pydantic-ai": "pydantic-ai-slim"}.get(client, client)
    for file in sorted((HERE / "requirements").glob("*.txt")):
        line = re.search(rf"^{re.escape(named)}==(\S+)", file.read_text(), re.MULTILINE)
        if line:
            return line[1]
    raise KeyError(client)


def record(client: str, api: str, provider: str, scenario: str, result: str) -> None:
    """Adds a result to those of all processes of the run, if the run writes results."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        results: Results = json.loads(file.read() or "{}")
        results.setdefault(client, {}).setdefault(api, {}).setdefault(provider, {})[scenario] = result
        file.truncate(0)
        file.write(json.dumps(results, indent=1) + "\n")


def read(path: Path) -> Results:
    """The results of a run. Raises FileNotFoundError if there was none."""
    results: Results = json.loads(path.read_text())
    return results
