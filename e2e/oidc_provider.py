"""An organisation's OpenID provider: `oidc-provider` of npm, which is certified, on loopback."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.node_packages import node_packages
from e2e.ports import free_port
from e2e.programs import Program, start_ready

_HERE = Path(__file__).parent / "oidc"


@dataclass(frozen=True)
class Client:
    """The client that is registered with the provider."""

    redirect_uri: str
    id: str = "proofgate-auditor"
    secret: str = "client-secret-0123456789abcdef"


@contextmanager
def oidc_provider(folder: Path, client: Client, people: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Starts a provider that knows these people with their groups; gives its issuer.

    It is at `localhost`, which is another site than 127.0.0.1 for a browser.
    """
    # A script finds its packages in its folder, and the checkout has none.
    work = folder / "provider"
    work.mkdir()
    for name in ("package.json", "provider.mjs"):
        shutil.copy(_HERE / name, work)
    (work / "node_modules").symlink_to(node_packages("oidc"))
    port = free_port()
    registered = {
        "client_id": client.id,
        "client_secret": client.secret,
        "redirect_uris": [client.redirect_uri],
        "response_types": ["code"],
        "grant_types": ["authorization_code"],
    }
    told = json.dumps({"port": port, "client": registered, "people": dict(people)})
    program, _ = start_ready(
        lambda: Program.start("provider", work, ["provider.mjs", told], ["node"], cwd=work),
        lambda program: program.wait_for_line("provider ready"),
    )
    try:
        yield f"http://localhost:{port}"
    finally:
        program.stop(signal.SIGKILL)
