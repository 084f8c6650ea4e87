"""`setup/reproducible-wheel`: two builds of the same sources give equal files."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SBOM = "proofgate-0.1.0.dist-info/sboms/proofgate-pybind.cyclonedx.json"
RECORD = "proofgate-0.1.0.dist-info/RECORD"


def built(folder: Path, checkout: str, serial: str, when: tuple[int, int, int, int, int, int], *, turned: bool) -> Path:
    """A wheel in maturin's form, with a given checkout, time and order of entries."""
    folder.mkdir()
    crate = f"path+file://{checkout}/rust-core/crates/pybind#proofgate-pybind@0.1.0"
    sbom = {
        "bomFormat": "CycloneDX",
        "serialNumber": f"urn:uuid:{serial}",
        "metadata": {"timestamp": f"{when[0]}-01-01T00:00:00Z", "component": {"bom-ref": crate}},
        "components": [{"bom-ref": "registry+https://example.org/index#serde@1.0.0"}],
    }
    contents = {
        "proofgate/__init__.py": "",
        "proofgate/_core.abi3.so": "code",
        "proofgate-0.1.0.dist-info/METADATA": "Metadata-Version: 2.4\n",
        SBOM: json.dumps(sbom),
        RECORD: "as it was built\n",
    }
    wheel = folder / "proofgate-0.1.0-cp311-abi3-linux.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in sorted(contents, reverse=turned):
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o600) << 16
            archive.writestr(entry, contents[name])
    return wheel


@pytest.fixture
def wheels(tmp_path: Path) -> tuple[Path, Path]:
    one = "11111111-1111-4111-8111-111111111111"
    two = "22222222-2222-4222-8222-222222222222"
    first = built(tmp_path / "first", "/home/one/proofgate", one, (2025, 1, 1, 0, 0, 0), turned=False)
    return first, built(tmp_path / "second", "/srv/rust-core/two", two, (2026, 1, 1, 0, 0, 0), turned=True)


def rewrite(*wheels: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "setup" / "reproducible-wheel"), *map(str, wheels)]
    return subprocess.run(command, capture_output=True, text=True)


def test_two_builds_of_the_same_sources_have_the_same_bytes(wheels: tuple[Path, Path]) -> None:
    assert wheels[0].read_bytes() != wheels[1].read_bytes()
    done = rewrite(*wheels)
    assert done.returncode == 0, done.stderr
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    rewrite(wheels[1])
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_nothing_in_it_names_the_machine(wheels: tuple[Path, Path]) -> None:
    rewrite(*wheels)
    with zipfile.ZipFile(wheels[0]) as archive:
        sbom = json.loads(archive.read(SBOM))
        assert sbom["metadata"] == {
            "component": {"bom-ref": "path+file:///rust-core/crates/pybind#proofgate-pybind@0.1.0"}
        }
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}


def test_record_has_the_digest_of_what_is_there(wheels: tuple[Path, Path]) -> None:
    rewrite(wheels[0])
    with zipfile.ZipFile(wheels[0]) as archive:
        lines = archive.read(RECORD).decode().splitlines()
        assert [line.split(",")[0] for line in lines] == archive.namelist()
        assert archive.namelist()[-1] == RECORD and lines[-1] == f"{RECORD},,"
        assert (archive.getinfo("proofgate/_core.abi3.so").external_attr >> 16) & 0o777 == 0o755
        assert (archive.getinfo("proofgate/__init__.py").external_attr >> 16) & 0o777 == 0o644


def test_what_is_no_wheel_is_refused_and_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as archive:
        archive.writestr("a", "b")
    refused = rewrite(tmp_path / "x.whl")
    assert refused.returncode == 1 and "x.whl" in refused.stderr and "RECORD" in refused.stderr
