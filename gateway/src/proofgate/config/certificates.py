"""Certificates to verify providers and clients, and certificates that the worker presents to them."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import SecretStr

from proofgate.config.document import FieldPath
from proofgate.config.files import ReferencedFiles
from proofgate.config.problems import Findings
from proofgate.config.settings import Settings


@dataclass(frozen=True)
class TlsIdentity:
    """A certificate chain that the worker presents, and its private key."""

    certificate_pem: str
    private_key_pem: SecretStr


def provider_cas(settings: Settings, files: ReferencedFiles, findings: Findings) -> dict[str, str | None]:
    """The certificates that replace the system's roots, by provider; None if they cannot be used.

    As with keys, only this provider is then unavailable. Nothing is sent to it, because the system's roots
    are no substitute.
    """
    bundles: dict[str, str | None] = {}
    for position, provider in enumerate(settings.providers):
        if provider.ca_file is None:
            continue
        path: FieldPath = ("providers", position, "caFile")
        known = len(findings.problems)
        text = files.read_text(path, provider.ca_file)
        if len(findings.problems) == known and not _contains_certificates(text):
            findings.report("config_bad_ca", path, f"{provider.ca_file} contains no PEM certificate")
        missing = findings.downgrade_to_warnings(known, f"requests for models of {provider.name} are refused")
        if not provider.base_url.startswith("https:"):
            findings.report("config_unused_ca", path, "baseURL is not https: remove caFile or use https")
        bundles[provider.name] = None if missing else text
    return bundles


def client_identities(
    settings: Settings, files: ReferencedFiles, findings: Findings
) -> dict[str, TlsIdentity | None]:
    """The client certificates and keys for providers that have some; None if they cannot be used."""
    found: dict[str, TlsIdentity | None] = {}
    for position, provider in enumerate(settings.providers):
        path: FieldPath = ("providers", position)
        certificate, key = provider.client_certificate_file, provider.client_key_file
        if certificate is None and key is None:
            continue
        if certificate is None or key is None:
            message = "set both of clientCertificateFile and clientKeyFile, or neither"
            findings.report("config_half_client_certificate", path, message)
            continue
        if not provider.base_url.startswith("https:"):
            message = "baseURL is not https: remove clientCertificateFile and clientKeyFile, or use https"
            findings.report("config_unused_client_certificate", (*path, "clientCertificateFile"), message)
        known = len(findings.problems)
        named = ((*path, "clientCertificateFile"), certificate), ((*path, "clientKeyFile"), key)
        read = _identity(*named, files, findings)
        missing = findings.downgrade_to_warnings(known, f"requests for models of {provider.name} are refused")
        found[provider.name] = None if missing else read
    return found


def identity(settings: Settings, files: ReferencedFiles, findings: Findings) -> TlsIdentity | None:
    """The worker's certificate and its private key, checked to match."""
    if settings.tls is None:
        return None
    return _identity(
        (("tls", "certificateFile"), settings.tls.certificate_file),
        (("tls", "privateKeyFile"), settings.tls.private_key_file),
        files,
        findings,
    )


def client_authorities(settings: Settings, files: ReferencedFiles, findings: Findings) -> str | None:
    """The CA certificates for client certificates; None if no client certificates are requested."""
    tls = settings.tls
    if tls is None:
        return None
    if tls.accept_plain and settings.proxy_protocol is None:
        message = "connections without TLS are served only behind a load balancer: set proxyProtocol"
        findings.report("config_plain_clients", ("tls", "acceptPlain"), message)
    if tls.client_ca_file is None:
        if tls.client_names:
            message = "set clientCaFile: without it, no client is asked for a certificate"
            findings.report("config_unused_client_names", ("tls", "clientNames"), message)
        return None
    path: FieldPath = ("tls", "clientCaFile")
    known = len(findings.problems)
    text = files.read_text(path, tls.client_ca_file)
    if len(findings.problems) == known and not _contains_certificates(text):
        findings.report("config_bad_ca", path, f"{tls.client_ca_file} contains no PEM certificate")
    return text


def _identity(
    certificate_at: tuple[FieldPath, str],
    key_at: tuple[FieldPath, str],
    files: ReferencedFiles,
    findings: Findings,
) -> TlsIdentity:
    """Reads a certificate and its key. Each is specified by the field that names its file, and the file's
    name."""
    known = len(findings.problems)
    (certificate_path, certificate_name), (key_path, key_name) = certificate_at, key_at
    certificate = files.read_text(certificate_path, certificate_name)
    key = files.read_text(key_path, key_name)
    if len(findings.problems) == known:
        if not _contains_certificates(certificate):
            message = f"{certificate_name} contains no PEM certificate"
            findings.report("config_bad_certificate", certificate_path, message)
        if (problem := _key_problem(key)) is not None:
            findings.report("config_bad_private_key", key_path, f"{key_name} {problem}")
    if len(findings.problems) == known and (code := _pair_problem(certificate, key)) is not None:
        if code == "config_foreign_private_key":
            names = f"{key_name} and {certificate_name}"
            message = f"{names} do not match: use the key of this certificate"
        else:
            message = f"{key_name} cannot be read as a PEM private key"
        findings.report(code, key_path, message)
    return TlsIdentity(certificate, SecretStr(key))


def _contains_certificates(text: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        return False
    return "-----BEGIN CERTIFICATE-----" in text


def _key_problem(text: str) -> str | None:
    if "PRIVATE KEY-----" not in text:
        return "contains no PEM private key"
    if "ENCRYPTED" in text:
        return "is encrypted: a worker cannot ask for the passphrase, so decrypt it"
    return None


def _pair_problem(certificate: str, key: str) -> str | None:
    """The code of a problem with the pair; None if there is none. OpenSSL's messages are not used, because
    they may describe the key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        with _memory_file(certificate) as certificate_file, _memory_file(key) as key_file:
            # Without a passphrase, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate_file, key_file, password="")
    except ssl.SSLError as error:
        return (
            "config_foreign_private_key"
            if error.reason == "KEY_VALUES_MISMATCH"
            else "config_bad_private_key"
        )
    return None


@contextlib.contextmanager
def _memory_file(text: str) -> Iterator[str]:
    """A file with exactly the text that was read, because the file on disk may be rotated at any time."""
    descriptor = os.memfd_create("proofgate-pem")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.write(text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
