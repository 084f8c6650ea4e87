"""A gateway with a free-form field as deep as the API server accepts does not affect other gateways."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from proofgate_operator.api import KIND
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.kube.errors import parse_response
from proofgate_operator.kube.nesting_limit import MAX_DEPTH, raise_recursion_limit
from proofgate_operator.kube.store import Store
from proofgate_operator.kube.watch_stream import EventDecoder
from tests.gateways import manifest


@pytest.fixture
def parsers() -> Iterator[None]:
    """Set the recursion limit of the operator's process for parsers."""
    before = sys.getrecursionlimit()
    raise_recursion_limit()
    yield
    sys.setrecursionlimit(before)


def text_of(name: str, levels: int = 1) -> str:
    """Return a gateway as the API server sends it, with this many levels below the workers' affinity."""
    found = manifest(worker={"podTemplate": {"affinity": "HERE"}})
    found["metadata"] |= {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"}
    return json.dumps(found).replace('"HERE"', '{"a":' * levels + "{}" + "}" * levels)


def depth_of(found: Any) -> int:
    depth, level = 0, [found]
    while level:
        level = [inner for node in level for inner in (node.values() if isinstance(node, dict) else node)]
        level = [node for node in level if isinstance(node, dict | list)]
        depth += 1
    return depth


@pytest.mark.parametrize("levels", [100, 900, 950, 1000, 9990])
def test_a_gateway_that_nests_without_end_keeps_no_other_from_being_read(parsers: None, levels: int) -> None:
    names = ("before", "deep", "after")
    texts = [text_of(name, levels if name == "deep" else 1) for name in names]
    page = parse_response(
        200, f'{{"metadata": {{"resourceVersion": "7"}}, "items": [{", ".join(texts)}]}}'.encode()
    )
    lines = "".join(f'{{"type": "ADDED", "object": {text}}}\n' for text in texts)
    events = [event["object"] for event in EventDecoder().feed(lines.encode())]
    for found in (page["items"], events):
        store = Store()
        assert all(store.upsert(KIND, gateway) for gateway in found)
        before, deep, after = (store.get(KIND, "team", name) for name in names)
        assert before == json.loads(texts[0]) and after == json.loads(texts[2])
        assert deep and depth_of(deep) == MAX_DEPTH + 1
        assert Gateway.from_manifest(deep).name == "deep"


def test_what_is_not_too_deep_is_left_as_it_is() -> None:
    text = text_of("demo", MAX_DEPTH - depth_of(json.loads(text_of("demo", 0))))
    store = Store()
    store.upsert(KIND, json.loads(text))
    assert store.get(KIND, "team", "demo") == json.loads(text)
