"""TLS: a certificate that is checked when it is loaded, and loaded again on SIGHUP."""

import logging
import ssl
from pathlib import Path
from typing import Any, NoReturn

from sameface.api.settings import Settings
from sameface.model.errors import CannotServe

log = logging.getLogger("sameface.tls")

EXPIRED = 10  # OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED


class Certificate:
    """The certificate that connections are answered with, and the context that a server listens with.

    `context` stays the same for as long as the server lives. It hands every handshake to the context that was
    loaded last, so that a reload changes certificate and key together, and open connections not at all.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate = certificate
        self.key = key
        self.names: tuple[str, ...] = ()
        self.context = self.loaded = self.load()
        self.context.sni_callback = self.choose

    def choose(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        """Called by OpenSSL at the start of every handshake, whether or not the client names a host."""
        connection.context = self.loaded

    def reload(self) -> None:
        """Load the files again; if they are no good, the certificate in use stays and an error is logged."""
        try:
            self.loaded = self.load()
        except CannotServe as error:
            log.error("the certificate in use stays: %s", error)
        else:
            log.info("the certificate was loaded again from %s", self.certificate)

    def load(self) -> ssl.SSLContext:
        """A context with the files as they are now; raises CannotServe if they cannot serve."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for file in (self.certificate, self.key):
            try:
                file.open("rb").close()  # OpenSSL would not say which of the two cannot be read
            except OSError as error:
                raise CannotServe(f"Cannot read {file} for TLS: {error.strerror}.") from error
        try:
            context.load_cert_chain(self.certificate, self.key, password=self.refuse_password)
        except ssl.SSLError as error:
            reason = "the key does not belong to the certificate"
            if error.reason != "KEY_VALUES_MISMATCH":
                reason = "both must be PEM files, the certificate's with its chain"
            raise CannotServe(f"No TLS with {self.certificate} and {self.key}: {reason}.") from error
        context.set_alpn_protocols(["http/1.1"])
        self.names = self.inspect(context)
        return context

    def refuse_password(self) -> NoReturn:
        """Called by OpenSSL, which would else ask at the terminal, for the password of the key."""
        raise CannotServe(
            f"The key {self.key} is encrypted. Decrypt it (`openssl pkey -in KEY -out DECRYPTED`), and let "
            "file modes protect it."
        )

    def inspect(self, context: ssl.SSLContext) -> tuple[str, ...]:
        """The names in the certificate, by a handshake with a client that trusts it; warns if it expired."""
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname = False
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        client.load_verify_locations(self.certificate)
        try:
            peer = shake_hands(context, client)
        except ssl.SSLCertVerificationError as error:
            problem = (
                "has expired" if error.verify_code == EXPIRED else f"is not good: {error.verify_message}"
            )
            log.warning("the certificate %s %s: clients will refuse it", self.certificate, problem)
            return ()
        names = [name for kind, name in peer.get("subjectAltName", ()) if kind in ("DNS", "IP Address")]
        return tuple(name for name in names if "*" not in name)


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, Any]:
    """Connect two contexts in memory; returns the server's certificate as the client sees it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    asking = client.wrap_bio(to_client, to_server)
    for side in (asking, answering, asking):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:  # the other side's turn
            continue
    return asking.getpeercert() or {}


def load_certificate(settings: Settings) -> Certificate | None:
    """The certificate of the settings; None without one, and CannotServe if only half of it is named."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate and key:
        return Certificate(certificate.expanduser(), key.expanduser())
    if certificate or key:
        raise CannotServe("TLS needs both: --tls-certificate, and its key, --tls-key.")
    return None
