"""The authority of a gateway's own certificates, with a clock that the tests set."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from proofgate_operator.build.internal_authority import renew_entries
from proofgate_operator.build.internal_tls import haproxy_endpoint, worker_endpoint
from tests.gateways import gateway

GATEWAY = gateway(internalTLS={"mode": "Operator"})
SIDES = worker_endpoint(GATEWAY), haproxy_endpoint(GATEWAY)
START = datetime(2026, 1, 1, tzinfo=UTC)
WORKERS, HAPROXY = "demo-workers.team.svc", "demo-haproxy.team.svc"

Entries = dict[str, str]


def at(days: float, held: Entries | None = None, *, settled: bool = True) -> Entries:
    return renew_entries(held or {}, SIDES, (START + timedelta(days=days)).timestamp(), settled)


def leaf(entries: Entries, side: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(entries[f"{side}.crt"].encode())


def believes(verifier: Entries, shown: Entries, days: float) -> bool:
    """Return whether the reader of `verifier` trusts both sides of the reader of `shown`."""
    store = Store(x509.load_pem_x509_certificates(verifier["ca.crt"].encode()))
    policy = PolicyBuilder().store(store).time((START + timedelta(days=days)).replace(tzinfo=None))
    try:
        policy.build_server_verifier(x509.DNSName(WORKERS)).verify(leaf(shown, "worker"), [])
        policy.build_client_verifier().verify(leaf(shown, "haproxy"), [])
    except VerificationError:
        return False
    return True


def test_each_side_gets_a_certificate_for_its_name_and_its_part() -> None:
    made = at(0)
    expected = {
        "worker": (WORKERS, ExtendedKeyUsageOID.SERVER_AUTH),
        "haproxy": (HAPROXY, ExtendedKeyUsageOID.CLIENT_AUTH),
    }
    for side, (name, usage) in expected.items():
        certificate = leaf(made, side)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == [name]
        assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [usage]
        key = certificate.public_key()
        assert isinstance(key, EllipticCurvePublicKey) and key.curve.name == "secp256r1"
    assert believes(made, made, 0)
    assert made["worker.key"] != made["haproxy.key"] != made["authority.key"]


def test_no_two_gateways_have_an_authority_in_common() -> None:
    assert not believes(at(0), at(0), 0)


def test_a_clock_that_is_behind_by_less_than_an_hour_believes_a_new_certificate() -> None:
    made = at(0)
    assert believes(made, made, -0.04)


def test_nothing_is_renewed_before_two_thirds_of_its_life() -> None:
    made = at(0)
    assert at(59, made) == made


def test_certificates_are_renewed_at_two_thirds_of_their_life_by_the_same_authority() -> None:
    made = at(0)
    later = at(61, made)
    assert later["ca.crt"] == made["ca.crt"]
    for side in ("worker", "haproxy"):
        assert later[f"{side}.crt"] != made[f"{side}.crt"] and later[f"{side}.key"] != made[f"{side}.key"]
    assert believes(made, later, 61) and believes(later, made, 61)


def test_a_new_authority_is_trusted_a_day_before_it_issues_anything() -> None:
    life, held, changes = 5 * 365, at(0), []
    for day in range(0, life + 100, 7):
        following = at(day, held)
        if following["ca.crt"] != held["ca.crt"] or following["authority.crt"] != held["authority.crt"]:
            changes.append((day, "next-authority.crt" in following))
        # Two readers with files of different times trust each other.
        assert believes(held, following, day) and believes(following, held, day), day
        held = following
    (announced, is_announced), (used, is_still_announced), *ended = changes
    assert 1217 <= announced < 1224 and is_announced
    assert used == announced + 7 and not is_still_announced
    assert [(day > life - 1) for day, _ in ended] == [True], (
        "the old authority is removed when it has expired"
    )


def test_a_new_authority_issues_nothing_while_somebody_does_not_trust_it() -> None:
    held = at(1220, at(0), settled=False)
    assert "next-authority.crt" in held
    later = at(1240, held, settled=False)
    assert later["authority.crt"] == held["authority.crt"]
    assert at(1240, later)["authority.crt"] == held["next-authority.crt"]


@pytest.mark.parametrize("entry", ["authority.crt", "authority.key", "worker.crt", "haproxy.key", "ca.crt"])
@pytest.mark.parametrize("spoilt", ["", "nonsense"])
def test_what_cannot_be_read_is_made_anew(entry: str, spoilt: str) -> None:
    mended = at(1, at(0) | {entry: spoilt})
    assert believes(mended, mended, 1)


def test_a_certificate_for_another_name_is_issued_anew() -> None:
    other = renew_entries(
        {},
        (worker_endpoint(gateway(internalTLS={"mode": "Operator"}, ledger={})), SIDES[1]),
        START.timestamp(),
    )
    made = at(0)
    foreign = made | {"worker.crt": other["worker.crt"], "worker.key": other["worker.key"]}
    mended = at(0, foreign)
    assert mended["worker.crt"] not in (made["worker.crt"], other["worker.crt"])
    assert believes(made, mended, 0)


def test_an_authority_that_has_ended_is_followed_by_another_one() -> None:
    held = at(0)
    later = at(6 * 365, held)
    assert believes(later, later, 6 * 365) and held["authority.crt"] not in later["ca.crt"]
