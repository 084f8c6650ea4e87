"""The sources of requests: the framing cases, the corpora of the fuzz targets, and the generator."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from e2e.garden.generator import candidates
from e2e.garden.guard import Candidate

ROOT = Path(__file__).parents[2]
CASES = ROOT / "e2e" / "framing" / "cases.json"
CORPORA = ROOT / "rust-core" / "fuzz" / "corpus"
GROWN_INPUTS = 1500  # the newest ones of each corpus in such a folder
ORDINARY_METHODS = {b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"PATCH", b"POST", b"PUT"}


def everything(generated: int, seed: str, grown: Path | None) -> Iterator[Candidate]:
    """All candidates. The folder `grown` has inputs from earlier fuzzing, in addition to the repository's corpora."""
    cases = [(case["id"], case["raw"].encode("latin-1")) for case in json.loads(CASES.read_text())["cases"]]
    for name, raw in cases:
        yield Candidate(f"case {name}", raw)
    for target, skipped in {"request_head": 0, "split_points": 1}.items():
        for name, data in _inputs(target, grown):
            raw = data[skipped:]
            yield Candidate(f"corpus {target}/{name}", raw)
            # Mutation often changes the method, because it comes first. llhttp refuses unknown methods, so all parsers
            # also get the rest of the request with POST.
            method, space, rest = raw.partition(b" ")
            if space and method not in ORDINARY_METHODS:
                yield Candidate(f"corpus {target}/{name}, as POST", b"POST " + rest)
    yield from candidates(generated, seed, [raw for _, raw in cases])


def _inputs(target: str, grown: Path | None) -> Iterator[tuple[str, bytes]]:
    for path in sorted((CORPORA / target).glob("*")):
        yield path.name, path.read_bytes()
    if grown is None:
        return
    ages = []
    for path in (grown / target).glob("*"):
        with contextlib.suppress(FileNotFoundError):  # a running fuzzer may replace inputs with shorter ones
            ages.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(ages)[-GROWN_INPUTS:]:
        with contextlib.suppress(FileNotFoundError):
            yield path.name, path.read_bytes()
