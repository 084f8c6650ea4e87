"""Files outside the lab's folders: only those that point into the lab belong to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.cluster import strays
from e2e.cluster.layout import lab_folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONTAINER_LOGS", "CNI_RESULTS", "DEVICE_PLUGINS"):
        folder = tmp_path / "machine" / name / "inner"
        folder.mkdir(parents=True)
        monkeypatch.setattr(strays, name, folder)
    monkeypatch.setattr(strays, "DEVICE_PLUGIN_SOCKET", strays.DEVICE_PLUGINS / "kubelet.sock")
    return tmp_path / "machine"


def test_links_and_notes_of_the_lab_are_removed(machine: Path) -> None:
    (strays.CONTAINER_LOGS / "ours.log").symlink_to(lab_folder() / "lab-1" / "pod-logs" / "0.log")
    (strays.CNI_RESULTS / "ours").write_text(f'{{"netns":"{lab_folder()}/lab-1/run/netns/x"}}')
    strays.remove()
    assert not strays.CONTAINER_LOGS.exists()
    assert not (machine / "CNI_RESULTS").exists()


def test_what_belongs_to_others_stays(machine: Path) -> None:
    foreign = strays.CONTAINER_LOGS / "theirs.log"
    foreign.symlink_to("/var/log/pods/theirs/0.log")
    note = strays.CNI_RESULTS / "theirs"
    note.write_text('{"netns":"/run/netns/theirs"}')
    strays.remove()
    assert foreign.is_symlink()
    assert note.exists()
    assert machine.exists()
