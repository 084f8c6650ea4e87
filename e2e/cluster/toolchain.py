"""Build the binaries of the lab from Go modules, once per set of pinned versions.

Each folder under `tools/` is a small module: its go.mod names the binaries in a `tool` directive and pins every
version. The binaries land in the cache, in a folder named by a digest of everything that decides their content.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .console import LabError, say, tail
from .layout import PACKAGE, cache_folder

MODULES = PACKAGE / "tools"
BUILD_TIMEOUT = 3600.0


@dataclass(frozen=True)
class Tool:
    """One module under `tools/` and the binaries that it builds.

    `binaries` maps the name of a binary to its Go package; `minutes` is the duration of a cold build on two cores.
    `module` is the folder of its go.mod, if that is not the folder with its name.
    """

    name: str
    binaries: tuple[tuple[str, str], ...]
    minutes: float
    stamps: tuple[tuple[str, str], ...] = ()
    tags: str = ""
    module: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of its go.mod."""
        return self.module or MODULES / self.name


def kubernetes_stamps(version: str) -> tuple[tuple[str, str], ...]:
    """The version symbols for the linker. Without them the apiserver reports v0.0.0, which clients and Helm refuse."""
    major, minor, _ = version.removeprefix("v").split(".")
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "module",
        "gitTreeState": "archive",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    return tuple((f"k8s.io/component-base/version.{key}", value) for key, value in values.items())


KUBERNETES_VERSION = "v1.36.3"
HELM_VERSION = "v4.3.1"

KUBERNETES = Tool(
    "kubernetes",
    tuple(
        (name, f"k8s.io/kubernetes/cmd/{name}")
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
    ),
    minutes=6,
    stamps=kubernetes_stamps(KUBERNETES_VERSION),
)
ETCD = Tool("etcd", (("etcd", "go.etcd.io/etcd/server/v3"), ("etcdctl", "go.etcd.io/etcd/etcdctl/v3")), minutes=1)
CONTAINERD = Tool(
    "containerd",
    tuple(
        (name, f"github.com/containerd/containerd/v2/cmd/{name}")
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    ),
    minutes=2.5,
    tags="no_btrfs,no_devmapper,no_zfs",
)
COREDNS = Tool("coredns", (("coredns", "github.com/coredns/coredns"),), minutes=1.5)
PAUSE = Tool("pause", (("pause", "."),), minutes=0.1)
HELM = Tool(
    "helm",
    (("helm", "helm.sh/helm/v4/cmd/helm"),),
    minutes=2.5,
    stamps=(("helm.sh/helm/v4/internal/version.version", HELM_VERSION),),
)
KIND = Tool("kind", (("kind", "sigs.k8s.io/kind"),), minutes=0.5)
PROMTOOL = Tool("promtool", (("promtool", "github.com/prometheus/prometheus/cmd/promtool"),), minutes=2)

#: A registry on loopback, a tool that copies a release into it, and a tool that verifies the release.
REGISTRY = Tool("registry", (("registry", "github.com/distribution/distribution/v3/cmd/registry"),), minutes=1)
ORAS = Tool("oras", (("oras", "oras.land/oras/cmd/oras"),), minutes=0.5)
COSIGN = Tool("cosign", (("cosign", "github.com/sigstore/cosign/v3/cmd/cosign"),), minutes=4)

LOCAL_TOOLS = (KUBERNETES, ETCD, CONTAINERD, COREDNS, PAUSE, HELM)
EVERY_TOOL = (*LOCAL_TOOLS, KIND, PROMTOOL, REGISTRY, ORAS, COSIGN)


def linker_flags(tool: Tool) -> str:
    """The `-ldflags` of a tool: no symbol tables, and the versions that a build from modules does not know."""
    return " ".join(["-s -w", *(f"-X {symbol}={value}" for symbol, value in tool.stamps)])


def digest_of(tool: Tool, go_version: str) -> str:
    """A short digest of everything that decides a tool's binaries: its module's files, the compiler and the flags."""
    digest = hashlib.sha256()
    for path in sorted(tool.folder.iterdir()):
        if path.suffix in {".mod", ".sum", ".go"}:
            digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    digest.update("\0".join((go_version, linker_flags(tool), tool.tags, repr(tool.binaries))).encode())
    return digest.hexdigest()[:16]


def binary(name: str) -> Path:
    """The path of a built binary by its name."""
    for tool in EVERY_TOOL:
        if any(name == made for made, _ in tool.binaries):
            return bin_folder(tool) / name
    raise LabError(f"no tool makes a binary named {name}", "see e2e/cluster/tools")


def bin_folder(tool: Tool) -> Path:
    return cache_folder() / "tools" / f"{tool.name}-{digest_of(tool, _go_version())}" / "bin"


def ensure(tools: Iterable[Tool] = LOCAL_TOOLS) -> None:
    """Build the missing binaries, one tool after the other to save memory."""
    missing = [tool for tool in tools if not bin_folder(tool).is_dir()]
    if not missing:
        return
    with _build_lock():
        for tool in missing:
            if not bin_folder(tool).is_dir():
                _build(tool)


def _build(tool: Tool) -> None:
    target = bin_folder(tool)
    partial = target.with_name("bin.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    log = target.parent / "build.log"
    say(f"building {tool.name} (about {tool.minutes:g} min on 2 cores)")
    started = time.monotonic()
    for name, package in tool.binaries:
        # Compilers whose command has ended would otherwise still use both cores.
        command = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        command += ["go", "build", "-trimpath", "-ldflags", linker_flags(tool), "-o", str(partial / name)]
        command += ["-tags", tool.tags] if tool.tags else []
        run_logged([*command, package], tool.folder, log)
    partial.rename(target)
    say(f"built {tool.name} in {time.monotonic() - started:.0f} s")
    _forget_older(tool, target.parent)


def run_logged(command: list[str], folder: Path, log: Path, mode: str = "readonly") -> None:
    """Run the compiler in a module's folder; `mode` is its `-mod`. Raises LabError with the end of the log."""
    # The caller's GOFLAGS could enable vendoring or VCS stamping, which fail in a module without sources.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": f"-mod={mode} -buildvcs=false", "GOWORK": "off"}
    with log.open("ab") as output:
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                timeout=BUILD_TIMEOUT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LabError(f"{' '.join(command)} took longer than {BUILD_TIMEOUT:.0f} s", f"log: {log}") from None
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)} failed in {folder}", f"log: {log}\n{tail(log)}")


def _forget_older(tool: Tool, kept: Path) -> None:
    for other in kept.parent.glob(f"{tool.name}-*"):
        if other != kept:
            shutil.rmtree(other, ignore_errors=True)


@contextmanager
def _build_lock() -> Iterator[None]:
    """Allow one build at a time, because two would need twice the memory and be no faster."""
    folder = cache_folder() / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build of the tools to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def _go_version() -> str:
    if shutil.which("go") is None:
        raise LabError("the Go compiler is missing", "install Go 1.26 or newer and put it on PATH")
    asked = ["go", "env", "GOVERSION"]
    return subprocess.run(asked, cwd=PACKAGE, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
