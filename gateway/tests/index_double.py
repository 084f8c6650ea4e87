"""Logs as the core makes rows of them: `records.jsonl` in the place of segments, with a `checkpoint` that
nobody signed.

A record's path is its SHA-256, and a key is the ledger's when the origin begins with its name.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

_DAY = 86_400_000_000
_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE
_FIVE_MINUTES = 5 * _MINUTE
_ATTRIBUTED = ("session", "end_user", "agent", "parent_agent")
_OUTCOMES = ("completion", "aborted")


class ExchangeReader:
    def __init__(
        self,
        directory: str,
        note: str,
        verifying_key: str,
        place: str | None = None,
        most_records: int | None = None,
    ) -> None:
        self._origin, self._size = _head(note)
        if not self._origin.startswith(verifying_key.split("+", 1)[0]):
            raise _error("LedgerError", "the checkpoint is of another ledger", "ledger_refused")
        if self._origin.split("/")[-2:] != directory.split("/")[-2:]:
            raise _error("LedgerError", "it is another log's", "checkpoint_foreign")
        self._records = _records(Path(directory))
        self._at = 0 if place is None else int(place.split(" ")[0])
        self._most = most_records or 4

    @property
    def origin(self) -> str:
        return self._origin

    @property
    def size(self) -> int:
        return self._size

    def next(self) -> ExchangeBatch | None:
        if self._at >= self._size:
            return None
        end = min(self._at + self._most, self._size)
        part = [json.loads(record) for record in self._records[self._at : end]]
        if any(record["kind"] == "changed" for record in part):
            raise _error("LedgerError", "the records do not lead to it", "records_contradict_checkpoint")
        self._at = end
        return ExchangeBatch(part, end)


class ExchangeBatch:
    def __init__(self, records: list[dict[str, Any]], size: int) -> None:
        self._size = size
        self._sealed: bool = records[-1]["kind"] == "seal"
        self._ended: list[tuple[str, int]] = []
        self._exchanges: dict[int, dict[str, Any]] = {}
        self._late: list[dict[str, Any]] = []
        self._analysed: list[dict[str, Any]] = []
        self._configured: tuple[int, bytes] | None = None
        for record in records:
            self._take(record)

    def _take(self, record: dict[str, Any]) -> None:
        kind, seq = record["kind"], record["seq"]
        if kind in ("admission", "rejection"):
            self._exchanges[seq] = {"first": record, "attempts": [], "end": None}
            return
        if kind == "analysis":
            self._analysed.append(record)
        if kind in ("open", "config") and "config" in record:
            named = record.get("settings", record["config"])
            self._configured = record["ts"], bytes.fromhex(named)
        if kind == "open" and record.get("predecessor"):
            self._ended.append((record["predecessor"]["incarnation"], record["predecessor"]["size"]))
        if kind not in ("attempt", *_OUTCOMES):
            return
        begun = self._exchanges.get(record["admission"])
        if begun is not None and not record.get("incarnation") and begun["end"] is None:
            if kind == "attempt":
                begun["attempts"].append(record)
            else:
                begun["end"] = record
            return
        place = {"incarnation": record.get("incarnation"), "admission": record["admission"]}
        late = place | {"id": record["id"], "seq": seq}
        if kind == "attempt":
            late |= {"kind": "attempt", "number": record["attempt"], "provider": record["provider"]}
        else:
            late |= {"kind": "end"} | _end(record)
        self._late.append(late)

    @property
    def size(self) -> int:
        return self._size

    @property
    def place(self) -> str:
        return f"{self._size} 0 0 0 "

    @property
    def sealed(self) -> bool:
        return self._sealed

    @property
    def configured(self) -> tuple[int, bytes] | None:
        return self._configured

    @property
    def ended(self) -> list[tuple[str, int]]:
        return self._ended

    def days(self) -> list[int]:
        begun = [entry["first"] for entry in self._exchanges.values()]
        return sorted({record["ts"] // _DAY for record in [*begun, *self._analysed]})

    def _rows(self, day: int) -> list[dict[str, Any]]:
        rows = [
            _row(seq, entry) for seq, entry in self._exchanges.items() if entry["first"]["ts"] // _DAY == day
        ]
        assert rows or self._analysed_on(day), "there is no such day in the batch"
        return rows

    def texts(self, day: int) -> list[str]:
        texts: dict[str, None] = {}
        for row in self._rows(day):
            named = [row[name] for name in ("tenant", "key", "model", "endpoint", "outcome", *_ATTRIBUTED)]
            texts |= dict.fromkeys(text for text in named if text is not None)
            texts |= dict.fromkeys([*row["providers"], *row["rules"]])
        for record in self._analysed_on(day):
            texts |= dict.fromkeys([record["tenant"], record["model"], *record["findings"]])
        return list(texts)

    def _analysed_on(self, day: int) -> list[dict[str, Any]]:
        return [record for record in self._analysed if record["ts"] // _DAY == day]

    def analysed(
        self, day: int, texts: list[int], lists: list[int], log: int, version: int
    ) -> list[tuple[int | str | bytes | None, ...]]:
        names, of_lists = self.texts(day), self._lists(day)
        rows: list[tuple[int | str | bytes | None, ...]] = []
        for record in self._analysed_on(day):
            answer, window = record.get("answer") or {}, record.get("window") or {}
            both = answer | window
            findings = record["findings"]
            rows.append(
                (
                    *(record["ts"], log, record["seq"], _stored_id(record["exchange"])),
                    *(texts[names.index(record[name])] for name in ("tenant", "model")),
                    lists[of_lists.index(tuple(findings))] if findings else None,
                    *(version, both.get("entropy_millibits"), both.get("repetition_permille")),
                    *(answer.get("stretch_permille"), window.get("number"), window.get("answers")),
                    *(window.get(f"{name}") for name in ("length_millitokens", "refusal_permille")),
                    *(window.get("cut_permille"), json.dumps(window["tests"]) if window else None),
                )
            )
        return rows

    def lists(self, day: int) -> list[list[int]]:
        texts = self.texts(day)
        return [[texts.index(name) for name in names] for names in self._lists(day)]

    def _lists(self, day: int) -> list[tuple[str, ...]]:
        lists = [tuple(row[name]) for row in self._rows(day) for name in ("providers", "rules")]
        lists += [tuple(record["findings"]) for record in self._analysed_on(day)]
        return list(dict.fromkeys(names for names in lists if names))

    def rows(
        self, day: int, texts: list[int], lists: list[int], log: int, version: int
    ) -> list[tuple[int | str | bytes | None, ...]]:
        names, of_lists = self.texts(day), self._lists(day)
        assert (len(texts), len(lists)) == (len(names), len(of_lists))

        def text(name: str | None) -> int | None:
            return None if name is None else texts[names.index(name)]

        def listed(of: list[str]) -> int | None:
            return lists[of_lists.index(tuple(of))] if of else None

        told = ("prompt_tokens", "completion_tokens", "cost", "bytes", "duration")
        return [
            (
                *(
                    row["ts"],
                    log,
                    row["seq"],
                    row["id"],
                    text(row["tenant"]),
                    row["tenant_seq"],
                    text(row["key"]),
                ),
                *(text(row["model"]), listed(row["providers"]), text(row["endpoint"]), row["verdict"]),
                *(listed(row["rules"]), row["request_bytes"], version),
                *(
                    None if row["end_seq"] is None else log,
                    row["end_seq"],
                    row["status"],
                    text(row["outcome"]),
                ),
                *(row[name] for name in told),
                *(text(row[name]) for name in _ATTRIBUTED),
                row["trace_id"],
            )
            for row in self._rows(day)
        ]

    def minutes(
        self, day: int, texts: list[int], lists: list[int]
    ) -> tuple[
        list[tuple[int, int, int]],
        list[tuple[int, int]],
        list[tuple[int, int, int, int]],
        list[tuple[int, int, int]],
    ]:
        names, of_lists = self.texts(day), self._lists(day)
        held: set[tuple[int, int, int]] = set()
        costs: dict[int, int] = {}
        tenants: set[tuple[int, int, int, int]] = set()
        tenants_costs: dict[tuple[int, int], int] = {}
        for row in self._rows(day):
            minute, hour = row["ts"] // _MINUTE, row["ts"] // _HOUR
            tenant = None if row["tenant"] is None else texts[names.index(row["tenant"])]
            for column, name in enumerate(("key", "model", "providers", "outcome", "rules")):
                if not row[name]:
                    continue
                if isinstance(row[name], list):
                    number = lists[of_lists.index(tuple(row[name]))]
                else:
                    number = texts[names.index(row[name])]
                held.add((column, number, minute))
                if tenant is not None and name != "key":
                    tenants.add((tenant, column, number, hour))
            if row["cost"] is not None:
                costs[minute] = max(costs.get(minute, 0), row["cost"])
                if tenant is not None:
                    most = tenants_costs.get((tenant, hour), 0)
                    tenants_costs[tenant, hour] = max(most, row["cost"])
        dearest = [(*at, most) for at, most in sorted(tenants_costs.items())]
        return sorted(held), sorted(costs.items()), sorted(tenants), dearest

    def sums(
        self, day: int
    ) -> list[
        tuple[
            tuple[int, str | None, str | None],
            tuple[int, int, int, int],
            tuple[float, float, float],
            tuple[int, int | None],
        ]
    ]:
        found = []
        for row in self._rows(day):
            refused, ended = row["verdict"] == 5, row["end_seq"] is not None
            amounts = (row[name] or 0 for name in ("prompt_tokens", "completion_tokens", "cost"))
            prompt, completion, cost = amounts
            unpriced = int(ended and not refused and row["cost"] is None)
            found.append(
                (
                    (row["ts"] // _FIVE_MINUTES, row["tenant"], row["model"]),
                    (1, int(refused), int(row["verdict"] == 4), int(not ended)),
                    (float(prompt), float(completion), float(cost)),
                    (unpriced, None if refused else row["ts"]),
                )
            )
        return found

    def admissions(self, day: int) -> list[tuple[str, int, int]]:
        admitted = [row for row in self._rows(day) if row["tenant_seq"] is not None]
        return [(row["tenant"], row["tenant_seq"], row["tenant_seq"]) for row in admitted]

    def attempts(self, day: int, texts: list[int]) -> list[tuple[int, int, int, int]]:
        names = self.texts(day)
        return [
            (seq, attempt["seq"], attempt["attempt"], texts[names.index(attempt["provider"])])
            for seq, entry in self._exchanges.items()
            if entry["first"]["ts"] // _DAY == day
            for attempt in entry["attempts"]
        ]

    def unended(self) -> list[tuple[int, int]]:
        exchanges = self._exchanges.items()
        return [
            (seq, entry["first"]["ts"])
            for seq, entry in exchanges
            if entry["end"] is None and entry["first"]["kind"] == "admission"
        ]

    def late(self) -> list[str]:
        return [json.dumps(late) for late in self._late]


def _stored_id(own_id: str) -> bytes | str:
    is_own = own_id.startswith("req_") and len(own_id) == 36
    return bytes.fromhex(own_id[4:]) if is_own else own_id


def _row(seq: int, entry: dict[str, Any]) -> dict[str, Any]:
    first, end = entry["first"], entry["end"]
    row = {
        "ts": first["ts"],
        "seq": seq,
        "id": _stored_id(first["id"]),
        "tenant": first["tenant"],
        "tenant_seq": first.get("tenant_seq"),
        "key": first.get("key") or first.get("counted"),
        "model": first.get("model") or None,
        "endpoint": first["endpoint"],
        "request_bytes": first["bytes"],
    }
    said = first.get("attribution") or {}
    row |= {name: said.get(name) for name in _ATTRIBUTED}
    row["trace_id"] = bytes.fromhex(said["trace_id"]) if "trace_id" in said else None
    nothing = dict.fromkeys(
        ("status", "outcome", "prompt_tokens", "completion_tokens", "cost", "bytes", "duration")
    )
    if first["kind"] == "rejection":
        rules = sorted((first.get("policy") or {"rules": []})["rules"])
        ended = nothing | {"status": first["status"], "outcome": first["code"], "end_seq": seq}
        return row | ended | {"providers": [], "verdict": 5, "rules": rules}
    told: dict[str, Any] = (
        _end(end) | {"end_seq": end["seq"]} if end else nothing | {"end_seq": None, "verdict": 0, "rules": []}
    )
    verdict, rules = _judged(first)
    names = [first["provider"], *(attempt["provider"] for attempt in entry["attempts"])]
    joined = {"verdict": max(verdict, told["verdict"]), "rules": sorted({*rules, *told["rules"]})}
    return row | told | joined | {"providers": list(dict.fromkeys(names))}


def _judged(record: dict[str, Any]) -> tuple[int, list[str]]:
    note = record.get("policy")
    verdict = 4 if record.get("outcome") == "policy_blocked" else 0
    if note is not None and not verdict:
        verdict = 3 if note["would_block"] else 2 if note["redacted"] else 1
    return verdict, note["rules"] if note else []


def _end(record: dict[str, Any]) -> dict[str, Any]:
    verdict, rules = _judged(record)
    usage = record.get("usage") or {}
    return {
        "status": record.get("status"),
        "outcome": "aborted" if record["kind"] == "aborted" else record["outcome"],
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cost": record.get("cost_nanodollars"),
        "bytes": record.get("bytes"),
        "duration": record.get("duration_us"),
        "verdict": verdict,
        "rules": rules,
    }


def ledger_logs(
    ledger: str, verifying_key: str, known: dict[str, int], keeping_key: str | None = None
) -> tuple[list[tuple[str, str]], list[str]]:
    assert keeping_key is None
    name = verifying_key.split("+", 1)[0]
    found = []
    for path in sorted(Path(ledger).glob("*/*/checkpoint")):
        note = path.read_text()
        origin, size = _head(note)
        assert origin.startswith(name)
        if size > known.get(origin, 0):
            found.append((str(path.parent), note))
    return found, []


def log_records(
    directory: str, note: str, verifying_key: str, numbers: list[int]
) -> list[tuple[bytes, list[bytes]]]:
    assert verifying_key
    records, (_, size) = _records(Path(directory)), _head(note)
    assert numbers == sorted(numbers)
    assert not numbers or numbers[-1] < size
    return [(records[number], [hashlib.sha256(records[number]).digest()]) for number in numbers]


def verify_log_records(
    note: str, verifying_key: str, records: list[tuple[int, bytes, list[bytes]]]
) -> tuple[str, int]:
    origin, size = _head(note)
    assert origin.startswith(verifying_key.split("+", 1)[0])
    for index, record, path in records:
        if path != [hashlib.sha256(record).digest()] or json.loads(record)["seq"] != index or index >= size:
            raise _error("ProofError", f"record {index} of {origin}: it does not lead to the root", "proof")
    return origin, size


def sign_export(signing_key: str, digest: bytes) -> str:
    return f"{signing_key.split('+')[2]} signs {digest.hex()}\n"


def verify_export(note: str, verifying_key: str, digest: bytes) -> None:
    if note != f"{verifying_key.split('+')[0]} signs {digest.hex()}\n":
        raise _error("ProofError", "it is over another manifest", "proof")


def _head(note: str) -> tuple[str, int]:
    origin, size = note.split("\n")[:2]
    return origin, int(size)


def _records(directory: Path) -> list[bytes]:
    return (directory / "records.jsonl").read_bytes().splitlines()


def _error(name: str, message: str, code: str) -> Exception:
    # The double of the core has the errors, and takes these functions from here.
    import core_double

    error: Exception = getattr(core_double, name)(message, code)
    return error
