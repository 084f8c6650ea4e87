"""The start and end of a body: Content-Length, Transfer-Encoding, both in one request, chunks and trailers."""

from __future__ import annotations

from e2e.framing.specification.notation import AUTH, HEAD, Cases, Text


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
