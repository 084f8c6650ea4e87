"""The ids of tenants' shred keys in their folder. Only the core reads the keys themselves."""

from __future__ import annotations

from pathlib import Path

from proofgate import _core
from proofgate.config.document import FieldPath
from proofgate.config.files import ReferencedFiles
from proofgate.config.problems import Findings
from proofgate.config.settings import Settings


def shred_keys(
    base: Path, settings: Settings, files: ReferencedFiles, findings: Findings
) -> dict[str, tuple[str, ...]] | None:
    """The ids of each tenant's keys, newest first; None if the volume stores complete salts.

    A tenant without a key is a problem: its records in backups could never be made unreadable.
    """
    name = settings.ledger.shred_keys_directory
    if name is None:
        return None
    path: FieldPath = ("ledger", "shredKeysDirectory")
    directory, ledger = (base / name).absolute(), (base / settings.ledger.directory).absolute()
    if directory.resolve().is_relative_to(ledger.resolve()):
        message = f"{directory} is in the ledger's directory: a copy of the ledger would contain the keys"
        findings.report("config_shred_keys_inside", path, message)
        return {}
    files.watch_folder(name)
    try:
        keys = _core.shred_keys(str(directory))
    except _core.LedgerError as error:
        # The error names the file and repeats none of its content.
        findings.report("config_bad_shred_keys", path, f"{error}: make keys with proofgate ledger shred-keys")
        return {}
    for position, tenant in enumerate(settings.tenants):
        if tenant.name not in keys:
            file = _core.shred_key_file(tenant.name)
            message = f"{tenant.name} has no shred key: {directory} has no file {file}"
            findings.report("config_no_shred_key", ("tenants", position, "name"), message)
    return {tenant: tuple(ids) for tenant, ids in keys.items()}
