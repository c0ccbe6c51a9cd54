"""IIOP over TLS: who may call, and who is called.

    Orb(tls=Identity.load("alice.pem"))     both sides show certificates of members, TLS 1.3
    Orb(tls=context)                        an ssl.SSLContext of yours, for serving or for calling
    Orb(tls=Tls(serving, calling))          one for each

With an identity a server takes whoever has a certificate of an authority that the identity trusts, and `caller()` tells a servant which
member that is. A client takes the server for what it should be if its certificate is that of the member that the reference
names or, where a reference names none, of the host. Contexts of yours decide for themselves.
"""

import asyncio
import ssl
import tempfile
import time
from contextvars import ContextVar
from pathlib import Path
from secrets import token_hex

from inga.keys.identity import Identity
from inga.model.errors import KeysError, UsageError

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
        """What `tls=` means."""
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
        identity.check(time.time())  # rather here than at whoever calls us
        made = cls(_context(ssl.PROTOCOL_TLS_SERVER, identity), _context(ssl.PROTOCOL_TLS_CLIENT, identity))
        # The name of a member is compared by us, after the handshake.
        made._calling_members = _context(ssl.PROTOCOL_TLS_CLIENT, identity)
        made._calling_members.check_hostname = False
        made.identity = identity
        return made

    @property
    def member(self) -> str | None:
        """Whose certificate we show."""
        return None if self.identity is None else self.identity.name

    async def accept(
        self, entrance: asyncio.Transport, protocol: asyncio.Protocol, seconds: float
    ) -> tuple[asyncio.Transport, str | None]:
        """Shake hands with a client; the connection, and which member that is."""
        assert self.serving is not None
        if entrance.is_closing():
            raise ConnectionAbortedError("gone before it began")
        transport = await asyncio.get_running_loop().start_tls(
            entrance, protocol, self.serving, server_side=True, ssl_handshake_timeout=seconds
        )
        if transport is None:
            raise ConnectionAbortedError("closed meanwhile")
        return transport, self._checked(transport, None)

    def context_for(self, member: str | None) -> ssl.SSLContext:
        """What to call a server with that is this member, or the host that it is reached by."""
        context = self._calling if member is None else self._calling_members
        assert context is not None, "whoever cannot call was told so"
        return context

    @property
    def calls(self) -> bool:
        """Whether we can call others."""
        return self._calling is not None

    def check_server(self, transport: asyncio.BaseTransport, member: str | None) -> None:
        """Whether the other side is the member that is called; a KeysError says who else it is."""
        self._checked(transport, member)

    def _checked(self, transport: asyncio.BaseTransport, member: str | None) -> str | None:
        if self.identity is None:
            return None
        from inga.keys.certificates import check_certificate

        shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if shown is None:
            raise KeysError("unknown_authority", "no certificate was shown")
        return check_certificate(shown, self.identity.trusted, member, time.time()).name


def _context(kind: int, identity: Identity) -> ssl.SSLContext:
    from inga.keys.certificates import certificate_pem

    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=b"".join(map(certificate_pem, identity.trusted)).decode("ascii"))
    # OpenSSL reads keys from files only: the private one gets a password, in a directory that is ours and soon gone.
    with tempfile.TemporaryDirectory(prefix="inga-") as directory:
        own, key, password = Path(directory, "own"), Path(directory, "key"), token_hex()
        own.write_bytes(certificate_pem(identity.certificate))
        key.write_bytes(identity.private_pem(password.encode()))
        context.load_cert_chain(own, key, password)
    return context
