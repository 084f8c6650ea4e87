"""Programs from the distribution's packages instead of Go modules."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .console import LabError, say
from .processes import run


@dataclass(frozen=True)
class Package:
    """A Debian package, and a file or program that proves its installation."""

    name: str
    evidence: str


PACKAGES = (
    Package("runc", "runc"),
    Package("containernetworking-plugins", "/usr/lib/cni/bridge"),
    Package("iptables", "iptables"),
    Package("conntrack", "conntrack"),
    Package("socat", "socat"),
    Package("ethtool", "ethtool"),
    Package("iproute2", "ip"),
    Package("openssl", "openssl"),
    Package("haproxy", "haproxy"),
    Package("buildah", "buildah"),
    Package("mmdebstrap", "mmdebstrap"),
)


def missing() -> list[str]:
    return [package.name for package in PACKAGES if not _present(package)]


def ensure() -> None:
    """Install missing packages as root on Debian. Otherwise raise LabError, which lists the packages to install."""
    wanted = missing()
    if not wanted:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise LabError(f"missing: {', '.join(wanted)}", f"on Debian, as root: apt-get install {' '.join(wanted)}")
    had_haproxy = "haproxy" not in wanted
    say(f"installing from the distribution: {' '.join(wanted)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update"], timeout=300, environment=quiet)
    run(["apt-get", "install", "--yes", "--no-install-recommends", *wanted], timeout=900, environment=quiet)
    if not had_haproxy:
        _stop_service("haproxy")


def _present(package: Package) -> bool:
    search = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if package.evidence.startswith("/"):
        return Path(package.evidence).exists() or Path("/opt/cni/bin/bridge").exists()
    return shutil.which(package.evidence, path=search) is not None


def _stop_service(name: str) -> None:
    """Stop the service that the package started, because only its binary is used."""
    if shutil.which("systemctl") and Path("/run/systemd/system").is_dir():
        run(["systemctl", "disable", "--now", name], check=False)
    elif shutil.which("service"):
        run(["service", name, "stop"], check=False)
