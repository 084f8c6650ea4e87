"""The provenance of a release: the predicate of SLSA's provenance v1, without times, so that two runs agree."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from setup.release.version import ROOT, Source

BUILD_TYPE = "https://github.com/proofgate/proofgate/blob/main/docs/how-to/build-and-verify-images.md#make-release"
REPOSITORY = "https://github.com/proofgate/proofgate"
#: The lock files of everything that is built or installed.
LOCKS = ("rust-core/Cargo.lock", "requirements/build.txt", "requirements/gateway.txt", "requirements/operator.txt")


def predicate(source: Source, platforms: Iterable[str], bases: Mapping[str, str], root: Path = ROOT) -> dict[str, Any]:
    """The predicate of one run's results; `bases` are digests of base layers by the name of their image."""
    dependencies: list[dict[str, Any]] = [
        {"uri": f"git+{REPOSITORY}@refs/tags/v{source.version}", "digest": {"gitCommit": source.commit}}
    ]
    for name in LOCKS:
        digest = hashlib.sha256((root / name).read_bytes()).hexdigest()
        dependencies.append({"uri": f"git+{REPOSITORY}#{name}", "digest": {"sha256": digest}})
    for name, digest in sorted(bases.items()):
        dependencies.append({"uri": f"pkg:oci/{name}", "digest": {"sha256": digest.removeprefix("sha256:")}})
    parameters = {"version": source.version, "platforms": sorted(platforms)}
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": parameters,
            "internalParameters": {"sourceDateEpoch": source.epoch, "modified": source.modified},
            "resolvedDependencies": dependencies,
        },
        "runDetails": {"builder": {"id": builder()}},
    }


def builder() -> str:
    """The builder: the running workflow, or an unknown builder."""
    workflow, server = os.environ.get("GITHUB_WORKFLOW_REF"), os.environ.get("GITHUB_SERVER_URL")
    if workflow and server:
        return f"{server}/{workflow}"
    return "https://github.com/proofgate/proofgate/blob/main/Makefile"
