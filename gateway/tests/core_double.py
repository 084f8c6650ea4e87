"""A stand-in for `proofgate._core`: its interface (`_core.pyi`) and just enough behaviour for these tests.

Tests steer a worker, also one in another process, through files in its ledger directory: `in-flight` (an
exchange has not ended), `unready` (its content is the reason), `failed` (a thread ended by itself),
`refuse-config` (its content is why no configuration is accepted). `policy_double` judges texts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import policy_double
from auditor_double import Auditor
from index_double import (
    ExchangeBatch,
    ExchangeReader,
    ledger_logs,
    log_records,
    sign_export,
    verify_export,
    verify_log_records,
)
from keeper_double import Keeper
from mirror_core_double import Tree, fsck_pinned, sign_s3
from payloads_double import StoredExchange, StoredPayloads, stored_payload
from policy_queue_double import PolicyItem, PolicyQueue
from replay_double import RecordedExchange, RecordedExchanges, Replayer
from witness_double import Witness

__version__ = "0.0.0"
__all__ = [
    "Auditor",
    "ExchangeBatch",
    "ExchangeReader",
    "Keeper",
    "PolicyItem",
    "PolicyQueue",
    "RecordedExchange",
    "RecordedExchanges",
    "Replayer",
    "StoredExchange",
    "StoredPayloads",
    "Tree",
    "Witness",
    "fsck_pinned",
    "ledger_logs",
    "log_records",
    "sign_export",
    "sign_s3",
    "stored_payload",
    "verify_export",
    "verify_log_records",
]

RECORD = '{"kind":"admission","id":"exchange-1","note":"caf\\u00e9  é"}'

_SUCCESSION = "proofgate.dev/key-succession@v1"


class ProofgateError(Exception):
    code = "unspecified"

    def __init__(self, message: str, code: str = "unspecified") -> None:
        super().__init__(message)
        self.code = code


class ConfigError(ProofgateError):
    pass


class LedgerError(ProofgateError):
    pass


class BindError(ProofgateError):
    pass


class ProofError(ProofgateError):
    pass


class AuditorError(ProofgateError):
    pass


class WitnessError(ProofgateError):
    pass


class KeepingError(ProofgateError):
    pass


class ExchangeQueue:
    """No exchange has ended."""

    def take(self, most: int) -> list[str] | None:  # noqa: ARG002 - as the real one
        return []


class Worker:
    def __init__(self, config_json: str) -> None:
        self._config = _accepted(config_json)
        self._directory = Path(self._config["ledger"]["directory"])
        self._draining = False
        self._retiring = False
        self._switch = bool(self._config["profile_stages"])
        self.intervals: list[str] = []
        self._scopes = 0
        self.key_sets: dict[str, str] = {}
        self.wanted: list[str] = []
        self.reloads = 0
        self.lost: dict[str, int] = {}
        self.policy_queues: dict[str, PolicyQueue] = {}
        self.tenant_shards: dict[int, tuple[bytes, bytes]] = {}
        self.shard_changes: list[list[int]] = []
        self._end = threading.Event()
        self._thread_id = 0

    def start(self) -> None:
        if (self._directory / "refuse-start").exists():
            raise LedgerError("the predecessor's log cannot be read", "ledger_unreadable")
        begun = threading.Event()

        def work() -> None:
            self._thread_id = threading.get_native_id()
            begun.set()
            self._end.wait()

        threading.Thread(target=work, daemon=True).start()
        begun.wait()

    @property
    def address(self) -> str:
        return str(self._config["listen"])

    @property
    def origin(self) -> str:
        ledger = self._config["ledger"]
        return f"{ledger['name']}/{ledger['shard']}/01JDOUBLE"

    def ready(self) -> str | None:
        if (self._directory / "failed").exists():
            return "failed"
        unready = self._directory / "unready"
        if unready.exists():
            return unready.read_text()
        if self._draining:
            return "draining"
        return "retiring" if self._retiring else None

    def status(self) -> str:
        status = {"origin": self.origin, "draining": self._draining, "thread": self._thread_id}
        return json.dumps(status | {"core_digest": self._config["config_digest"], "reloads": self.reloads})

    def limit_use(self, most: int) -> str:
        tenants = [{"tenant": f"t-{number}"} for number in range(min(most, 2))]
        return json.dumps({"tenants": tenants, "more": 2 - len(tenants)})

    def metrics(self) -> str:
        return "# TYPE proofgate_requests_total counter\nproofgate_requests_total 1\n"

    def checkpoint(self) -> str:
        return f"{self.origin}\n1\n{'A' * 43}=\n\n— double AAAA\n"

    def prove(self, request_id: str, timeout_seconds: float) -> str:
        if request_id == "not-covered":
            raise LedgerError(f"no checkpoint covers the exchange after {timeout_seconds} s", "ledger")
        return _proofs(request_id)

    def retire(self, retire: bool) -> bool:
        self._retiring = retire
        return retire or self._draining

    def drain(self) -> None:
        self._draining = True

    def join(self, timeout_seconds: float) -> bool:
        deadline = time.monotonic() + timeout_seconds
        while (self._directory / "in-flight").exists() or not self._draining:
            if time.monotonic() >= deadline:
                return False
            threading.Event().wait(0.005)
        self._end.set()
        return True

    def reload(self, config_json: str) -> None:
        config = _accepted(config_json)
        for fixed in ("ledger", "listen", "proxy_protocol"):
            if config[fixed] != self._config[fixed]:
                raise ConfigError(f"{fixed} needs a restart", "config")
        self._config = config
        self._switch = bool(config["profile_stages"])
        self.reloads += 1

    @property
    def config_digest(self) -> str:
        digest = str(self._config["config_digest"])
        shards = "".join(f"{number}{files}" for number, files in sorted(self.tenant_shards.items()))
        return hashlib.sha256(f"{digest}{shards}".encode()).hexdigest() if self.tenant_shards else digest

    def set_tenant_shards(self, files: list[tuple[int, bytes, bytes]]) -> str:
        refused = []
        for number, keys, tenants in files:
            if b"bad" in keys:
                refused.append({"shard": number, "file": "keys", "line": 1, "problem": "it is bad"})
            else:
                self.tenant_shards[number] = (keys, tenants)
        self.shard_changes.append([number for number, _, _ in files])
        # Not above: the package may not be loaded before this module takes the core's place.
        from proofgate.well_known_keys import is_well_known

        lines = [
            line.split() for keys, _ in self.tenant_shards.values() for line in keys.decode().splitlines()
        ]
        guessed = [line for line in lines if is_well_known(line[0])]
        left_out = [{"tenant": tenant, "key": name} for _, tenant, name, *_ in guessed]
        report = {"tenants": 0, "keys": len(lines) - len(guessed), "refused": refused}
        return json.dumps({**report, "well_known": len(guessed), "first_well_known": left_out[:8]})

    def set_access_token(self, provider: str, token: str, lifetime_seconds: float) -> None:
        raise NotImplementedError

    def set_aws_credentials(
        self, provider: str, credentials: tuple[str, str, str | None], lifetime_seconds: float
    ) -> None:
        raise NotImplementedError

    def set_key_set(self, issuer: str, jwks_json: str) -> int:
        if issuer not in [entry["issuer"] for entry in self._config["jwt"]]:
            raise ConfigError(f"JWT issuer {issuer} is not configured", "config")
        try:
            usable = sum(key.get("kid") is not None for key in json.loads(jwks_json)["keys"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError("the key set is not JSON of the form that RFC 7517 wants", "config") from None
        self.key_sets[issuer] = jwks_json
        return usable

    def policy_queue(self, policy: str) -> PolicyQueue:
        if policy not in [entry["name"] for entry in self._config["policies"]]:
            raise ConfigError(f"there is no policy {policy}", "config")
        self.policy_queues[policy] = PolicyQueue()
        return self.policy_queues[policy]

    def exchange_queue(self) -> ExchangeQueue | None:
        return ExchangeQueue()

    def counted(self) -> str:
        return '{"tenants": [], "models": []}'

    def telemetry_lost(self, signal: str, count: int) -> None:
        self.lost[signal] = self.lost.get(signal, 0) + count

    def key_sets_wanted(self) -> list[str]:
        wanted, self.wanted = self.wanted, []
        return wanted

    def profiling(self) -> bool:
        return self._switch or self._scopes > 0

    def set_profiling(self, enabled: bool) -> bool:
        was, self._switch = self._switch, enabled
        return was

    def enter_profiling(self) -> None:
        self._scopes += 1

    def exit_profiling(self) -> None:
        self._scopes -= 1

    def record_interval(self, name: str, duration_seconds: float) -> None:
        assert duration_seconds >= 0
        if self.profiling():
            self.intervals.append(name)


#: The parts of a price that are told by the token.
_PRICED = (
    *("input", "cached_input", "cache_write", "cache_write_1h", "audio_input"),
    *("output", "audio_output"),
)


def model_constraints(model: str) -> str:
    """Knows of no model."""
    del model
    return "[]"


def prices_at(asked_json: str, now_us: int) -> str:
    """Knows exact names of models, and what stands first."""
    asked = json.loads(asked_json)

    def rates(level: dict[str, Any]) -> dict[str, int]:
        told = {part: round(float(level[part]) * 10**6) for part in _PRICED if level.get(part) is not None}
        base = dict.fromkeys(("cached_input", "cache_write", "audio_input"), told["input"])
        return {**base, "cache_write_1h": 2 * told["input"], "audio_output": told["output"], **told}

    def above(level: dict[str, Any]) -> list[dict[str, int]]:
        return [{"prompt_tokens": band["prompt_tokens"], **rates(band)} for band in level.get("above") or []]

    def price(model: str) -> dict[str, Any] | None:
        for entry in asked["prices"]:
            if entry["model"] == model and entry["effective_from"] * 1_000_000 <= now_us:
                tiers = {
                    name: {**rates(tier), "above": above(tier)}
                    for name, tier in (entry.get("tiers") or {}).items()
                }
                return {
                    "effective_from": entry["effective_from"],
                    "default": "host" in entry,
                    **rates(entry),
                    "per_request": 0,
                    "tools": {
                        kind: int(Decimal(amount).scaleb(12))
                        for kind, amount in (entry.get("tools") or {}).items()
                    },
                    "above": above(entry),
                    "tiers": tiers,
                    "max_input_tokens": entry.get("max_input_tokens"),
                    "max_output_tokens": entry.get("max_output_tokens"),
                }
        return None

    return json.dumps(
        [
            {
                "model": model["name"],
                "provider": target["provider"],
                "upstream_model": target["upstream_model"],
                "price": price(target["upstream_model"]),
                "next_change": None,
            }
            for model in asked["models"]
            for target in model["targets"]
        ]
    )


def policy_rules(policy_json: str) -> str:
    try:
        policy = json.loads(policy_json)
        rules = policy_double.rules_of(policy)
        in_force = [rule for rule in rules if rule.action(policy["actions"], policy["action"]) != "ignore"]
        return json.dumps([rule.listed(policy["actions"], policy["action"]) for rule in in_force])
    except ValueError as error:
        raise ConfigError(str(error), "config") from None


def policy_scan(
    policy_json: str, tenant_policy_json: str | None, direction: str, scope: str, text: str
) -> str:
    tenant = None if tenant_policy_json is None else json.loads(tenant_policy_json)
    try:
        return json.dumps(policy_double.scan(json.loads(policy_json), tenant, direction, text, scope))
    except ValueError as error:
        raise ConfigError(str(error), "config") from None


def policy_check(policy_json: str, tenant_policy_json: str | None, endpoint: str, body: bytes) -> str:
    tenant = None if tenant_policy_json is None else json.loads(tenant_policy_json)
    try:
        request = json.loads(body)
    except ValueError:
        raise ConfigError("The request body is not valid JSON.", "config") from None
    if not endpoint.startswith("/v1/"):
        raise ConfigError(f'there are no requests in JSON at "{endpoint}"', "config")
    return json.dumps(policy_double.check(json.loads(policy_json), tenant, request))


def verify_proof(record: bytes, proof: str, verifying_key: str) -> str:
    if hashlib.sha256(record).hexdigest() not in proof:
        raise ProofError("the record is not the one that the proof is for", "proof_mismatch")
    origin = verifying_key.split("+")[0]
    return json.dumps({"origin": f"{origin}/0/01JDOUBLE", "size": 7, "index": 3, "root": "00" * 32})


def reveal(record: bytes, proof: str, verifying_key: str, body: bytes) -> str:
    verify_proof(record, proof, verifying_key)
    if body != b"the body":
        raise ProofError("the commitment to the request does not open to this body", "proof")
    return "request"


def reveal_digest(record: bytes, proof: str, verifying_key: str, digest: bytes) -> str:
    verify_proof(record, proof, verifying_key)
    if digest != hashlib.sha256(b"the body").digest():
        raise ProofError("the commitment to the request does not open to this body", "proof")
    return "request"


def verify_checkpoint(note: str, verifying_key: str) -> str:
    origin, size, root = note.split("\n")[:3]
    if not origin.startswith(verifying_key.split("+")[0]):
        raise ProofError("the checkpoint is of another ledger", "proof")
    return json.dumps({"origin": origin, "size": int(size), "root": root})


def consistency(
    old: tuple[str, str],
    new: tuple[str, str],
    verifying_key: str,
    path: str | None = None,
    proof: list[bytes] | None = None,
) -> str:
    assert old[1]
    if "forked" in new[1] or (path is None and proof != [b"h" * 32]):
        raise LedgerError("not consistent: the proof leads to another root", "inconsistent")
    hashes = ["aGhoaGhoaGhoaGhoaGhoaGhoaGhoaGhoaGhoaGhoaGg="]
    origin = verifying_key.split("+")[0]
    return json.dumps({"origin": f"{origin}/0/01JDOUBLE", "old": 3, "new": 7, "hashes": hashes})


def prove(
    path: str,
    request_id: str,
    verifying_key: str | None = None,
    scan: bool = False,
    shred_keys: str | None = None,
) -> str:
    assert verifying_key != ""
    if request_id == "old-clock" and not scan:
        raise KeyError(request_id)
    if not os.path.isdir(path):  # noqa: PTH112 - the double has the real signature
        raise LedgerError(f"{path} is not a ledger", "ledger_not_found")
    if request_id == "exchange-split":
        return _proofs(request_id, None if shred_keys else "a3231e094fea5a0d")
    return _proofs(request_id)


def shred_key_ids(text: str) -> list[str]:
    lines = text.removesuffix("\n").split("\n")
    try:
        keys = [base64.b64decode(line, validate=True) for line in lines]
    except ValueError:
        keys = [b""]
    if not 1 <= len(keys) <= 64 or any(len(key) != 32 for key in keys):
        raise ValueError("shred keys: a line is not 32 bytes of strict base64")
    return [hashlib.sha256(b"proofgate/v1/shred-key-id\0" + key).hexdigest()[:16] for key in keys]


def shred_keys(directory: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if not Path(directory).is_dir():
        raise LedgerError(f"list {directory}: no such directory", "ledger_io")
    for path in sorted(Path(directory).iterdir()):
        try:
            if not path.name.startswith("."):
                found[path.name] = shred_key_ids(path.read_text())
        except ValueError as error:
            raise LedgerError(f"{path}: {error}", "shred_keys_malformed") from None
    return found


def shred_key_file(tenant: str) -> str:
    return f"_{tenant.replace('/', '_')}" if "/" in tenant else tenant


def fsck(
    path: str,
    verifying_key: str | None,
    against: list[tuple[str, str]] | None = None,
    keeping_key: str | None = None,
    mirror: bool = False,
    shred_keys: str | None = None,
) -> tuple[int, str]:
    if keeping_key is not None and keeping_key == verifying_key:
        raise ValueError("the keeper's key could speak for the ledger")
    if any("refused" in text for _, text in against or []):
        raise LedgerError("kept: note 1: the signature does not verify", "bad_note")
    verdict = Path(path) / "verdict"
    exit_class = int(verdict.read_text()) if verdict.exists() else 0
    incarnation = {"origin": "a/0/01JDOUBLE", "records": 7, "findings": []}
    report: dict[str, Any] = {
        "signatures": verifying_key is not None,
        "against": len(against or []),
        "mirror": mirror,
    }
    report |= {"shred_keys": shred_keys}
    return exit_class, json.dumps(report | {"incarnations": [incarnation]})


def export_leaves(incarnation_dir: str, out_path: str) -> int:
    if not Path(incarnation_dir).is_dir():
        raise LedgerError(f"{incarnation_dir} is not an incarnation", "ledger_not_found")
    Path(out_path).write_bytes(b"leaf")
    return 1


def generate_key(name: str) -> tuple[str, str]:
    if "+" in name:
        raise ValueError("a key name has no '+'")
    return f"PRIVATE+KEY+{name}+1a2b3c4d+c2VjcmV0", f"{name}+1a2b3c4d+cHVibGlj"


def generate_witness_key(name: str) -> tuple[str, str]:
    signing, verifying = generate_key(name)
    return signing.replace("c2VjcmV0", "d2l0bmVzcw"), verifying


def verifying_key(signing_key: str) -> str:
    if not signing_key.startswith("PRIVATE+KEY+"):
        raise ValueError(f"not a signing key: {signing_key}")
    name, key_hash = signing_key.split("+")[2:4]
    return f"{name}+{key_hash}+cHVibGlj"


def sign_key_succession(old: str, new: str, made_us: int, until_us: int) -> str:
    signers = [verifying_key(text) for text in (old, new)]
    if len({signer.split("+")[0] for signer in signers}) != 1 or signers[0] == signers[1]:
        raise ValueError("statement: the two keys have different names, or are one")
    fields = f"old {signers[0]}\nnew {signers[1]}\nmade {made_us}\nuntil {until_us}"
    return f"{_SUCCESSION}\n{fields}\n\n— a b\n— a c\n"


def split_key_successions(text: str) -> list[str]:
    first, *statements = f"\n{text}".split(f"\n{_SUCCESSION}\n")
    notes = [f"{_SUCCESSION}\n{statement.strip()}\n" for statement in statements]
    return [first.strip() + "\n", *notes] if first.strip() else notes


def key_line(key_file: str) -> list[tuple[str, int | None]]:
    first = key_file.strip().split("\n")[0]
    own = verifying_key(first) if first.startswith("PRIVATE+KEY+") else first
    if own.count("+") < 2:
        raise ValueError("key text: not of the form name+hash+base64")
    line: list[tuple[str, int | None]] = []
    for note in split_key_successions(key_file):
        if note.startswith(_SUCCESSION):
            fields = note.split("\n")
            line.append((fields[1].removeprefix("old "), int(fields[4].removeprefix("until "))))
    return [*line, (own, None)]


def end_user_ids(tenant: str, name: str, shred_keys: str | None = None) -> list[str]:
    if shred_keys is None:
        return [f"{tenant} {name}"]
    return [f"{tenant} {name} {key}" for key in globals()["shred_keys"](shred_keys).get(tenant, [])]


def hash_api_key(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _accepted(config_json: str) -> Any:
    config = json.loads(config_json)
    refusal = Path(config["ledger"]["directory"]) / "refuse-config"
    if refusal.exists():
        raise ConfigError(refusal.read_text(), "config")
    policy_rules(json.dumps(config["policy"]))
    return config


def _proofs(request_id: str, shred_key_missing: str | None = None) -> str:
    if not request_id.startswith(("exchange-", "old-clock")):
        raise KeyError(request_id)
    record_hash = hashlib.sha256(RECORD.encode()).hexdigest()
    proof = f"c2sp.org/tlog-proof@v1\nindex 3\n{record_hash}\n\ncheckpoint\n"
    record = {"kind": "admission", "index": 3, "record": RECORD, "proof": proof}
    if shred_key_missing is not None:
        record["shred_key_missing"] = shred_key_missing
    if request_id == "exchange-unreadable":
        record["salt_unreadable"] = "read 0/X/salts: Input/output error [ledger_io]"
        unproven = ["record 9 of 0/Y: open 0/Y/checkpoint: Permission denied [ledger_io]"]
        return json.dumps({"records": [record], "unproven": unproven})
    return json.dumps({"records": [record]})
