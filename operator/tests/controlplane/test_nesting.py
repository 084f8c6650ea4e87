"""Gateways as deep as the API server takes them."""

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
    # The API server takes ten thousand levels in all.
    levels = 9900
    text = json.dumps(manifest).replace('"HERE"', '{"a":' * levels + "{}" + "}" * levels)
    # What comes back is as deep.
    command = ("create", "--raw", path_of("ggw", namespace=namespace.name), "-f", "-")

    def is_created() -> bool:
        # On a busy machine the API server may need longer for it than it gives a request.
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
