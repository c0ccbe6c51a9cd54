"""IIOP over TLS: which clients a server accepts, and which servers a client accepts.

    Orb(tls=Identity.load("alice.pem"))     both sides show certificates of members, TLS 1.3
    Orb(tls=context)                        an ssl.SSLContext of yours, for serving or for calling
    Orb(tls=Tls(serving, calling))          one for each

With an identity, a server accepts clients with a certificate of an authority that the identity trusts, and `caller()` tells a servant
which member calls. A client accepts a server if its certificate is that of the member that the reference names or, if a reference
names none, of the host. Contexts of yours decide for themselves.
"""

import ssl
import tempfile
import time
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from secrets import token_hex

from inga.keys.identity import Identity
from inga.model.errors import KeysError, UsageError
from inga.model.packet import Buffer

PIECE = 1 << 16
"""Octets that are decrypted at once."""

CALLER: ContextVar[str | None] = ContextVar("caller", default=None)


def caller() -> str | None:
    """Inside a servant: the member that calls, as its certificate says; None without TLS, or by a context of yours."""
    return CALLER.get()


class Tls:
    """How an Orb speaks TLS: a context to serve with and one to call with. Without one of them it does not do that."""

    def __init__(self, serving: ssl.SSLContext | None, calling: ssl.SSLContext | None) -> None:
        self.serving = serving
        self._calling = calling
        self._calling_members = calling
        self.identity: Identity | None = None

    @classmethod
    def of(cls, given: "Tls | Identity | ssl.SSLContext") -> "Tls":
        """The `Tls` that an argument `tls=` stands for."""
        if isinstance(given, Tls):
            return given
        if isinstance(given, Identity):
            return cls._of_identity(given)
        if not isinstance(given, ssl.SSLContext):
            raise UsageError(f"tls is an Identity, an ssl.SSLContext or a Tls, not {type(given).__name__}")
        if given.protocol == ssl.PROTOCOL_TLS_SERVER:
            return cls(given, None)
        return cls(None, given)

    @classmethod
    def _of_identity(cls, identity: Identity) -> "Tls":
        identity.check(time.time())  # so that an invalid one fails here, and not at our callers
        made = cls(_context(ssl.PROTOCOL_TLS_SERVER, identity), _context(ssl.PROTOCOL_TLS_CLIENT, identity))
        # `peer` compares the name of the member, after the handshake.
        made._calling_members = _context(ssl.PROTOCOL_TLS_CLIENT, identity)
        made._calling_members.check_hostname = False
        made.identity = identity
        return made

    @property
    def member(self) -> str | None:
        """Whose certificate we show."""
        return None if self.identity is None else self.identity.name

    def accept(self) -> "TlsChannel":
        """The server's end of TLS for a new connection of a client."""
        assert self.serving is not None
        return TlsChannel(self.serving)

    def context_for(self, member: str | None) -> ssl.SSLContext:
        """The context for calling a server that has to be this member or, if None, the host that it is reached by."""
        context = self._calling if member is None else self._calling_members
        assert context is not None, "whoever cannot call was told so"
        return context

    @property
    def calls(self) -> bool:
        """Whether we can call others."""
        return self._calling is not None

    def peer(self, shown: bytes | None, member: str | None = None) -> str | None:
        """The member that has shown this certificate; a KeysError if it is not `member`, or no trusted authority has signed this."""
        if self.identity is None:
            return None
        from inga.keys.certificates import check_certificate

        if shown is None:
            raise KeysError("unknown_authority", "no certificate was shown")
        return check_certificate(shown, self.identity.trusted, member, time.time()).name


class TlsChannel:
    """The server's end of TLS on one connection, without the connection: octets in, octets out.

    asyncio would do the handshake before the server learns of a connection, so that neither limits nor turns would apply to
    clients that are not authenticated yet.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_shaken = False
        """Whether the handshake is complete."""
        self.is_over = False
        """Whether the TLS session has ended: the peer has closed it, or it has failed."""

    @property
    def is_open(self) -> bool:
        """Whether data can be sent: the handshake is complete, and the session has not ended."""
        return self.is_shaken and not self.is_over

    def receive(self, data: Buffer) -> bytes:
        """Decrypt octets of the connection. An ssl.SSLError ends it; then, too, `outgoing` may have something to send."""
        self._incoming.write(data)
        found = []
        try:
            if not self.is_shaken:
                self._object.do_handshake()
                self.is_shaken = True
            while piece := self._object.read(PIECE):
                found.append(piece)
            self.is_over = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_over = True
        except ssl.SSLError:
            self.is_over = True
            raise
        return b"".join(found)

    def send(self, data: bytes) -> bytes:
        """Encrypt data; return the octets to send over the connection."""
        self._object.write(data)
        return self.outgoing()

    def outgoing(self) -> bytes:
        """The octets that TLS itself has to send."""
        return self._outgoing.read()

    def end(self) -> bytes:
        """Close the TLS session; return the last octets to send."""
        with suppress(ssl.SSLError):  # it expects the peer to close the session, too
            self._object.unwrap()
        return self.outgoing()

    def certificate(self) -> bytes | None:
        """The certificate that the peer has shown, in DER."""
        return self._object.getpeercert(binary_form=True)


def _context(kind: int, identity: Identity) -> ssl.SSLContext:
    from inga.keys.certificates import certificate_pem

    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if kind == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # No resumption: a client that reconnects shows its certificate again.
    context.load_verify_locations(cadata=b"".join(map(certificate_pem, identity.trusted)).decode("ascii"))
    # OpenSSL reads keys from files only: the private key is encrypted with a password, in a private directory that is soon deleted.
    with tempfile.TemporaryDirectory(prefix="inga-") as directory:
        own, key, password = Path(directory, "own"), Path(directory, "key"), token_hex()
        own.write_bytes(certificate_pem(identity.certificate))
        key.write_bytes(identity.private_pem(password.encode()))
        context.load_cert_chain(own, key, password)
    return context
