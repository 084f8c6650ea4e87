"""Settings of the operator: environment variables, each of which is also a command-line option."""

import argparse
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from proofgate_operator.build.naming import Defaults

#: File that exists in every pod with a service account's token.
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

PodSecurity = Literal["Restricted", "Platform"]
LogFormat = Literal["json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]


class InvalidSettings(ValueError):
    """A setting is missing or invalid; the message names it."""


@dataclass(frozen=True)
class Settings:
    """Settings of the operator process."""

    #: Namespaces whose gateways are served; empty: all namespaces.
    watch_namespaces: tuple[str, ...]
    #: Additional namespaces in which only GatewayTenants are served; no objects are created there.
    tenant_namespaces: tuple[str, ...]
    worker_image: str
    haproxy_image: str
    cluster_domain: str
    #: Namespace of the operator's pods, which workers' network policies admit; empty: the operator runs
    #: outside the cluster.
    operator_namespace: str
    #: Whether pods have IPv6 addresses.
    ipv6: bool
    #: Whether the platform chooses the user and group ids of pods.
    platform_ids: bool
    #: Secrets for pulling the images of gateways' pods, in the pods' namespace.
    image_pull_secrets: tuple[str, ...]
    #: Seconds between two reconciles of an unchanged gateway.
    resync_seconds: float
    #: Seconds between two reconciles of a gateway that waits for something.
    recheck_seconds: float
    #: Address and port of the HTTP server for health checks and metrics.
    health_host: str
    health_port: int
    #: Whether this process acts only while it holds a Lease; required if several replicas run.
    leader_election: bool
    lease_name: str
    lease_namespace: str
    #: Identity of this process in the Lease, for people.
    pod_name: str
    log_format: str
    log_level: str
    kubeconfig: str | None

    @property
    def release(self) -> str:
        """The name of this installation and of the Lease that its replicas share; empty without a Lease."""
        return f"{self.lease_namespace}/{self.lease_name}" if self.leader_election else ""

    @property
    def defaults(self) -> Defaults:
        """The installation's defaults for all gateways."""
        return Defaults(
            worker_image=self.worker_image,
            haproxy_image=self.haproxy_image,
            cluster_domain=self.cluster_domain,
            operator_namespace=self.operator_namespace,
            ipv6=self.ipv6,
            platform_ids=self.platform_ids,
            image_pull_secrets=self.image_pull_secrets,
        )


@dataclass(frozen=True)
class Option:
    """The definition of a setting as a variable and an option. The chart's value for it is generated from
    it."""

    variable: str
    #: The default; None: the option is required.
    default: str | None
    text: str
    #: The allowed values; empty: any text.
    choices: tuple[str, ...] = ()
    #: The minimum value; None: the setting is not a number.
    minimum: float | None = None

    @property
    def flag(self) -> str:
        """The name of the command-line option."""
        return "--" + self.variable.lower().replace("_", "-")

    @property
    def help(self) -> str:
        """The help text, with the choices (unless the text explains them) and the default."""
        text = self.text
        if self.choices and not all(choice in text for choice in self.choices):
            text += f": {', '.join(self.choices[:-1])} or {self.choices[-1]}"
        return text + (f" (default: {self.default})" if self.default else "")


_OPTIONS = (
    Option("WATCH_NAMESPACES", "", "namespaces to serve, separated by commas; empty: all namespaces"),
    Option(
        "TENANT_NAMESPACES",
        "",
        "additional namespaces in which only tenants are served, separated by commas; needs WATCH_NAMESPACES",
    ),
    Option("WORKER_IMAGE", None, "image of workers, if the gateway names no image"),
    Option("HAPROXY_IMAGE", None, "image of HAProxy, if the gateway names no image"),
    Option("CLUSTER_DOMAIN", "cluster.local", "DNS suffix of the cluster's Services"),
    Option("OPERATOR_NAMESPACE", "", "namespace of the operator's pods; empty: the service account's"),
    Option(
        "POD_IPS",
        "",
        ("addresses of the operator's pod, separated by commas: they show which IP families the cluster has"),
    ),
    Option(
        "POD_SECURITY",
        "Restricted",
        "Restricted: pods run as user and group 65532; Platform: as the platform chooses, as on OpenShift",
        choices=get_args(PodSecurity),
    ),
    Option("IMAGE_PULL_SECRETS", "", "Secrets for pulling the images of gateways' pods, separated by commas"),
    Option(
        "RESYNC_SECONDS", "600", "longest time, in seconds, between two reconciles of a gateway", minimum=1
    ),
    Option(
        "RECHECK_SECONDS",
        "2",
        "shortest time, in seconds, between two reconciles of a gateway that waits for something",
        minimum=0.1,
    ),
    Option(
        "HEALTH_HOST",
        "",
        ("address of the health and metrics port; empty: all addresses of the pod's IP families"),
    ),
    Option("HEALTH_PORT", "8081", "port of /healthz, /readyz and /metrics", minimum=1),
    Option(
        "LEADER_ELECTION",
        "false",
        "whether a replica acts only while it holds a Lease, so that several replicas can run",
        choices=("true", "false"),
    ),
    Option("LEASE_NAME", "proofgate-operator", "name of the Lease"),
    Option("LEASE_NAMESPACE", "", "namespace of the Lease; needed with LEADER_ELECTION"),
    Option("POD_NAME", "", "name of the Lease's holder; empty: the host name"),
    Option("LOG_FORMAT", "json", "format of the log", choices=get_args(LogFormat)),
    Option("LOG_LEVEL", "info", "lowest level that is logged", choices=get_args(LogLevel)),
    Option(
        "KUBECONFIG",
        "",
        "kubeconfig for access to the cluster; empty: the service account, otherwise ~/.kube/config",
    ),
)
#: All options, keyed by variable.
OPTIONS = {option.variable: option for option in _OPTIONS}


def _namespace_of_the_service_account() -> str:
    try:
        return _NAMESPACE_FILE.read_text().strip()
    except OSError:
        return ""


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _number(values: Mapping[str, str], name: str) -> float:
    minimum = OPTIONS[name].minimum or 0
    try:
        number = float(values[name])
    except ValueError:
        raise InvalidSettings(f"{name} must be a number, not {values[name]!r}") from None
    if number < minimum:
        raise InvalidSettings(f"{name} must be at least {minimum:g}, not {number:g}")
    return number


def _choice(values: Mapping[str, str], name: str) -> str:
    choices = OPTIONS[name].choices
    if values[name] not in choices:
        raise InvalidSettings(f"{name} must be one of {', '.join(choices)}, not {values[name]!r}")
    return values[name]


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; an option takes precedence over its variable. Raises `InvalidSettings`."""
    parser = argparse.ArgumentParser(
        prog="proofgate-operator",
        description="Turns GovernanceGateway objects into gateway workers behind HAProxy.",
        epilog="Every option can also be set by the environment variable that is named with it.",
    )
    for option in OPTIONS.values():
        parser.add_argument(option.flag, metavar=option.variable, dest=option.variable, help=option.help)
    given = vars(parser.parse_args(arguments))
    values: dict[str, str] = {}
    for option in OPTIONS.values():
        value = given[option.variable]
        if value is None:
            value = environment.get(option.variable, option.default)
        if value is None or (option.default is None and not value):
            raise InvalidSettings(f"{option.variable} is required: {option.text}")
        values[option.variable] = value
    leader_election = _choice(values, "LEADER_ELECTION") == "true"
    if leader_election and not values["LEASE_NAMESPACE"]:
        raise InvalidSettings("LEASE_NAMESPACE is required with LEADER_ELECTION=true")
    watched = _names(values["WATCH_NAMESPACES"])
    tenants = tuple(name for name in _names(values["TENANT_NAMESPACES"]) if name not in watched)
    if tenants and not watched:
        raise InvalidSettings(
            "TENANT_NAMESPACES needs WATCH_NAMESPACES: without it all namespaces are served"
        )
    return Settings(
        watch_namespaces=watched,
        tenant_namespaces=tenants,
        worker_image=values["WORKER_IMAGE"],
        haproxy_image=values["HAPROXY_IMAGE"],
        cluster_domain=values["CLUSTER_DOMAIN"],
        operator_namespace=values["OPERATOR_NAMESPACE"] or _namespace_of_the_service_account(),
        ipv6=":" in values["POD_IPS"],
        platform_ids=_choice(values, "POD_SECURITY") == "Platform",
        image_pull_secrets=_names(values["IMAGE_PULL_SECRETS"]),
        resync_seconds=_number(values, "RESYNC_SECONDS"),
        recheck_seconds=_number(values, "RECHECK_SECONDS"),
        health_host=values["HEALTH_HOST"] or ("::" if ":" in values["POD_IPS"] else "0.0.0.0"),
        health_port=int(_number(values, "HEALTH_PORT")),
        leader_election=leader_election,
        lease_name=values["LEASE_NAME"],
        lease_namespace=values["LEASE_NAMESPACE"],
        pod_name=values["POD_NAME"] or socket.gethostname(),
        log_format=_choice(values, "LOG_FORMAT"),
        log_level=_choice(values, "LOG_LEVEL"),
        kubeconfig=values["KUBECONFIG"] or None,
    )
