"""IIOP over TLS: who may call, who is called, and what strangers get."""

import asyncio
import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from inga.corba.broker.idl import Long, SystemException, interface, oneway
from inga.corba.dissect.described import describe, text_of
from inga.corba.orb.iiop import Limits
from inga.corba.orb.orb import Orb
from inga.corba.orb.tls import Tls, caller
from inga.corba.wire import giop
from inga.corba.wire.giop import KeyAddr, LocateRequest
from inga.corba.wire.reference import Reference, read, to_corbaloc, to_ior
from inga.keys.authority import CERTIFICATE, Authority
from inga.keys.identity import Identity
from inga.model.errors import KeysError, UsageError

from ...net.helpers import LOOPS, Run, skip, until

pytestmark = pytest.mark.network

AUTHORITY = Authority.make("lunch")
ALICE = AUTHORITY.issue("alice", hosts=["127.0.0.1", "localhost"])
BOB = AUTHORITY.issue("ボブ")
STRANGER = Authority.make("lunch").issue(
    "alice", hosts=["127.0.0.1"]
)  # by another authority of the same name
LOCATE = giop.encode(LocateRequest(1, KeyAddr(b"desk")))


@interface("IDL:test/Guarded:1.0")
class Guarded:
    def __init__(self) -> None:
        self.told: list[str | None] = []

    def who(self) -> str:
        return caller() or "nobody"

    async def who_later(self) -> str:
        await asyncio.sleep(0)
        return caller() or "nobody"

    def large(self, size: Long) -> bytes:
        return bytes(size)

    @oneway
    def tell(self, number: Long) -> None:
        self.told.append(caller())


async def denied(proxy: Any, why: str) -> None:
    with pytest.raises(SystemException, match=why) as caught:
        await proxy.who()
    assert (caught.value.name, caught.value.completed) == ("NO_PERMISSION", "no")


async def refused(proxy: Any) -> None:
    """The server ended the connection without a word: in TLS 1.3 a client learns no earlier that it is not trusted."""
    with pytest.raises(SystemException, match="may not trust our certificate") as caught:
        await proxy.who()
    assert caught.value.name == "COMM_FAILURE"


@pytest.mark.parametrize("loop", LOOPS)
def test_members_call_each_other(run: Run, loop: str) -> None:
    async def main() -> None:
        async with Orb(tls=ALICE) as alice, Orb(tls=BOB) as bob:
            for server, client, name in ((alice, bob, "ボブ"), (bob, alice, "alice")):
                servant = Guarded()
                proxy = client.proxy(Guarded, to_ior(server.activate(servant, "desk")))
                assert await proxy.who() == await proxy.who_later() == name
                assert await proxy.large(300_000) == bytes(300_000)
                for number in range(50):
                    await proxy.tell(number)
                await until(lambda: len(servant.told) == 50)  # noqa: B023
                assert set(servant.told) == {name}
                assert (client.client.connections, server.server.counts) == (1, {})
            assert caller() is None
            # A client that leaves at once: what it asked for is done all the same.
            servant = Guarded()
            reference = alice.activate(servant)
            async with Orb(tls=BOB) as hasty:
                await hasty.proxy(Guarded, reference).tell(1)
            await until(lambda: servant.told == ["ボブ"])

    run(main(), loop=loop)


def test_what_references_say(run: Run) -> None:
    async def main() -> None:
        async with Orb(tls=ALICE) as orb, Orb() as plain:
            servant = Guarded()
            reference = orb.activate(servant, "desk")
            (way,) = reference.iiop()
            assert way.secure is not None
            assert (way.host, way.port, way.secure.port, way.member) == ("127.0.0.1", 0, orb.port, "alice")
            assert read(to_ior(reference)) == reference
            assert orb.local(reference) is servant
            assert plain.local(reference) is None
            url = to_corbaloc(reference)
            assert url == f"corbaloc:ssliop:1.2@127.0.0.1:{orb.port}/desk"
            assert [(each.port, each.secure) for each in read(url).iiop()] == [(0, way.secure)]
            shown = text_of(describe(reference))
            assert f"TAG_SSL_SEC_TRANS (20): TLS port {orb.port}, supports 0x66, requires 0x66" in shown
            assert "member of inga (1768843010): alice" in shown

    run(main())


def test_nothing_goes_in_the_clear(run: Run) -> None:
    async def main() -> None:
        async with Orb(tls=ALICE) as secure, Orb() as plain:
            desk, open_desk = secure.activate(Guarded(), "desk"), plain.activate(Guarded(), "desk")
            await denied(plain.proxy(Guarded, desk), "by TLS only")
            await denied(secure.proxy(Guarded, open_desk), "not reached by TLS")
            # Whoever insists hears nothing.
            bare = plain.proxy(Guarded, f"corbaloc::127.0.0.1:{secure.port}/desk")
            with pytest.raises(SystemException, match="COMM_FAILURE"):
                await bare.who()
            await until(lambda: secure.server.counts == {"handshake": 1})
            # Nor does TLS to a server that has none.
            await denied(
                secure.proxy(Guarded, to_corbaloc(desk).replace(str(secure.port), str(plain.port))), "SSL"
            )

    run(main())


def test_who_is_not_who_it_should_be(run: Run) -> None:
    async def main() -> None:
        async with Orb(tls=ALICE) as alice, Orb(tls=BOB) as bob, Orb(tls=STRANGER) as stranger:
            for orb in (alice, bob, stranger):
                orb.activate(Guarded(), "desk")
            references = {orb: orb.reference(b"desk") for orb in (alice, bob, stranger)}

            # By name: the reference is alice's, and bob or a stranger of that name answers.
            assert await bob.proxy(Guarded, references[alice]).who() == "ボブ"
            await denied(
                alice.proxy(Guarded, at(references[alice], bob.port)),
                "certificate is that of ボブ, not of alice",
            )
            await denied(alice.proxy(Guarded, at(references[alice], stranger.port)), "certificate")

            # By host, for a URL names no member: alice's certificate has it, bob's has none.
            assert await bob.proxy(Guarded, to_corbaloc(references[alice])).who() == "ボブ"
            await denied(alice.proxy(Guarded, to_corbaloc(references[bob])), "mismatch")

    run(main())


def at(reference: Reference, port: int) -> Reference:
    """The same reference with another port."""
    (way,) = reference.iiop()
    assert way.secure is not None
    old, new = way.secure.port.to_bytes(2), port.to_bytes(2)
    (profile,) = reference.profiles
    assert profile.data.count(old) == 1
    return Reference(reference.type_id, (profile._replace(data=profile.data.replace(old, new)),))


def test_clients_that_are_not_trusted(run: Run) -> None:
    async def main() -> None:
        async with Orb(tls=ALICE, limits=Limits(connections_max=8)) as alice, Orb(tls=BOB) as bob:
            desk = alice.activate(Guarded(), "desk")
            nobody = ssl.create_default_context(cadata=pem(AUTHORITY))
            fooled = Identity(STRANGER.certificate, STRANGER._key, (AUTHORITY.certificate,))
            for tls in (Tls(None, nobody), Tls(None, calling(fooled)), Tls(None, calling(nameless()))):
                async with Orb(tls=tls) as client:
                    assert not client.serves
                    await refused(client.proxy(Guarded, to_corbaloc(desk)))
            assert await bob.proxy(Guarded, desk).who() == "ボブ"
            assert set(alice.server.counts) == {"handshake"}

    run(main())


def nameless() -> Identity:
    """A certificate of the authority that OpenSSL takes, and that is no member's."""
    real = x509.load_der_x509_certificate(BOB.certificate)
    builder = x509.CertificateBuilder(
        real.issuer, real.subject, real.public_key(), real.serial_number,
        real.not_valid_before_utc, real.not_valid_after_utc,
    )  # fmt: skip
    for each in real.extensions:
        if not isinstance(each.value, x509.SubjectAlternativeName):
            builder = builder.add_extension(each.value, each.critical)
    made = Identity.__new__(Identity)  # which would refuse it
    made.certificate = builder.sign(AUTHORITY._key, None).public_bytes(serialization.Encoding.DER)
    made._key, made.trusted = BOB._key, BOB.trusted
    return made


def pem(authority: Authority) -> str:
    return ssl.DER_cert_to_PEM_cert(authority.certificate)


def calling(identity: Identity) -> ssl.SSLContext:
    """A client that shows a certificate without a look at it."""
    from inga.corba.orb.tls import _context

    return _context(ssl.PROTOCOL_TLS_CLIENT, identity)


def test_strangers_at_the_door(run: Run) -> None:
    """Whoever does not shake hands has one of the places, and not for long."""

    async def main() -> None:
        limits = Limits(connections_max=8)
        async with Orb(tls=ALICE, limits=limits) as alice, Orb(tls=BOB) as bob:
            proxy = bob.proxy(Guarded, alice.activate(Guarded(), "desk"))
            assert await proxy.who() == "ボブ"
            for number in range(40):
                _, writer = await asyncio.open_connection("127.0.0.1", alice.port)
                writer.write((b"", b"\x16", b"\x16\x03\x01\x7f\xff" + bytes(500), b"GIOP")[number % 4])
                strangers.append(writer)
                assert len(alice.server.connections) <= 8
            await until(lambda: alice.server.counts["displaced"] + alice.server.counts["handshake"] >= 33)
            assert await proxy.who() == "ボブ"
            skip(11.0)
            await until(lambda: len(alice.server.connections) == 1)
            assert await proxy.who() == "ボブ"
            assert alice.server.buffered == 0
            assert bob.client.connections == 1
            for writer in strangers:
                writer.transport.abort()

    strangers: list[asyncio.StreamWriter] = []
    run(main())


def test_contexts_of_yours(run: Run, tmp_path: Path) -> None:
    """Only the server shows a certificate, as on the web."""
    ALICE.save(tmp_path / "alice.pem")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "alice.pem")

    async def main() -> None:
        async with (
            Orb(tls=serving) as server,
            Orb(tls=ssl.create_default_context(cadata=pem(AUTHORITY))) as client,
        ):
            reference = server.activate(Guarded(), "desk")
            (way,) = reference.iiop()
            assert way.member is None
            assert await client.proxy(Guarded, reference).who() == "nobody"
            with pytest.raises(UsageError, match="none to serve with"):
                client.activate(Guarded(), "desk")
            await denied(server.proxy(Guarded, reference), "no TLS context to call with")
        async with Orb(
            tls=Tls(serving, ssl.create_default_context())
        ) as both:  # which trusts the web's authorities
            await denied(both.proxy(Guarded, both.activate(Guarded(), "desk")), "certificate|issuer")

    run(main())


def test_identities_of_no_use(run: Run) -> None:
    with pytest.raises(KeysError, match="expired"):
        Orb(tls=AUTHORITY.issue("alice", days=1, now=1_800_000_000.0 - 900 * 86_400))
    with pytest.raises(KeysError, match="not trusted"):
        Orb(tls=Identity(ALICE.certificate, ALICE._key, STRANGER.trusted))
    for wrong in ("alice.pem", True):
        with pytest.raises(UsageError, match="tls is an Identity"):
            Orb(tls=wrong)  # type: ignore[arg-type]


def test_openssl_at_our_port(run: Run, tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    AUTHORITY.save(tmp_path)
    ALICE.save(tmp_path / "alice.pem")

    async def main() -> None:
        async with Orb(tls=ALICE) as orb:
            orb.activate(Guarded(), "desk")
            trusting = [
                "-CAfile",
                str(tmp_path / CERTIFICATE),
                "-verify_return_error",
                "-verify_hostname",
                "localhost",
            ]
            showing = ["-cert", str(tmp_path / "alice.pem"), "-key", str(tmp_path / "alice.pem")]
            for options in (trusting + showing, trusting):
                process = await asyncio.create_subprocess_exec(
                    openssl, "s_client", "-quiet", "-connect", f"127.0.0.1:{orb.port}", *options,
                    stdin=-1, stdout=-1, stderr=-1,
                )  # fmt: skip
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(LOCATE)
                heard = await process.stdout.read(giop.HEADER_SIZE)
                assert heard[:4] == (giop.MAGIC if options != trusting else b"")
                if process.returncode is None:
                    process.kill()
                await process.communicate()
            assert orb.server.counts == {"handshake": 1}

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_octets_that_are_changed_on_their_way(run: Run, loop: str) -> None:
    """A member's connection in which somebody changes a bit ends; what was changed is not looked at."""

    async def main() -> None:
        async with Orb(tls=ALICE) as alice, Orb(tls=BOB) as bob:
            proxy = bob.proxy(Guarded, alice.activate(Guarded(), "desk"))
            for changed in (False, True):
                reader, writer = await asyncio.open_connection("127.0.0.1", alice.port)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                client = calling(BOB).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
                while True:
                    try:
                        client.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        writer.write(outgoing.read())
                        incoming.write(await reader.read(1 << 16))
                client.write(LOCATE)
                data = bytearray(outgoing.read())
                data[-1] ^= changed
                writer.write(data)
                answer = await reader.read(1 << 16)
                if changed:
                    assert giop.MAGIC not in answer and await reader.read() == b""
                else:
                    incoming.write(answer)
                    assert client.read(4) == giop.MAGIC
                writer.close()
            assert await proxy.who() == "ボブ"
            assert alice.server.counts == {"tls": 1}

    run(main(), loop=loop)


def test_older_tls_is_not_spoken(run: Run) -> None:
    async def main() -> None:
        async with Orb(tls=ALICE) as orb:
            context = calling(BOB)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.open_connection("127.0.0.1", orb.port, ssl=context)
            await until(lambda: orb.server.counts == {"handshake": 1})

    run(main())


def test_private_keys_leave_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Tls.of(ALICE)
    assert list(tmp_path.iterdir()) == []
