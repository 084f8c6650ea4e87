"""The holder of each key among attached tenants, and the shards that a change affects."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.build.tenant_shards import (
    KEYS,
    OWNERS,
    SHARDS,
    TENANTS,
    key_line,
)
from proofgate_operator.plan import shard_allocation, tenant_registry
from proofgate_operator.plan.tenant_registry import AttachedTenant, TenantRegistry


def key(text: str, expires: str | None = None) -> KeyDigest:
    return KeyDigest(hashlib.sha256(text.encode()).hexdigest(), expires, text)


def tenant(
    name: str, *keys: str, created: str = "2026-01-01T00:00:00Z", plan: str = "gold"
) -> AttachedTenant:
    return AttachedTenant(f"team/{name}", plan, created, tuple(map(key, keys)))


def nobody(*_: str) -> None:
    return None


def holders(book: TenantRegistry) -> dict[str, str]:
    """Return the tenants by the names of the keys in the shards."""
    lines = "".join(book.files(shard, nobody)[KEYS] for shard in range(SHARDS)).splitlines()
    return {line.split()[2]: line.split()[1] for line in lines}


def digests(book: TenantRegistry) -> list[str]:
    return [book.digest(shard) for shard in range(SHARDS)]


def places(book: TenantRegistry) -> tuple[dict[str, int], dict[str, int]]:
    """Return the shard of each key's digest and of each tenant, from the files."""
    found = [book.files(shard, nobody) for shard in range(SHARDS)]
    return (
        {line.split()[0]: shard for shard in range(SHARDS) for line in found[shard][KEYS].splitlines()},
        {line.split()[0]: shard for shard in range(SHARDS) for line in found[shard][TENANTS].splitlines()},
    )


def test_a_key_has_a_line_and_its_tenant_another_with_its_owner() -> None:
    book = TenantRegistry({})
    found = key("ci", "2030-01-01T00:00:00Z")
    book.update_tenants(AttachedTenant("team/acme", "gold", "", (found,)))
    of_key, of_tenant = (next(iter(shards.values())) for shards in places(book))
    assert book.files(of_key, nobody)[KEYS] == (f"{found.digest} team/acme ci not_after=1893456000\n")
    assert book.files(of_tenant, nobody)[TENANTS] == "team/acme gold\n"
    assert (
        book.files(of_tenant, lambda name, plan: f"worker-3..{plan}")[OWNERS] == "team/acme worker-3..gold\n"
    )
    assert book.shards_of("team/acme", (found, key("another's"))) == {of_key, of_tenant}


def test_neither_a_digest_nor_a_name_decides_where_it_stands() -> None:
    book = TenantRegistry({})
    chosen = [KeyDigest("00" + key(str(number)).digest[2:], None, "k") for number in range(320)]
    book.update_tenants(AttachedTenant("team-mallory/one", "gold", "", tuple(chosen)))
    book.update_tenants(*(tenant(f"t{number}") for number in range(320)))
    for shards in places(book):
        counts = [list(shards.values()).count(shard) for shard in range(SHARDS)]
        assert max(counts) - min(counts) <= 1


def test_what_is_written_stays_where_it_is_after_a_restart_and_when_others_come_and_go() -> None:
    book = TenantRegistry({})
    several = [tenant(f"t{number}", f"{number}-a", f"{number}-b") for number in range(60)]
    for one in several:
        book.update_tenants(one)
    for one in several[::2]:
        book.remove(one.name)
    keys, names = places(book)
    held = {key(name).digest: holder for name, holder in holders(book).items()}
    after = TenantRegistry(held, names, keys, names)
    after.update_tenants(tenant("a", "new", created="2020-01-01T00:00:00Z"), *several[1::2])
    keys_after, names_after = places(after)
    assert keys_after.items() >= keys.items() and names_after.items() >= names.items()
    by_digest = {digest: int(digest[:2], 16) >> 3 for digest in keys}
    other = TenantRegistry(held, names, by_digest, dict.fromkeys(names, 7))
    other.update_tenants(*several[1::2])
    assert places(other) == (by_digest, dict.fromkeys(names, 7))


def test_a_key_that_gets_another_holder_or_end_stays_in_its_shard() -> None:
    book = TenantRegistry({})
    book.update_tenants(*(tenant(f"t{number}", f"{number}-a") for number in range(60)))
    book.update_tenants(tenant("other", "7-a"))
    before = places(book)[0][key("7-a").digest]
    book.remove("team/t7")
    assert holders(book)["7-a"] == "team/other"
    assert places(book)[0][key("7-a").digest] == before
    book.update_tenants(AttachedTenant("team/other", "gold", "", (key("7-a", "2030-01-01T00:00:00Z"),)))
    assert places(book)[0][key("7-a").digest] == before


def test_what_has_to_move_is_written_to_its_new_shard_first(monkeypatch: pytest.MonkeyPatch) -> None:
    line = len(key_line(key("k0"), "team/acme"))
    monkeypatch.setattr(tenant_registry, "MAX_KEY_BYTES", 3 * line)
    held = [f"k{number}" for number in range(4)]
    book = TenantRegistry(
        {key(name).digest: "team/acme" for name in held},
        ["team/acme"],
        {key(name).digest: 5 for name in held},
        {"team/acme": 0},
    )
    book.update_tenants(tenant("acme", *held))
    assert set(holders(book)) == set(held)
    (moved,) = (shard for shard in places(book)[0].values() if shard != 5)
    order = book.shards_in_write_order
    assert order.index(moved) < order.index(5)


@pytest.mark.parametrize(
    ("not_after", "seconds"),
    [
        ("2030-01-01T00:00:00Z", 1893456000),
        ("2030-01-01T12:00:00.999999999+02:00", 1893492000),
        ("2099-12-31T23:59:59-23:59", 4102531139),
    ],
)
def test_the_line_of_a_key_tells_its_end_in_seconds_since_1970(not_after: str, seconds: int) -> None:
    found = key("ci", not_after)
    assert key_line(found, "team/acme") == f"{found.digest} team/acme ci not_after={seconds}\n"


def test_a_change_of_one_tenant_touches_its_own_shards_alone() -> None:
    book = TenantRegistry({})
    for number in range(500):
        book.update_tenants(tenant(f"t{number}", f"{number}-a", f"{number}-b"))
    before = digests(book)
    of_old = places(book)[0][key("7-b").digest]
    book.update_tenants(tenant("t7", "7-a", "7-new"))
    touched = {shard for shard in range(SHARDS) if book.digest(shard) != before[shard]}
    assert touched == {of_old, places(book)[0][key("7-new").digest]}
    book.update_tenants(tenant("t7", "7-a"))
    assert {shard for shard in range(SHARDS) if book.digest(shard) != before[shard]} == {of_old}


def test_a_key_that_is_taken_away_is_gone() -> None:
    book = TenantRegistry({})
    book.update_tenants(tenant("acme", "a", "b"))
    book.update_tenants(tenant("acme", "b"))
    assert holders(book) == {"b": "team/acme"}
    book.remove("team/acme")
    assert holders(book) == {} and digests(book) == digests(TenantRegistry({}))


def test_of_two_new_tenants_with_one_key_the_older_gets_it_and_the_other_is_told() -> None:
    for order in (1, -1):
        book = TenantRegistry({})
        older = tenant("old", "shared", created="2026-01-01T00:00:00Z")
        newer = tenant("new", "shared", "own", created="2026-02-01T00:00:00Z")
        for found in (older, newer)[::order]:
            book.update_tenants(found)
        # The first tenant keeps the key, unless both were added in one update.
        first = "team/old" if order == 1 else "team/new"
        assert holders(book)["shared"] == first
        loser = ({"team/old", "team/new"} - {first}).pop()
        assert [found.name for found in book.missing_keys(loser)] == ["shared"]
        assert {"team/old", "team/new"} <= book.touched
        book.remove(first)
        assert holders(book)["shared"] == loser and not book.missing_keys(loser)


def test_a_key_in_use_is_not_lost_to_an_older_tenant_that_lists_it_too() -> None:
    book = TenantRegistry({key("live").digest: "team/new"})
    book.update_tenants(tenant("old", "live", created="2020-01-01T00:00:00Z"))
    assert holders(book) == {"live": "team/old"}, "no other tenant claims the key"
    book = TenantRegistry({key("live").digest: "team/new"})
    book.update_tenants(tenant("new", "live", created="2026-01-01T00:00:00Z"))
    book.update_tenants(tenant("old", "live", created="2020-01-01T00:00:00Z"))
    assert holders(book) == {"live": "team/new"}


@pytest.mark.parametrize("order", [1, -1])
def test_after_a_restart_a_key_stays_with_who_has_it_whoever_is_read_first(order: int) -> None:
    book = TenantRegistry({key("live").digest: "team/victim"}, ["team/victim", "team/thief"])
    victim = tenant("victim", "live", created="2026-01-01T00:00:00Z")
    thief = tenant("thief", "live", created="2020-01-01T00:00:00Z")
    assert book.update_tenants(*[thief, victim][::order]) == set()
    assert holders(book) == {"live": "team/victim"}
    book.remove("team/victim")
    book.update_tenants(victim)
    assert holders(book) == {"live": "team/thief"}


def test_what_nobody_claimed_after_a_restart_is_nobodys_any_more() -> None:
    book = TenantRegistry({key("live").digest: "team/gone"}, ["team/gone"])
    book.update_tenants(tenant("acme", "own"))
    assert book.holder(key("live").digest) is None
    book.update_tenants(
        tenant("gone", "live", created="2026-01-01T00:00:00Z"),
        tenant("old", "live", created="2020-01-01T00:00:00Z"),
    )
    assert holders(book)["live"] == "team/old"


@pytest.mark.parametrize("order", [1, -1])
def test_of_tenants_that_come_at_once_the_older_gets_a_key(order: int) -> None:
    book = TenantRegistry({})
    newer = tenant("a", "shared", created="2026-02-01T00:00:00Z")
    older = tenant("b", "shared", created="2026-01-01T00:00:00Z")
    book.update_tenants(*[newer, older][::order])
    assert holders(book) == {"shared": "team/b"}


@pytest.mark.parametrize("order", [1, -1])
def test_after_a_restart_who_was_in_a_full_shard_stays_in(
    monkeypatch: pytest.MonkeyPatch, order: int
) -> None:
    monkeypatch.setattr(tenant_registry, "MAX_TENANT_BYTES", 2 * 256)
    monkeypatch.setattr(shard_allocation, "MIN_NAMESPACES", 1)
    before = [tenant(f"t{n}", created=f"2026-01-01T00:00:{n % 60:02}Z") for n in range(2 * SHARDS)]
    older = tenant("older", created="2020-01-01T00:00:00Z")
    book = TenantRegistry({}, [one.name for one in before])
    assert book.update_tenants(*[older, *before][::order]) == {"team/older"}
    assert book.names == {one.name for one in before}


@pytest.mark.parametrize("order", [1, -1])
def test_after_a_restart_a_key_that_was_in_a_full_shard_stays_in(
    monkeypatch: pytest.MonkeyPatch, order: int
) -> None:
    monkeypatch.setattr(tenant_registry, "MAX_KEY_BYTES", 200)
    monkeypatch.setattr(shard_allocation, "MIN_NAMESPACES", 1)
    held = [f"k{n:02}" for n in range(2 * SHARDS)]
    book = TenantRegistry({key(name).digest: "team/new" for name in held}, ["team/old", "team/new"])
    tenants = [
        tenant("old", "k", created="2020-01-01T00:00:00Z"),
        tenant("new", *held, created="2026-01-01T00:00:00Z"),
    ]
    book.update_tenants(*tenants[::order])
    assert holders(book) == dict.fromkeys(held, "team/new")


def test_a_key_of_the_gateways_own_list_is_nobody_elses() -> None:
    book = TenantRegistry({})
    book.update_tenants(tenant("acme", "listed", "own"))
    book.reserve({key("listed").digest})
    assert holders(book) == {"own": "team/acme"}
    assert [found.name for found in book.missing_keys("team/acme")] == ["listed"]
    book.reserve(frozenset())
    assert set(holders(book)) == {"listed", "own"}


def test_full_shards_take_no_more_keys_and_still_lose_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tenant_registry, "MAX_KEY_BYTES", 200)
    monkeypatch.setattr(shard_allocation, "MIN_NAMESPACES", 1)
    book = TenantRegistry({})
    book.update_tenants(tenant("acme", *(f"k{n:02}" for n in range(2 * SHARDS + 1))))
    assert len(holders(book)) == 2 * SHARDS and len(book.missing_keys("team/acme")) == 1
    book.update_tenants(tenant("acme"))
    assert holders(book) == {}


@given(st.lists(st.tuples(st.integers(0, 4), st.sets(st.integers(0, 5), max_size=4)), max_size=30))
def test_whatever_happens_a_key_has_one_holder_who_lists_it(changes: list[tuple[int, set[int]]]) -> None:
    book, listed = TenantRegistry({}), dict[str, set[str]]()
    for number, numbers in changes:
        name, keys = f"t{number}", {f"k{one}" for one in numbers}
        if keys:
            book.update_tenants(tenant(name, *sorted(keys), created=f"2026-01-0{number + 1}"))
            listed[f"team/{name}"] = keys
        else:
            book.remove(f"team/{name}")
            listed.pop(f"team/{name}", None)
    found = holders(book)
    assert found.keys() == set().union(*listed.values())
    assert all(one in listed[holder] for one, holder in found.items())
    assert book.key_count == len(found)
