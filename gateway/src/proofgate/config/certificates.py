"""Certificates: what providers are trusted by, and what the worker shows to clients."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import SecretStr

from proofgate.config.document import FieldPath
from proofgate.config.files import NamedFiles
from proofgate.config.problems import Findings
from proofgate.config.settings import Settings


@dataclass(frozen=True)
class Identity:
    """The certificate chain that clients see, and its key."""

    certificate_pem: str
    private_key_pem: SecretStr


def provider_cas(settings: Settings, files: NamedFiles, findings: Findings) -> dict[str, str]:
    """The certificates that replace the system's roots, by provider."""
    bundles = {}
    for position, provider in enumerate(settings.providers):
        if provider.ca_file is None:
            continue
        path: FieldPath = ("providers", position, "caFile")
        text = files.text(path, provider.ca_file)
        if text and not _holds_certificates(text):
            findings.report("config_bad_ca", path, f"{provider.ca_file} holds no PEM certificate")
        if not provider.base_url.startswith("https:"):
            findings.report("config_unused_ca", path, "baseURL is not https: remove caFile or use https")
        bundles[provider.name] = text
    return bundles


def identity(settings: Settings, files: NamedFiles, findings: Findings) -> Identity | None:
    """The worker's certificate and key, checked to belong together."""
    if settings.tls is None:
        return None
    known = len(findings.problems)
    certificate_path, key_path = ("tls", "certificateFile"), ("tls", "privateKeyFile")
    certificate = files.text(certificate_path, settings.tls.certificate_file)
    key = files.text(key_path, settings.tls.private_key_file)
    if len(findings.problems) == known:
        if not _holds_certificates(certificate):
            message = f"{settings.tls.certificate_file} holds no PEM certificate"
            findings.report("config_bad_certificate", certificate_path, message)
        if (problem := _key_problem(key)) is not None:
            findings.report("config_bad_private_key", key_path, f"{settings.tls.private_key_file} {problem}")
    if len(findings.problems) == known and (code := _pair_problem(certificate, key)) is not None:
        names = f"{settings.tls.private_key_file} and {settings.tls.certificate_file}"
        if code == "config_foreign_private_key":
            message = f"{names} do not belong together: use the key that the certificate was made for"
        else:
            message = f"{settings.tls.private_key_file} cannot be read as a PEM private key"
        findings.report(code, key_path, message)
    return Identity(certificate, SecretStr(key))


def _holds_certificates(text: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        return False
    return "-----BEGIN CERTIFICATE-----" in text


def _key_problem(text: str) -> str | None:
    if "PRIVATE KEY-----" not in text:
        return "holds no PEM private key"
    if "ENCRYPTED" in text:
        return "is encrypted: a worker has nobody to ask for the passphrase, so decrypt it"
    return None


def _pair_problem(certificate: str, key: str) -> str | None:
    """The code of what is wrong with the two together. OpenSSL's own words may describe the key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        with _in_memory(certificate) as certificate_file, _in_memory(key) as key_file:
            # A passphrase is given, because OpenSSL would ask the terminal for one.
            context.load_cert_chain(certificate_file, key_file, password="")
    except ssl.SSLError as error:
        return (
            "config_foreign_private_key"
            if error.reason == "KEY_VALUES_MISMATCH"
            else "config_bad_private_key"
        )
    return None


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A file that holds exactly the text that was read: the one on disk may be rotated at any time."""
    descriptor = os.memfd_create("proofgate-pem")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.write(text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
