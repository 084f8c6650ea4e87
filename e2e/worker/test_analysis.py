"""Answers are analysed after delivery to their clients: a swapped model is detected, and no answer is delayed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.swap import analyses, ask, findings, metrics, swapped, windows
from e2e.worker.raw_http import chat_request, send, status_of


def counter(gateway: LocalGateway, name: str) -> int:
    found = re.search(rf"^proofgate_analysis_{name} (\d+)$", metrics(gateway), re.MULTILINE)
    assert found, name
    return int(found[1])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_model_that_is_swapped_behind_its_name_is_noticed_and_recorded(folder: Path, stream: bool) -> None:
    with swapped(folder, stream) as (gateway, before):
        assert before == dict.fromkeys(before, 0) and len(before) == 8
        after = findings(gateway)
        assert after["entropy"] == after["opening"] == 1
        assert after["length"] == after["refusal"] == after["cut"] == 0
        recorded = analyses(gateway)
        assert [record["findings"] for record in recorded] == [[], [], [], ["entropy", "opening"]]
        found = recorded[-1]
        [admission] = [r for r in gateway.records() if r["kind"] == "admission" and r["id"] == found["exchange"]]
        assert (admission["seq"], admission["log"]) == (found["admission"], found["log"])
        tested = {test["feature"]: test for test in found["window"]["tests"]}
        assert tested["entropy"]["differs"] and tested["entropy"]["p_ppb"] == 0
        assert not tested["length"]["differs"] and tested["length"]["distance_ppm"] == 0
        assert gateway.worker is not None
        gateway.worker.stop()
        checked = proofgate("ledger", "fsck", gateway.ledger, "--key", gateway.verifying_key)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_does_not_fit_is_counted_and_the_client_has_its_answer(folder: Path) -> None:
    small = {"maxAnswerBytes": 1024, "maxCopyBytes": 65536, "window": 30}
    with local_gateway(folder, settings={"analysis": small}) as gateway:
        for stream in (False, True):
            messages = [{"role": "user", "content": "mock:tokens=500"}]
            body = json.dumps({"model": MODEL, "messages": messages, "stream": stream}).encode()
            answer = send(gateway.address, chat_request(body, KEYS["acme"]))
            assert status_of(answer) == 200 and b"token499" in answer
        wait_until(
            lambda: counter(gateway, "answers_total") == 1, PATIENCE, "the stream is analysed as far as it was read"
        )
        assert counter(gateway, "answers_partly_read_total") == 1
        assert counter(gateway, "answers_unreadable_total") == 1


def test_only_whose_answers_are_asked_for_are_analysed(folder: Path) -> None:
    with local_gateway(folder, settings={"analysis": {"tenants": ["acme"], "window": 30}}) as gateway:
        for key in (KEYS["globex"], KEYS["acme"]):
            body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()
            assert status_of(send(gateway.address, chat_request(body, key))) == 200
        wait_until(lambda: counter(gateway, "answers_total") == 1, PATIENCE, "an answer is analysed")
        assert 'tenant="globex",model' not in "".join(
            line for line in metrics(gateway).splitlines() if line.startswith("proofgate_analysis_")
        )


def test_without_the_section_nothing_is_analysed_or_recorded(gateway: LocalGateway) -> None:
    ask(gateway, 3)
    assert counter(gateway, "answers_total") == 0 and windows(gateway) == 0 and not analyses(gateway)


def test_no_text_of_an_answer_is_in_a_record_or_a_metric(folder: Path) -> None:
    with local_gateway(folder, settings={"analysis": {"window": 30, "repetition": 0.0}}) as gateway:
        messages = [{"role": "user", "content": "mock:tokens=100"}]
        body = json.dumps({"model": MODEL, "messages": messages, "logprobs": True, "top_logprobs": 5}).encode()
        for _ in range(30):
            assert status_of(send(gateway.address, chat_request(body, KEYS["acme"]))) == 200
        wait_until(lambda: len(analyses(gateway)) == 11, PATIENCE, "a window and ten flagged answers are recorded")
        found = json.dumps(analyses(gateway)) + "".join(
            line for line in metrics(gateway).splitlines() if line.startswith("proofgate_analysis_")
        )
        assert "token1" not in found and f"{MODEL}:" not in found
        flagged = [record for record in analyses(gateway) if "answer" in record]
        assert len(flagged) == 10 and {tuple(record["findings"]) for record in flagged} == {("repetitive",)}
