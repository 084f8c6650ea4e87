"""Gateways with the deepest nesting that the API server accepts."""

import json

import pytest

from tests.controlplane.api import path_of
from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for

pytestmark = pytest.mark.controlplane


def test_a_gateway_that_nests_without_end_keeps_no_other_from_being_served(namespace: Namespace) -> None:
    namespace.give_secrets()
    manifest = gateway_manifest()
    manifest["metadata"]["name"] = "deep"
    manifest["metadata"]["namespace"] = namespace.name
    manifest["spec"]["worker"] = {"podTemplate": {"affinity": "HERE"}}
    # The API server accepts ten thousand levels in the whole object.
    levels = 9900
    text = json.dumps(manifest).replace('"HERE"', '{"a":' * levels + "{}" + "}" * levels)
    # `--raw`, because the API server's answer is as deep as the manifest.
    command = ("create", "--raw", path_of("ggw", namespace=namespace.name), "-f", "-")

    def is_created() -> bool:
        # On a busy machine, this request may exceed the API server's request timeout.
        done = namespace.plane.kubectl("-n", namespace.name, *command, stdin=text, check=False)
        assert done.returncode == 0 or "Timeout" in done.stderr or "already exists" in done.stderr, (
            done.stderr
        )
        return "Timeout" not in done.stderr

    wait_for(is_created, "the API server takes it")
    operator = namespace.start()
    namespace.apply(gateway_manifest())
    namespace.settle()
    assert operator.process.poll() is None
    assert "RecursionError" not in operator.printed
