"""Pushes a release to a registry: images, chart and bundle, each with its signature, SBOM and provenance beside it.

Signatures are OCI artefacts that refer to the signed artefact (distribution-spec 1.1, referrers), as cosign expects.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from setup.release.archives import sha256
from setup.release.errors import ReleaseError
from setup.release.make import ARCHIVE, BUNDLE, REFERENCES, SUMS
from setup.release.oci import EMPTY, Descriptor, Layout, artefact
from setup.release.signing import BUNDLE as BUNDLE_TYPE

_KINDS = ("signature", "sbom", "provenance")


def publish(out: Path, registry: str, oras: Path) -> None:
    """Pushes everything that the registry lacks. Raises ReleaseError, also for a tag with a different digest."""
    if not registry:
        raise ReleaseError("REGISTRY is not set: it has to be the one that the release was made for")
    check(out)
    try:
        references: dict[str, dict[str, str]] = json.loads((out / REFERENCES).read_text())
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{out} has no release: {error}") from None
    registry = registry.rstrip("/")
    plain = ["--plain-http"] if _is_loopback(registry) else []
    for reference in references.values():
        target = f"{registry}/{reference['repository']}"
        present = _run(oras, "resolve", *plain, f"{target}:{reference['tag']}", check=False)
        if present and present != reference["digest"]:
            raise ReleaseError(
                f"{target}:{reference['tag']} is {present} already, and this release is {reference['digest']}: "
                f"a version is published once; make another one"
            )
    for name, reference in references.items():
        target = f"{registry}/{reference['repository']}"
        layout = with_signatures(out, name, reference["digest"])
        with tempfile.TemporaryDirectory(prefix="proofgate-publish-") as folder:
            archive = Path(folder) / "layout.tar"
            archive.write_bytes(layout.archive(0))
            tags = [entry["annotations"]["org.opencontainers.image.ref.name"] for entry in _tagged(layout)]
            for tag in tags:
                _run(oras, "cp", "--recursive", "--no-tty", "--from-oci-layout", *[f"--to{one[1:]}" for one in plain],
                     f"{archive}:{tag}", f"{target}:{tag}")  # fmt: skip
        print(f"   {target}:{reference['tag']}@{reference['digest']}", flush=True)


def assets(out: Path) -> None:
    """Makes the release of the workflow's tag on GitHub, with the changelog's section and every file.

    Raises ReleaseError.
    """
    tag = os.environ.get("GITHUB_REF_NAME", "")
    version = tag.removeprefix("v")
    notes = out / f"CHANGELOG-{version}.md"
    if not tag.startswith("v") or not notes.exists():
        raise ReleaseError(f"GITHUB_REF_NAME={tag} is not the tag of the release in {out}")
    files = sorted(str(path) for path in out.iterdir())
    given = ["--verify-tag", "--title", tag, "--notes-file", str(notes), *(["--prerelease"] if "-" in version else [])]
    done = subprocess.run(["gh", "release", "create", tag, *given, *files], capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"gh release create failed: {done.stderr.strip()}")
    print(f"   {done.stdout.strip()}", flush=True)


def check(out: Path) -> None:
    """Checks the files against the checksums. Raises ReleaseError."""
    try:
        lines = (out / SUMS).read_text().splitlines()
        for digest, name in (line.split("  ", 1) for line in lines):
            if sha256((out / name).read_bytes()) != digest:
                raise ReleaseError(f"{out / name} has another checksum than {SUMS} says: make the release again")
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{out} has no release: {error}") from None


def with_signatures(out: Path, name: str, digest: str) -> Layout:
    """The layout of an archive, with the bundles for its manifest."""
    layout = Layout.read(out / f"{name}{ARCHIVE}")
    subject = next(
        {key: entry[key] for key in ("mediaType", "digest", "size")}
        for entry in layout.entries
        if entry["digest"] == digest
    )
    for kind in _KINDS:
        path = out / f"{name}.{kind}{BUNDLE}"
        if path.exists():
            layout.entries.append(_referrer(layout, subject, path.read_bytes()))
    return layout


def _referrer(layout: Layout, subject: Descriptor, bundle: bytes) -> Descriptor:
    """A bundle as cosign stores it beside an image."""
    envelope: dict[str, Any] = json.loads(bundle)["dsseEnvelope"]
    statement = json.loads(base64.b64decode(envelope["payload"]))
    annotations = {
        "dev.sigstore.bundle.content": "dsse-envelope",
        "dev.sigstore.bundle.predicateType": statement["predicateType"],
    }
    empty = {**layout.add(b"{}", EMPTY), "data": base64.b64encode(b"{}").decode()}
    return artefact(
        layout, empty, [layout.add(bundle, BUNDLE_TYPE)], annotations, artifact_type=BUNDLE_TYPE, subject=subject
    )


def _tagged(layout: Layout) -> list[Descriptor]:
    return [entry for entry in layout.entries if "org.opencontainers.image.ref.name" in entry.get("annotations", {})]


def _is_loopback(registry: str) -> bool:
    return registry.partition("/")[0].rpartition(":")[0] in ("127.0.0.1", "localhost", "[::1]")


def _run(oras: Path, *words: str, check: bool = True) -> str:
    done = subprocess.run([oras, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode and check:
        raise ReleaseError(f"oras {words[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip() if done.returncode == 0 else ""
