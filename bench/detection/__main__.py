"""python -m bench.detection SETS [--packs secrets,pii] [--engine FILE] [--missed 20] [--files 150]

Recall and false alarms of the packs for each public set below the folder SETS, recall at a share of honest files beside
the figures of others, what is refused and altered of honest files, and which sessions of agents are refused.
`bench/detection/__init__.py` says how to get the sets.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.detection import recall, sessions
from bench.detection.judge import Found, Judge, parses, redact
from bench.detection.sets import SETS, Example, PublicSet
from bench.scoring.engine import build
from bench.scoring.rules import load_packs, pack_names

#: The score that denies if an operator sets it; by default no score denies.
THRESHOLD = 100
#: The sum from which a text of an attack set counts as flagged.
FLAGGED = 50
_PACK = {"secret": {"secrets"}, "not-secret": {"secrets"}, "personal": {"pii"}}


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, help="the folder that holds the sets")
    parser.add_argument("--packs", default=",".join(pack_names()), help="packs that are on for honest files")
    parser.add_argument("--engine", type=Path, help="the example `verdicts`, if it is not to be built")
    parser.add_argument("--missed", type=int, default=0, help="classes of misses to print for each set")
    parser.add_argument("--files", type=int, default=150, help="files of each repository at most (default 150)")
    options = parser.parse_args()
    binary = options.engine or build("verdicts")
    files = sessions.files(options.sets / "ordinary", options.files) if (options.sets / "ordinary").is_dir() else []
    print("| set | texts | found | refused | flagged |\n|---|---|---|---|---|")
    scores: dict[str, list[int]] = {}
    for public in SETS:
        examples = public.examples(options.sets)
        if examples is None:
            print(f"| {public.name} | not there | | | |")
            continue
        found = _of_kind(public, binary).found(example.text for example in examples)
        _show(public, examples, found, options.missed)
        if public.kind != "not-secret":
            scores[public.name] = _scores(public, examples, found)
    packs = set(options.packs.split(","))
    if files:
        _at_shares(binary, scores, files)
        _honest(Judge(binary, [rule for rule in load_packs() if rule.pack in packs]), files, options.missed)
    return 0


def _scores(public: PublicSet, examples: Sequence[Example], results: Sequence[Found]) -> list[int]:
    """The score of each attack; for a secret or a datum, whether it is found."""
    if public.kind == "attack":
        return [_score(found) for found in results]
    return [int(_holds(example, found)) for example, found in zip(examples, results, strict=True)]


def _score(found: Found) -> int:
    """The deciding score of a text; a text that a rule denies has the threshold."""
    return max(sum(found.scores.values()), THRESHOLD if found.blocked else 0)


def _at_shares(binary: Path, scores: dict[str, list[int]], files: Sequence[sessions.File]) -> None:
    """Recall at a share of touched honest files, and the published figures of others."""
    kinds = {public.name: public for public in SETS}
    touched: dict[frozenset[str], list[int]] = {}
    honest: dict[str, list[int]] = {}
    for name in scores:
        judge = _of_kind(kinds[name], binary)
        packs = frozenset(rule.pack for rule in judge.rules.values())
        if packs not in touched:
            is_attack = kinds[name].kind == "attack"
            results = judge.found(file.text for file in files)
            touched[packs] = [_score(found) if is_attack else int(bool(found.matches)) for found in results]
        honest[name] = touched[packs]
    print("", *recall.rows(scores, honest), "", *recall.foreign_rows(), sep="\n")


def _of_kind(public: PublicSet, binary: Path) -> Judge:
    packs = _PACK.get(public.kind, set(pack_names()) - {"pii", "secrets"})
    return Judge(binary, [rule for rule in load_packs() if rule.pack in packs])


def _show(public: PublicSet, examples: Sequence[Example], results: Sequence[Found], missed: int) -> None:
    pairs = list(zip(examples, results, strict=True))
    if public.kind == "attack":
        hit = [found.denied(FLAGGED) for _, found in pairs]
    else:
        hit = [_holds(example, found) for example, found in pairs]
    refused = sum(found.denied(THRESHOLD) for found in results)
    flagged = sum(sum(found.scores.values()) >= FLAGGED for found in results)
    share = [f"{part / len(pairs):.1%}" for part in (sum(hit), refused, flagged)]
    print(f"| {public.name} | {len(pairs)} | {' | '.join(share)} |")
    if public.kind == "personal":
        for kind in sorted({example.group for example in examples}):
            own = [here for example, here in zip(examples, hit, strict=True) if example.group == kind]
            print(f"| {public.name}, {kind} | {len(own)} | {sum(own) / len(own):.1%} | | |")
    wrong = public.kind != "not-secret"
    misses = Counter(example.group for example, here in zip(examples, hit, strict=True) if here != wrong)
    if missed and misses:
        print(f"\n{public.name}: {', '.join(f'{name} {count}' for name, count in misses.most_common(missed))}\n")


def _holds(example: Example, found: Found) -> bool:
    """Whether anything is found, or the value that the set names."""
    if example.value is None:
        return bool(found.matches)
    text, value = example.text.encode(), example.value.encode()
    start = text.find(value)
    while start >= 0:
        if any(match.start < start + len(value) and match.end > start for match in found.matches):
            return True
        start = text.find(value, start + 1)
    return False


def _honest(judge: Judge, files: Sequence[sessions.File], missed: int) -> None:
    judged = dict(zip(files, judge.found(file.text for file in files), strict=True))
    refused = {file: found for file, found in judged.items() if found.denied(THRESHOLD)}
    altered = {file: redact(file.text, found.redacted) for file, found in judged.items() if found.redacted}
    readable = [file for file in altered if parses(file.path, file.text)]
    broken = [file for file in readable if not parses(file.path, altered[file])]
    repositories = len({file.repository for file in files})
    refused_share, altered_share = len(refused) / len(files), len(altered) / len(files)
    print(f"\n{len(files)} files of {repositories} repositories: {len(refused)} refused ({refused_share:.2%}),")
    print(f"{len(altered)} altered ({altered_share:.2%}); of {len(readable)} altered ones that could be parsed,")
    print(f"{len(broken)} can no longer be: {', '.join(file.path for file in broken[:5]) or 'none'}.")
    flagged = sum(_suspicion(judge, found) >= FLAGGED for found in judged.values())
    print(f"flagged by the packs that look for attacks: {flagged} ({flagged / len(files):.2%})")
    rules = Counter(match.rule for found in judged.values() for match in {m.rule: m for m in found.redacted}.values())
    print(f"altered by: {', '.join(f'{rule} {count}' for rule, count in rules.most_common(12))}")
    for file, found in list(refused.items())[:missed]:
        print(f"refused: {file.repository}/{file.path}: {', '.join(sorted(found.scores))}")
    print("\n| files read | sessions | with a file refused alone | refused only by the sum of all messages |")
    print("|---|---|---|---|")
    for row in sessions.refused(judged, THRESHOLD):
        print(f"| {row.size} | {row.sessions} | {row.by_a_file} | {row.by_the_sum} |")


def _suspicion(judge: Judge, found: Found) -> int:
    """The score without the scores of personal data and secrets."""
    return sum(score for rule, score in found.scores.items() if judge.rules[rule].pack not in ("pii", "secrets"))


if __name__ == "__main__":
    sys.exit(main())
