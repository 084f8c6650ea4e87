"""The compose file matches the files of `proofgate quickstart`. No container is started, so no engine is needed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from proofgate import cli
from proofgate.config import Config, load
from proofgate.preflight import require_usable
from proofgate.quickstart import QuickstartSetup, create

REPOSITORY = Path(__file__).resolve().parents[2]
FILE = REPOSITORY / "compose.yaml"
DOCUMENT: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICE: dict[str, Any] = DOCUMENT["services"]["gateway"]
#: The commands in the header, which run before the image starts.
TOLD = re.sub(r"\\\n#\s+", "", FILE.read_text())


def quickstart_arguments() -> list[str]:
    """The arguments of `quickstart` in the header."""
    found = re.search(r'"\$PROOFGATE_IMAGE" (quickstart .*)', TOLD)
    assert found
    return shlex.split(found[1])


def mounts() -> dict[str, Path]:
    """The container's files: the path in the container, and the path beside the compose file."""
    found = {entry["target"]: Path(entry["source"]) for entry in SERVICE["volumes"]}
    for kind in ("configs", "secrets"):
        assert {entry["source"] for entry in SERVICE[kind]} == set(DOCUMENT[kind])
        found |= {entry["target"]: Path(DOCUMENT[kind][entry["source"]]["file"]) for entry in SERVICE[kind]}
    return found


@pytest.fixture
def project(folder: Path) -> Path:
    """A folder after the header's first command."""
    options = cli.parse(quickstart_arguments())
    create(folder / options.directory, QuickstartSetup(provider_key="sk-0123456789abcdef0123", listen=options.listen))
    return folder


@pytest.fixture
def config(project: Path, folder: Path) -> Config:
    """The configuration as the container reads it."""
    root = folder / "root"
    for target, source in mounts().items():
        seen = root / target.removeprefix("/")
        seen.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (project / source).is_dir() else shutil.copy
        copy(project / source, seen)
    command = cli.parse(SERVICE["command"])
    return load(root / str(command.config).removeprefix("/"))


def test_the_container_has_all_that_its_worker_reads(config: Config) -> None:
    require_usable(config)
    assert config.warnings == ()


def test_the_container_has_no_key_that_its_worker_does_not_read(project: Path) -> None:
    seen = {(project / source).resolve() for source in mounts().values()}
    kept = {path.name for path in (project / "proofgate").iterdir() if path.resolve() not in seen}
    assert kept == {"tenant-key", "verifying-key"}


def test_clients_reach_the_traffic_port_from_this_machine_alone(config: Config) -> None:
    [published] = SERVICE["ports"]
    host, _, port = published.rpartition(":")
    assert host.startswith("127.0.0.1:")
    assert config.settings.listen == f"0.0.0.0:{port}"
    assert config.settings.admin.listen.startswith("127.0.0.1:")


def test_its_health_is_the_workers_readiness(config: Config) -> None:
    _, program, _, script = SERVICE["healthcheck"]["test"]
    entrypoint = re.search(r'ENTRYPOINT \["(.+)/proofgate"\]', (REPOSITORY / "gateway" / "Dockerfile").read_text())
    assert entrypoint and program == f"{entrypoint[1]}/python"
    assert f"http://{config.settings.admin.listen}/readyz" in script
    compile(script, "healthcheck", "exec")


def test_it_has_the_time_to_seal_its_log(config: Config) -> None:
    timeouts = config.settings.timeouts
    grace = int(SERVICE["stop_grace_period"].removesuffix("s"))
    assert grace >= timeouts.lame_duck_seconds + timeouts.drain_seconds + 10


def test_it_holds_nothing_that_a_restricted_pod_would_not() -> None:
    assert SERVICE["read_only"] and SERVICE["cap_drop"] == ["ALL"]
    assert SERVICE["security_opt"] == ["no-new-privileges:true"]
    assert "environment" not in SERVICE and "privileged" not in SERVICE
