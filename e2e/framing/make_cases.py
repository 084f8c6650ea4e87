#!/usr/bin/env python3
"""Writes cases.json: every framing case that the front door is held to, byte for byte.

A row of the specification becomes one case per body: a 31-byte text ("text") and an OpenAI chat request
("chat"). `raw` holds one byte per character (Latin-1). `--check` fails when cases.json is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Literal, NamedTuple, TypedDict

HERE = Path(__file__).parent
CLIENTS = HERE / "clients"

# The probe replaces this by a real key; it is part of no body, so no length changes with it.
KEY = "proofgate-framing-key"
BODIES = {
    "text": "exactly thirty-one bytes of it.",
    "chat": '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Say hello."}],"max_tokens":8}',
}

Expect = Literal["accept", "drop"] | int


class Case(TypedDict, total=False):
    """One message. `expect` is "accept", the status of the refusal, or "drop": cut short, never answered 2xx.

    `body` is what an accepted message carries, `target` what it asks for after rewriting. `probe` marks the
    26 rows of the published comparison of servers, `closes` an accepted message that asks to be the last.
    """

    id: str
    row: str
    raw: str
    expect: Expect
    probe: bool
    body: str
    target: str
    closes: bool


class Text(NamedTuple):
    """The notation of the specification, for one body."""

    name: str
    body: str

    @property
    def n(self) -> int:
        return len(self.body)

    @property
    def size(self) -> str:
        return f"{self.n:x}"

    @property
    def chunked(self) -> str:
        return f"{self.size}\r\n{self.body}\r\n0\r\n\r\n"


AUTH = f"Authorization: Bearer {KEY}\r\n"
LINE = "POST /v1/chat/completions HTTP/1.1\r\n"
HEAD = f"{LINE}Host: gw\r\n{AUTH}Content-Type: application/json\r\n"


class Cases:
    """Collects cases; a case whose bytes do not depend on the body is written once."""

    def __init__(self) -> None:
        self.all: list[Case] = []
        self.text = Text("", "")

    def add(self, name: str, row: str, raw: str, expect: Expect, *, probe: bool = False, **more: str | bool) -> None:
        case = Case(id=name, row=row, raw=raw, expect=expect, probe=probe)
        case.update(more)  # type: ignore[typeddict-item]
        if any(known["raw"] == raw for known in self.all):
            return
        if any(known["id"] == name for known in self.all):
            case["id"] = f"{name}_{self.text.name}"
        self.all.append(case)

    def accept(self, name: str, row: str, raw: str, **more: str | bool) -> None:
        more.setdefault("body", self.text.body)
        more.setdefault("target", "/v1/chat/completions")
        self.add(name, row, raw, "accept", **more)  # type: ignore[arg-type]

    def body_head(self, name: str, row: str, fields: str, expect: Expect = 400, *, probe: bool = False) -> None:
        """A refused POST whose body is sent with its true length in bytes."""
        self.add(name, row, f"{HEAD}{fields}\r\n{self.text.body}", expect, probe=probe)

    def chunk_head(self, name: str, row: str, fields: str, expect: Expect = 400, *, probe: bool = False) -> None:
        """A refused POST whose body is sent as valid chunks."""
        self.add(name, row, f"{HEAD}{fields}\r\n{self.text.chunked}", expect, probe=probe)

    def chunks(self, name: str, row: str, chunks: str, expect: Expect = 400, *, probe: bool = False) -> None:
        """A refused chunked body after a valid head."""
        self.add(name, row, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{chunks}", expect, probe=probe)


def baseline(cases: Cases, t: Text) -> None:
    length = f"Content-Length: {t.n}\r\n"
    cases.accept("length_body", "length body", f"{HEAD}{length}\r\n{t.body}", probe=True)
    cases.accept("chunked_body", "chunked body", f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{t.chunked}", probe=True)
    row = "coding in other case"
    cases.accept("coding_in_other_case", row, f"{HEAD}transfer-encoding: Chunked\r\n\r\n{t.chunked}")
    half = t.n // 2
    two = f"{half:X}\r\n{t.body[:half]}\r\n{t.n - half:x}\r\n{t.body[half:]}\r\n0\r\n\r\n"
    cases.accept("two_chunks", "chunked body", f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{two}")
    zeros = f"{t.n:016x}\r\n{t.body}\r\n000\r\n\r\n"
    cases.accept("sixteen_digit_chunk_size", "chunked body", f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{zeros}")
    row = "value without optional space"
    cases.accept("tight_values", row, f"{HEAD}Content-Length:{t.n}\r\nX-A:\r\n\r\n{t.body}")
    row = "value with optional space"
    cases.accept("spaced_values", row, f"{HEAD}Content-Length:   {t.n}  \r\nX-A: \t1\t \r\n\r\n{t.body}")
    row = "obs-text and tab in value"
    cases.accept("obs_text_in_value", row, f"{HEAD}X-A: caf\xe9\tau lait\r\n{length}\r\n{t.body}")
    row = "ordinary value that mentions framing"
    quote = "X-A: Transfer-Encoding: chunked, Content-Length: 1\r\n"
    cases.accept("value_mentions_framing", row, f"{HEAD}{quote}{length}\r\n{t.body}")
    cases.accept("close_option", "Connection: close", f"{HEAD}Connection: close\r\n{length}\r\n{t.body}", closes=True)
    row = "Connection: keep-alive, TE"
    cases.accept("harmless_options", row, f"{HEAD}Connection: keep-alive, TE\r\nTE: trailers\r\n{length}\r\n{t.body}")
    get = f"GET /v1/models HTTP/1.1\r\nHost: gw\r\n{AUTH}"
    cases.accept("get", "GET without body", f"{get}\r\n", body="", target="/v1/models")
    cases.accept(
        "get_length_zero",
        "GET with length 0",
        f"{get}Content-Length: 0\r\n\r\n",
        body="",
        target="/v1/models",
    )
    cases.accept(
        "target_with_query",
        "query",
        f"{get}\r\n".replace("models", "models?limit=2&a=%20b/?"),
        body="",
        target="/v1/models?limit=2&a=%20b/?",
    )

    methods(cases, t, get)
    spaces = "X-A: 1\r\n" * 56
    cases.accept("most_headers", "head bytes, header count", f"{HEAD}{spaces}{length}\r\n{t.body}")
    large = f"X-A: {'a' * 15000}\r\n"
    cases.accept("large_head", "head bytes, header count", f"{HEAD}{large}{length}\r\n{t.body}")
    target = "/v1/" + "a" * 8188
    cases.accept(
        "longest_target", "target too long", f"{get}\r\n".replace("/v1/models", target), body="", target=target
    )


def methods(cases: Cases, t: Text, get: str) -> None:
    """Every method is a well-framed request; what it is good for is the application's to say."""
    row = "method"
    cases.accept("head", row, f"{get}\r\n".replace("GET", "HEAD"), body="", target="/v1/models")
    origin = "Host: gw\r\nOrigin: https://app.example\r\n"
    preflight = f"{origin}Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n"
    options = f"OPTIONS /v1/chat/completions HTTP/1.1\r\n{preflight}\r\n"
    cases.accept("options", row, options, body="")
    cases.accept(
        "get_from_browser", row, f"GET /v1/models HTTP/1.1\r\n{origin}{AUTH}\r\n", body="", target="/v1/models"
    )
    cases.accept("delete", row, f"{get}\r\n".replace("GET", "DELETE"), body="", target="/v1/models")
    cases.accept("method_in_other_case", row, f"{get}\r\n".replace("GET", "get"), body="", target="/v1/models")
    cases.accept(
        "method_any_token", row, f"{get}\r\n".replace("GET", "A!#$%&'*+-.^_`|~9"), body="", target="/v1/models"
    )
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
        head = HEAD.replace("POST", method)
        name = method.lower()
        cases.accept(f"length_on_{name}", row, f"{head}Content-Length: {t.n}\r\n\r\n{t.body}")
        cases.accept(f"coding_on_{name}", row, f"{head}Transfer-Encoding: chunked\r\n\r\n{t.chunked}")


def length_against_coding(cases: Cases, t: Text) -> None:
    length, coding = f"Content-Length: {t.n}\r\n", "Transfer-Encoding: chunked\r\n"
    row = "both, either order"
    cases.chunk_head("length_then_coding", row, length + coding, probe=True)
    cases.chunk_head("coding_then_length", row, coding + length)
    cases.body_head(
        "two_lengths_different",
        "two lengths, different",
        f"{length}Content-Length: {t.n - 1}\r\n",
        probe=True,
    )
    cases.body_head("two_lengths_equal", "two lengths, equal", length + length, probe=True)
    cases.body_head("length_list", "list", f"Content-Length: {t.n}, {t.n}\r\n", probe=True)
    cases.body_head("length_sign", "sign", f"Content-Length: +{t.n}\r\n", probe=True)
    cases.body_head("length_hex", "hex", f"Content-Length: 0x{t.size}\r\n", probe=True)
    cases.body_head("length_leading_zeros", "leading zeros", f"Content-Length: 00{t.n}\r\n", probe=True)
    cases.body_head("length_one_leading_zero", "leading zeros", f"Content-Length: 0{t.n}\r\n")
    cases.add("length_double_zero", "leading zeros", f"{HEAD}Content-Length: 00\r\n\r\n", 400)
    row = "empty, negative, overflow, inner space"
    cases.body_head("length_empty", row, "Content-Length: \r\n")
    cases.body_head("length_negative", row, "Content-Length: -1\r\n")
    cases.body_head("length_overflow", row, f"Content-Length: {'9' * 30}\r\n")
    cases.body_head("length_wraps_64_bits", row, f"Content-Length: {2**64 + t.n}\r\n")
    cases.body_head("length_inner_space", row, "Content-Length: 1 2\r\n")
    cases.body_head("length_underscore", row, f"Content-Length: {t.n}_\r\n")
    cases.body_head("length_inner_tab", row, "Content-Length: 3\t1\r\n")
    cases.body_head("length_decimal_point", row, f"Content-Length: {t.n}.0\r\n")
    cases.body_head("length_exponent", row, "Content-Length: 1e1\r\n")
    cases.body_head("length_quoted", row, f'Content-Length: "{t.n}"\r\n')
    cases.body_head("length_parameter", row, f"Content-Length: {t.n};q=1\r\n")
    cases.body_head("length_obs_text", row, f"Content-Length: {t.n}\xa0\r\n")
    cases.body_head("length_trailing_comma", "list", f"Content-Length: {t.n},\r\n")
    cases.body_head("length_leading_comma", "list", f"Content-Length: ,{t.n}\r\n")
    row = "on GET or HEAD"
    for method in ("GET", "HEAD", "TRACE"):
        head = f"{method} / HTTP/1.1\r\nHost: gw\r\n{AUTH}"
        cases.add(f"length_on_{method.lower()}", row, f"{head}Content-Length: 5\r\n\r\nhello", 400)
        cases.add(f"coding_on_{method.lower()}", row, f"{head}{coding}\r\n{t.chunked}", 400)


def transfer_encoding(cases: Cases, t: Text) -> None:
    coding = "Transfer-Encoding: chunked\r\n"
    cases.chunk_head("unknown_coding", "unknown coding", "Transfer-Encoding: xchunked\r\n", probe=True)
    cases.chunk_head("chunked_not_last", "chunked not last", "Transfer-Encoding: chunked, identity\r\n", probe=True)
    cases.chunk_head("coding_twice", "twice", coding + coding, probe=True)
    cases.chunk_head("coding_vertical_tab", "vertical tab", "Transfer-Encoding: \x0bchunked\r\n", probe=True)
    cases.chunk_head("coding_folded", "folded", "Transfer-Encoding:\r\n chunked\r\n", probe=True)
    row = "other coding first, parameter, empty"
    for name, value in {
        "gzip_first": "gzip, chunked",
        "identity_alone": "identity",
        "identity_first": "identity, chunked",
        "parameter": "chunked;q=1",
        "empty": "",
        "chunked_twice_in_list": "chunked, chunked",
        "trailing_comma": "chunked,",
        "leading_comma": ",chunked",
        "quoted": '"chunked"',
        "words": "cow chunked bar",
        "prefix": "chunk",
        "obs_text": "\xffchunked",
        "nul": "chunked\x00",
    }.items():
        cases.chunk_head(f"coding_{name}", row, f"Transfer-Encoding: {value}\r\n")
    cases.chunk_head("coding_two_lines", "twice", "Transfer-Encoding: identity\r\n" + coding)
    old = HEAD.replace("HTTP/1.1", "HTTP/1.0")
    cases.add("coding_on_http_1_0", "on HTTP/1.0", f"{old}{coding}\r\n{t.chunked}", 400, probe=True)
    row = "coding with optional space"
    for name, value in {"spaced": "  chunked  ", "tight": "chunked"}.items():
        cases.accept(f"coding_{name}", row, f"{HEAD}Transfer-Encoding:{value}\r\n\r\n{t.chunked}")
    row = "tab in a framing field"
    for name, value in {"tab_before": "\tchunked", "tab_after": " chunked\t", "space_tab_after": " chunked \t"}.items():
        cases.chunk_head(f"coding_{name}", row, f"Transfer-Encoding:{value}\r\n")
    for name, value in {"tab_before": f"\t{t.n}", "tab_after": f" {t.n}\t"}.items():
        cases.body_head(f"length_{name}", row, f"Content-Length:{value}\r\n")
    length = f"Content-Length: {t.n}\r\n"
    cases.body_head("connection_tab", row, f"{length}Connection: close\t\r\n")
    cases.body_head("connection_inner_tab", row, f"{length}Connection: TE,\tclose\r\n")
    cases.body_head("expect_tab", row, f"{length}Expect:\t100-continue\r\n")
    row = "name that imitates a framing field"
    cases.chunk_head("coding_dot", row, "Transfer.Encoding: chunked\r\n")
    cases.chunk_head("coding_underscore", row, "Transfer_Encoding: chunked\r\n")
    cases.body_head("length_underscore_name", row, f"Content_Length: {t.n}\r\n")


def chunks(cases: Cases, t: Text) -> None:
    end, n = "\r\n0\r\n\r\n", t.size
    cases.chunks("chunk_0x_size", "0x size", f"0x{n}\r\n{t.body}{end}", probe=True)
    cases.chunks("chunk_underscore", "underscore", f"{n}_\r\n{t.body}{end}", probe=True)
    cases.chunks("chunk_extension_lf", "extension, LF only", f"{n};a\n{t.body}{end}", probe=True)
    cases.chunks("chunk_data_not_closed", "data not closed by CRLF", f"{n}\r\n{t.body}XX0\r\n\r\n", probe=True)
    cases.chunks("chunk_data_closed_by_lf", "data not closed by CRLF", f"{n}\r\n{t.body}\n0\r\n\r\n")
    row = "size over 16 digits, empty, signed, spaced"
    cases.chunks("chunk_size_17_digits", row, f"{t.n:017x}\r\n{t.body}{end}")
    cases.chunks("chunk_size_wraps", row, f"1{t.n:016x}\r\n{t.body}{end}")
    cases.chunks("chunk_size_empty", row, f"\r\n{t.body}{end}")
    cases.chunks("chunk_size_plus", row, f"+{n}\r\n{t.body}{end}")
    cases.chunks("chunk_size_minus", row, f"-{n}\r\n{t.body}{end}")
    cases.chunks("chunk_size_space_after", row, f"{n} \r\n{t.body}{end}")
    cases.chunks("chunk_size_space_before", row, f" {n}\r\n{t.body}{end}")
    cases.chunks("chunk_size_tab_after", row, f"{n}\t\r\n{t.body}{end}")
    cases.chunks("chunk_size_lf", row, f"{n}\n{t.body}{end}")
    cases.chunks("chunk_size_cr", row, f"{n}\r{t.body}{end}")
    cases.chunks("chunk_size_not_hex", row, f"{n}g\r\n{t.body}{end}")
    cases.chunks("last_chunk_lf", row, f"{n}\r\n{t.body}\r\n0\n\n")
    cases.chunks("last_chunk_end_lf", row, f"{n}\r\n{t.body}\r\n0\r\n\n")
    cases.chunks("chunk_extension", "extension", f"{n};a=b\r\n{t.body}{end}")
    cases.chunks("last_chunk_extension", "extension", f"{n}\r\n{t.body}\r\n0;a=b\r\n\r\n")
    start = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{n}\r\n{t.body}\r\n0\r\n"
    cases.accept("trailer", "trailer", f"{start}X-A: 1\r\n\r\n")
    cases.accept("two_trailers", "trailer", f"{start}X-A: caf\xe9\tau lait\r\nX-B:\r\n\r\n")
    cases.add("too_many_trailers", "trailer", start + "X-A: 1\r\n" * 65 + "\r\n", 431)
    cases.add("trailers_too_large", "trailer", f"{start}X-A: {'a' * 16384}\r\n\r\n", 431)
    row = "trailer with bad syntax"
    for name, line in {
        "space_before_colon": "X-A : 1\r\n",
        "folded": "X-A: 1\r\n b\r\n",
        "without_colon": "X-A\r\n",
        "lf": "X-A: 1\n",
        "bare_cr": "X-A: 1\r2\r\n",
        "nul": "X-A: \x00\r\n",
        "length": f"Content-Length: {t.n}\r\n",
        "coding": "Transfer-Encoding: chunked\r\n",
        "authorization": "Authorization: Bearer other\r\n",
        "host": "Host: evil\r\n",
        "imitated_length": f"Content_Length: {t.n}\r\n",
        "connection": "Connection: close\r\n",
        "trailer": "Trailer: X-B\r\n",
        "imitated_proxy_authorization": "Proxy_Authorization: Basic eDp5\r\n",
        "empty_name": ": 1\r\n",
        "control_byte": "X-A: \x01\r\n",
    }.items():
        cases.add(f"trailer_{name}", row, f"{start}{line}\r\n", 400)
    cases.chunks("chunks_cut_short", "cut short", f"{n}\r\n{t.body}", "drop")
    cases.chunks("chunk_data_cut_short", "cut short", f"{n}\r\n{t.body[:-9]}", "drop")
    cases.add("length_cut_short", "cut short", f"{HEAD}Content-Length: {t.n}\r\n\r\n{t.body[:-9]}", "drop")
    cases.add("head_cut_short", "cut short", f"{HEAD}Content-Length: {t.n}\r\n", "drop")


def lines(cases: Cases, t: Text) -> None:
    length = f"Content-Length: {t.n}\r\n"
    tail = f"{length}\r\n{t.body}"
    cases.add("bare_lf", "bare LF", f"{HEAD}{length}\r\n".replace("\r\n", "\n") + t.body, 400, probe=True)
    cases.add("bare_lf_one_line", "bare LF", f"{HEAD}X-A: 1\n{tail}", 400)
    cases.add("bare_lf_start_line", "bare LF", (HEAD + tail).replace("\r\n", "\n", 1), 400)
    cases.add("bare_lf_empty_line", "bare LF", f"{HEAD}{length}\n{t.body}", 400)
    cases.add("bare_cr", "bare CR in value", f"{HEAD}X-A: a\rb\r\n{tail}", 400, probe=True)
    cases.add("bare_cr_hides_coding", "bare CR in value", f"{HEAD}X-A: a\rTransfer-Encoding: chunked\r\n{tail}", 400)
    cases.add("bare_cr_before_crlf", "bare CR in value", f"{HEAD}X-A: a\r\r\n{tail}", 400)
    cases.add("bare_lf_hides_coding", "bare LF", f"{HEAD}X-A: a\nTransfer-Encoding: chunked\r\n{tail}", 400)
    cases.add("nul", "NUL in value", f"{HEAD}X-A: a\x00b\r\n{tail}", 400, probe=True)
    row = "space before colon"
    cases.add("space_before_colon", row, f"{HEAD}Content-Length : {t.n}\r\n\r\n{t.body}", 400, probe=True)
    cases.add("tab_before_colon", row, f"{HEAD}Content-Length\t: {t.n}\r\n\r\n{t.body}", 400)
    row = "other control byte in value"
    for name, byte in {
        "soh": "\x01",
        "vertical_tab": "\x0b",
        "form_feed": "\x0c",
        "escape": "\x1b",
        "del": "\x7f",
    }.items():
        cases.add(f"{name}_in_value", row, f"{HEAD}X-A: a{byte}b\r\n{tail}", 400)
    row = "folded line, any header"
    cases.add("folded_line", row, f"{HEAD}X-A: a\r\n b\r\n{tail}", 400)
    cases.add("folded_line_tab", row, f"{HEAD}X-A: a\r\n\tb\r\n{tail}", 400)
    cases.add("folded_first_line", row, (HEAD + tail).replace("\r\nHost", "\r\n Host"), 400)
    row = "name not a token, or empty"
    for name, line in {
        "parenthesis": "X(A): 1",
        "empty": ": 1",
        "leading_space": " X: 1",
        "inner_space": "X A: 1",
        "obs_text": "X\xe9: 1",
        "slash": "X/A: 1",
        "quote": '"X": 1',
        "without_colon": "X-A",
        "nul": "X\x00A: 1",
    }.items():
        cases.add(f"name_{name}", row, f"{HEAD}{line}\r\n{tail}", 400)
    cases.add("empty_line_first", "empty line before the request", f"\r\n{HEAD}{tail}", 400)
    cases.add("lf_first", "empty line before the request", f"\n{HEAD}{tail}", 400)
    cases.add("two_empty_lines_first", "empty line before the request", f"\r\n\r\n{HEAD}{tail}", 400)
    cases.add("cr_first", "empty line before the request", f"\r{HEAD}{tail}", 400)
    for name, byte in {"space": " ", "tab": "\t", "nul": "\x00", "bom": "\xef\xbb\xbf"}.items():
        cases.add(f"{name}_first", "byte before the request", f"{byte}{HEAD}{tail}", 400)


def target_host_version(cases: Cases, t: Text) -> None:
    tail = f"{AUTH}Content-Type: application/json\r\nContent-Length: {t.n}\r\n\r\n{t.body}"

    def request(line: str, host: str = "Host: gw\r\n") -> str:
        return f"{line}\r\n{host}{tail}"

    post = "POST /v1/chat/completions HTTP/1.1"
    cases.add("two_hosts", "two Hosts", request(post, "Host: x\r\nHost: y\r\n"), 400, probe=True)
    cases.add("two_hosts_equal", "two Hosts", request(post, "Host: gw\r\nHost: gw\r\n"), 400)
    cases.add("no_host", "no Host", request(post, ""), 400, probe=True)
    row = "absolute target contradicts Host"
    cases.add("absolute_contradicts_host", row, request("POST http://evil/ HTTP/1.1"), 400, probe=True)
    cases.add("absolute_other_port", row, request("POST http://gw:81/v1/models HTTP/1.1"), 400)
    cases.add("absolute_without_host", row, request("POST http://gw/v1/models HTTP/1.1", ""), 400)
    row = "absolute target equal to Host"
    for name, url in {"": "http://gw", "_other_case": "HTTP://GW", "_default_port": "http://gw:80"}.items():
        raw = request(f"POST {url}/v1/models HTTP/1.1")
        cases.accept(f"absolute_equals_host{name}", row, raw, target="/v1/models")
    row = "Host list, user info, bad byte"
    for name, host in {
        "list": "a, b",
        "comma": "gw,gw",
        "user_info": "u@gw",
        "space": "g w",
        "empty": "",
        "tab": "g\tw",
        "tab_before": "\tgw",
        "tab_after": "gw\t",
        "only_dot": ".",
        "first_dot": ".gw",
        "two_dots": "gw..example",
        "slash": "gw/x",
        "obs_text": "g\xe9",
        "bad_port": "gw:8x",
        "large_port": "gw:65536",
        "empty_port": "gw:",
        "only_port": ":80",
        "two_ports": "gw:80:80",
        "open_bracket": "[::1",
        "bad_address": "[::g]",
        "bad_escape": "g%zz",
        "escape": "g%77",
        "sub_delims": "g!$&'()*+;=w",
        "tilde": "~gw",
        "query": "gw?x",
    }.items():
        cases.add(f"host_{name}", row, request(post, f"Host: {host}\r\n"), 400)
    for name, host in {
        "port": "gw:8080",
        "ipv4": "127.0.0.1:80",
        "ipv6": "[::1]:80",
        "name": "gw-1.team.example",
        "final_dot": "gw.example.",
        "underscore": "gw_1",
    }.items():
        cases.accept(f"host_{name}", "valid Host", request(post, f"Host: {host}\r\n"))
    row = "authority or asterisk form"
    cases.add("authority_form", row, request("POST gw:80 HTTP/1.1"), 400)
    cases.add("asterisk_form", row, request("POST * HTTP/1.1"), 400)
    cases.add("options_asterisk", row, f"OPTIONS * HTTP/1.1\r\nHost: gw\r\n{AUTH}\r\n", 400)
    cases.add("connect", row, f"CONNECT gw:80 HTTP/1.1\r\nHost: gw:80\r\n{AUTH}\r\n", 400)
    cases.add("relative_target", row, request("POST v1/models HTTP/1.1"), 400)
    cases.add("other_scheme", row, request("POST ftp://gw/ HTTP/1.1"), 400)
    cases.add("user_info_in_target", row, request("POST http://u@gw/ HTTP/1.1"), 400)
    row = "space, control or raw non-ASCII byte in target"
    for name, byte in {
        "space": " ",
        "tab": "\t",
        "nul": "\x00",
        "obs_text": "\xe9",
        "del": "\x7f",
        "fragment": "#",
    }.items():
        cases.add(f"target_{name}", row, request(f"POST /a{byte}b HTTP/1.1"), 400)
    row = "byte or escape in target that no URL holds"
    for name, text in {
        "quote": 'a"b',
        "angle": "a<b>",
        "backslash": "a\\b",
        "caret": "a^b",
        "backtick": "a`b",
        "brace": "{a}",
        "quote_in_query": 'a?b="c"',
        "angle_in_query": "a?<b>",
        "bad_escape": "a%zz",
        "short_escape": "a%4",
        "escape_at_end": "a?b=%",
        "nul_escape": "a%00b",
    }.items():
        cases.add(f"target_{name}", row, request(f"POST /{text} HTTP/1.1"), 400)
    row = "target as a browser sends it"
    for name, text in {
        "brackets": "/v1/models?include[]=a&b=c|d",
        "query_punctuation": "/v1/models?a={b}^`\\!$'()*+,;:@/?",
        "path_punctuation": "/v1/a;b=c,d/!$&'()*+:@~|[e]",
        "escapes": "/v1/%7e%2F/.././%2e?%41",
        "two_slashes": "//evil/v1/models",
    }.items():
        cases.accept(f"target_{name}", row, request(f"POST {text} HTTP/1.1"), target=text)
    cases.add("target_missing", row, request("POST HTTP/1.1"), 400)
    cases.add("two_spaces_before_target", row, request("POST  /a HTTP/1.1"), 400)
    cases.add("two_spaces_before_version", row, request("POST /a  HTTP/1.1"), 400)
    cases.add("tab_before_target", row, request("POST\t/a HTTP/1.1"), 400)
    cases.add("space_after_version", row, request("POST /a HTTP/1.1 "), 400)
    row = "method not a token"
    for name, method in {"not_a_token": "PO(ST", "empty": "", "colon": "POST:", "obs_text": "POST\xe9"}.items():
        cases.add(f"method_{name}", row, request(f"{method} /a HTTP/1.1"), 400)
    row = "HTTP/1.0, other versions"
    for version in (
        "HTTP/1.0",
        "HTTP/1.2",
        "http/1.1",
        "HTTP/2.0",
        "HTTP/0.9",
        "HTTP/1.10",
        "HTTP/01.1",
        "HTTP/1",
        "HTTPS/1.1",
        "HTTP/1.1x",
        "HTTP/1,1",
        "HTTP/+1.1",
        "HTTP/ 1.1",
    ):
        name = version.replace("HTTP", "version").replace("http", "version_lower")
        for byte, word in {"/": "_", ".": "_", ",": "_comma_", "+": "plus_", " ": "space_"}.items():
            name = name.replace(byte, word)
        cases.add(name, row, f"GET /v1/models {version}\r\nHost: gw\r\n{AUTH}\r\n", 400)
    cases.add("no_version", row, f"GET /v1/models\r\nHost: gw\r\n{AUTH}\r\n", 400)
    cases.add("version_0_9_line", row, "GET /v1/models\r\n\r\n", 400)
    cases.add("http_2_preface", row, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400)


def hops_expectations_limits(cases: Cases, t: Text) -> None:
    tail = f"Content-Length: {t.n}\r\n\r\n{t.body}"
    row = "Connection names a security header"
    for field in (
        "Authorization",
        "host",
        "Content-Length",
        "Transfer-Encoding",
        "X-Proofgate-Tenant",
        "X-Forwarded-For",
        "Expect",
        "Content-Type",
        "X-Api-Key",
    ):
        name = "connection_names_" + field.lower().replace("-", "_")
        cases.add(name, row, f"{HEAD}Connection: close, {field}\r\n{tail}", 400)
    row = "Connection contradicts itself"
    cases.add("close_then_keep_alive", row, f"{HEAD}Connection: close\r\nConnection: keep-alive\r\n{tail}", 400)
    cases.add("keep_alive_and_close", row, f"{HEAD}Connection: Keep-Alive, Close\r\n{tail}", 400)
    cases.add("connection_not_a_token", row, f"{HEAD}Connection: cl@se\r\n{tail}", 400)
    row = "two of a field that decides who asks"
    cases.add("two_authorizations", row, f"{HEAD}{AUTH}{tail}", 400)
    cases.add("two_content_types", row, f"{HEAD}Content-Type: text/plain\r\n{tail}", 400)
    row = "upgrade"
    cases.add("upgrade_h2c", row, f"{HEAD}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n{tail}", 400)
    cases.add("upgrade_without_option", row, f"{HEAD}Upgrade: h2c\r\n{tail}", 400)
    websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: cHJvb2ZnYXRlLWZyYW1pbg==\r\n"
    cases.add("upgrade_websocket", row, f"GET /v1/realtime HTTP/1.1\r\nHost: gw\r\n{AUTH}{websocket}{key}\r\n", 400)
    cases.accept("upgrade_option_alone", row, f"{HEAD}Connection: upgrade\r\n{tail}")
    cases.accept("expect_in_other_case", "expectation", f"{HEAD}expect: 100-Continue\r\n{tail}")
    cases.add("expectation_empty", "other expectation", f"{HEAD}Expect:\r\n{tail}", 417)
    cases.add("two_expectations", "other expectation", f"{HEAD}Expect: 100-continue\r\nExpect: x\r\n{tail}", 417)
    twice = "Expect: 100-continue\r\n" * 2
    cases.add("two_expectations_equal", "other expectation", f"{HEAD}{twice}{tail}", 417)
    cases.accept("expect_continue", "expectation", f"{HEAD}Expect: 100-continue\r\n{tail}")
    cases.add("other_expectation", "other expectation", f"{HEAD}Expect: x\r\n{tail}", 417)
    cases.add("expectation_list", "other expectation", f"{HEAD}Expect: 100-continue, x\r\n{tail}", 417)
    cases.add("head_too_large", "head bytes, header count", f"{HEAD}X-A: {'a' * 16384}\r\n{tail}", 431)
    many = "".join(f"X-{number}: 1\r\n" for number in range(64))
    cases.add("too_many_headers", "head bytes, header count", f"{HEAD}{many}{tail}", 431)
    long = "/v1/" + "a" * 8192
    cases.add("target_too_long", "target too long", f"GET {long} HTTP/1.1\r\nHost: gw\r\n{AUTH}\r\n", 414)
    row = "body over cap"
    cases.add("declared_too_large", row, f"{HEAD}Content-Length: 10485761\r\n\r\n{t.body}", 413)
    cases.chunks("chunk_too_large", row, f"a00001\r\n{t.body}", 413)
    cases.chunks("second_chunk_too_large", row, f"{t.size}\r\n{t.body}\r\na00000\r\n{t.body}", 413)


def clients(cases: Cases, t: Text) -> None:
    """What clients, and the proxies in front of a gateway, write; one head a file, with a chat request behind it."""
    if t.name != "chat":
        return
    for path in sorted(CLIENTS.glob("*.http")):
        head = path.read_text().replace("{key}", KEY).replace("{length}", str(t.n)).replace("\n", "\r\n") + "\r\n"
        target = head.split(" ")[1].removeprefix("http://gw:8080")
        body, sent = "", ""
        if "\r\ntransfer-encoding: chunked\r\n" in head.lower():
            body, sent = t.body, t.chunked
        elif "\r\ncontent-length: " in head.lower():
            body = sent = t.body
        closes = {"closes": True} if "\r\nConnection: close\r\n" in head else {}
        name = "client_" + path.stem.replace("-", "_")
        cases.accept(name, "a client's request", head + sent, body=body, target=target, **closes)


def build() -> str:
    cases = Cases()
    for name, body in BODIES.items():
        text = Text(name, body)
        cases.text = text
        for section in (
            baseline,
            length_against_coding,
            transfer_encoding,
            chunks,
            lines,
            target_host_version,
            hops_expectations_limits,
            clients,
        ):
            section(cases, text)
    head = {
        "about": "Generated by make_cases.py. `raw` and `body` hold one byte per character (Latin-1).",
        "key": KEY,
    }
    listed = ",\n".join(json.dumps(case) for case in cases.all)
    return json.dumps(head)[:-1] + ',\n"cases": [\n' + listed + "\n]}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether cases.json is fresh")
    arguments = parser.parse_args()
    path, text = HERE / "cases.json", build()
    if arguments.check:
        fresh = path.exists() and path.read_text() == text
        print("cases.json is fresh" if fresh else "cases.json is stale: run make_cases.py")
        return 0 if fresh else 1
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
