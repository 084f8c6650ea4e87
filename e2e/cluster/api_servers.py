"""kube-apiserver of every minor version of Kubernetes that the product supports, built from Go modules.

Only the release is pinned; the go.mod and go.sum in its module pin the rest. The module that builds a release is
generated from them in the cache, so the repository does not need seven copies.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from .console import LabError, say
from .layout import cache_folder
from .toolchain import KUBERNETES_VERSION, Tool, kubernetes_stamps, run_logged

#: For each minor version, one release whose modules are all on the module proxy.
RELEASES = {
    "1.30": "v1.30.14",
    "1.31": "v1.31.14",
    "1.32": "v1.32.9",
    "1.33": "v1.33.5",
    "1.34": "v1.34.12",
    "1.35": "v1.35.3",
    "1.36": KUBERNETES_VERSION,
}
#: The prefix of the tools' names, before the minor version.
PREFIX = "kube-apiserver-"
_PACKAGE = "k8s.io/kubernetes/cmd/kube-apiserver"


def tool(minor: str) -> Tool:
    """The tool that builds kube-apiserver of a minor version, such as 1.33. Generates its module if needed."""
    version = RELEASES.get(minor)
    if version is None:
        raise LabError(f"no release of Kubernetes {minor} is known", f"known: {', '.join(RELEASES)}")
    name = f"{PREFIX}{minor}"
    stamps = kubernetes_stamps(version)
    return Tool(name, (("kube-apiserver", _PACKAGE),), minutes=4, stamps=stamps, module=_module(name, version))


def _module(name: str, version: str) -> Path:
    """The folder with the go.mod and go.sum of a release; generated once."""
    target = cache_folder() / "modules" / f"{name}-{version}"
    if target.is_dir():
        return target
    say(f"reading what Kubernetes {version} is made of")
    release = _downloaded(version)
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    (partial / "go.mod").write_text(module_file((release / "go.mod").read_text(), version))
    shutil.copyfile(release / "go.sum", partial / "go.sum")
    # The release's go.sum lacks the checksums of the staging modules in its repository.
    run_logged(["go", "list", "-deps", _PACKAGE], partial, partial / "list.log", mode="mod")
    partial.rename(target)
    return target


def module_file(release: str, version: str) -> str:
    """The go.mod that builds a release, generated from the release's own go.mod.

    The staging modules in the release's repository have separate versions on the module proxy.
    """
    staging = re.findall(r"^\s*(k8s\.io/\S+) => \./staging/src/\S+$", release, re.MULTILINE)
    if not staging:
        raise LabError(f"the go.mod of Kubernetes {version} names no staging modules")
    own = version.replace("v1.", "v0.", 1)
    text = re.sub(r"^module .*$", f"module proofgate.dev/e2e/{version}", release, count=1, flags=re.MULTILINE)
    text = re.sub(r"^replace \(.*?^\)$", "", text, flags=re.MULTILINE | re.DOTALL)
    replaced = "\n".join(f"\t{module} => {module} {own}" for module in staging)
    return f"{text}\nrequire k8s.io/kubernetes {version}\n\nreplace (\n{replaced}\n)\n"


def _downloaded(version: str) -> Path:
    asked = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"]
    done = subprocess.run(asked, cwd=cache_folder(), capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise LabError(f"Kubernetes {version} cannot be had", done.stderr or done.stdout)
    return Path(json.loads(done.stdout)["Dir"])
