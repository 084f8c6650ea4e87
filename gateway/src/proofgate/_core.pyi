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
    """Base of all errors that the core raises deliberately. `code` is stable and machine-readable."""

    code: str

class ConfigError(ProofgateError):
    """A configuration, or a part of one, cannot be used."""

class LedgerError(ProofgateError):
    """The ledger cannot be opened, recovered, read or written."""

class BindError(ProofgateError):
    """The traffic port cannot be bound."""

class AuditorError(ProofgateError):
    """The auditor cannot start or continue, because of its state, its key or an argument."""

class WitnessError(ProofgateError):
    """A witness cannot start, because of its state or its list of logs."""

class KeepingError(ProofgateError):
    """A retention job's state or the ledger cannot be read, written or trusted. `code` says why."""

class ProofError(ProofgateError):
    """A proof is invalid, or cannot be created."""

@final
class Worker:
    """One worker: a data-plane thread and a ledger thread. Immutable for Python, safe from any thread.

    Calls that wait or read files release the GIL.
    """

    def __new__(cls, config_json: str) -> Self:
        """Checks the configuration (see `Config.to_core_json`). Raises ConfigError."""

    def start(self) -> None:
        """Recovers the predecessor, opens the incarnation, binds the traffic port and starts the threads.

        Raises LedgerError or BindError; no thread is running then.
        """

    @property
    def address(self) -> str:
        """The bound traffic address, `host:port`."""

    @property
    def origin(self) -> str:
        """The log's origin, `<ledger name>/<shard>/<incarnation>`."""

    def ready(self) -> str | None:
        """Returns why the worker is not ready; None if it is ready.

        Values: not_started; retiring; draining (also when sealed); ledger_stopped (permanent in this
        incarnation); failed (a thread ended unexpectedly).
        """

    def status(self) -> str:
        """Returns a JSON object: origin, shard, incarnation, written and durable records, exchanges in
        flight, and more."""

    def limit_use(self, most: int) -> str:
        """Returns the used limits of each tenant, with a delay of about a second, as JSON: `{"tenants":
        [{"tenant", <field of each of limit_kinds>: {"used", "limit"} or null}], "more": <number of omitted
        tenants>}`, with the `most` tenants with the highest use.
        """

    def metrics(self) -> str:
        """Returns the metrics in the Prometheus text format."""

    def checkpoint(self) -> str:
        """Returns the newest checkpoint, a C2SP signed note. Raises LedgerError before the first one."""

    def prove(self, request_id: str, timeout_seconds: float) -> str:
        """Returns proofs of the records of one exchange, as JSON: `{"records": [{"kind", "index", "record":
        "<stored text>", "proof": "<tlog-proof text>"}]}`, and `shred_key_missing` with the id of a missing
        key that the salt needs, or `salt_unreadable` with the reason why the salt cannot be read.

        Waits until a checkpoint covers the records. Raises KeyError for an unknown exchange, LedgerError if
        no checkpoint covers it in time.
        """

    def retire(self, retire: bool) -> bool:
        """Retires the worker, or cancels the retirement. Returns whether it is retiring or draining
        afterwards.

        A retiring worker is not ready, serves requests that still arrive, and closes its connections between
        two requests. A drain cannot be cancelled.
        """

    def drain(self) -> None:
        """Starts to drain and returns immediately. The worker is not ready, sends `Connection: close`, stops
        accepting connections after the lame-duck time, and seals its log after the last exchange.
        Idempotent."""

    def join(self, timeout_seconds: float) -> bool:
        """Waits until the threads have ended. Returns True if they have ended and the log is sealed."""

    def reload(self, config_json: str) -> None:
        """Applies a new configuration atomically: every exchange sees the old one or the new one.

        Returns when the configuration is in force, regardless of how long the data plane takes. Raises
        ConfigError, or ProofgateError with the code `busy` if the data plane does not start the change within
        10 seconds; the change is then never made. After an error, the old configuration stays in force. The
        ledger, `listen`, `proxy_protocol` and the limit of connections are fixed for the life of a worker: a
        change of these fields raises ConfigError.
        """

    @property
    def config_digest(self) -> str:
        """SHA-256 of the configuration in force in hexadecimal, as in records. With shards of tenants, it is
        a digest over the configuration's digest and the shards' digests."""

    def set_tenant_shards(self, files: list[tuple[int, bytes, bytes]]) -> str:
        """Applies new contents of some shards of tenants as one change. `files` has the number of each shard,
        with the contents of `keys` and `tenants`. Can also be called before the start.

        Returns JSON: `{"tenants": <in service>, "keys": <in service>, "refused": [{"shard", "file", "line",
        "problem"}], "well_known": <number of omitted keys>, "first_well_known": [{"tenant", "key"}]}`. A
        refused shard keeps its old content, and a well-known key is omitted. Raises ConfigError if the
        configuration has no shards, ProofgateError with the code `busy` like `reload`.
        """

    def set_key_set(self, issuer: str, jwks_json: str) -> int:
        """Replaces the keys of a JWT issuer (RFC 7517). Returns the number of usable keys.

        Raises ConfigError if the issuer is not configured or the text is not a key set; the old keys then
        stay. Raises ProofgateError with the code `busy` like `reload`.
        """

    def set_access_token(self, provider: str, token: str, lifetime_seconds: float) -> None:
        """Replaces the access token for a provider, which is sent instead of a key and is valid for
        `lifetime_seconds`.

        A reload keeps the token, unless the provider's URL changes. Raises ConfigError if the provider uses
        no access token or the text is not a token; the old token then stays. Raises ProofgateError with the
        code `busy` like `reload`, and with the code `not_running` before the start.
        """

    def set_aws_credentials(
        self, provider: str, credentials: tuple[str, str, str | None], lifetime_seconds: float
    ) -> None:
        """Replaces the temporary credentials that sign requests to a provider: the id of the access key, the
        secret access key and the session token. They are valid for `lifetime_seconds`.

        Reloads and errors are as for `set_access_token`.
        """

    def policy_queue(self, policy: str) -> PolicyQueue:
        """Returns the queue of a policy of the configuration in force, once for each policy. Can also be
        called before the start.

        A reload keeps the queue of an unchanged policy. Raises ConfigError if there is no such policy or its
        queue was already taken.
        """

    def exchange_queue(self) -> ExchangeQueue | None:
        """Returns the queue of exchanges whose traces are sampled; None if it was already taken. Raises
        ProofgateError with the code `not_running` before the start.
        """

    def traffic_report(self) -> str:
        """Returns the traffic of tenants and models as JSON: `tenants`, `models`. The delay is about a
        second."""

    def count_lost_telemetry(self, signal: str, count: int) -> None:
        """Counts `traces` or `metrics` that could not be delivered."""

    def take_requested_key_sets(self) -> list[str]:
        """Returns the issuers for which a token has named an unknown key since the last call."""

    def profiling(self) -> bool:
        """Whether the stages of the hot path are measured now."""

    def set_profiling(self, enabled: bool) -> bool:
        """Sets the switch of stage profiling. Returns its previous state."""

    def enter_profiling(self) -> None:
        """Opens a scope. Profiling is on while the switch is on or a scope is open."""

    def exit_profiling(self) -> None:
        """Closes a scope."""

    def record_interval(self, name: str, duration_seconds: float) -> None:
        """Records an interval that Python measured, `python_resume` or `loop_lag`, while profiling is on."""

def config_fields() -> list[str]:
    """Returns the path of each field, and each enumerated value, of the document that `Worker` reads.

    `providers[].timeouts.connect_ms` is a field, `ledger.durability=synced` a value. `[]` stands for the
    elements of a list.
    """

def denial_codes() -> list[str]:
    """Returns the codes of refusals by a rule, an external policy or the check of guarded tools. The denial
    by a failed policy is included.
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
    """Returns each kind of limit, in the order of reports: name in the schema, field in the worker's
    configuration, code of a refusal, counted quantity, and period.
    """

def model_constraints(model: str) -> str:
    """Returns what a model is known to refuse, as a JSON list. `model` is its name at the provider.

    An entry has `constraint` (a name, or an object of a name and its values, such as
    `{"EffortLevels": ["low", "high"]}`) and `source`. The first of several entries about the same field
    applies.
    """

def prices_at(asked_json: str, now_us: int) -> str:
    """Returns the price of each model at a time (Unix microseconds), as a JSON list.

    `asked_json` has the sections `prices`, `providers` (`name` and `baseURL`) and `models`. An entry has
    `model`, `provider`, `upstream_model`, `next_change` (Unix seconds, or null) and `price`. The price is
    null if it is unknown, otherwise it has `effective_from` (Unix seconds), `default` (whether it is a
    built-in price), and in picodollars `input`, `cached_input`, `cache_write`, `audio_input`, `output`,
    `audio_output` for a token, `per_request` for a request, and `tools` for a call of each kind of tool.
    Raises ConfigError.
    """

@final
class PolicyItem:
    """One request that waits for a policy's verdict. If it is dropped without a verdict, it has failed."""

    @property
    def tenant(self) -> str:
        """The tenant that sends the request."""

    @property
    def model(self) -> str:
        """The requested model."""

    @property
    def endpoint(self) -> str:
        """The endpoint's path."""

    @property
    def texts(self) -> tuple[tuple[str, Literal["text", "key", "number"], bool], ...]:
        """Each text, its kind, and whether it is a part of the model's instructions."""

    def is_awaited(self) -> bool:
        """Whether the request still waits for the verdict, which ends at the deadline."""

@final
class PolicyQueue:
    """The queue of one policy. After it is closed or dropped, requests for the policy fail immediately."""

    def take_policy_batch(self, most: int, timeout_seconds: float) -> list[PolicyItem] | None:
        """Waits for requests, and returns the available ones, at most `most`. Returns an empty list after the
        timeout, and None if no request can arrive any more. Releases the GIL. Requests after their deadline
        are omitted.
        """

    def return_verdicts(
        self, verdicts: list[tuple[PolicyItem, tuple[str, str, str, int, list[tuple[int, int, int, str]]]]]
    ) -> int:
        """Delivers verdicts. Returns the number of verdicts for which a request still waited.

        Each is `("allow" | "deny" | "flag" | "replace" | "replace_reversibly" | "failed", rule or code or
        reason of the failure, reason, score, [(text, start, end, by)])`. Anything else fails that request as
        `bad_verdict`.
        """

    def close(self) -> None:
        """Closes the queue."""

@final
class ExchangeQueue:
    """A queue of ended exchanges whose traces are sampled."""

    def take(self, most: int) -> list[str] | None:
        """Returns the available exchanges, at most `most`, each as a JSON object. Does not wait. None if no
        exchange can arrive any more.
        """

def policy_rules(policy_json: str) -> str:
    """Returns the rules of a policy section as a JSON list. The section has the names, units and values of
    the configuration.

    Each is an object: id, pack, reason, target, view, score, actions {scope: action}, examples {match,
    no_match}. The scopes are those of the directions to which the rule applies. Raises ConfigError.
    """

def policy_check(policy_json: str, tenant_policy_json: str | None, endpoint: str, body: bytes) -> str:
    """Evaluates a JSON request at an endpoint, such as `/v1/chat/completions`, with a policy.

    Returns JSON like `policy_scan`, without matches, and with `"message"` (the location of the deciding
    message), `"scope"` (its scope), `"messages": [{"place", "scope", "score", "flagged", "from_tool",
    "decision", "matches"}]`, whose matches have their `"text"`, and `"sent"`: the body after redaction, or
    null. `from_tool`: whether it is a tool's text that is flagged as instructions. Raises ConfigError, also
    if the body is not a request.
    """

def policy_scan(
    policy_json: str, tenant_policy_json: str | None, direction: str, scope: str, text: str
) -> str:
    """Evaluates one text with a policy. `direction` is `request` or `response`, `scope` for example `User`.

    Returns JSON `{"decision": "allow"|"flag"|"redact"|"block", "would_block", "rule": id|null, "by_score",
    "score", "flagged", "matches": [{"rule", "action", "start", "end"}]}`, offsets in bytes of UTF-8. `rule`
    is the rule that blocks, or the strongest of the rules whose total score blocks. The CPU time budget does
    not apply. Raises ConfigError.
    """

@final
class StoredExchange:
    """An exchange with its stored bodies. A checkpoint covered its records."""

    @property
    def directory(self) -> str:
        """The directory of the log that holds its admission, or the record of a denied request."""

    @property
    def admission(self) -> bytes:
        """The admission record as it is stored, JSON; the `rejection` of a denied request."""

    @property
    def end(self) -> bytes | None:
        """The stored `completion` or `aborted` record; None if no checkpoint covers one."""

    @property
    def request(self) -> bytes | None:
        """The client's request body, decrypted and checked against the record's commitment; None: see
        `no_request`."""

    @property
    def response(self) -> bytes | None:
        """The client's response body, decrypted and checked against the record's commitment; None: see
        `no_response`."""

    @property
    def no_request(self) -> tuple[str, str] | None:
        """Why there is no request body: a stable code and a sentence. `payload_not_stored`,
        `payload_missing`, `shred_key_missing`, `salt_erased`, `payload_refused`, `payload_mismatch`, or one
        of the ledger."""

    @property
    def no_response(self) -> tuple[str, str] | None:
        """Why there is no response body, like `no_request`."""

@final
class StoredPayloads:
    """An iterator over the exchanges of a ledger with their stored bodies, shard by shard in the order of
    their ends. Exchanges without an end are last in their shard. Removed logs are skipped."""

    def __new__(cls, ledger: str, verifying_key: str, shred_keys: str | None = None) -> Self:
        """Opens the directory of a ledger, a shard or a log, and a folder of shred keys.

        Raises ValueError for an invalid key; LedgerError.
        """

    def __iter__(self) -> Self: ...
    def __next__(self) -> StoredExchange:
        """Returns the next exchange. Raises LedgerError for a log whose records do not match the signed root;
        the next call continues with the next log.
        """

def stored_payload(
    ledger: str, verifying_key: str, request_id: str, shred_keys: str | None = None
) -> StoredExchange:
    """Returns one exchange with its stored bodies, after its records are proved. Raises LedgerError:
    `no_such_exchange` for an unknown exchange, `record_not_covered` while no checkpoint covers it.
    """

@final
class ExchangeReader:
    """A reader of one log in batches, up to a checkpoint and never beyond it."""

    def __new__(
        cls,
        directory: str,
        note: str,
        verifying_key: str,
        place: str | None = None,
        most_records: int | None = None,
    ) -> Self:
        """Starts at the first record, or continues from the `place` of a batch, with at most `most_records`
        records in a batch.

        Raises ValueError for an invalid key; LedgerError if the note is not signed with the key, belongs to
        another log than the directory, or if the place is not in the log.
        """

    @property
    def origin(self) -> str:
        """The origin of the log."""

    @property
    def size(self) -> int:
        """Number of records under the checkpoint."""

    def next(self) -> ExchangeBatch | None:
        """Returns the next batch, whose records are verified against the checkpoint; None at the checkpoint.

        Raises LedgerError; the reader must not be used afterwards.
        """

@final
class ExchangeBatch:
    """The exchanges in a range of a log. Days are numbered from 1970-01-01, UTC."""

    @property
    def size(self) -> int:
        """Number of records of the log up to the end of the batch."""

    @property
    def place(self) -> str:
        """The position at which the next batch starts."""

    @property
    def sealed(self) -> bool:
        """Whether the last record is a seal, which ends the log."""

    @property
    def ended(self) -> list[tuple[str, int]]:
        """The final sizes of other logs of the shard that the batch states: incarnation and number of
        records."""

    @property
    def configuration_change(self) -> tuple[int, bytes] | None:
        """The time in Unix microseconds of the last configuration change in the batch, and the SHA-256 under
        which this configuration is archived; None without a change."""

    def days(self) -> list[int]:
        """Returns the days with started exchanges or analysis results in the batch."""

    def texts(self, day: int) -> list[str]:
        """Returns the texts in the rows of a day, without duplicates."""

    def lists(self, day: int) -> list[list[int]]:
        """Returns the lists of texts in the rows, as numbers of texts in the order of `texts`."""

    def rows(
        self, day: int, texts: list[int], lists: list[int], log: int, version: int
    ) -> list[tuple[int | str | bytes | None, ...]]:
        """Returns the rows of a day in the column order of the index, with the index's numbers of texts,
        lists, log and version."""

    def analysed(
        self, day: int, texts: list[int], lists: list[int], log: int, version: int
    ) -> list[tuple[int | str | bytes | None, ...]]:
        """Returns the results of the response analysis on a day, in the format of `rows`."""

    def minutes(
        self, day: int, texts: list[int], lists: list[int]
    ) -> tuple[
        list[tuple[int, int, int]],
        list[tuple[int, int]],
        list[tuple[int, int, int, int]],
        list[tuple[int, int, int]],
    ]:
        """Returns the values in each minute, numbered from 1970-01-01: column (0 key, 1 model, 2 providers, 3
        outcome, 4 rules, 5 key name), number of the text or list, minute. Then the highest cost of an
        exchange in each minute, in nanodollars. Then the same for each tenant's hours, without keys, each
        with the tenant's number in front."""

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
        """Returns sums over the exchanges of a day, by five-minute period (from 1970-01-01), tenant and
        model: exchanges, and of these refused, blocked and open; tokens of prompts and of responses, and
        nanodollars; the number of ended exchanges without a known cost, and the admission time of the newest
        in Unix microseconds."""

    def request_number_ranges(self, day: int) -> list[tuple[str, int, int]]:
        """Returns the first and the last number of each tenant's admitted and denied requests on a day."""

    def attempts(self, day: int, texts: list[int]) -> list[tuple[int, int, int, int]]:
        """Returns the attempts after the first in the rows: number of the admission, number of the record,
        number of the attempt, and the provider."""

    def open_admissions(self) -> list[tuple[int, int]]:
        """Returns the admissions in the batch without an end in it: number, and time in Unix microseconds."""

    def late_records(self) -> list[str]:
        """Returns the records about exchanges that were admitted before the batch or in other logs, as JSON
        objects: `incarnation` (null for this log), `admission`, `id`, `seq`, `kind` (`attempt`, `end`) and
        the fields of this kind."""

def ledger_logs(
    ledger: str, verifying_key: str, known: dict[str, int], keeping_key: str | None = None
) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns the logs of a ledger that are signed beyond the `known` sizes (records by origin): directory
    and signed note.

    Also returns messages about problems with other logs. The known size of a completely read log is 2^64 - 1.
    A log that was removed with the keeping key is skipped. Raises ValueError for an invalid key, LedgerError
    if the ledger cannot be listed.
    """

def log_records(
    directory: str, note: str, verifying_key: str, numbers: list[int]
) -> list[tuple[bytes, list[bytes]]]:
    """Returns stored records of a log by ascending numbers, each with its inclusion path to the root of a
    checkpoint.

    Raises ValueError, LedgerError.
    """

def verify_log_records(
    note: str, verifying_key: str, records: list[tuple[int, bytes, list[bytes]]]
) -> tuple[str, int]:
    """Checks that records are at these positions under one checkpoint. Returns its origin and size.

    Raises ValueError for an invalid key, ProofError.
    """

def sign_export(signing_key: str, digest: bytes) -> str:
    """Signs the SHA-256 of an export's manifest and returns the note. Raises ValueError for an invalid
    key."""

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
    """Returns the headers of a signed request to an object store (AWS Signature Version 4), including the
    given ones.

    `path` and `query` are as sent, and the path has only characters that need no encoding. `credentials` are
    an access key's id, its secret, and the session token of temporary credentials.
    """

def verify_export(note: str, verifying_key: str, digest: bytes) -> None:
    """Checks that a key signed an export's manifest, by its SHA-256. Raises ValueError, ProofError."""

@final
class RecordedExchange:
    """The records of one exchange, under a checkpoint. Immutable."""

    @property
    def first_record(self) -> bytes:
        """The stored admission or rejection."""

    @property
    def completion(self) -> bytes | None:
        """The stored completion; None if no checkpoint covers one."""

    @property
    def configuration(self) -> str | None:
        """The digest of the archived configuration; None if no record names it."""

    @property
    def version(self) -> str:
        """The version of the gateway that decided."""

    @property
    def origin(self) -> str:
        """The origin of the log with the exchange's first record."""

    def stored(self, answer: bool) -> bytes | str:
        """Returns the stored body of the request or of the response, decrypted and checked against the
        record's commitment; or a code: `not_stored`, `erased`, `other_body`, or one of
        `StoredExchange.no_request`.
        """

    def commits_to(self, answer: bool, body: bytes) -> str | None:
        """Returns None if the record commits to this body; otherwise a code, as in `stored`."""

@final
class RecordedExchanges:
    """A reader of a ledger's exchanges that checkpoints cover, in the order of their ends.

    Exchanges without an end come last. For use by one thread. Calls read files and release the GIL.
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
        """Finds the logs, and reads a folder of shred keys. Only exchanges that start at `since_us` or later,
        and before `until_us`, are returned.

        Raises LedgerError, and ValueError for an invalid key.
        """

    def take(self, most: int) -> list[RecordedExchange]:
        """Returns the next exchanges, at most `most`; empty if all are read."""

    @property
    def problems(self) -> list[str]:
        """Messages about problems with logs."""

    @property
    def unverified(self) -> int:
        """Number of exchanges that were omitted so far because no checkpoint covers them."""

@final
class Replayer:
    """The rules of one configuration. Calls release the GIL."""

    def __new__(cls, configuration: bytes, other: bool = False) -> Self:
        """Compiles the rules of an archived configuration. `other`: it is another configuration than the
        recorded one, and tenants that are not in it have the default policy. Raises ConfigError.
        """

    def request(self, exchange: RecordedExchange, body: bytes | None) -> str | None:
        """Replays a request; None if no policy decided about it. Returns a JSON object: `result` (`same`,
        `consistent`, `differs`, `not_replayable`), `reason`, `recorded` and `replayed` (`verdict`, `score`,
        `rules`, `unnamed`, `code`).
        """

    def response(self, exchange: RecordedExchange, body: bytes | None) -> str | None:
        """Replays a response like `request`; None without a response."""

@final
class Witness:
    """A witness, which cosigns checkpoints of logs that only grow (c2sp.org/tlog-witness). Thread-safe.

    Its state is a directory that is locked while this object exists.
    """

    def __new__(cls, state: str, signing_key: str, logs: str, new_state: bool = False) -> Self:
        """Opens the state, or with `new_state` creates one. `logs` is a c2sp.org/tlog-list.

        Raises ValueError for an invalid key, and WitnessError.
        """

    @property
    def verifying_key(self) -> str:
        """The witness's vkey."""

    def add_checkpoint(self, body: bytes, unix_seconds: int) -> tuple[int, str, str]:
        """Cosigns or refuses a checkpoint. Returns the status of the response, a code, and a text.

        The text is the signature line, the size in a conflict, or otherwise a message.
        """

    def checkpoint(self, origin_digest: str) -> str | None:
        """The newest cosigned checkpoint of the log whose origin has this SHA-256 in hexadecimal."""

    def heads(self) -> str:
        """Returns the newest cosigned sizes: a JSON list of `{"origin", "size"}`."""

@final
class Auditor:
    """An auditor, which follows a ledger and writes a signed log of its tree heads to a directory. The
    directory is locked while this object exists.

    One thread polls; published data can be read without waiting for the poll.
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
        "entries", "unread_records", "removed", "suspicious", "changed"}`. Raises AuditorError when the state cannot
        be written.
        """

    def accepted(self, since_us: int) -> list[tuple[str, str]]:
        """The logs whose heads were accepted at that `now_us` of a poll or later: directory and signed
        note."""

    def set_worker_states(self, workers: str) -> None:
        """Sets the state of the workers before a poll. Each worker serves one shard: JSON `{shard:
        {"answers", "failing": why or null}}`. A shard without a worker was scaled down. Raises ValueError."""

    def recorded_access_log_head(self) -> tuple[int, int, bytes] | None:
        """The newest head of an access log that was told: when that was begun, its size and root. As the
        next two it waits for a poll that runs."""

    def set_access_log_head(self, begun: int, size: int, root: bytes) -> None:
        """Sets the head of the access log: its start (Unix microseconds), its number of lines and their root.

        The next poll writes it to the aggregate log. A head that contradicts an earlier one becomes a
        finding.
        """

    def report_access_log_mismatch(self, why: str) -> None:
        """Reports that the access log does not match its recorded head; the next poll adds a finding."""

    def findings(self) -> str:
        """Returns the findings of the last poll: JSON `{"findings": [...], "left_out"}`."""

    def heads(self) -> str:
        """Returns the state of each shard at the last poll: a JSON list."""

    def checkpoint(self) -> tuple[int, str] | None:
        """Returns the newest published checkpoint of the aggregate log: its size and the signed note.

        None before the policy's quorum has cosigned one.
        """

    def verifying_keys(self) -> tuple[str, str]:
        """The verifying keys of the aggregate log and of the ledger, as vkeys."""

    def witness_urls(self) -> list[tuple[str, str | None]]:
        """Returns name and URL of the policy's witnesses. The position in this list is the number of a
        witness."""

    def witnesses(self) -> str:
        """Returns the status of the witnesses: a JSON list of `{"name", "asked", "size", "time", "last",
        "results"}`."""

    def next_witness_request(self, witness: int, now_us: int) -> str | None:
        """Returns the body of a request to a witness's add-checkpoint, or None if no request is due.

        The caller must then call `witness_answer` or `witness_failed`. `now_us` is from a monotonic clock.
        Raises AuditorError.
        """

    def witness_answer(
        self, witness: int, status: int, media_type: str, body: bytes, now_us: int, unix_seconds: int
    ) -> str:
        """Processes a witness's response. Returns the result: `cosigned`, `conflict` (send another request),
        or a reason.

        Raises AuditorError.
        """

    def witness_failed(self, witness: int, why: str, now_us: int) -> str:
        """Processes a failed request like `witness_answer`. `why` is the code of an HttpRequestError, or
        `redirect`."""

    def tlog_proof(self, index: int) -> str | None:
        """Returns the proof that an entry is under the published checkpoint, with the checkpoint
        (c2sp.org/tlog-proof).

        None before one is published. Raises AuditorError.
        """

    def read(self, path: str) -> bytes | None:
        """Returns the tile or bundle at a path of c2sp.org/tlog-tiles; None if the checkpoint does not cover
        it.

        Raises AuditorError.
        """

    def inclusion(self, index: int, size: int) -> list[str]:
        """Returns the proof, in base64, that an entry is in the log of this size. Raises AuditorError."""

    def consistency(self, old: int, new: int) -> list[str]:
        """Returns the proof, in base64, that the older log is a prefix of the newer. Raises AuditorError."""

@final
class Tree:
    """An append-only RFC 9162 tree that stores its peaks and no leaves."""

    def __new__(cls, size: int = 0, peaks: list[bytes] = ...) -> Self:
        """Creates an empty tree, or one that continues from its peaks, largest first. Raises ValueError."""

    def push(self, leaf: bytes) -> None:
        """Appends a leaf."""

    @property
    def size(self) -> int:
        """The number of leaves."""

    @property
    def root(self) -> bytes:
        """The root over all leaves."""

    @property
    def peaks(self) -> list[bytes]:
        """The roots of the perfect subtrees, largest first."""

@final
class RetentionState:
    """The retention state of a ledger, with its holds; removes and erases data. The state is locked while
    this object exists."""

    def __new__(cls, state: str, begin: tuple[str, str] | None = None) -> Self:
        """Opens the state in a directory. With `begin`, the verifying keys of the ledger and of the retention
        job, creates one.

        Raises ValueError for an invalid key, and KeepingError.
        """

    def holds(self) -> str:
        """Returns all holds, oldest first, as a JSON list."""

    def add_hold(
        self, scope_json: str, why: tuple[str, str, str | None], now_us: int, name: str | None = None
    ) -> str:
        """Adds a hold on the records that match all fields of the scope, which can have `tenant`, `exchange`,
        `since` and `until`. An empty scope covers everything. Times are in Unix microseconds. No other active
        hold may have the same name. `why` is the author, the reason and the ticket, each one line.

        Returns the hold as JSON. Raises ValueError and KeepingError.
        """

    def release_hold(self, number: int, why: tuple[str, str, str | None], now_us: int) -> str:
        """Releases a hold. Returns it as JSON. Raises KeepingError, also for a time before the hold."""

    def state_holds(self, ledger: str, ledger_key: str, signing_key: str, now_us: int) -> int:
        """Writes missing signed statements about holds and releases beside the ledger's shards. Returns their
        number. Every removal or destruction does this first.

        Raises ValueError and KeepingError, also if the ledger states a hold that the state does not have.
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
        """Plans the removal of logs, and removes them if `carry_out`.

        `against` has files of signed notes, each a path and a text. It must stay provable that these notes
        belong to their logs.

        Returns a JSON list of `{"origin", "dir", "action", "records", "exchanges", "bytes", "newest",
        "reasons", "left"}`; `action` is `remove`, `finish`, `removed` or `stay`. `anchored` has the SHA-256
        of the statements in the auditor's log. With it, no log is removed whose tombstone is not among them,
        and no hold counts as released before its release is among them. The same applies in `erase` and
        `shred`. The reason `not_anchored` has the awaited SHA-256 as `statement`, except in `shred`. Raises
        ValueError and KeepingError.
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
        """Plans the destruction of salts, and destroys them if `carry_out`. They are the salts of an
        exchange, by its id, or of a tenant up to a time (None: up to now). `policy` has the minimum
        retentions of all records and of tenants, in days; None overrides them.

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
        """Plans the destruction of a tenant's shred keys, and signs it if `carry_out`. `only` has the ids of
        the keys; None selects all keys that the tenant's admissions name and all keys in `there`. `policy` is
        as in `erase`.

        Returns a JSON list of `{"key", "action", "exchanges", "reasons"}`; `action` is `destroy`, `destroyed`
        or `stay`. The caller must then delete the keys that the result lists as destroyed. Raises ValueError
        and KeepingError.
        """

def verify_proof(record: bytes, proof: str, verifying_key: str) -> str:
    """Checks one record against its proof and the signed checkpoint in it.

    Returns JSON `{"origin", "size", "index", "root"}`. Raises ProofError.
    """

def reveal(record: bytes, proof: str, verifying_key: str, body: bytes) -> str:
    """Checks a record like `verify_proof`, and a body against its commitment.

    The proof contains the salt.

    Returns which body of the exchange it is, `request` or `response`. Raises ProofError.
    """

def reveal_digest(record: bytes, proof: str, verifying_key: str, digest: bytes) -> str:
    """Checks the same as `reveal` for the SHA-256 of a body, 32 bytes. Raises ProofError."""

def verify_checkpoint(note: str, verifying_key: str) -> str:
    """Checks a signed checkpoint of a log with the ledger's key.

    Returns JSON `{"origin", "size", "root"}`. Raises ProofError.
    """

def prove(
    path: str,
    request_id: str,
    verifying_key: str | None = None,
    scan: bool = False,
    shred_keys: str | None = None,
) -> str:
    """Returns the same as `Worker.prove` from the files of a ledger, without a worker. With a key, signatures
    are checked; with a folder of shred keys, encrypted salts are decrypted. `unproven` lists why some records
    cannot be proved although others can.

    Searches near the time in the id; with `scan`, in the whole ledger. Raises KeyError or a ProofgateError.
    """

def shred_keys(directory: str) -> dict[str, list[str]]:
    """Returns the ids of the shred keys in a folder, by tenant, newest first. Raises LedgerError, which
    repeats no part of a key: `shred_keys_malformed` for an invalid file.
    """

def shred_key_ids(text: str) -> list[str]:
    """Returns the ids of the shred keys in a tenant's file. Raises ValueError, which repeats no part of the
    file."""

def shred_key_file(tenant: str) -> str:
    """Returns the name of a tenant's file in a folder of shred keys."""

def consistency(
    old: tuple[str, str],
    new: tuple[str, str],
    verifying_key: str,
    path: str | None = None,
    proof: list[bytes] | None = None,
) -> str:
    """Checks that two signed notes, each a file's path and text, are consistent.

    The check uses the ledger under `path`, or a proof.

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

    `against` has signed notes in files that were stored elsewhere, each a path and a text. Only tombstones by
    `keeping_key` are valid; ValueError is raised if this key could sign for the ledger. With `mirror`, the
    ledger is a copy from a mirror, which has no salts, no trees and no open logs. `shred_keys` is a folder of
    keys for encrypted salts.

    Returns the exit class (0 ok, 10 incomplete, 30 diverged from a known checkpoint, 40 invalid) and a JSON
    report.
    """

def fsck_pinned(
    directory: str, note: str, verifying_key: str, keeping_key: str | None = None
) -> tuple[int, str, list[tuple[str, int, bytes]]]:
    """Checks one ended log like `fsck` with `mirror`, against its last signed note.

    Also returns the files that were read: path, number of verified bytes from the start, and the SHA-256 of
    exactly these bytes. Raises ValueError, LedgerError.
    """

def export_leaves(incarnation_dir: str, out_path: str) -> int:
    """Writes the leaves of one incarnation to a file, for other tools. Returns their number."""

def generate_witness_key(name: str) -> tuple[str, str]:
    """Generates a key pair like `generate_key` for a witness (c2sp.org/tlog-cosignature). Raises ValueError
    for an invalid name."""

def use_json_log(json: bool) -> None:
    """Sets whether the core writes its log as JSON instead of text."""

def generate_key(name: str) -> tuple[str, str]:
    """Generates an Ed25519 key pair (signing, verifying) in the text format of Go's note package.

    Raises ValueError if the name is invalid for a key.
    """

def verifying_key(signing_key: str) -> str:
    """Returns the verifying key of a signing key's file. Raises ValueError."""

def sign_key_succession(old: str, new: str, made_us: int, until_us: int) -> str:
    """Creates a statement that one signing key succeeds another, signed with both. Raises ValueError."""

def split_key_successions(text: str) -> list[str]:
    """Splits concatenated statements of succession."""

def key_line(key_file: str) -> list[tuple[str, int | None]]:
    """Returns the vkeys in the chain of a key's file, oldest first.

    Each vkey has the time in Unix microseconds until which it may start something new, such as a log; None
    for the newest. Raises ValueError.
    """

def end_user_ids(tenant: str, name: str, shred_keys: str | None = None) -> list[str]:
    """Returns the pseudonyms of an end user in a tenant's records.

    There is one for each of the tenant's shred keys in a folder, newest first; without a folder, the one that
    needs no key. Raises LedgerError.
    """

def hash_api_key(key: str) -> str:
    """Returns the lower-case hexadecimal SHA-256 of an API key, by which workers identify the key."""
