"""The auditor's metrics as Prometheus text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from proofgate import process_metrics
from proofgate.auditor.watch import LedgerWatcher
from proofgate.index.audited_index import AuditedIndex

if TYPE_CHECKING:
    from proofgate.index.routes import ReaderPort
    from proofgate.mirror.mirror import Mirror
    from proofgate.siem.stream import EventStream

_Destination = TypeVar("_Destination", "Mirror", "EventStream")
#: A metric: name, kind, a function that returns its value for a destination, and the help text.
_Family = tuple[str, str, Callable[[_Destination], object], str]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "proofgate_auditor"
_MICROSECONDS = 1_000_000


def render(watch: LedgerWatcher, index: AuditedIndex | None = None, desk: ReaderPort | None = None) -> str:
    """Renders the metrics of an auditor, of its index, and of the port for readers."""
    lines = [*_auditor_lines(watch)]
    lines += _index_lines(index) if index is not None else ()
    lines += _reader_port_lines(desk) if desk is not None else ()
    return "".join(f"{line}\n" for line in lines) + process_metrics.render("auditor")


def _reader_port_lines(desk: ReaderPort) -> Iterator[str]:
    for name, kind, value, text in (
        ("access_log_bytes", "gauge", desk.access_log.used_bytes, "Size of the access log, in bytes"),
        (
            "access_log_limit_bytes",
            "gauge",
            desk.access_log.max_bytes,
            "Maximum size of the access log, in bytes",
        ),
        (
            "reads_without_room_total",
            "counter",
            desk.quota_refusals,
            "Responses refused because the reader's share of the access log is full",
        ),
    ):
        yield from _family(name, kind, text)
        yield f"{_PREFIX}_{name} {value}"
    yield from _family("sign_ins_refused_total", "counter", "Failed sign-ins of readers, by reason")
    for code, count in sorted(desk.sign_ins.totals.items()):
        yield f'{_PREFIX}_sign_ins_refused_total{{code="{code}"}} {count}'


def _index_lines(index: AuditedIndex) -> Iterator[str]:
    standing = index.status()
    for name, value, text in (
        ("index_usable", int(not standing.code), "1 while the index can be written, else 0"),
        ("index_records_behind", standing.records_behind, "Accepted records that are not in the index yet"),
    ):
        yield from _family(name, "gauge", text)
        yield f"{_PREFIX}_{name} {value}"


def _auditor_lines(watch: LedgerWatcher) -> Iterator[str]:
    totals = watch.totals
    for name, kind, value, text in (
        ("records_verified_total", "counter", totals.records, "Records verified for the first time"),
        ("bytes_verified_total", "counter", totals.bytes, "Bytes of records verified for the first time"),
        ("records_scrubbed_total", "counter", totals.scrubbed_records, "Records verified again"),
        ("bytes_scrubbed_total", "counter", totals.scrubbed_bytes, "Bytes of records verified again"),
        (
            "scrub_rounds_total",
            "counter",
            totals.scrub_rounds,
            "Completed repeat verifications of the whole ledger",
        ),
        ("records_behind", "gauge", totals.records_behind, "Signed records that are not verified yet"),
        ("removed_logs", "gauge", totals.removed, "Logs that were removed with a valid tombstone"),
        ("heads", "gauge", totals.entries, "Entries of the aggregate log"),
        (
            "published_heads",
            "gauge",
            watch.published_head_count(),
            "Entries that the published checkpoint of the aggregate log covers",
        ),
        ("poll_failures_total", "counter", totals.failures, "Polls that could not write the auditor's state"),
    ):
        yield from _family(name, kind, text)
        yield f"{_PREFIX}_{name} {value}"
    yield from _family("clock_steps_total", "counter", "Jumps of the auditor's clock by a second or more")
    for direction, count in (("back", watch.clock.back), ("ahead", watch.clock.ahead)):
        yield f'{_PREFIX}_clock_steps_total{{direction="{direction}"}} {count}'
    yield from _family("last_poll_timestamp_seconds", "gauge", "Unix time of the last poll of the ledger")
    yield f"{_PREFIX}_last_poll_timestamp_seconds {watch.last_poll:.3f}"
    yield from _family("findings", "gauge", "Current findings, by code and verdict")
    counted = Counter((finding["code"], finding["verdict"]) for finding in watch.findings())
    for (code, verdict), count in sorted(counted.items()):
        yield f'{_PREFIX}_findings{{code="{code}",verdict="{verdict}"}} {count}'
    yield from _family(
        "cosigning_lag_seconds", "gauge", "Seconds for which tree heads have waited for a quorum of witnesses"
    )
    yield f"{_PREFIX}_cosigning_lag_seconds {watch.cosigning_lag():.3f}"
    yield from _family(
        "lag_seconds", "gauge", "Seconds for which the shard's oldest unverified checkpoint has waited"
    )
    for head in watch.heads():
        yield f'{_PREFIX}_lag_seconds{{shard="{_label(head["shard"])}"}} {head["lag"] / _MICROSECONDS:.3f}'
    yield from _worker_lines(watch)
    yield from _witness_lines(watch.witnesses())
    yield from _mirror_lines(watch.mirrors)
    yield from _stream_lines(watch.streams)


def _worker_lines(watch: LedgerWatcher) -> Iterator[str]:
    if watch.served_ledger is None:
        return
    yield from _family("worker_up", "gauge", "1 if the worker of the shard can be read, else 0")
    for shard, answers in sorted(watch.served_ledger.reachable_by_shard().items()):
        yield f'{_PREFIX}_worker_up{{shard="{_label(shard)}"}} {int(answers)}'
    yield from _family("worker_bytes_total", "counter", "Bytes of files that were read from workers")
    yield f"{_PREFIX}_worker_bytes_total {watch.served_ledger.bytes_read}"
    if watch.replica is None:
        return
    for name, kind, value, text in (
        (
            "replica_lag_seconds",
            "gauge",
            f"{watch.replica.lag_seconds():.3f}",
            "Seconds for which the oldest accepted record has waited to be copied",
        ),
        (
            "replica_bytes_total",
            "counter",
            watch.replica.bytes_copied,
            "Bytes that were copied from workers for the index and for sinks",
        ),
    ):
        yield from _family(name, kind, text)
        yield f"{_PREFIX}_{name} {value}"


def _witness_lines(standing: list[dict[str, Any]]) -> Iterator[str]:
    if not standing:
        return
    for name, field, text in (
        ("cosigned_heads", "size", "Entries of the newest checkpoint that the witness has cosigned"),
        (
            "cosignature_timestamp_seconds",
            "time",
            "Unix time of the witness's newest cosignature, by the witness's clock; 0 if there is none yet",
        ),
    ):
        yield from _family(f"witness_{name}", "gauge", text)
        for witness in standing:
            yield f'{_PREFIX}_witness_{name}{{witness="{_label(witness["name"])}"}} {witness[field]}'
    yield from _family("witness_requests_total", "counter", "Requests to witnesses, by result")
    for witness in standing:
        for result, count in sorted(witness["results"].items()):
            labels = f'witness="{_label(witness["name"])}",result="{result}"'
            yield f"{_PREFIX}_witness_requests_total{{{labels}}} {count}"


def _mirror_lines(mirrors: list[Mirror]) -> Iterator[str]:
    families: list[_Family[Mirror]] = [
        (
            "lag_seconds",
            "gauge",
            lambda one: f"{one.lag_seconds():.3f}",
            "Seconds for which the oldest unmirrored data has waited",
        ),
        ("lag_bytes", "gauge", lambda one: one.lag_bytes, "Bytes of ended logs that are not mirrored yet"),
        (
            "objects_total",
            "counter",
            lambda one: one.totals.objects,
            "Objects that were written to the mirror",
        ),
        ("bytes_total", "counter", lambda one: one.totals.bytes, "Bytes that were written to the mirror"),
    ]
    yield from _destination_lines(
        ("mirror", "mirror"), mirrors, families, "Failed attempts to update the mirror, by reason"
    )


def _stream_lines(streams: list[EventStream]) -> Iterator[str]:
    families: list[_Family[EventStream]] = [
        (
            "lag_seconds",
            "gauge",
            lambda one: f"{one.lag_seconds():.3f}",
            "Seconds for which the oldest unsent exchange has waited",
        ),
        (
            "records_behind",
            "gauge",
            lambda one: one.lag_records,
            "Records of exchanges that are not sent yet",
        ),
        ("events_total", "counter", lambda one: one.totals.events, "Exchanges that were sent"),
    ]
    yield from _destination_lines(("siem", "sink"), streams, families, "Failed batches, by reason")


def _destination_lines(
    named: tuple[str, str], places: list[_Destination], families: list[_Family[_Destination]], broken_off: str
) -> Iterator[str]:
    """Yields the metric lines of each destination. `named` is the prefix and the label."""
    prefix, label = named
    if not places:
        return
    for name, kind, value, text in families:
        yield from _family(f"{prefix}_{name}", kind, text)
        for place in places:
            yield f'{_PREFIX}_{prefix}_{name}{{{label}="{_label(place.name)}"}} {value(place)}'
    yield from _family(f"{prefix}_failures_total", "counter", broken_off)
    for place in places:
        for code, count in sorted(place.totals.failures.items()):
            labels = f'{label}="{_label(place.name)}",code="{code}"'
            yield f"{_PREFIX}_{prefix}_failures_total{{{labels}}} {count}"


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _family(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {_PREFIX}_{name} {text}."
    yield f"# TYPE {_PREFIX}_{name} {kind}"
