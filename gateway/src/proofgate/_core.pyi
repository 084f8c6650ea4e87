"""The Rust side of a worker, and the offline tools for its evidence."""

from typing import Literal, Self, final

__all__ = [
    "Auditor",
    "AuditorError",
    "BindError",
    "ConfigError",
    "ExchangeBatch",
    "ExchangeQueue",
    "ExchangeReader",
    "KeepingError",
    "LedgerError",
    "PolicyItem",
    "PolicyQueue",
    "ProofError",
    "ProofgateError",
    "RecordedExchange",
    "RecordedExchanges",
    "Replayer",
    "RetentionState",
    "StoredExchange",
    "StoredPayloads",
    "Tree",
    "Witness",
    "WitnessError",
    "Worker",
    "__version__",
    "config_fields",
    "consistency",
    "denial_codes",
    "end_user_ids",
    "export_leaves",
    "fsck",
    "fsck_pinned",
    "generate_key",
    "generate_witness_key",
    "hash_api_key",
    "key_line",
    "ledger_logs",
    "limit_kinds",
    "log_records",
    "model_constraints",
    "policy_check",
    "policy_rules",
    "policy_scan",
    "prices_at",
    "prove",
    "reveal",
    "reveal_digest",
    "shred_key_file",
    "shred_key_ids",
    "shred_keys",
    "sign_export",
    "sign_key_succession",
    "sign_s3",
    "split_key_successions",
    "stored_payload",
    "use_json_log",
    "verify_checkpoint",
    "verify_export",
    "verify_log_records",
    "verify_proof",
    "verifying_key",
]

__version__: str

class ProofgateError(Exception):
    """Base of every error that the core raises on purpose. `code` is stable and meant for machines."""

    code: str

class ConfigError(ProofgateError):
    """The configuration handed to `Worker` is not usable."""

class LedgerError(ProofgateError):
    """The ledger cannot be opened, recovered, read or written."""

class BindError(ProofgateError):
    """The traffic port cannot be bound."""

class AuditorError(ProofgateError):
    """The auditor cannot start or go on: its state, its key, or what it is asked for."""

class WitnessError(ProofgateError):
    """A witness cannot start: its state, or its list of logs."""

class KeepingError(ProofgateError):
    """A retention job's state or the ledger cannot be read, written or believed: `code` says why."""

class ProofError(ProofgateError):
    """A proof does not hold, or cannot be made."""

@final
class Worker:
    """One worker: a data-plane thread and a ledger thread. Immutable for Python, safe from any thread.

    Calls that wait or read files release the GIL.
    """

    def __new__(cls, config_json: str) -> Self:
        """Checks the configuration (see `Config.to_core_json`). Raises ConfigError."""

    def start(self) -> None:
        """Recovers the predecessor, opens the incarnation, binds the traffic port and starts both threads.

        Raises LedgerError or BindError; nothing is left running then.
        """

    @property
    def address(self) -> str:
        """The bound traffic address, `host:port`."""

    @property
    def origin(self) -> str:
        """The log's origin, `<ledger name>/<shard>/<incarnation>`."""

    def ready(self) -> str | None:
        """None when ready, otherwise why not.

        not_started; retiring; draining (also when sealed); ledger_stopped (never passes within this
        incarnation); failed (a thread ended by itself).
        """

    def status(self) -> str:
        """A JSON object: origin, shard, incarnation, records written and durable, exchanges in flight, ..."""

    def limit_use(self, most: int) -> str:
        """How much of its limits each tenant has used, about a second late, as JSON: `{"tenants": [{"tenant",
        <field of each of limit_kinds>: {"used", "limit"} or null}], "more": <tenants left out>}`, with at
        most `most` tenants, those that have used most.
        """

    def metrics(self) -> str:
        """The Prometheus text exposition."""

    def checkpoint(self) -> str:
        """The newest signed checkpoint, a C2SP signed note. Raises LedgerError before the first one."""

    def prove(self, request_id: str, timeout_seconds: float) -> str:
        """Proofs of the records of one exchange, as JSON:
        `{"records": [{"kind", "index", "record": "<stored text>", "proof": "<tlog-proof text>"}]}`, and
        `shred_key_missing` where the salt needs a key of that id which is not at hand, `salt_unreadable` with
        why it cannot be read.

        Waits until a checkpoint covers the records. Raises KeyError for an unknown exchange, LedgerError
        when no checkpoint covered it in time.
        """

    def retire(self, retire: bool) -> bool:
        """Retires the worker, or takes that back; whether it is on its way out then.

        A worker that retires is not ready, serves what comes, and ends its connections between two requests.
        One that drains cannot turn back.
        """

    def drain(self) -> None:
        """Begins to drain and returns at once: not ready, `Connection: close`; stops to accept after the
        lame-duck time; seals when the last exchange is done. Idempotent."""

    def join(self, timeout_seconds: float) -> bool:
        """Waits until both threads have ended. True when they have and the log is sealed."""

    def reload(self, config_json: str) -> None:
        """Applies a new configuration atomically: every exchange sees the old one or the new one.

        Returns when it is in force, however long the data plane takes over it. Raises ConfigError, and the
        old one stays; ProofgateError with the code `busy` when the data plane does not begin with it within
        10 seconds: it never will, and the old one stays. Ledger, `listen`, `proxy_protocol` and the limit of
        connections are fixed for the life of a worker: changing one is refused so.
        """

    @property
    def config_digest(self) -> str:
        """SHA-256 of the configuration in force in hexadecimal, as in records: the one that it was given, or
        with shards of tenants one over that and theirs."""

    def set_tenant_shards(self, files: list[tuple[int, bytes, bytes]]) -> str:
        """Takes other content of some shards of tenants into service, all of it as one change: their numbers,
        with the content of `keys` and of `tenants`. Also before the start.

        Returns JSON: `{"tenants": <in service>, "keys": <in service>, "refused": [{"shard", "file", "line",
        "problem"}], "well_known": <left out>, "first_well_known": [{"tenant", "key"}]}`. A shard that is
        refused stays as it was, and a key that everybody can guess is left out. Raises ConfigError when the
        configuration has no shards, ProofgateError with the code `busy` as `reload`.
        """

    def set_key_set(self, issuer: str, jwks_json: str) -> int:
        """Replaces the keys of a JWT issuer (RFC 7517); returns how many are usable.

        Raises ConfigError, and the old keys stay: the issuer is not configured, or the text is no key set.
        ProofgateError with the code `busy` as `reload`.
        """

    def set_access_token(self, provider: str, token: str, lifetime_seconds: float) -> None:
        """Replaces the access token that a provider is sent in the place of a key; it is one for so long.

        A reload keeps it, unless the provider is elsewhere then. Raises ConfigError, and the old one stays:
        the provider takes none, or the text is no token. ProofgateError with the code `busy` as `reload`,
        and with the code `not_running` before the start.
        """

    def set_aws_credentials(
        self, provider: str, credentials: tuple[str, str, str | None], lifetime_seconds: float
    ) -> None:
        """Replaces the temporary credentials that requests to a provider are signed with: the id of the
        access key, the secret access key and the session token. They are valid for so long.

        A reload keeps them, and errors are raised, as for `set_access_token`.
        """

    def policy_queue(self, policy: str) -> PolicyQueue:
        """The queue of a policy of the configuration in force, once for each; also before the start.

        A reload keeps the queue of a policy that stays as it is. Raises ConfigError when there is no such
        policy or its queue was taken.
        """

    def exchange_queue(self) -> ExchangeQueue | None:
        """The exchanges whose traces are sampled; None when somebody took the queue before. Raises
        ProofgateError with the code `not_running` before the start.
        """

    def counted(self) -> str:
        """What tenants and models have of the traffic, as JSON: `tenants`, `models`. About a second late."""

    def telemetry_lost(self, signal: str, count: int) -> None:
        """Counts what could not be delivered of `traces` or `metrics`."""

    def key_sets_wanted(self) -> list[str]:
        """Issuers for which a token named an unknown key since the last call."""

    def profiling(self) -> bool:
        """Whether the stages of the hot path are measured now."""

    def set_profiling(self, enabled: bool) -> bool:
        """Switches stage profiling; returns what the switch was."""

    def enter_profiling(self) -> None:
        """Counts one scope: profiling is on while the switch is on or a scope is open."""

    def exit_profiling(self) -> None:
        """Ends one scope."""

    def record_interval(self, name: str, duration_seconds: float) -> None:
        """Records an interval that Python measured, `python_resume` or `loop_lag`, while profiling is on."""

def config_fields() -> list[str]:
    """The path of each field and each word of the document that `Worker` reads, as the core knows them.

    `providers[].timeouts.connect_ms` is a field, `ledger.durability=synced` a word; `[]` stands for the
    elements of a list.
    """

def denial_codes() -> list[str]:
    """The codes of refusals by which a rule, an external policy or the check of guarded tools denies a
    request. A policy that fails denies as well.
    """

def limit_kinds() -> list[
    tuple[
        str,
        str,
        str,
        Literal["requests", "tokens", "concurrency", "money"],
        Literal["minute", "day", "month", "now"],
    ]
]:
    """Each kind of limit: name in the schema, field in the worker's configuration, code of a refusal, what it
    counts, and in which time. In the order in which they are reported.
    """

def model_constraints(model: str) -> str:
    """What a model is known to refuse, by its name at the provider, as a JSON list.

    An entry has `constraint` (a name, or an object of a name and its values, such as
    `{"EffortLevels": ["low", "high"]}`) and `source`. Of two entries about one thing the first one holds.
    """

def prices_at(asked_json: str, now_us: int) -> str:
    """The price of each model that holds at a time (unix microseconds), as a JSON list.

    `asked_json` has the sections `prices`, `providers` (`name` and `baseURL`) and `models`. An entry has
    `model`, `provider`, `upstream_model`, `next_change` (unix seconds, or null) and `price`: null when none
    is known, or `effective_from` (unix seconds), `default` (of the table that comes with the gateway), and
    in picodollars `input`, `cached_input`, `cache_write`, `audio_input`, `output`, `audio_output` for a
    token, `per_request` for a request, and `tools` for a call of each kind of tool.
    Raises ConfigError.
    """

@final
class PolicyItem:
    """One request that waits for a policy's verdict. Dropped without one, it has failed."""

    @property
    def tenant(self) -> str:
        """Who sends it."""

    @property
    def model(self) -> str:
        """The model that it asks for."""

    @property
    def endpoint(self) -> str:
        """The endpoint's path."""

    @property
    def texts(self) -> tuple[tuple[str, Literal["text", "key", "number"], bool], ...]:
        """Each text, what it is, and whether it is a part of the model's instructions."""

    def is_awaited(self) -> bool:
        """Whether somebody still waits for the verdict: not after the deadline."""

@final
class PolicyQueue:
    """The queue of one policy. Once it is closed or gone, requests for the policy fail at once."""

    def take_policy_batch(self, most: int, timeout_seconds: float) -> list[PolicyItem] | None:
        """Waits for requests, and takes as many as there are, at most `most`; an empty list when none came in
        time, None when none will ever come. Releases the GIL. Requests that nobody waits for are left out.
        """

    def return_verdicts(
        self, verdicts: list[tuple[PolicyItem, tuple[str, str, str, int, list[tuple[int, int, int, str]]]]]
    ) -> int:
        """Returns verdicts; how many of them somebody still waited for.

        Each is `("allow" | "deny" | "flag" | "replace" | "replace_reversibly" | "failed", rule or code or
        reason of the failure, reason, score, [(text, start, end, by)])`. Anything else fails that request as
        `bad_verdict`.
        """

    def close(self) -> None:
        """Gives the queue up."""

@final
class ExchangeQueue:
    """Exchanges that have ended and whose traces are sampled."""

    def take(self, most: int) -> list[str] | None:
        """Those that are there, at most `most`, each as a JSON object; waits for none. None when there will
        never be one again.
        """

def policy_rules(policy_json: str) -> str:
    """The rules that a policy section yields, as a JSON list. The section has the names, units and words of
    the configuration.

    Each is an object: id, pack, reason, target, view, score, actions {scope: action}, examples {match,
    no_match}. The scopes are those of the directions that the rule looks at. Raises ConfigError.
    """

def policy_check(policy_json: str, tenant_policy_json: str | None, endpoint: str, body: bytes) -> str:
    """What a policy decides about a request in JSON at this endpoint, such as `/v1/chat/completions`.

    Returns JSON as `policy_scan`, without matches, and `"message"` (where the one that decides stands),
    `"scope"` (what it is), `"messages": [{"place", "scope", "score", "flagged", "from_tool", "decision",
    "matches"}]`, whose matches have their `"text"`, and `"sent"`: the body after redaction, or null.
    `from_tool`: whether it is a text of a tool that is flagged as instructions. Raises ConfigError, also when
    the body is not a request.
    """

def policy_scan(
    policy_json: str, tenant_policy_json: str | None, direction: str, scope: str, text: str
) -> str:
    """What a policy decides about one text; `direction` is `request` or `response`, `scope` such as `User`.

    Returns JSON `{"decision": "allow"|"flag"|"redact"|"block", "would_block", "rule": id|null, "by_score",
    "score", "flagged", "matches": [{"rule", "action", "start", "end"}]}`, offsets in bytes of UTF-8. `rule`
    blocks, or is the strongest of those whose score does; the budget does not apply. Raises ConfigError.
    """

@final
class StoredExchange:
    """An exchange with what was stored of it. Its records were under a checkpoint."""

    @property
    def directory(self) -> str:
        """The directory of the log that holds its admission, or the record of a denied request."""

    @property
    def admission(self) -> bytes:
        """The admission record as it is stored, JSON; the `rejection` of a denied request."""

    @property
    def end(self) -> bytes | None:
        """Its `completion` or `aborted` record as it is stored; None where none is under a checkpoint."""

    @property
    def request(self) -> bytes | None:
        """What the client sent, opened and compared with the record's commitment; None: see `no_request`."""

    @property
    def response(self) -> bytes | None:
        """What the client got, opened and compared with the record's commitment; None: see `no_response`."""

    @property
    def no_request(self) -> tuple[str, str] | None:
        """Why there is no request: a stable code and a sentence. `payload_not_stored`, `payload_missing`,
        `shred_key_missing`, `salt_erased`, `payload_refused`, `payload_mismatch`, or one of the ledger."""

    @property
    def no_response(self) -> tuple[str, str] | None:
        """The same of the response."""

@final
class StoredPayloads:
    """The exchanges of a ledger with what was stored of them, in the order in which they ended, shard by
    shard; those without an end come last in theirs. Removed logs are passed over."""

    def __new__(cls, ledger: str, verifying_key: str, shred_keys: str | None = None) -> Self:
        """Begins with a ledger's, a shard's or a log's directory, and a folder of shred keys.

        Raises ValueError for a key that is none; LedgerError.
        """

    def __iter__(self) -> Self: ...
    def __next__(self) -> StoredExchange:
        """The next exchange. Raises LedgerError for a log whose records do not lead to what was signed; what
        comes after that is of the log behind it.
        """

def stored_payload(
    ledger: str, verifying_key: str, request_id: str, shred_keys: str | None = None
) -> StoredExchange:
    """What is stored of one exchange, whose records are proved first. Raises LedgerError: `no_such_exchange`
    when it is not there, `record_not_covered` while no checkpoint covers it.
    """

@final
class ExchangeReader:
    """Reads one log on, up to a checkpoint and never beyond it."""

    def __new__(
        cls,
        directory: str,
        note: str,
        verifying_key: str,
        place: str | None = None,
        most_records: int | None = None,
    ) -> Self:
        """Begins, or goes on from the `place` of a batch, with at most so many records in a batch.

        Raises ValueError for a key that is none; LedgerError when the note is not by that key or of another
        log than the directory's, and when the place is none of it.
        """

    @property
    def origin(self) -> str:
        """The log."""

    @property
    def size(self) -> int:
        """Records under the checkpoint."""

    def next(self) -> ExchangeBatch | None:
        """The next batch, whose records are known to lead to what was signed; None at the checkpoint.

        Raises LedgerError; nothing more is to be read here then.
        """

@final
class ExchangeBatch:
    """What a stretch of a log says of exchanges. Days are numbered from 1970-01-01, UTC."""

    @property
    def size(self) -> int:
        """Records of the log up to its end."""

    @property
    def place(self) -> str:
        """Where to go on."""

    @property
    def sealed(self) -> bool:
        """Whether its last record is a seal: nothing follows."""

    @property
    def ended(self) -> list[tuple[str, int]]:
        """With how many records other logs of the shard ended, as it says, by incarnation."""

    @property
    def configured(self) -> tuple[int, bytes] | None:
        """Since when the configuration that it tells of last is in force, in unix microseconds, and the
        SHA-256 under which it is archived; None where it tells of none."""

    def days(self) -> list[int]:
        """The days on which exchanges begin in it, or analysis found something."""

    def texts(self, day: int) -> list[str]:
        """The texts that the rows of a day name, each once."""

    def lists(self, day: int) -> list[list[int]]:
        """The lists of them that the rows name, as numbers of texts in the order of `texts`."""

    def rows(
        self, day: int, texts: list[int], lists: list[int], log: int, version: int
    ) -> list[tuple[int | str | bytes | None, ...]]:
        """The rows of a day, in the order of the columns of the index, with the index's numbers of the texts
        and lists, of the log and of the version in them."""

    def analysed(
        self, day: int, texts: list[int], lists: list[int], log: int, version: int
    ) -> list[tuple[int | str | bytes | None, ...]]:
        """What the analysis of answers found on a day, as `rows` has exchanges."""

    def minutes(
        self, day: int, texts: list[int], lists: list[int]
    ) -> tuple[
        list[tuple[int, int, int]],
        list[tuple[int, int]],
        list[tuple[int, int, int, int]],
        list[tuple[int, int, int]],
    ]:
        """What its minutes hold, numbered from 1970-01-01: column (0 key, 1 model, 2 providers, 3 outcome,
        4 rules), number of the text or list, minute; and of each minute the most that an exchange cost, in
        nanodollars. Then the same of each tenant's hours, without keys, behind the tenant's number."""

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
        """What the exchanges of a day add up to, by five minutes (from 1970-01-01 on), tenant and model:
        exchanges, and of these refused, blocked and open; tokens of prompts and answers, and nanodollars; how
        many ended without a known cost, and when the newest was admitted, in unix microseconds."""

    def admissions(self, day: int) -> list[tuple[str, int, int]]:
        """The first and the last number of each tenant's admitted and denied requests on a day."""

    def attempts(self, day: int, texts: list[int]) -> list[tuple[int, int, int, int]]:
        """Attempts after the first of those rows: number of the admission, of the record, which attempt it
        is, and the provider."""

    def unended(self) -> list[tuple[int, int]]:
        """Admissions in it that have no end in it: number and time in unix microseconds."""

    def late(self) -> list[str]:
        """What it says of exchanges that were admitted before it or in other logs, as JSON objects:
        `incarnation` (null for this log), `admission`, `id`, `seq`, `kind` (`attempt`, `end`) and what
        belongs to that."""

def ledger_logs(
    ledger: str, verifying_key: str, known: dict[str, int], keeping_key: str | None = None
) -> tuple[list[tuple[str, str]], list[str]]:
    """The logs of a ledger that were signed beyond what is known (records by origin): directory and signed
    note.

    And what is wrong with others, in words. A log that has ended is known with 2^64 - 1; one that whoever
    has the keeping key has removed is passed over.
    Raises ValueError for a key that is none, LedgerError when the ledger cannot be listed.
    """

def log_records(
    directory: str, note: str, verifying_key: str, numbers: list[int]
) -> list[tuple[bytes, list[bytes]]]:
    """Records of a log as they are stored, by ascending numbers, each with its path to the root of a
    checkpoint.

    Raises ValueError, LedgerError.
    """

def verify_log_records(
    note: str, verifying_key: str, records: list[tuple[int, bytes, list[bytes]]]
) -> tuple[str, int]:
    """Checks that records stand at those places under one checkpoint. Returns its origin and size.

    Raises ValueError for a key that is none, ProofError.
    """

def sign_export(signing_key: str, digest: bytes) -> str:
    """A signed note over the SHA-256 of an export's manifest. Raises ValueError for a key that is none."""

def sign_s3(
    method: str,
    path: str,
    query: str,
    host: str,
    headers: list[tuple[str, str]],
    body_sha256: bytes,
    credentials: tuple[str, str, str | None],
    region: str,
    unix_seconds: int,
) -> list[tuple[str, str]]:
    """The headers that sign a request to an object store (AWS Signature Version 4), with all that are given.

    `path` and `query` are as on the wire, with no character in the path but those that need no encoding;
    `credentials` are an access key's id, its secret and the token of temporary ones.
    """

def verify_export(note: str, verifying_key: str, digest: bytes) -> None:
    """Checks that a key signed an export's manifest, by its SHA-256. Raises ValueError, ProofError."""

@final
class RecordedExchange:
    """The records of one exchange, under a checkpoint. Immutable."""

    @property
    def begin(self) -> bytes:
        """Its admission or its rejection, as it is stored."""

    @property
    def completion(self) -> bytes | None:
        """As it is stored; None where no checkpoint covers one."""

    @property
    def configuration(self) -> str | None:
        """Under which digest the configuration that it names is archived; None where no record tells."""

    @property
    def version(self) -> str:
        """Of the gateway that decided."""

    @property
    def origin(self) -> str:
        """Of the log that holds its first record."""

    def stored(self, answer: bool) -> bytes | str:
        """The body of the request, or of the answer, as it was stored, opened and compared with what the
        record commits to; or a code: `not_stored`, `erased`, `other_body`, or one of
        `StoredExchange.no_request`.
        """

    def commits_to(self, answer: bool, body: bytes) -> str | None:
        """None where the record commits to this body; otherwise a code, as `stored` has them."""

@final
class RecordedExchanges:
    """The exchanges of a ledger, in the order of their ends, as far as checkpoints of its key cover them.

    Those without an end come last. One thread reads. Calls read files, and release the GIL.
    """

    def __new__(
        cls,
        ledger: str,
        verifying_key: str,
        keeping_key: str | None = None,
        shred_keys: str | None = None,
        since_us: int | None = None,
        until_us: int | None = None,
        tenant: str | None = None,
        model: str | None = None,
        request_id: str | None = None,
    ) -> Self:
        """Finds the logs, and reads a folder of shred keys. Exchanges begin at `since_us` or later, and
        before `until_us`.

        Raises LedgerError, and ValueError for what is no key.
        """

    def take(self, most: int) -> list[RecordedExchange]:
        """The next ones, at most so many; none when all are read."""

    @property
    def problems(self) -> list[str]:
        """What is wrong with logs, in words."""

    @property
    def unverified(self) -> int:
        """Exchanges that were left out because no checkpoint covers them, as far as was read."""

@final
class Replayer:
    """The rules of one configuration. Calls release the GIL."""

    def __new__(cls, configuration: bytes, other: bool = False) -> Self:
        """Compiles the rules of a configuration as it is archived. `other`: it is not the one that records
        name; tenants that it does not name have the policy of everybody. Raises ConfigError.
        """

    def request(self, exchange: RecordedExchange, body: bytes | None) -> str | None:
        """Replays a request; None where no policy decided about it. A JSON object: `result` (`same`,
        `consistent`, `differs`, `not_replayable`), `reason`, `recorded` and `replayed` (`verdict`, `score`,
        `rules`, `unnamed`, `code`).
        """

    def response(self, exchange: RecordedExchange, body: bytes | None) -> str | None:
        """Replays an answer, likewise; None where there is none."""

@final
class Witness:
    """Cosigns checkpoints of logs that only grow (c2sp.org/tlog-witness). Safe from any thread.

    Its state is a directory that is locked while this lives.
    """

    def __new__(cls, state: str, signing_key: str, logs: str, new_state: bool = False) -> Self:
        """Opens the state, or begins one; `logs` is a c2sp.org/tlog-list.

        Raises ValueError for a key that is none, and WitnessError.
        """

    @property
    def verifying_key(self) -> str:
        """Its vkey."""

    def add_checkpoint(self, body: bytes, unix_seconds: int) -> tuple[int, str, str]:
        """Cosigns, or refuses: the status of the answer, a code, and a text.

        The text is the signature line; the size in a conflict; a sentence otherwise.
        """

    def checkpoint(self, origin_digest: str) -> str | None:
        """The newest cosigned checkpoint of the log whose origin has this SHA-256 in hexadecimal."""

    def heads(self) -> str:
        """How its logs stand: a JSON list of `{"origin", "size"}`."""

@final
class Auditor:
    """Follows a ledger and keeps a signed log of its heads, in a directory that is locked while this lives.

    One thread polls; what is published is read without waiting for it.
    """

    def __new__(
        cls,
        ledger: str,
        state: str,
        signing_key: str,
        ledger_key: str,
        beat_us: int,
        second_look_us: int,
        stall_us: int,
        new_aggregate: bool = False,
        resume: bool = False,
        held: str | None = None,
        policy: bytes | None = None,
        keeping_key: str | None = None,
        served: object | None = None,
    ) -> Self:
        """Opens the state, or begins one: with `new_aggregate`, or with `resume` when it is empty and nothing
        is `held`, the signed note of an older checkpoint of the aggregate log: the state has to contain it.

        Times are in microseconds: between two heads of a log, until what looks wrong is looked at again, and
        until records that wait for a checkpoint are a stall. `policy` is a c2sp.org/tlog-policy. Whose
        tombstones hold is whose verifying key `keeping_key` is. With `served` the ledger is read
        from that, below `ledger`: `list(path)` gives names, `open(path)` a length and first bytes and
        `read(path, offset, most)` bytes; they raise OSError. Raises ValueError for a key that is none, and
        AuditorError: `auditor_policy` for a policy that is none, or none for this log.
        """

    def poll(self, now_us: int, budget_bytes: int, scrub_bytes: int) -> str:
        """Looks at the ledger once, and reads that many bytes of what is new and of what is not.

        `now_us` is in unix microseconds.

        Returns JSON `{"records", "bytes", "scrubbed_records", "scrubbed_bytes", "scrub_rounds", "appended",
        "entries", "behind", "removed", "suspicious", "changed"}`. Raises AuditorError when the state cannot
        be written.
        """

    def accepted(self, since_us: int) -> list[tuple[str, str]]:
        """The logs whose heads were accepted at that `now_us` of a poll or later: directory and signed
        note."""

    def take_reach(self, workers: str) -> None:
        """Takes how the workers stand that serve a shard each, before a poll: JSON `{shard: {"answers",
        "failing": why or null}}`. A shard without one has been scaled away. Raises ValueError."""

    def reads_told(self) -> tuple[int, int, bytes] | None:
        """The newest head of an access log that was told: when that was begun, its size and root. As the
        next two it waits for a poll that runs."""

    def take_reads(self, begun: int, size: int, root: bytes) -> None:
        """Takes how the access log stands: when it was begun (unix microseconds), its lines and their root.

        The next poll tells it in the aggregate log. One that is not what was told before is a finding.
        """

    def reads_changed(self, why: str) -> None:
        """Takes that the access log is not what was told of it; the next poll finds it."""

    def findings(self) -> str:
        """What was found by the last poll: JSON `{"findings": [...], "left_out"}`."""

    def heads(self) -> str:
        """How each shard stood at the last poll: a JSON list."""

    def checkpoint(self) -> tuple[int, str] | None:
        """The newest published checkpoint of the aggregate log: its size and the signed note.

        None until the policy's quorum has cosigned one.
        """

    def verifying_keys(self) -> tuple[str, str]:
        """The verifying keys of the aggregate log and of the ledger, as vkeys."""

    def witness_urls(self) -> list[tuple[str, str | None]]:
        """Name and URL of the policy's witnesses, in its order. The core numbers them by it."""

    def witnesses(self) -> str:
        """How they stand: a JSON list of `{"name", "asked", "size", "time", "last", "results"}`."""

    def witness_question(self, witness: int, now_us: int) -> str | None:
        """The body of a request to a witness's add-checkpoint, or None when there is none to make now.

        Whoever takes it calls `witness_answer` or `witness_failed`. `now_us` is of a clock that never goes
        back. Raises AuditorError.
        """

    def witness_answer(
        self, witness: int, status: int, media_type: str, body: bytes, now_us: int, unix_seconds: int
    ) -> str:
        """Takes the answer, and returns how that ended: `cosigned`, `conflict` (ask again), or why not.

        Raises AuditorError.
        """

    def witness_failed(self, witness: int, why: str, now_us: int) -> str:
        """As `witness_answer`, when there was none: the code of an HttpRequestError, or `redirect`."""

    def tlog_proof(self, index: int) -> str | None:
        """The proof that an entry is under the published checkpoint, with that (c2sp.org/tlog-proof).

        None until one is published. Raises AuditorError.
        """

    def read(self, path: str) -> bytes | None:
        """The tile or bundle at a path of c2sp.org/tlog-tiles; None where the checkpoint covers none.

        Raises AuditorError.
        """

    def inclusion(self, index: int, size: int) -> list[str]:
        """The proof, in base64, that an entry is in the log of that size. Raises AuditorError."""

    def consistency(self, old: int, new: int) -> list[str]:
        """The proof, in base64, that the older log is the beginning of the newer. Raises AuditorError."""

@final
class Tree:
    """A tree of RFC 9162 that grows; it knows its peaks and no leaf."""

    def __new__(cls, size: int = 0, peaks: list[bytes] = ...) -> Self:
        """An empty one, or one that goes on from its peaks, the largest first. Raises ValueError."""

    def push(self, leaf: bytes) -> None:
        """Appends a leaf."""

    @property
    def size(self) -> int:
        """Its leaves."""

    @property
    def root(self) -> bytes:
        """The root over them."""

    @property
    def peaks(self) -> list[bytes]:
        """The roots of the perfect trees that it consists of."""

@final
class RetentionState:
    """Keeps the holds of a ledger, and removes what may go. Its state is locked while this lives."""

    def __new__(cls, state: str, begin: tuple[str, str] | None = None) -> Self:
        """Opens the state in a directory. With `begin`, the verifying keys of the ledger and of the retention
        job, it begins one.

        Raises ValueError for a key that is none, and KeepingError.
        """

    def holds(self) -> str:
        """All holds, the oldest first: a JSON list."""

    def add_hold(
        self, scope_json: str, why: tuple[str, str, str | None], now_us: int, name: str | None = None
    ) -> str:
        """Adds a hold on records that are all of what the scope gives, any of `tenant`, `exchange`, `since`
        and `until`; one that gives nothing is about everything. Times are in unix microseconds. No other hold
        of the same name may hold. `why` is the author, the reason and the ticket, each one line.

        Returns the hold as JSON. Raises ValueError and KeepingError.
        """

    def release_hold(self, number: int, why: tuple[str, str, str | None], now_us: int) -> str:
        """Ends a hold. Returns it as JSON. Raises KeepingError, also for a time before the hold."""

    def state_holds(self, ledger: str, ledger_key: str, signing_key: str, now_us: int) -> int:
        """Writes the holds and releases that the ledger does not have yet as signed statements beside its
        shards. Returns how many there were. Whatever removes or destroys does this first.

        Raises ValueError and KeepingError, also when a hold was stated that the state does not have.
        """

    def prune(
        self,
        ledger: str,
        ledger_key: str,
        signing_key: str,
        days: int,
        tenant_days: dict[str, int],
        why: tuple[str, str, str | None],
        against: list[tuple[str, str]],
        now_us: int,
        carry_out: bool,
        anchored: set[str] | None = None,
    ) -> str:
        """Plans which logs may go, and removes them if `carry_out`.

        `against` are files of signed notes, each a path and a text, of which it has to stay provable that
        they are of their logs.

        Returns a JSON list of `{"origin", "dir", "action", "records", "exchanges", "bytes", "newest",
        "reasons", "left"}`; `action` is `remove`, `finish`, `removed` or `stay`. With `anchored`, the
        SHA-256 of the statements in the auditor's log, nothing goes whose tombstone is not among them, and
        no hold counts as released before its release is; so also in `erase` and `shred`. Its reason
        `not_anchored` has the SHA-256 that is waited for, as `statement`; not in `shred`. Raises ValueError
        and KeepingError.
        """

    def erase(
        self,
        ledger: str,
        ledger_key: str,
        signing_key: str,
        exchange: str | None,
        tenant: tuple[str, int | None] | None,
        policy: tuple[int, dict[str, int]] | None,
        why: tuple[str, str, str | None],
        now_us: int,
        carry_out: bool,
        anchored: set[str] | None = None,
    ) -> str:
        """Plans which salts are destroyed, and destroys them if `carry_out`: those of an exchange, by its id,
        or of a tenant up to a time, or so far. `policy` has the minimums of all and of tenants, in days; None
        overrides them.

        Returns a JSON list of `{"origin", "dir", "action", "records", "exchanges", "reasons"}`; `action` is
        `erase`, `erased` or `stay`. Raises ValueError and KeepingError.
        """

    def shred(
        self,
        ledger: str,
        ledger_key: str,
        signing_key: str,
        tenant: str,
        only: list[str] | None,
        there: list[str],
        policy: tuple[int, dict[str, int]] | None,
        why: tuple[str, str, str | None],
        now_us: int,
        carry_out: bool,
        anchored: set[str] | None = None,
    ) -> str:
        """Plans which shred keys of a tenant are destroyed and, if `carry_out`, signs that they are: those of
        the ids `only`, or all that its admissions name and that are `there`. `policy` as in `erase`.

        Returns a JSON list of `{"key", "action", "exchanges", "reasons"}`; `action` is `destroy`, `destroyed`
        or `stay`. What it says to be destroyed is to be removed then. Raises ValueError and KeepingError.
        """

def verify_proof(record: bytes, proof: str, verifying_key: str) -> str:
    """Checks one record against its proof and the signed checkpoint in it.

    Returns JSON `{"origin", "size", "index", "root"}`. Raises ProofError.
    """

def reveal(record: bytes, proof: str, verifying_key: str, body: bytes) -> str:
    """Checks a record as `verify_proof` does, and that its commitment opens to a body.

    The proof carries the salt.

    Returns which body of the exchange it is, `request` or `response`. Raises ProofError.
    """

def reveal_digest(record: bytes, proof: str, verifying_key: str, digest: bytes) -> str:
    """As `reveal`, of a body whose SHA-256 is at hand, 32 bytes. Raises ProofError."""

def verify_checkpoint(note: str, verifying_key: str) -> str:
    """Checks a signed checkpoint of a log of the ledger whose key this is.

    Returns JSON `{"origin", "size", "root"}`. Raises ProofError.
    """

def prove(
    path: str,
    request_id: str,
    verifying_key: str | None = None,
    scan: bool = False,
    shred_keys: str | None = None,
) -> str:
    """`Worker.prove` from the files of a ledger, without a worker. With a key, signatures are checked; with a
    folder of shred keys, salts that need one are made. `unproven` has why records cannot be proved, where
    others can.

    Looks near the time in the id; with `scan` it reads everything. Raises KeyError or a ProofgateError.
    """

def shred_keys(directory: str) -> dict[str, list[str]]:
    """The ids of the shred keys in a folder, by tenant, the newest first. Raises LedgerError, which repeats
    nothing of a key: `shred_keys_malformed` for a file that holds none.
    """

def shred_key_ids(text: str) -> list[str]:
    """The ids of the shred keys in a tenant's file. Raises ValueError, which repeats nothing of it."""

def shred_key_file(tenant: str) -> str:
    """The name of a tenant's file in a folder of shred keys."""

def consistency(
    old: tuple[str, str],
    new: tuple[str, str],
    verifying_key: str,
    path: str | None = None,
    proof: list[bytes] | None = None,
) -> str:
    """Checks that two signed notes, each a file's path and text, are one history.

    By the ledger under `path`, or by a proof.

    Returns JSON `{"origin", "old", "new", "hashes"}`, the sizes and the proof in base64. Raises LedgerError.
    """

def fsck(
    path: str,
    verifying_key: str | None,
    against: list[tuple[str, str]] = ...,
    keeping_key: str | None = None,
    mirror: bool = False,
    shred_keys: str | None = None,
) -> tuple[int, str]:
    """Reads every incarnation under `path` again and checks it.

    Also against signed notes in files that were kept outside, each a path and a text. Whose tombstones hold
    is whose verifying key `keeping_key` is. Raises ValueError when that could speak for the ledger. With
    `mirror` it is a copy without what a mirror leaves out: salts, trees, and logs that go on. `shred_keys` is
    a folder of keys for salts that need one.

    Returns the exit class (0 ok, 10 incomplete, 30 diverged from a known checkpoint, 40 invalid) and a JSON
    report.
    """

def fsck_pinned(
    directory: str, note: str, verifying_key: str, keeping_key: str | None = None
) -> tuple[int, str, list[tuple[str, int, bytes]]]:
    """As `fsck` with `mirror`, of one log that has ended, and against its last signed note.

    Returns also the files that were read for that: path, bytes of it that are meant, from its beginning, and
    the SHA-256 of just the bytes that were verified. Raises ValueError, LedgerError.
    """

def export_leaves(incarnation_dir: str, out_path: str) -> int:
    """Writes the leaves of one incarnation to a file, for foreign tools. Returns how many."""

def generate_witness_key(name: str) -> tuple[str, str]:
    """As `generate_key`, of a witness (c2sp.org/tlog-cosignature). Raises ValueError for a bad name."""

def use_json_log(json: bool) -> None:
    """Whether the core writes its log as JSON from now on, and not as text."""

def generate_key(name: str) -> tuple[str, str]:
    """A new Ed25519 key pair (signing, verifying) in the text form of Go's note package.

    Raises ValueError when the name cannot be that of a key.
    """

def verifying_key(signing_key: str) -> str:
    """The verifying key of a signing key's file. Raises ValueError."""

def sign_key_succession(old: str, new: str, made_us: int, until_us: int) -> str:
    """A statement that one signing key follows another, signed by both. Raises ValueError."""

def split_key_successions(text: str) -> list[str]:
    """Takes statements apart that stand one behind the other."""

def key_line(key_file: str) -> list[tuple[str, int | None]]:
    """The vkeys that a key's file leads to, oldest first.

    With each the unix microsecond until which it may begin something; None of the newest. Raises ValueError.
    """

def end_user_ids(tenant: str, name: str, shred_keys: str | None = None) -> list[str]:
    """The pseudonyms of an end user in a tenant's records.

    One for each of the tenant's shred keys in a folder, the newest first; without a folder the one that
    needs no key. Raises LedgerError.
    """

def hash_api_key(key: str) -> str:
    """Lower-case hexadecimal SHA-256 of an API key: the form in which workers know it."""
