"""`proofgate quickstart`: its files, their permissions, and its refusals."""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from test_cli import usage_error

from proofgate import _core
from proofgate.cli import main
from proofgate.config import load
from proofgate.index.readers import ReadersFile
from proofgate.local.folder import QuickstartFolder
from proofgate.preflight import require_priced
from proofgate.quickstart import (
    QuickstartError,
    QuickstartSetup,
    configure,
    create,
    demo_setup,
    instructions,
    render,
)

KEY = "sk-0123456789abcdef0123"
SETUP = QuickstartSetup(provider_key=KEY)

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mine"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_makes_a_configuration_that_a_worker_can_use_and_the_files_that_it_names(folder: Path) -> None:
    create(folder, SETUP)
    names = {
        "gateway.yaml",
        "ledger",
        "signing-key",
        "verifying-key",
        "tenant-key",
        "provider-key",
        "admin-token",
    }
    assert {path.name for path in folder.iterdir()} == names
    config = load(folder / "gateway.yaml")
    assert config.warnings == ()
    assert config.verifying_key == (folder / "verifying-key").read_text().strip()
    assert (folder / "provider-key").read_text() == f"{KEY}\n"
    key = (folder / "tenant-key").read_text().strip()
    assert re.fullmatch("[0-9a-f]{48}", key)
    assert _core.hash_api_key(key) in (folder / "gateway.yaml").read_text()


def test_only_its_owner_can_read_it(folder: Path) -> None:
    create(folder, SETUP)
    assert mode(folder) == mode(folder / "ledger") == 0o700
    public = {"verifying-key"}
    assert {path.name for path in folder.iterdir() if path.is_file() and mode(path) != 0o600} == public


def test_two_folders_share_no_key(tmp_path: Path) -> None:
    for name in ("one", "other"):
        create(tmp_path / name, SETUP)
    for name in ("tenant-key", "admin-token"):
        assert (tmp_path / "one" / name).read_text() != (tmp_path / "other" / name).read_text()


def test_a_folder_that_is_there_is_left_as_it_is(folder: Path) -> None:
    create(folder, SETUP)
    before = {path: path.read_text() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(QuickstartError, match=r"exists, and nothing in it is overwritten.*proofgate serve"):
        create(folder, replace(SETUP, provider_key=None, base_url="http://127.0.0.1:1/v1"))
    assert {path: path.read_text() for path in folder.iterdir() if path.is_file()} == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        (replace(SETUP, base_url="ftp://elsewhere"), "baseURL: write an http or https URL"),
        (replace(SETUP, models=("two words",)), "models[0].name"),
        (replace(SETUP, models=("same", "same")), "models"),
        (replace(SETUP, name="a+b"), "'a+b' is not a valid name for a key"),
        (replace(SETUP, listen=QuickstartSetup.admin_listen), "listen"),
    ],
)
def test_what_no_worker_could_use_is_refused_and_leaves_nothing(
    folder: Path, setup: QuickstartSetup, told: str
) -> None:
    with pytest.raises(QuickstartError, match=re.escape(told)) as caught:
        create(folder, setup)
    assert KEY not in str(caught.value)
    assert list(folder.parent.iterdir()) == []


def test_text_from_outside_cannot_add_a_field(folder: Path) -> None:
    with pytest.raises(QuickstartError, match="baseURL"):
        create(folder, replace(SETUP, base_url='https://a"\ntls: {certificateFile: x}'))


def test_another_provider_keeps_the_keys_and_the_ledger(folder: Path) -> None:
    create(folder, SETUP)
    (folder / "ledger" / "evidence").touch()
    kept = {name: (folder / name).read_text() for name in ("signing-key", "tenant-key", "admin-token")}
    configure(folder, replace(SETUP, provider_key=None, base_url="http://127.0.0.1:9000/v1"))
    assert {name: (folder / name).read_text() for name in kept} == kept
    assert (folder / "ledger" / "evidence").exists()
    assert not (folder / "provider-key").exists()
    assert load(folder / "gateway.yaml").settings.providers[0].base_url == "http://127.0.0.1:9000/v1"


def test_what_is_commented_out_can_be_used_as_it_stands(folder: Path) -> None:
    create(folder, SETUP)
    file = folder / "gateway.yaml"
    told = re.sub(r"(?m)^( *)#(?! )", r"\1", file.read_text())
    assert len(yaml.safe_load(told)) == len(yaml.safe_load(file.read_text())) + len(("tls",))
    # The reader must supply certificates, so this section is removed.
    file.write_text(re.sub(r"(?m)^tls: .*\n", "", told))
    assert load(file).settings.tenants[0].limits.concurrency == 8


def test_every_section_says_what_it_is_for() -> None:
    lines = render(SETUP, {"acme": "ab" * 32}).splitlines()
    assert sum(line.lstrip().startswith("# ") for line in lines) >= 10
    assert max(map(len, lines)) <= 121


def test_the_command_takes_openais_key_from_the_environment_and_prints_no_key(
    folder: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert main(["quickstart", "--directory", str(folder), "--model", "gpt-4o", "--model", "gpt-4.1"]) == 0
    told = capsys.readouterr()
    assert f"proofgate serve --config {folder}/gateway.yaml" in told.out
    for name in ("provider-key", "tenant-key", "admin-token", "signing-key"):
        assert (folder / name).read_text().strip() not in told.out + told.err
    assert [model.name for model in load(folder / "gateway.yaml").settings.models] == ["gpt-4o", "gpt-4.1"]


def test_without_the_key_it_says_where_it_looks_and_makes_nothing(
    folder: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["quickstart", "--directory", str(folder)]) == 2
    assert "export it as OPENAI_API_KEY" in capsys.readouterr().err
    assert not folder.exists()


def test_openais_key_is_for_openai_alone(folder: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert main(["quickstart", "--directory", str(folder), "--base-url", "http://127.0.0.1:9000/v1"]) == 0
    assert not (folder / "provider-key").exists()


def test_a_key_of_two_lines_is_no_key_and_is_not_repeated(
    folder: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("MINE", f"{KEY}\nsecond")
    assert main(["quickstart", "--directory", str(folder), "--key-env", "MINE"]) == 2
    error = capsys.readouterr().err
    assert "in the variable MINE" in error
    assert KEY not in error


def test_who_listens_everywhere_is_asked_here(tmp_path: Path) -> None:
    told = instructions(tmp_path, replace(SETUP, listen="0.0.0.0:8081", admin_listen="[::]:9091"))
    assert "http://127.0.0.1:8081/v1" in told
    assert "--admin http://127.0.0.1:9091" in told


def test_an_address_is_checked_before_anything_is_made() -> None:
    assert usage_error("quickstart", "--listen", "8080") == 2


def demo() -> QuickstartSetup:
    return demo_setup("http://127.0.0.1:9000/v1", "127.0.0.1:8080", "127.0.0.1:9090", QuickstartSetup.name)


def test_a_demonstration_has_tenants_with_keys_prices_and_a_second_provider(folder: Path) -> None:
    create(folder, demo())
    config = load(folder / "gateway.yaml")
    assert config.warnings == ()
    require_priced(config)
    assert [tenant.name for tenant in config.settings.tenants] == ["acme", "globex", "initech"]
    keys = [(folder / name).read_text() for name in ("tenant-key", "tenant-key-globex", "tenant-key-initech")]
    assert len(set(keys)) == 3
    assert all(mode(folder / path.name) == 0o600 for path in folder.glob("tenant-key*"))


def test_another_address_of_the_simulated_provider_changes_nothing_else(folder: Path) -> None:
    create(folder, demo())
    local = QuickstartFolder(folder)
    local.set_simulated_provider_url("http://127.0.0.1:9000/v1")
    file = folder / "gateway.yaml"
    file.write_text(file.read_text() + "# mine: http://127.0.0.1:9000/v10\n")
    before = file.read_text()
    local.set_simulated_provider_url("http://127.0.0.1:9001/v1")
    assert local.simulated_provider_url == "http://127.0.0.1:9001/v1"
    assert file.read_text() == before.replace('9000/v1"', '9001/v1"')
    assert mode(file) == 0o600


def test_the_auditors_part_is_made_once_with_keys_for_its_owner_alone(folder: Path) -> None:
    create(folder, SETUP)
    QuickstartFolder(folder).add_auditor(SETUP.name)
    files = {path: path.read_text() for path in (folder / "auditor").rglob("*") if path.is_file()}
    assert {path.name for path in files if mode(path) != 0o600} == {"verifying-key"}
    key = (folder / "auditor" / "reader-key").read_text().strip()
    reader = ReadersFile(folder / "auditor" / "readers.json").find_by_key(key)
    assert reader is not None
    assert reader.tenant is None
    QuickstartFolder(folder).add_auditor(SETUP.name)
    assert {path: path.read_text() for path in files} == files


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--demo"], "--demo needs --start"),
        (["--traffic", "--start"], "--traffic needs --demo"),
        (["--start", "--demo", "--base-url", "http://x/v1"], "--demo cannot be combined with --base-url"),
        (["--start", "--demo", "--model", "x"], "--demo cannot be combined with --model"),
        (["--start"], "run `proofgate quickstart --start --demo`"),
    ],
)
def test_options_that_do_not_go_together_make_nothing(
    folder: Path, monkeypatch: Patch, capsys: Capture, arguments: list[str], told: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["quickstart", "--directory", str(folder), *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not folder.exists()


def test_a_folder_that_is_there_follows_no_other_options(folder: Path, capsys: Capture) -> None:
    create(folder, SETUP)
    start = ["quickstart", "--start", "--directory", str(folder)]
    assert main([*start, "--listen", "127.0.0.1:1", "--name", "x"]) == 2
    assert "started as it is, without --name, --listen" in capsys.readouterr().err
    assert main([*start, "--demo"]) == 2
    assert "was created without --demo" in capsys.readouterr().err
    assert not (folder / "auditor").exists()


def test_a_folder_that_quickstart_did_not_make_is_not_started(
    folder: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    folder.mkdir()
    (folder / "gateway.yaml").write_text("mine")
    command = ["quickstart", "--start", "--directory", str(folder)]
    addresses = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    assert main([*command, *addresses]) == 2
    assert "nothing in it is overwritten" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["gateway.yaml"]
