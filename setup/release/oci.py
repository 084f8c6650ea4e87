"""Images and other artefacts as OCI image layouts, in one tar archive each (image-spec 1.1, image-layout.md)."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from setup.release.archives import sha256, tar
from setup.release.errors import ReleaseError

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY = "application/vnd.oci.empty.v1+json"
#: The annotation with the tag of an entry in a layout's index.
REF_NAME = "org.opencontainers.image.ref.name"
Descriptor = dict[str, Any]


class Layout:
    """Blobs by digest, and the entries of the index."""

    def __init__(self, blobs: Mapping[str, bytes] | None = None, entries: Iterable[Descriptor] = ()) -> None:
        #: Blobs by `sha256:<hexadecimal>`.
        self.blobs = dict(blobs or {})
        self.entries = list(entries)

    @classmethod
    def read(cls, archive: Path) -> Layout:
        """Reads an archive. Raises ReleaseError if it is not an OCI layout or is incomplete."""
        blobs: dict[str, bytes] = {}
        entries: list[Descriptor] | None = None
        try:
            with tarfile.open(archive) as opened:
                for entry in opened:
                    stream = opened.extractfile(entry) if entry.isfile() else None
                    if stream is None:
                        continue
                    name = entry.name.removeprefix("./")
                    if name == "index.json":
                        entries = json.load(stream)["manifests"]
                    elif name.startswith("blobs/sha256/"):
                        content = stream.read()
                        if sha256(content) != Path(name).name:
                            raise ReleaseError(f"{archive}: {name} has another digest: build it again")
                        blobs[f"sha256:{Path(name).name}"] = content
        except (OSError, tarfile.TarError, ValueError, KeyError) as error:
            raise ReleaseError(f"{archive} is not an OCI archive: {error}") from None
        if entries is None:
            raise ReleaseError(f"{archive} is not an OCI archive: it has no index.json")
        return cls(blobs, entries)

    def add(self, content: bytes, media_type: str) -> Descriptor:
        """Adds a blob, and returns its descriptor."""
        digest = f"sha256:{sha256(content)}"
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def add_json(self, document: Mapping[str, Any], media_type: str) -> Descriptor:
        """Adds a document as a blob."""
        return self.add(json.dumps(document, sort_keys=True, separators=(",", ":")).encode(), media_type)

    def json(self, digest: str) -> dict[str, Any]:
        """The document of a blob. Raises ReleaseError if the layout does not have it."""
        if digest not in self.blobs:
            raise ReleaseError(f"the image is not whole: there is no {digest}")
        document: dict[str, Any] = json.loads(self.blobs[digest])
        return document

    def images(self) -> list[Descriptor]:
        """Descriptors of all image manifests, including those in nested indexes."""
        found: list[Descriptor] = []
        waiting = list(self.entries)
        while waiting:
            entry = waiting.pop(0)
            if entry["mediaType"] == INDEX:
                waiting += self.json(entry["digest"])["manifests"]
            # Entries that BuildKit adds beside an image have an unknown platform.
            elif entry.get("platform", {}).get("architecture") != "unknown":
                found.append(entry)
        return found

    def tag(self, descriptor: Descriptor, name: str) -> None:
        """Gives an entry of the index a name."""
        self.entries.append({**descriptor, "annotations": {**descriptor.get("annotations", {}), REF_NAME: name}})

    def archive(self, epoch: int) -> bytes:
        """The layout in a tar archive: the same bytes for the same content."""
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": self.entries}
        files = {f"blobs/sha256/{digest.removeprefix('sha256:')}": blob for digest, blob in self.blobs.items()}
        files["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
        files["index.json"] = json.dumps(index, sort_keys=True, separators=(",", ":")).encode()
        return tar(files, epoch)


def artefact(
    layout: Layout,
    config: Descriptor,
    layers: list[Descriptor],
    annotations: Mapping[str, str],
    *,
    artifact_type: str = "",
    subject: Descriptor | None = None,
) -> Descriptor:
    """Adds the manifest of an artefact; with a `subject`, it refers to that manifest (a referrer)."""
    manifest: dict[str, Any] = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
    manifest |= {"artifactType": artifact_type} if artifact_type else {}
    manifest |= {"subject": subject} if subject else {}
    manifest |= {"annotations": dict(annotations)} if annotations else {}
    return {**layout.add_json(manifest, MANIFEST), **({"artifactType": artifact_type} if artifact_type else {})}


def together(layouts: Mapping[str, Layout], annotations: Mapping[str, str], tag: str) -> tuple[Layout, Descriptor]:
    """One image from images for single platforms (`linux/amd64`), and the descriptor of its index.

    Raises ReleaseError if a layout does not have exactly one image.
    """
    merged = Layout()
    manifests: list[Descriptor] = []
    for platform, layout in sorted(layouts.items()):
        found = [entry for entry in layout.images() if _platform(layout, entry) == platform]
        if len(found) != 1:
            raise ReleaseError(f"there are {len(found)} images for {platform} where there has to be one")
        system, _, architecture = platform.partition("/")
        entry = {name: found[0][name] for name in ("mediaType", "digest", "size")}
        manifests.append({**entry, "platform": {"os": system, "architecture": architecture}})
        manifest = layout.json(entry["digest"])
        for one in (entry, manifest["config"], *manifest["layers"]):
            merged.blobs[one["digest"]] = layout.blobs[one["digest"]]
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": dict(annotations)}
    descriptor = merged.add_json(index, INDEX)
    merged.tag(descriptor, tag)
    return merged, descriptor


def _platform(layout: Layout, entry: Descriptor) -> str:
    config = layout.json(layout.json(entry["digest"])["config"]["digest"])
    return f"{config['os']}/{config['architecture']}"
