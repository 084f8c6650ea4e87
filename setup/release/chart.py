"""The chart of a release: an OCI artefact for Helm, with the digests of its images and a list of changes."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from setup.release.archives import compressed, tar, unpacked
from setup.release.errors import ReleaseError
from setup.release.oci import Descriptor, Layout, artefact
from setup.release.version import ROOT, Source

NAME = "proofgate-operator"
_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_HUB_CONFIG = "application/vnd.cncf.artifacthub.config.v1+yaml"
_HUB_LAYER = "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"
#: Artifact Hub's kinds of changes, by the headings of Keep a Changelog.
_KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def package(source: Source, registry: str, worker: str, operator: str, notes: str, helm: Path) -> bytes:
    """The chart's archive; `worker` and `operator` are digests of images in the registry. Raises ReleaseError."""
    with tempfile.TemporaryDirectory(prefix="proofgate-chart-") as folder:
        command = [str(ROOT / "setup" / "package-chart"), registry, folder, worker, operator]
        path = f"{helm.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        done = subprocess.run(command, capture_output=True, text=True, env={"PATH": path, "HOME": folder})
        if done.returncode:
            raise ReleaseError(f"the chart cannot be packaged: {done.stderr.strip()}")
        (packed,) = Path(folder).glob("*.tgz")
        files = unpacked(packed.read_bytes())
    chart = yaml.safe_load(files[f"{NAME}/Chart.yaml"])
    images = {
        f"{NAME.removesuffix('-operator')}-{name}": digest
        for name, digest in (("worker", worker), ("operator", operator))
    }
    annotations = {
        "artifacthub.io/changes": _yaml(changes(notes)),
        "artifacthub.io/crdsExamples": _yaml([yaml.safe_load((ROOT / "examples" / "quickstart.yaml").read_text())]),
        "artifacthub.io/images": _yaml(
            [{"name": name, "image": f"{registry}/{name}@{digest}"} for name, digest in sorted(images.items())]
        ),
        "artifacthub.io/prerelease": str("-" in source.version).lower(),
    }
    chart["annotations"] = {**chart["annotations"], **annotations}
    files[f"{NAME}/Chart.yaml"] = yaml.safe_dump(chart, sort_keys=True, width=1000).encode()
    return compressed(tar(files, source.epoch))


def layout(source: Source, archive: bytes) -> tuple[Layout, Descriptor]:
    """The chart as an artefact in a layout, as `helm push` would make it, without the time."""
    made = Layout()
    metadata: dict[str, Any] = yaml.safe_load(unpacked(archive)[f"{NAME}/Chart.yaml"])
    annotations = {
        "org.opencontainers.image.description": metadata["description"],
        "org.opencontainers.image.revision": source.commit,
        "org.opencontainers.image.source": metadata["sources"][0],
        "org.opencontainers.image.title": NAME,
        "org.opencontainers.image.url": metadata["home"],
        "org.opencontainers.image.version": metadata["version"],
    }
    config = made.add(json.dumps(metadata, sort_keys=True).encode(), _CONFIG)
    descriptor = artefact(made, config, [made.add(archive, _CONTENT)], annotations)
    made.tag(descriptor, source.version)
    hub = made.add((ROOT / "charts" / "artifacthub-repo.yml").read_bytes(), _HUB_LAYER)
    title = {"org.opencontainers.image.title": "artifacthub-repo.yml"}
    metadata_of_hub = artefact(made, made.add(b"{}", _HUB_CONFIG), [{**hub, "annotations": title}], {})
    made.tag(metadata_of_hub, "artifacthub.io")
    return made, descriptor


def changes(notes: str) -> list[dict[str, str]]:
    """The first lines of a changelog's entries, as Artifact Hub has them: a kind and a sentence each."""
    found: list[dict[str, str]] = []
    kind = ""
    for heading, entry in re.findall(r"^### (\w+)|^- (.*(?:\n  (?!\|).*)*)", notes, re.MULTILINE):
        if heading:
            kind = heading.lower() if heading in _KINDS else ""
        elif kind:
            first = re.split(r"(?<=[.:]) ", " ".join(entry.split()))[0].rstrip(":")
            found.append({"kind": kind, "description": first.replace("`", "")})
    return found


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=1000)
