"""The upstream of every system: stream-load, which answers immediately or at the pace of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import LOAD_CORE, free_port, pinned
from bench.system import System

ANSWER = (
    '{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"gpt-4o-mini","choices":'
    '[{"index":0,"message":{"role":"assistant","content":"'
    + "The quick brown fox jumps over the lazy dog. " * 3
    + '"},"finish_reason":"stop"}],"usage":{"prompt_tokens":57,"completion_tokens":31,"total_tokens":88}}'
)

MESSAGE = (
    '{"id":"msg_bench","type":"message","role":"assistant","model":"claude-bench","content":[{"type":"text","text":"'
    + "The quick brown fox jumps over the lazy dog. " * 3
    + '"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":57,"output_tokens":31}}'
)
# 50 tokens per second; a stream of four seconds is long enough that opening it is little of its cost.
INTERVAL_US = 20_000
TOKENS = 200
# The latency of an answer without a stream from the paced upstream.
LATENCY_US = 50_000


@contextmanager
def run(stream_load: Path, folder: Path, core: int = LOAD_CORE, *, paced: bool) -> Iterator[System]:
    """Runs it; streams have a pace in any case, other answers come after a time when it is `paced`.

    It answers as OpenAI does, and as Anthropic does where the path is that of messages. A stream to a request with
    tools thinks, speaks and calls a tool.
    """
    name = f"upstream-{core}-{'paced' if paced else 'at-once'}"
    answers = {"completion": ANSWER, "message": MESSAGE}
    for kind, answer in answers.items():
        (folder / f"{kind}.json").write_text(answer)
    port = free_port()
    command = [
        *(str(stream_load), "upstream", "--listen", f"127.0.0.1:{port}", "--interval-us", str(INTERVAL_US)),
        *("--tokens", str(TOKENS), "--latency-us", str(LATENCY_US if paced else 0)),
        *(word for kind in answers for word in (f"--{kind}", str(folder / f"{kind}.json"))),
    ]
    with pinned(core, command, folder / f"{name}.log", ready="listening ") as process:
        yield System(f"127.0.0.1:{port}", process)
