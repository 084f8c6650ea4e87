"""The steps of a release. Each prints a line for each result."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from setup.release import bundle, chart, images, provenance, sbom, signing
from setup.release.archives import sha256
from setup.release.images import Built
from setup.release.oci import Descriptor, Layout, together
from setup.release.signing import Signer, statement
from setup.release.version import ROOT, Source, changes

SUMS = "SHA256SUMS"
#: The file that says where each file is pushed; `publish` reads it.
REFERENCES = "references.json"
PUBLIC_KEY = "release.pub"
BUNDLE = ".sigstore.json"
ARCHIVE = ".oci.tar"


@dataclass(frozen=True)
class Plan:
    """The requested release."""

    source: Source
    out: Path
    registry: str
    platforms: list[str]
    signer: Signer | None
    helm: Path


@dataclass
class Folder:
    """The output folder, and its content."""

    path: Path
    names: list[str] = field(default_factory=list)

    def put(self, name: str, content: bytes) -> Path:
        """Writes a file, and prints its name, size and digest."""
        target = self.path / name
        target.write_bytes(content)
        self.names.append(name)
        print(f"   {name:58} {_size(len(content)):>9}  sha256:{sha256(content)}", flush=True)
        return target


def make(plan: Plan, *, builder: str, wheels: Path, built: bool, again: bool) -> None:
    """Makes the release, and replaces the folder `out` by it when it is complete. Raises ReleaseError."""
    notes, own = changes(plan.source.version)
    _say(f"version {plan.source.version}, commit {plan.source.commit[:12]}, for {', '.join(plan.platforms)}")
    if plan.source.modified:
        _say("warning: files differ from the commit; nobody else can make this release again")
    if not own:
        _say(f"warning: CHANGELOG.md has no section {plan.source.version}; `Unreleased` stands for it")
    plan.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".release-", dir=plan.out.parent) as scratch:
        work = Path(scratch)
        folder = Folder(work / "out")
        folder.path.mkdir()
        route = images.find(builder, wheels, work, built=built, again=again)
        _say("wheels and images")
        made = route.build(plan.source, plan.platforms)
        _fill(plan, folder, made, notes, work)
        if plan.out.exists():
            shutil.rmtree(plan.out)
        folder.path.rename(plan.out)
    _say(f"{len(folder.names)} files in {plan.out}")


def _fill(plan: Plan, folder: Folder, made: Built, notes: str, work: Path) -> None:
    version = plan.source.version
    for wheel in images.normal(images.own_wheels(made), work / "normal"):
        folder.put(wheel.name, wheel.read_bytes())
    references: dict[str, dict[str, str]] = {}
    statements: dict[str, dict[str, bytes]] = {}
    predicate = provenance.predicate(plan.source, plan.platforms, made.bases)

    def keep(name: str, repository: str, layout: Layout, entry: Descriptor, document: bytes = b"") -> str:
        """Writes a layout, and notes the statements to sign about its manifest. Returns the manifest's digest."""
        digest: str = entry["digest"]
        folder.put(f"{name}-{version}{ARCHIVE}", layout.archive(plan.source.epoch))
        references[f"{name}-{version}"] = {"repository": repository, "digest": digest, "tag": version}
        subject = {f"{plan.registry}/{repository}": digest.removeprefix("sha256:")}
        statements[f"{name}-{version}"] = {
            "signature": statement(subject, signing.SIGNED, {}),
            "provenance": statement(subject, signing.PROVENANCE, predicate),
        }
        if document:
            folder.put(f"{name}-{version}.cdx.json", document)
            statements[f"{name}-{version}"]["sbom"] = statement(subject, signing.SBOM, json.loads(document))
        return digest

    digests: dict[str, str] = {}
    for image in images.DOCKERFILES:
        name = f"proofgate-{image}"
        parts = {one: made.images[image, one] for one in plan.platforms}
        layout, entry = together(parts, images.labels(plan.source), version)
        every = [wheel for one in plan.platforms for wheel in sorted(made.wheels[image, one].glob("*.whl"))]
        wheels = images.normal([one for one in every if one.name.startswith("proofgate")], work / image)
        wheels += [one for one in every if not one.name.startswith("proofgate")]
        digests[image] = keep(name, name, layout, entry, sbom.document(name, plan.source, entry, layout, wheels))

    _say("chart and bundle")
    archive = chart.package(plan.source, plan.registry, digests["worker"], digests["operator"], notes, plan.helm)
    packed = folder.put(f"{chart.NAME}-{version}.tgz", archive)
    keep(f"{chart.NAME}-chart", f"charts/{chart.NAME}", *chart.layout(plan.source, archive))
    found = bundle.files(plan.source, packed, plan.helm)
    folder.put(f"{bundle.PACKAGE}-bundle-{version}.tar.gz", bundle.archive(plan.source, found))
    keep(f"{bundle.PACKAGE}-bundle", f"{bundle.PACKAGE}-bundle", *bundle.layout(plan.source, found))

    _say("notes, provenance and checksums")
    folder.put("artifacthub-repo.yml", (ROOT / "charts" / "artifacthub-repo.yml").read_bytes())
    folder.put(f"CHANGELOG-{version}.md", f"# {version}\n\n{notes}".encode())
    folder.put(REFERENCES, (json.dumps(references, indent=2, sort_keys=True) + "\n").encode())
    subjects = {name: sha256((folder.path / name).read_bytes()) for name in folder.names}
    whole = statement(subjects, signing.PROVENANCE, predicate)
    folder.put(f"proofgate-{version}.intoto.json", whole + b"\n")
    lines = [f"{sha256((folder.path / name).read_bytes())}  {name}\n" for name in sorted(folder.names)]
    folder.put(SUMS, "".join(lines).encode())
    if plan.signer:
        _sign(plan.signer, folder, statements, whole, f"proofgate-{version}.intoto.json")
    else:
        _say("not signed: SIGN= takes a key, or `keyless` in a workflow")


def _sign(
    signer: Signer, folder: Folder, statements: dict[str, dict[str, bytes]], whole: bytes, provenance_name: str
) -> None:
    """Signs every file and the statements about images, chart and bundle. Checksums do not cover signatures."""
    _say("signatures")
    for name in [name for name in folder.names if name != provenance_name]:
        folder.put(f"{name}{BUNDLE}", signer.sign_file(folder.path / name))
    folder.put(f"{provenance_name}{BUNDLE}", signer.sign_statement(whole))
    for name, kinds in sorted(statements.items()):
        for kind, text in sorted(kinds.items()):
            folder.put(f"{name}.{kind}{BUNDLE}", signer.sign_statement(text))
    if key := signer.public_key():
        folder.put(PUBLIC_KEY, key)


def _say(text: str) -> None:
    print(f"== {text}", flush=True)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"
