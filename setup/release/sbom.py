"""The SBOM of an image as a CycloneDX 1.5 document: packages of Python, of Rust and of the base image."""

from __future__ import annotations

import email.parser
import gzip
import hashlib
import io
import json
import re
import tarfile
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from setup.release.oci import Descriptor, Layout
from setup.release.version import Source

Component = dict[str, Any]
_STATUS = "var/lib/dpkg/status"


def document(name: str, source: Source, image: Descriptor, layout: Layout, wheels: list[Path]) -> bytes:
    """The document of an image whose wheels are given.

    Raises ReleaseError if the layout is not whole, and ValueError for a wheel that cannot be read.
    """
    found: dict[str, Component] = {}
    nested: dict[str, Component] = {}
    depends: dict[str, list[str]] = {}
    for wheel in wheels:
        python, crates, edges = _of_wheel(wheel)
        known = found.setdefault(python["bom-ref"], python)
        # The same package for another processor is a different file.
        known["hashes"] = sorted(
            {one["content"]: one for one in [*known["hashes"], *python["hashes"]]}.values(), key=str
        )
        nested |= crates
        depends |= edges
    for manifest in layout.images():
        for component in _of_base(layout, manifest):
            found.setdefault(component["bom-ref"], component)
    digest = image["digest"].removeprefix("sha256:")
    root = {
        "type": "container",
        "bom-ref": f"pkg:oci/{name}@sha256%3A{digest}",
        "name": name,
        "version": source.version,
        "purl": f"pkg:oci/{name}@sha256%3A{digest}?tag={source.version}",
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    components = sorted([*found.values(), *nested.values()], key=lambda one: str(one["bom-ref"]))
    graph = [{"ref": str(root["bom-ref"]), "dependsOn": sorted(found)}]
    graph += [{"ref": ref, "dependsOn": sorted(on)} for ref, on in sorted(depends.items())]
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root, "properties": [{"name": "proofgate:commit", "value": source.commit}]},
        "components": components,
        "dependencies": graph,
    }
    seed = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    body["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'sha256:{seed}')}"
    return (json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _of_wheel(wheel: Path) -> tuple[Component, dict[str, Component], dict[str, list[str]]]:
    """A wheel as a component, its crates, and their dependencies."""
    content = wheel.read_bytes()
    crates: dict[str, Component] = {}
    edges: dict[str, list[str]] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        fields = email.parser.BytesParser().parsebytes(archive.read(metadata), headersonly=True)
        plain = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
        purl = f"pkg:pypi/{plain}@{fields['Version']}"
        for name in names:
            # PEP 770: the SBOM of components inside a wheel.
            if re.fullmatch(r"[^/]+\.dist-info/sboms/.*\.cyclonedx\.json", name):
                inner = json.loads(archive.read(name))
                own = inner["metadata"]["component"]
                crates |= {one["bom-ref"]: one for one in [{**own, "components": []}, *inner["components"]]}
                edges |= {edge["ref"]: edge.get("dependsOn", []) for edge in inner.get("dependencies", [])}
                edges.setdefault(purl, []).append(own["bom-ref"])
    for one in crates.values():
        if not one.get("components", True):
            del one["components"]
    component: Component = {
        "type": "library",
        "bom-ref": purl,
        "name": plain,
        "version": fields["Version"],
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
    }
    if licence := fields["License-Expression"]:
        component["licenses"] = [{"expression": licence}]
    return component, crates, edges


def _of_base(layout: Layout, manifest: Descriptor) -> Iterator[Component]:
    """The packages of Debian in an image, and the interpreter that the official images of Python add to them."""
    text = b""
    inner = layout.json(manifest["digest"])
    for layer in inner["layers"]:
        blob = layout.blobs[layer["digest"]]
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob) if blob[:2] == b"\x1f\x8b" else blob)) as opened:
            for entry in opened:
                if entry.name.removeprefix("./") == _STATUS and (stream := opened.extractfile(entry)):
                    text = stream.read()
    for paragraph in text.decode(errors="replace").split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
        if "installed" in fields.get("Status", ""):
            yield _package(fields)
    environment = layout.json(inner["config"]["digest"]).get("config", {}).get("Env", [])
    for name, value in (one.partition("=")[::2] for one in environment):
        if name == "PYTHON_VERSION":
            purl = f"pkg:generic/python@{value}"
            yield {"type": "application", "bom-ref": purl, "name": "python", "version": value, "purl": purl}


def _package(fields: Mapping[str, str]) -> Component:
    name, version = fields["Package"], fields["Version"]
    escaped = version.replace(":", "%3A").replace("+", "%2B").replace("~", "%7E")
    purl = f"pkg:deb/debian/{name}@{escaped}?arch={fields['Architecture']}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
