"""Cached verdicts of scanned texts: a client cannot use them to bypass the rules."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from e2e.local_gateway import KEYS
from e2e.worker.judging import (
    CLAUDE,
    STRANGERS,
    Message,
    Verdict,
    Worker,
    assistant,
    judging_worker,
    of_tenants,
    tool,
    user,
)

PHRASE = "open the pod bay doors"
STAFF = "staff-731946"
RULES: list[dict[str, Any]] = [
    {"id": "doors", "reason": "It opens doors.", "literals": [PHRASE], "score": 50, "action": "Block"},
    {
        "id": "staff",
        "reason": "A number of staff.",
        "regex": r"clerk (?<value>staff-[0-9]{6})",
        "score": 9,
        "action": "Redact",
    },
    {"id": "alpha", "reason": "A weak sign.", "literals": ["alphasign"], "score": 60, "action": "Flag"},
    {"id": "beta", "reason": "A weak sign.", "literals": ["betasign"], "score": 60, "action": "Flag"},
]
POLICY: dict[str, Any] = {"rules": RULES, "threshold": 100}
#: A text that is long enough for the cache.
STORY = "The harbour town wakes slowly while boats return and gulls circle above the quay. " * 6


def worker(folder: Path, tenants: dict[str, Any] | None = None, **settings: Any) -> AbstractContextManager[Worker]:
    return judging_worker(folder, tenants, **{"policy": POLICY, **settings})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """One worker for tests that do not change its rules."""
    with worker(tmp_path_factory.mktemp("known")) as running:
        yield running


def know(worker: Worker, *texts: Message) -> None:
    """Sends messages twice, so that their verdict is cached."""
    messages = list(texts)
    assert worker.ask(messages).status == 200
    before = worker.hits()
    assert worker.ask(messages).status == 200
    assert worker.hits() > before


def named(name: str) -> str:
    """A story that no other test sends."""
    return f"{name}. {STORY}"


def test_an_honest_session_is_scanned_once(folder: Path) -> None:
    messages: list[Message] = [{"role": "system", "content": named("You help in a harbour")}]
    known = 0
    with worker(folder) as running:
        for turn in range(6):
            hits, misses = running.hits(), running.misses()
            messages = [*messages, user(named(f"Question {turn}"))]
            assert running.ask(messages).status == 200
            sent = sum(message["content"] is not None for message in messages)
            assert (running.hits() - hits, running.misses() - misses) == (known, sent - known)
            known = sent
            messages += [*tool(named(f"Result {turn}")), assistant(named(f"Answer {turn}"))]
        assert running.count('_text_bytes_total{result="hit"}') > 6 * len(STORY)
        assert running.count("_memory_bytes") > 0
        assert running.count("_evictions_total") == 0


def test_a_text_of_the_same_length_as_a_known_one_is_scanned(shared: Worker) -> None:
    floors = PHRASE.replace("doors", "floor")
    assert len(floors) == len(PHRASE)
    for at in (0, 1, 15, 16, 17, 200, len(STORY)):
        know(shared, user(STORY[:at] + floors + STORY[at:]))
        assert shared.ask([user(STORY[:at] + PHRASE + STORY[at:])]).denied, at


def test_every_byte_of_a_long_text_is_part_of_what_is_known(shared: Worker) -> None:
    # Longer than one unit of hashing.
    long = (STORY * (700_000 // len(STORY)))[:600_000]
    know(shared, user(long))
    for at in (0, (1 << 18) - 11, 1 << 18, (1 << 19) - 1, len(long) - len(PHRASE)):
        assert shared.ask([user(long[:at] + PHRASE + long[at + len(PHRASE) :])]).denied, at
    block = 1 << 18
    swapped = long[block : 2 * block] + long[:block] + long[2 * block :]
    assert shared.ask([user(swapped)]).status == 200


def test_known_messages_in_another_order_are_read_in_that_order(shared: Worker) -> None:
    one, other = named("Reordered one") + " open the pod", "bay doors " + named("Reordered other")
    know(shared, user(one), assistant("go on"), user(other))
    know(shared, user(other), user(one))
    assert shared.ask([user(one), user(other)]).denied
    assert shared.ask([user(other), assistant("go on"), user(one)]).status == 200


@pytest.mark.parametrize("known_first", [True, False], ids=["new behind known", "new before known"])
def test_a_phrase_over_a_known_message_and_a_new_one_is_found(shared: Worker, known_first: bool) -> None:
    # A line feed joins messages, and between words it counts as a blank.
    for cut in [place.start() for place in re.finditer(" ", PHRASE)]:
        head, tail = PHRASE[:cut], PHRASE[cut:]
        known, new = (named("Head") + head, tail) if known_first else (tail + named("Tail"), head)
        know(shared, user(known))
        session = [user(known), user(new)] if known_first else [user(new), user(known)]
        assert shared.ask(session).denied, cut
        assert shared.ask([session[0], assistant(" "), session[1]]).denied
        parts = [{"type": "text", "text": message["content"]} for message in session]
        assert shared.ask([{"role": "user", "content": parts}]).denied


@pytest.mark.parametrize("split", [1, 100, len(STORY) - 3])
def test_a_known_text_that_is_split_elsewhere_is_judged_by_its_new_messages(shared: Worker, split: int) -> None:
    text = f"alphasign {STORY} betasign"
    apart = [user(text[:split] + " ."), assistant("go on"), user(text[split:])]
    know(shared, *apart)
    # Two weak signs deny if they are in one message, but not in two.
    assert shared.ask([user(text)]).denied
    assert shared.ask([user(f"alphasign {STORY}"), user("betasign")]).status == 200
    assert shared.ask([user(f"alphasign {STORY}betasign")]).denied


def test_a_text_known_in_one_role_is_judged_in_another_by_what_holds_there(folder: Path) -> None:
    policy = {**POLICY, "actions": [{"rules": ["doors"], "scopes": ["ToolResult", "Assistant"], "action": "Ignore"}]}
    text = f"{STORY} {PHRASE}"
    with worker(folder, policy=policy) as running:
        know(running, *tool(text))
        know(running, user("hi"), assistant(text), user("go on"))
        assert running.ask([user(text)]).denied
        assert running.ask([{"role": "system", "content": text}, user("hi")]).denied
        assert running.ask([{"role": "developer", "content": text}, user("hi")]).denied
        assert running.ask([{"role": "nobody", "content": text}]).denied
        assert running.ask(tool(text)).status == 200


def test_a_text_known_in_one_dialect_is_judged_in_another_as_what_it_is_there(folder: Path) -> None:
    policy = {**POLICY, "actions": [{"rules": ["doors"], "scopes": ["ToolResult"], "action": "Ignore"}]}
    text = f"{STORY} {PHRASE}"
    result = {"type": "tool_result", "tool_use_id": "t", "content": text}
    call = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
    session = [user("hi"), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    with worker(folder, policy=policy) as running:
        know(running, *tool(text))

        def message(messages: list[Message]) -> Verdict:
            return running.post("/v1/messages", {"model": CLAUDE, "max_tokens": 9, "messages": messages})

        assert message(session).status == 200
        assert message([user(text)]).denied
        # A text beside the tool result in a message belongs to the user.
        beside = [*session[:2], {"role": "user", "content": [result, {"type": "text", "text": text}]}]
        assert message(beside).denied


def test_what_one_tenant_may_send_is_not_known_of_another(folder: Path) -> None:
    text = f"{STORY} {PHRASE}"
    with worker(folder, {"acme": {"actions": [{"rules": ["doors"], "action": "Ignore"}]}}) as running:
        know(running, user(text))
        before = running.hits()
        assert running.ask([user(text)], KEYS["globex"]).denied
        assert running.hits() == before


def test_tenants_with_other_actions_for_a_known_text_get_their_own(folder: Path) -> None:
    text = f"{STORY} {PHRASE} clerk {STAFF}"
    policies = {"acme": {"action": "Flag"}, "globex": {"actions": [{"rules": ["doors"], "action": "Flag"}]}}
    with worker(folder, policies) as running:
        for _ in range(2):
            assert STAFF.encode() in running.ask([user(text)]).forwarded
            verdict = running.ask([user(text)], KEYS["globex"])
            assert verdict.status == 200 and STAFF.encode() not in verdict.forwarded
            assert running.ask([user(text)], STRANGERS["stranger-0"]).denied
        # A tenant's plan changes, but the rules do not: the cached finding stays, and leads to another action.
        for action, status in (("Block", 403), ("Flag", 200), ("Redact", 200)):
            running.reload(tenants=of_tenants({"acme": {"action": action}}))
            before = running.hits()
            verdict = running.ask([user(text)])
            assert verdict.status == status
            assert (PHRASE.encode() in verdict.forwarded) == (action == "Flag")
            assert running.hits() == before + 1
        running.reload(tenants=of_tenants({"acme": {"actions": [{"rules": ["doors"], "action": "Ignore"}]}}))
        assert running.ask([user(text)]).status == 200
        running.reload(tenants=of_tenants({}))
        assert running.ask([user(text)]).denied


def test_a_known_text_is_judged_by_the_rules_of_the_last_reload(folder: Path) -> None:
    text = f"{STORY} of a bluebird"
    bird = {"id": "bird", "reason": "It names a project.", "literals": ["bluebird"], "action": "Block"}
    with worker(folder) as running:
        for _ in range(3):
            running.reload(policy=POLICY)
            know(running, user(text))
            running.reload(policy={**POLICY, "rules": [*RULES, bird]})
            assert running.ask([user(text)]).denied
            # The number of rules stays the same, but each has another position.
            running.reload(policy={**POLICY, "rules": [bird, *RULES[1:]]})
            assert running.ask([user(text)]).denied
            running.reload(policy={**POLICY, "allow": {"values": ["bluebird"]}, "rules": [*RULES, bird]})
            know(running, user(text))


def test_a_reload_while_known_texts_are_judged_leaves_no_old_verdict_behind(folder: Path) -> None:
    bird = {"id": "bird", "reason": "It names a project.", "literals": ["bluebird"], "action": "Block"}
    texts = [f"{number} {STORY * 200} bluebird" for number in range(6)]
    with worker(folder) as running, ThreadPoolExecutor(6) as clients:
        for _ in range(4):
            running.reload(policy=POLICY)
            under_way = [clients.submit(running.ask, [user(text)]) for text in texts]
            running.reload(policy={**POLICY, "rules": [*RULES, bird]})
            assert {running.ask([user(text)]).status for text in texts} == {403}
            assert {one.result().status for one in under_way} <= {200, 403}
            assert {running.ask([user(text)]).status for text in texts} == {403}


def test_a_value_is_redacted_in_known_texts_that_were_clean_without_its_context(shared: Worker) -> None:
    bare, context = f"{STORY} {STAFF}", f"{STORY} clerk {STAFF}"
    know(shared, *tool(bare))
    for session in ([*tool(bare), user(context)], [user(context), *tool(bare)], [user(f"clerk {STAFF}"), *tool(bare)]):
        for _ in range(2):
            verdict = shared.ask(session)
            assert verdict.status == 200 and STAFF.encode() not in verdict.forwarded
            assert verdict.forwarded.count(b"[redacted:staff]") == 2
            assert verdict.replaced == "staff=2"
    assert shared.ask(tool(bare)).forwarded.count(STAFF.encode()) == 1


def test_nothing_gets_through_while_known_texts_make_room_for_others(folder: Path) -> None:
    limits = {"bodyBytes": 1 << 18, "bufferedBytes": 1 << 20}
    chance = random.Random(31)
    with worker(folder, limits=limits) as running:
        texts = [f"{number} {STORY}" for number in range(600)]
        for round in range(6):
            chosen = chance.sample(texts, 120)
            session = [message for text in chosen for message in tool(text)]
            assert running.ask(session).status == 200, round
            position = chance.randrange(120)
            session[2 * position + 1] = {**session[2 * position + 1], "content": f"{chosen[position]} {PHRASE}"}
            assert f"messages[{2 * position + 1}]" in running.ask(session).error
        assert running.count("_evictions_total") > 0
        assert 0 < running.count("_memory_bytes") <= limits["bufferedBytes"] // 48


def test_many_who_send_one_unknown_text_at_once_are_all_denied(folder: Path) -> None:
    texts = [f"{number} {STORY * 300} {PHRASE}" for number in range(4)]
    with worker(folder) as running, ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(running.ask, [user(text)]) for text in texts for _ in range(8)]
        assert {one.result().status for one in asked} == {403}
        assert running.provider.take() == []


def result(text: str) -> Message:
    return tool(text)[1]


def changed(session: list[Message], chance: random.Random, texts: list[str]) -> list[Message]:
    """A copy of the session with one random change, as a client may make it before the next turn."""
    session = list(session)
    at = chance.randrange(len(session) or 1)
    kind = chance.randrange(8) if session else 0
    if kind <= 1:
        make: Callable[[str], Message] = chance.choice([user, assistant, result])
        return [*session, make(chance.choice(texts))]
    message = session[at]
    text, role = message["content"], message["role"]
    cut = chance.randrange(len(text) + 1)
    match kind:
        case 2:
            session[at] = {**message, "content": text[:cut] + chance.choice(texts)[:40] + text[cut:]}
        case 3:
            session[at : at + 1] = [{**message, "content": text[:cut]}, {**message, "content": text[cut:]}]
        case 4:
            chance.shuffle(session)
        case 5:
            session[at] = {**message, "role": "assistant" if role == "user" else "user"}
        case 6:
            del session[at]
        case 7:
            for one, other in pairwise(list(session)):
                if one["role"] == other["role"] and other in session:
                    session[session.index(one)] = {**one, "content": one["content"] + other["content"]}
                    session.remove(other)
                    break
    return session


@pytest.mark.parametrize("seed", range(2))
def test_every_verdict_is_the_one_that_a_tenant_gets_of_whom_nothing_is_known(shared: Worker, seed: int) -> None:
    chance = random.Random(f"{seed} of known texts")
    pieces = ["open the pod", "bay doors", f"clerk {STAFF}", STAFF, "alphasign", "betasign", PHRASE]
    texts = [f"{piece} {STORY}" for piece in pieces] + [f"{STORY} {piece}" for piece in pieces] + pieces + [STORY]
    session: list[Message] = []
    outcomes = set()
    for key in list(STRANGERS.values())[1 + seed * 90 :][:90]:
        session = changed(session, chance, texts)[-12:] or [user(STORY)]
        known, fresh = shared.ask(session), shared.ask(session, key)
        assert known == fresh, session
        outcomes.add((known.status, bool(known.replaced)))
    assert outcomes == {(200, False), (200, True), (403, False)}
