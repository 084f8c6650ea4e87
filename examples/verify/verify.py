"""Checks that records are in a signed log, and that bodies match them. Uses only the standard library.

python verify.py RECEIPT.json --key 'NAME+HASH+KEY' [--request FILE] [--response FILE]
python verify.py PROOF.tlog-proof --record RECORD.json --key 'NAME+HASH+KEY' [--body FILE]
python verify.py EXPORT.tar.gz --key 'NAME+HASH+KEY' [--signer 'NAME+HASH+KEY']

Prints what was proved. It is a second implementation of docs/reference/ledger-format.md, without shared code.
"""

import argparse
import base64
import csv
import hashlib
import hmac
import io
import json
import tarfile
from collections import defaultdict
from pathlib import Path

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493  # the field and the group's order (RFC 8032, 5.1)
SUCCESSION, DIGITS = "proofgate.dev/key-succession@v1", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
WHO = ("tenant", "key", "key_name", "session", "end_user", "end_user_name", "client_address")
D, ROOT = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)


def require(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"NOT VERIFIED: {what}")


def point(data: bytes) -> tuple[int, int]:  # RFC 8032, 5.1.3
    y, sign = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    x2 = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(x2, (P + 3) // 8, P)
    x = x if x * x % P == x2 else x * ROOT % P
    require(
        len(data) == 32 and y < P and x * x % P == x2 and (x > 0 or not sign),
        "a key or a signature is not a point on the curve",
    )
    return (x if x & 1 == sign else -x % P, y)


def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    t = D * a[0] * b[0] * a[1] * b[1] % P
    return (a[0] * b[1] + a[1] * b[0]) * pow(1 + t, -1, P) % P, (a[1] * b[1] + a[0] * b[0]) * pow(1 - t, -1, P) % P


def times(n: int, a: tuple[int, int]) -> tuple[int, int]:
    sum_ = (0, 1)
    for bit in bin(n)[2:]:
        sum_ = add(add(sum_, sum_), a if bit == "1" else (0, 1))
    return sum_


def check_signature(key: bytes, text: bytes, signature: bytes) -> None:  # RFC 8032, 5.1.7, without a cofactor
    r, s, a = signature[:32], int.from_bytes(signature[32:], "little"), point(key)
    require(times(8, a) != (0, 1) and len(signature) == 64 and s < L, "the key is weak, or the signature is malformed")
    h = int.from_bytes(hashlib.sha512(r + key + text).digest(), "little") % L
    require(
        times(s, point(b"\x58" + b"\x66" * 31)) == add(point(r), times(h, a)), "the signature is not valid for this key"
    )


def decode(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    require(base64.b64encode(data).decode() == text, "the base64 is not canonical")
    return data


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def root_of(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:  # RFC 9162, 2.1.3.2
    fn, sn, r = index, size - 1, leaf
    for p in path:
        require(sn > 0, "the inclusion proof is too long")
        if fn & 1 or fn == sn:
            r = node(p, r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node(r, p)
        fn, sn = fn >> 1, sn >> 1
    require(sn == 0, "the inclusion proof is too short")
    return r


def signs(name: str, vkey: str, text: str, signatures: str) -> bool:
    public = decode(vkey.split("+", 2)[2])
    key_id = hashlib.sha256(f"{name}\n".encode() + public).digest()[:4]
    signed = [s for n, s in (line[2:].split(" ") for line in signatures.splitlines()) if n == name]
    ours = [s for s in map(decode, signed) if s[:4] == key_id]
    for signature in ours:
        check_signature(public[1:], f"{text}\n".encode(), signature[4:])
    return bool(ours) and public[:1] == b"\x01"


def line_of(key: str, statements: list[str]) -> dict[str, int | None]:  # docs/reference/ledger-format.md, 10
    """All keys that successions connect to this key, each with the time until which it may start a log."""
    name = key.split("+")[0]
    steps: dict[tuple[str, str], int] = {}
    for note in statements:
        text, _, signatures = note.rpartition("\n\n")
        form, *rest = text.split("\n")
        words, values = zip(*(field.split(" ", 1) for field in rest), strict=True)
        require(
            (form, words) == (SUCCESSION, ("old", "new", "made", "until")),
            "a statement of key succession has an unknown format",
        )
        old, new = values[:2]
        named = old != new and old.split("+")[0] == new.split("+")[0]
        both = named and all(signs(vkey.split("+")[0], vkey, text, signatures) for vkey in (old, new))
        require(both and int(values[2]) <= int(values[3]), "a statement of key succession is not signed by both keys")
        steps[old, new] = min(int(values[3]), steps.get((old, new), int(values[3])))
    steps = {step: until for step, until in steps.items() if step[0].split("+")[0] == name}
    line = [key]
    for _ in range(len(steps)):
        line += [new for old, new in steps if old in line and new not in line]
        line += [old for old, new in steps if new in line and old not in line]
    ours = [step for step in steps if step[0] in line]
    once = all(len(ends) == len(set(ends)) for ends in ([old for old, _ in ours], [new for _, new in ours]))
    require(once and len(ours) == len(line) - 1, "the key successions fork or form a loop")
    return dict.fromkeys(line) | {old: steps[old, new] for old, new in ours}


def begun(origin: str) -> int:  # microseconds: the first 48 bits of the ULID
    ulid = origin.rsplit("/", 1)[1] if "/" in origin else ""
    digits = [DIGITS.find(digit) for digit in ulid[:10]]
    return sum(digit << 5 * (9 - at) for at, digit in enumerate(digits)) * 1000 if len(ulid) == 26 else 0


def head_of(note: str, line: dict[str, int | None]) -> tuple[str, int, bytes]:
    """Log, size and root of a checkpoint that one of the keys signed before its replacement."""
    text, _, signatures = note.rpartition("\n\n")
    origin, size, root = text.split("\n")
    name = next(iter(line)).split("+")[0]
    require(origin == name or origin.startswith(f"{name}/"), f"the checkpoint is of {origin}, not of a log of {name}")
    ours = [until for vkey, until in line.items() if signs(origin, vkey, text, signatures)]
    require(bool(ours), f"no key of the ledger signed the checkpoint of {origin}")
    require(
        any(until is None or begun(origin) <= until for until in ours), "the key was replaced before the log started"
    )
    return origin, int(size), decode(root)


def require_in(record: bytes, index: int, path: list[str], size: int, root: bytes) -> None:
    leaf = hashlib.sha256(b"\x00" + record).digest()
    require(
        root_of(leaf, index, size, list(map(decode, path))) == root,
        "the record and its inclusion proof do not lead to the signed root",
    )


def check(record: bytes, proof: str, options: argparse.Namespace) -> str:
    head, note = proof.split("\n\n", 1)
    first, *lines = head.split("\n")
    require(first == "c2sp.org/tlog-proof@v1", "the proof is not a c2sp.org/tlog-proof@v1")
    extra = decode(lines.pop(0).removeprefix("extra ")) if lines[0].startswith("extra ") else b""
    index = int(lines.pop(0).removeprefix("index "))
    origin, size, root = head_of(note, options.line)
    require_in(record, index, lines, size, root)
    told = json.loads(record)
    require(told["seq"] == index, "the record names another index in the log")
    proved = f"verified: record {index} of {size} in {origin} is this {told['kind']} of {told.get('id')}"
    if told["kind"] in ("admission", "rejection"):
        asked = {name: told.get(name, (told.get("attribution") or {}).get(name)) for name in WHO}
        proved += f"\nrecorded: {json.dumps({name: value for name, value in asked.items() if value})}"
    fields = {"admission": "request", "rejection": "request", "completion": "response"}
    field = fields.get(told["kind"], "body")
    file = options.body or getattr(options, field)
    if file:
        require(extra.startswith(b"proofgate/v1/salt\0"), "the proof has no salt, because it was erased")
        body = f"proofgate/v1/{field}\0".encode() + hashlib.sha256(file.read_bytes()).digest()
        require(field in told, f"a record of the kind {told['kind']} has no commitment to a body")
        opens = hmac.compare_digest(hmac.digest(extra[18:], body, "sha256"), decode(told[field]))
        require(opens, f"the file is not the {field} that was recorded")
        proved += f"\nverified: {file} is its {field}, byte for byte"
    return proved


def check_export(path: Path, options: argparse.Namespace) -> list[str]:  # docs/how-to/query-and-export.md
    with tarfile.open(path) as tar:
        opened = ((file.name, tar.extractfile(file)) for file in tar if file.isreg())
        files = {name: content.read() for name, content in opened if content}
    names = ("manifest.json", "exchanges.jsonl", "exchanges.csv")
    require(all(name in files for name in names), f"this is not an export: it needs {', '.join(names)}")
    manifest = json.loads(files["manifest.json"])
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in names}
    for name in names[1:]:
        require(digests[name] == manifest["files"][name]["sha256"], f"{name} does not match the manifest")
    proved = []
    if options.signer:
        text, _, signatures = files.get("manifest.note", b"").decode().rpartition("\n\n")
        name = options.signer.split("+")[0]
        require(
            text == f"proofgate/v1/export\nsha256 {digests['manifest.json']}"
            and signs(name, options.signer, text, signatures),
            f"{name} did not sign this export",
        )
        proved = [f"verified: {name} made this export"]
    line = line_of(options.key, options.known + manifest.get("key_successions", []))
    heads = {head[0]: head for head in (head_of(log["checkpoint"], line) for log in manifest["logs"])}
    entries = [json.loads(text) for text in files["exchanges.jsonl"].splitlines()]
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    asked, begins, open_ones = [], set(), 0
    for entry in entries:
        told = [json.loads(record["record"]) for record in entry["records"]]
        for one, record in zip(told, entry["records"], strict=True):
            require(record["origin"] in heads, f"there is no checkpoint of {record['origin']}")
            require_in(record["record"].encode(), record["index"], record["path"], *heads[record["origin"]][1:])
            require(one["seq"] == record["index"], "a record names another index in the log")
            require(one["id"] == entry["id"], f"a record of {one['id']} is among those of {entry['id']}")
        places = [(record["origin"], record["index"]) for record in entry["records"]]
        require(places == sorted(set(places)), f"{entry['id']} has a record twice, or has records in the wrong order")
        first = told[0]["kind"] if told else ""
        require(first in ("admission", "rejection"), f"{entry['id']} lacks the record that began it")
        require(places[0] not in begins, f"{entry['id']} appears twice")
        begins.add(places[0])
        if not entry.get("neighbour"):
            key = told[0].get("key", told[0].get("counted"))
            asked.append([entry["id"], told[0]["tenant"] or "", key or "", told[0].get("key_name", "")])
        ends = [one for one in told if one["kind"] in ("completion", "aborted", "rejection")]
        attempts = 1 + sum(one["kind"] == "attempt" for one in told)
        whole = ends and (ends[0]["kind"] != "completion" or ends[0].get("attempts", 1) == attempts)
        open_ones += not whole and not entry.get("neighbour")
        if told[0].get("tenant_seq"):
            of = numbers[told[0]["tenant"], entry["records"][0]["origin"]]
            require(told[0]["tenant_seq"] not in of, f"{entry['id']} appears twice")
            of.add(told[0]["tenant_seq"])
    records = sum(len(entry["records"]) for entry in entries)
    claimed = (manifest["exchanges"], manifest["records"])
    require(claimed == (len(asked), records), f"the manifest claims {claimed[0]} exchanges with {claimed[1]} records")
    rows = csv.DictReader(io.StringIO(files["exchanges.csv"].decode(), newline=""))
    listed = [[row["id"], row["tenant"], row["key"], row.get("key_name")] for row in rows]
    named = manifest["v"] > 4  # earlier versions have no such column
    require(listed == [[*one[:3], one[3] if named else None] for one in asked], "exchanges.csv lists other exchanges")
    name = options.key.split("+")[0]
    proved += [f"verified: {len(asked)} exchanges with {records} records are in the logs of {name}"]
    proved += ["verified: exchanges.csv lists these exchanges with their keys; its other columns were not compared"]
    if "tenant" in manifest["filter"] and manifest["filter"].keys() <= {"tenant", "since", "until"}:
        for (tenant, origin), of in sorted(numbers.items()):
            missing = sorted(set(range(min(of), max(of))) - of)
            require(not missing, f"request {missing[:1]} of {tenant} in {origin} is missing")
            proved += [f"verified: no request of {tenant} is missing in {origin} from number {min(of)} to {max(of)}"]
    else:
        proved += ["not shown: that no exchange is missing; only an export of one tenant shows that"]
    proved += [] if options.signer else ["not shown: who made the export; give --signer"]
    return proved + ([f"not shown: an attempt, or the end, of {open_ones} exchanges"] if open_ones else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proof", type=Path, help="a .tlog-proof file; without --record, a receipt or an export")
    parser.add_argument(
        "--key",
        required=True,
        help="the ledger's verifying key, or a file with it and with any statements of key succession after it",
    )
    parser.add_argument("--signer", help="of an export: the key that must have signed it, or a file with it")
    for name in ("record", "body", "request", "response"):
        parser.add_argument(f"--{name}", type=Path)
    options = parser.parse_args()
    given = options.key if "+" in options.key else Path(options.key).read_text()
    if options.signer and "+" not in options.signer:
        options.signer = Path(options.signer).read_text().strip()
    options.key, *known = f"{given.strip()}\n".split(f"\n{SUCCESSION}\n")
    options.key = options.key.strip()
    options.known = [f"{SUCCESSION}\n{statement.strip()}\n" for statement in known]
    if not options.record and tarfile.is_tarfile(options.proof):
        print(*check_export(options.proof, options), sep="\n")
        return
    text = options.proof.read_text()
    one = [{"record": options.record.read_bytes().decode(), "proof": text}] if options.record else []
    successions = [] if one else json.loads(text).get("key_successions", [])
    options.line = line_of(options.key, options.known + successions)
    entries = one or json.loads(text)["records"]
    told = [json.loads(entry["record"]) for entry in entries]
    require(len({record.get("id") for record in told}) == 1, "the records belong to several exchanges")
    kinds = {record["kind"] for record in told}
    recorded = kinds & {"admission", "rejection"} or not options.request, "completion" in kinds or not options.response
    require(all(recorded), "the receipt has no record of such a body")
    require(len({entry["record"] for entry in entries}) == len(entries), "the receipt has a record twice")
    print(*[check(entry["record"].encode(), entry["proof"], options) for entry in entries], sep="\n")
    counted = next((record.get("attempts", 1) for record in told if record["kind"] == "completion"), 0)
    missing = counted - 1 - sum(record["kind"] == "attempt" for record in told)
    if not one and counted and missing:
        print(f"not shown: {missing} of {counted} attempts; the receipt lacks their records")
    if not one and not kinds & {"completion", "rejection"}:
        print("not shown: how the exchange ended, and whether there were more attempts")


if __name__ == "__main__":
    main()
