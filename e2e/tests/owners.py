"""Which worker serves which tenant: sends one request per key and asks the workers who can prove it.

Runs inside the cluster's network. Standard input: {"url", "keys": {label: key}, "workers": {name: address}}; output:
{label: [worker]}.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx

from e2e.tests.fleet import MODEL


def main() -> None:
    """Prints the owners of all keys."""
    asked = json.loads(sys.stdin.read())
    admin = {"Authorization": f"Bearer {asked['admin_token']}"}
    with httpx.Client(timeout=30) as http:

        def owners(key: str) -> list[str]:
            body = {"model": MODEL, "messages": [{"role": "user", "content": "who serves me"}]}
            # A connection of its own, as a new client would have.
            headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
            response = http.post(f"{asked['url']}/chat/completions", json=body, headers=headers)
            response.raise_for_status()
            request_id = response.headers["x-request-id"]
            return [name for name, address in asked["workers"].items() if proves(address, request_id)]

        def proves(address: str, request_id: str) -> bool:
            # A worker makes few proofs at a time, and says so.
            for _ in range(20):
                answer = http.get(f"http://{address}:9090/proof/{request_id}", headers=admin)
                if answer.status_code != 503:
                    return answer.status_code == 200
            return False

        with ThreadPoolExecutor(16) as pool:
            found = dict(zip(asked["keys"], pool.map(owners, asked["keys"].values()), strict=True))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
