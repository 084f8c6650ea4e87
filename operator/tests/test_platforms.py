"""Platforms of gateways: users that pods run as, and Secrets for pulling images."""

from dataclasses import replace
from typing import Any

import pytest

from proofgate_operator.build.haproxy import deployment
from proofgate_operator.build.naming import Defaults
from proofgate_operator.build.statefulset import statefulset
from proofgate_operator.settings import InvalidSettings, read_settings
from tests.gateways import DEFAULTS, gateway

Manifest = dict[str, Any]
IMAGES = {"WORKER_IMAGE": "w", "HAPROXY_IMAGE": "h"}


def pods(defaults: Defaults, **changes: Any) -> list[Manifest]:
    subject = gateway(**changes)
    made = (statefulset(subject, defaults, 2, "digest"), deployment(subject, defaults, "digest"))
    return [found["spec"]["template"]["spec"] for found in made]


def test_pods_run_as_a_fixed_user_unless_the_platform_chooses() -> None:
    for pod in pods(DEFAULTS):
        assert {pod["securityContext"][name] for name in ("runAsUser", "runAsGroup", "fsGroup")} == {65532}
    for pod in pods(replace(DEFAULTS, platform_ids=True)):
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod["securityContext"].keys()
        assert pod["securityContext"]["runAsNonRoot"] is True


def test_every_pod_of_a_gateway_has_the_installations_secrets_for_pulling_and_its_own() -> None:
    template = {"podTemplate": {"imagePullSecrets": [{"name": "own"}, {"name": "registry"}]}}
    defaults = replace(DEFAULTS, image_pull_secrets=("registry",))
    workers, balancers = pods(defaults, worker=template)
    assert workers["imagePullSecrets"] == [{"name": "registry"}, {"name": "own"}]
    assert balancers["imagePullSecrets"] == [{"name": "registry"}]


def test_what_the_installation_says_of_pods_comes_from_the_environment() -> None:
    environment = {**IMAGES, "POD_SECURITY": "Platform", "IMAGE_PULL_SECRETS": "registry, mirror"}
    defaults = read_settings([], environment).defaults
    assert (defaults.platform_ids, defaults.image_pull_secrets) == (True, ("registry", "mirror"))
    assert read_settings([], IMAGES).defaults.platform_ids is False
    with pytest.raises(InvalidSettings, match="POD_SECURITY"):
        read_settings([], {**IMAGES, "POD_SECURITY": "privileged"})
