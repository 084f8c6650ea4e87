"""Attacks by a writer of the ledger's volume, by their names in docs/concepts/threat-model.md."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from proofgate_operator.build import ledger_key

from e2e.auditing import Audit
from e2e.forging import rewrite, seed_of

Records = list[dict[str, Any]]


@dataclass(frozen=True)
class Others:
    """Ledgers of the same name: an older state, one whose log continued differently, and one with another key."""

    older: Path
    forked: Path
    rekeyed: Path


def first_segment(log: Path) -> Path:
    return min(log.glob("*.seg"))


def last_segment(log: Path) -> Path:
    return max(log.glob("*.seg"))


def change(path: Path, edit: Callable[[bytearray], None]) -> None:
    data = bytearray(path.read_bytes())
    edit(data)
    path.write_bytes(data)


def flip_a_byte(audit: Audit, _others: Others) -> None:
    def flip(data: bytearray) -> None:
        data[data.index(b'"completion"')] ^= 1

    change(last_segment(audit.logs()[0]), flip)


def edit_a_record(audit: Audit, _others: Others) -> None:
    def edit(records: Records) -> None:
        admission = next(record for record in records if record["kind"] == "admission")
        admission["model"] = "another-model"

    rewrite(first_segment(audit.logs()[0]), edit)


def delete_an_exchange(audit: Audit, _others: Others) -> None:
    def delete(records: Records) -> None:
        (admission,) = [record for record in records if record.get("tenant_seq") == 1]
        records[:] = [record for record in records if record.get("id") != admission["id"]]
        for record in records:
            if "tenant_seq" in record:
                record["tenant_seq"] -= 1
            if record["kind"] == "completion":
                number = next(place for place, one in enumerate(records) if one.get("id") == record["id"])
                record["admission"] = number
            if record["kind"] == "seal":
                record["records"] = len(records) - 1

    rewrite(first_segment(audit.logs()[0]), delete)


def insert_an_exchange(audit: Audit, _others: Others) -> None:
    def insert(records: Records) -> None:
        *rest, seal = records
        admission = next(record for record in rest if record["kind"] == "admission")
        completion = next(record for record in rest if record.get("id") == admission["id"] and record != admission)
        count = sum(record["kind"] == "admission" for record in rest)
        added = {**admission, "id": "req_made_up", "tenant_seq": count + 1}
        ended = {**completion, "id": "req_made_up", "admission": len(rest)}
        records[:] = [*rest, added, ended, {**seal, "records": len(rest) + 2}]

    rewrite(first_segment(audit.logs()[0]), insert)


def exchange_two_records(audit: Audit, _others: Others) -> None:
    def exchange(records: Records) -> None:
        ends = [place for place, record in enumerate(records) if record["kind"] == "completion"]
        one, other = ends[:2]
        for name in ("status", "bytes", "response", "duration_us", "usage"):
            records[one][name], records[other][name] = records[other][name], records[one][name]

    rewrite(first_segment(audit.logs()[0]), exchange)


def delete_a_segment(audit: Audit, _others: Others) -> None:
    last_segment(audit.logs()[1]).unlink()


def cut_off_the_end(audit: Audit, _others: Others) -> None:
    change(last_segment(audit.logs()[2]), lambda data: data.__delitem__(slice(1000, None)))


def set_the_volume_back(audit: Audit, others: Others) -> None:
    shutil.rmtree(audit.ledger)
    shutil.copytree(others.older, audit.ledger)


def put_back_an_older_checkpoint(audit: Audit, others: Others) -> None:
    name = audit.logs()[2].name
    shutil.copy(others.older / "0" / name / "checkpoint", audit.logs()[2] / "checkpoint")


def remove_a_checkpoint(audit: Audit, _others: Others) -> None:
    (audit.logs()[2] / "checkpoint").unlink()


def copy_a_log_under_another_name(audit: Audit, _others: Others) -> None:
    shutil.copytree(audit.logs()[2], audit.ledger / "0" / ("7" + "Z" * 25))


def plant_a_log(audit: Audit, _others: Others) -> None:
    planted = audit.ledger / "0" / ("7" + "Z" * 25)
    shutil.copytree(audit.logs()[2], planted)
    (planted / "checkpoint").unlink()


def remove_the_oldest_log(audit: Audit, _others: Others) -> None:
    shutil.rmtree(audit.logs()[0])


def remove_the_newest_log(audit: Audit, _others: Others) -> None:
    shutil.rmtree(audit.logs()[2])


def remove_everything(audit: Audit, _others: Others) -> None:
    shutil.rmtree(audit.ledger / "0")


def let_a_log_go_on_twice(audit: Audit, others: Others) -> None:
    newest = max(path for path in (others.forked / "0").iterdir() if path.is_dir())
    shutil.copytree(newest, audit.ledger / "0" / newest.name)


def show_the_other_branch(audit: Audit, others: Others) -> None:
    shutil.rmtree(audit.ledger)
    shutil.copytree(others.forked, audit.ledger)


def rename_a_shard(audit: Audit, _others: Others) -> None:
    (audit.ledger / "0").rename(audit.ledger / "1")


def sign_all_with_another_key(audit: Audit, others: Others) -> None:
    # The configurations that were named before are copied, because the auditor would miss them.
    named = {path.name: path.read_bytes() for path in (audit.ledger / "configurations").iterdir()}
    shutil.rmtree(audit.ledger)
    shutil.copytree(others.rekeyed, audit.ledger)
    for name, content in named.items():
        (audit.ledger / "configurations" / name).write_bytes(content)


def replace_the_key(audit: Audit, others: Others) -> None:
    sign_all_with_another_key(audit, others)
    secret = others.rekeyed.parent / "signing-key"
    his = ledger_key.read(secret.read_text())
    body = f"proofgate.dev/key-succession@v1\nold {audit.key}\nnew {his.verifying_text}\nmade 1\nuntil {1 << 60}\n"
    signatures = [
        # The name of the ledger and the id of its key are public.
        (audit.key.split("+")[1], bytes(64)),
        (his.verifying_text.split("+")[1], Ed25519PrivateKey.from_private_bytes(seed_of(secret)).sign(body.encode())),
    ]
    lines = (base64.b64encode(bytes.fromhex(number) + signature).decode() for number, signature in signatures)
    note = f"{body}\n" + "".join(f"\u2014 {his.name} {line}\n" for line in lines)
    folder = audit.ledger / "key-successions"
    folder.mkdir()
    (folder / f"{hashlib.sha256(note.encode()).hexdigest()[:32]}.note").write_text(note)


def exchange_two_segments(audit: Audit, _others: Others) -> None:
    one, other = (first_segment(log) for log in audit.logs()[:2])
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def let_two_logs_change_places(audit: Audit, _others: Others) -> None:
    one, other = audit.logs()[:2]
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def add_a_log_by_another_key(audit: Audit, others: Others) -> None:
    newest = max(path for path in (others.rekeyed / "0").iterdir() if path.is_dir())
    shutil.copytree(newest, audit.ledger / "0" / newest.name)


def change_a_salt(audit: Audit, _others: Others) -> None:
    change(audit.logs()[0] / "salts", lambda data: data.__setitem__(slice(32, 64), bytes(range(32))))


def zero_a_salt(audit: Audit, _others: Others) -> None:
    change(audit.logs()[0] / "salts", lambda data: data.__setitem__(slice(32, 64), bytes(32)))


def delete_a_log_under_a_forged_tombstone(audit: Audit, _others: Others) -> None:
    log = audit.logs()[0]
    origin, size, root, *_ = (log / "checkpoint").read_text().split("\n")
    for path in [*log.glob("*.seg"), log / "tree", log / "salts"]:
        path.unlink()
    claim = ["removed 1", "exchanges 10", "newest 1", "minimum-days 180", "author nobody"]
    claim.append("reason made up")
    text = "\n".join(["proofgate.dev/tombstone@v2", origin, size, root, *claim])
    # The name of the retention job and the id of its key are public.
    name, number, _ = (audit.folder / "keeping-key").read_text().split("+", 2)
    body = base64.b64encode(bytes.fromhex(number) + bytes(64)).decode()
    (log / "tombstone").write_text(f"{text}\n\n\u2014 {name} {body}\n")


#: The attacks, by the first column of the table in docs/concepts/threat-model.md.
ATTACKS: dict[str, Callable[[Audit, Others], None]] = {
    "flip a byte of a record": flip_a_byte,
    "edit a record, with correct checksums": edit_a_record,
    "delete an exchange, with correct checksums and numbers": delete_an_exchange,
    "insert an exchange, likewise": insert_an_exchange,
    "swap two exchanges, likewise": exchange_two_records,
    "delete a segment": delete_a_segment,
    "cut off the end of a log": cut_off_the_end,
    "set the volume back to an older snapshot": set_the_volume_back,
    "put an older checkpoint back": put_back_an_older_checkpoint,
    "remove a checkpoint": remove_a_checkpoint,
    "copy a log under another name": copy_a_log_under_another_name,
    "add an unsigned log": plant_a_log,
    "remove the oldest log": remove_the_oldest_log,
    "remove the newest log": remove_the_newest_log,
    "remove a shard": remove_everything,
    "continue a log twice": let_a_log_go_on_twice,
    "show only the second of these two continuations": show_the_other_branch,
    "rename a shard": rename_a_shard,
    "another history, signed with another key": sign_all_with_another_key,
    "replace the key, with a statement that only the new key signed": replace_the_key,
    "swap the first segments of two logs": exchange_two_segments,
    "swap two logs": let_two_logs_change_places,
    "add a log that another key signed": add_a_log_by_another_key,
    "change a salt": change_a_salt,
    "zero a salt": zero_a_salt,
    "delete the records of a log under a forged tombstone": delete_a_log_under_a_forged_tombstone,
}
