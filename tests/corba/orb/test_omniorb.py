"""Objects and names across ORBs: omniORB's tools, and a client and server compiled with its IDL compiler."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest

from inga.corba.broker.dispatch import ImplicitObject
from inga.corba.broker.groups import GroupManager
from inga.corba.broker.idl import SystemException
from inga.corba.broker.idl_text import to_idl
from inga.corba.broker.managed import ObjectGroupManager
from inga.corba.broker.naming import (
    AlreadyBound,
    NamingContext,
    NamingContextExt,
    NotEmpty,
    NotFound,
    to_name,
)
from inga.corba.orb.iiop import Limits
from inga.corba.orb.lookup import find, resolve, serve_groups, serve_names
from inga.corba.orb.memberships import Multicast
from inga.corba.orb.orb import Orb
from inga.corba.wire.reference import GroupIdentity, Iiop, Reference, group_reference, read, to_ior
from inga.keys.authority import CERTIFICATE, Authority

from ...net.helpers import SECONDS, FreePort, Run, until
from .kitchen import MENU, Closed, Course, Kitchen, Numbers, OurKitchen, Room, SoldOut

pytestmark = [pytest.mark.network, pytest.mark.interop, pytest.mark.xdist_group("omniorb")]

HERE = Path(__file__).parent
GROUP = group_reference(
    "IDL:demo/Kitchen:1.0",
    GroupIdentity("Test", 1),
    "239.7.7.9",
    7400,
    group_iiop=Iiop("127.0.0.1", 2809, b"answering"),
    gateway=Iiop("127.0.0.1", 2810, b"gateway"),
)
NUMBERS = Numbers(
    200, -30_000, 60_000, -(1 << 31), (1 << 32) - 1, -(1 << 63), (1 << 64) - 1, 1.5, -2.25, True, "z"
)


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; as root, `make packages` installs it")
    return found


@pytest.fixture(scope="session")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program of kitchen.cc, compiled once."""
    omniidl, compiler = tool("omniidl"), tool("g++")
    folder = tmp_path_factory.mktemp("kitchen")
    (folder / "groups.idl").write_text(to_idl(ObjectGroupManager))
    sources = [folder / "kitchenSK.cc", folder / "groupsSK.cc", HERE / "kitchen.cc"]
    objects = [folder / f"{source.stem}.o" for source in sources]
    compiled(
        *([omniidl, "-bcxx", f"-C{folder}", idl] for idl in (HERE / "kitchen.idl", folder / "groups.idl"))
    )
    compiled(
        *(
            [compiler, "-O0", "-w", f"-I{folder}", "-c", "-o", made, source]
            for made, source in zip(objects, sources, strict=True)
        )
    )
    libraries = ["-lomniORB4", "-lomnithread", "-lpthread"]
    compiled([compiler, "-o", folder / "kitchen", *objects, *libraries])
    return str(folder / "kitchen")


def compiled(*commands: list[Any]) -> None:
    """Run compilers, side by side."""
    started = [
        subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    said = [each.communicate(timeout=SECONDS)[1] for each in started]
    if any("omniORB4/CORBA.h" in each for each in said):
        pytest.skip("libomniorb4-dev is not installed; as root, `make packages` installs it")
    assert [each.returncode for each in started] == [0] * len(started), said


@asynccontextmanager
async def running(*command: str | bytes, **more: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program beside ours, which ends with the test."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        **more,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def output(*command: str | bytes, **more: Any) -> tuple[int, str, str]:
    async with running(*command, **more) as process:
        out, error = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode("latin-1"), error.decode("latin-1")


# References


def test_catior_reads_our_references(run: Run) -> None:
    catior = tool("catior")

    async def main() -> None:
        async with Orb() as orb:
            servant = orb.activate(OurKitchen(), "the/kitchen")
            code, out, error = await output(catior, to_ior(servant))
            assert (code, error) == (0, "")
            assert 'Type ID: "IDL:demo/Kitchen:1.0"' in out
            assert f'IIOP 1.2 127.0.0.1 {orb.port} "the/kitchen"' in out
            assert "UTF-8" in out  # our code sets
        code, out, error = await output(catior, to_ior(GROUP))
        assert (code, error) == (0, "")
        assert 'Type ID: "IDL:demo/Kitchen:1.0"' in out
        assert "Unrecognised profile tag: 0x3" in out
        assert 'IIOP 1.2 127.0.0.1 2810 "gateway"' in out

    run(main())


def test_omniidl_takes_our_idl(tmp_path: Path) -> None:
    omniidl = tool("omniidl")
    for cls in (Kitchen, NamingContextExt, ObjectGroupManager):
        (tmp_path / "ours.idl").write_text(to_idl(cls))
        done = subprocess.run([omniidl, "-bdump", str(tmp_path / "ours.idl")], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


# Names


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_nameclt_uses_our_naming_service(run: Run, loop: str) -> None:
    nameclt = tool("nameclt")

    async def main() -> None:
        async with Orb() as orb:
            serve_names(orb)

            async def ask(*words: str) -> tuple[int, str, str]:
                where = f"NameService=corbaloc::127.0.0.1:{orb.port}/NameService"
                return await output(nameclt, "-ORBInitRef", where, "-advanced", *words)

            assert await ask("list") == (0, "", "")
            code, out, _ = await ask("bind_new_context", "forum.dir")
            assert code == 0
            context = read(out)
            assert context.type_id == "IDL:omg.org/CosNaming/NamingContextExt:1.0"
            assert await ask("bind", "forum.dir/lunch", to_ior(GROUP)) == (0, "", "")
            assert await ask("bind", "tea", to_ior(GROUP)) == (0, "", "")
            assert (await ask("list"))[1].split() == ["forum.dir/", "tea"]
            assert (await ask("list", "forum.dir"))[1].split() == ["lunch"]
            code, out, _ = await ask("resolve", "forum.dir/lunch")
            assert (code, read(out)) == (0, GROUP)
            code, _, error = await ask("bind", "forum.dir/lunch", to_ior(GROUP))
            assert code == 1
            assert "AlreadyBound" in error
            assert (await ask("rebind", "forum.dir/lunch", to_ior(context)))[0] == 0
            code, _, error = await ask("resolve", "forum/lunch")
            assert code == 1
            assert "NotFound exception: missing node" in error
            code, _, error = await ask("remove_context", "forum.dir")
            assert code == 1
            assert "NotEmpty" in error
            for words in (["unbind", "forum.dir/lunch"], ["remove_context", "forum.dir"], ["unbind", "tea"]):
                assert await ask(*words) == (0, "", "")
            assert await ask("list") == (0, "", "")
            code, out, _ = await ask("new_context")
            assert (await ask("bind_context", "again", out.strip()))[0] == 0
            assert (await ask("rebind_context", "again", out.strip()))[0] == 0
            assert orb.server.counts == {}

    run(main(), loop=loop)


def test_our_client_uses_omninames(run: Run, tmp_path: Path, free_port: FreePort) -> None:
    names = tool("omniNames")
    port = free_port()
    command = [
        names,
        "-start",
        str(port),
        "-ignoreport",
        "-logdir",
        str(tmp_path),
        "-errlog",
        str(tmp_path / "log"),
    ]
    end_point = ["-ORBendPoint", f"giop:tcp:127.0.0.1:{port}"]

    async def main() -> None:
        async with running(*command, *end_point), Orb() as orb:
            service = f"corbaloc::127.0.0.1:{port}/NameService"
            root = orb.proxy(NamingContext, service)

            async def answers() -> bool:
                try:
                    return await orb.is_a(service, NamingContext)
                except SystemException as error:
                    assert error.name in ("TRANSIENT", "OBJECT_NOT_EXIST")  # it starts
                    await asyncio.sleep(0.01)
                    return False

            while not await answers():
                pass
            with pytest.raises(NotFound) as caught:
                await root.bind(to_name("forum.dir/lunch"), GROUP)
            assert caught.value.rest_of_name == to_name("forum.dir/lunch")
            context = await root.bind_new_context(to_name("forum.dir"))
            await root.bind(to_name("forum.dir/lunch"), GROUP)
            with pytest.raises(AlreadyBound):
                await root.bind(to_name("forum.dir/lunch"), GROUP)
            await root.rebind(to_name("forum.dir/lunch"), GROUP)
            assert await root.resolve(to_name("forum.dir/lunch")) == GROUP
            assert await find(orb, f"corbaname::127.0.0.1:{port}#forum.dir/lunch") == GROUP
            assert await resolve(orb, service, "forum.dir") == context
            bindings, more = await root.list(100)
            assert more is None
            assert [each.binding_name for each in bindings] == [to_name("forum.dir")]
            with pytest.raises(NotEmpty):
                assert context is not None
                await orb.proxy(NamingContext, context).destroy()
            await root.unbind(to_name("forum.dir/lunch"))
            with pytest.raises(NotFound):
                await root.resolve(to_name("forum.dir/lunch"))

    run(main())


# Objects

EXPECTED = """\
area 12.5
title Küche
greet Hello, omni!
widen 955 33 955 33
echo 200 -30000 60000 -2000000000 4000000000 -9000000000000000000 18000000000000000000 1.5 -2.25 1 z
total 2000000000000
reverse 1
menu soup 0 4.5 1 3 -4 5
order stew 11.25
sold out soup 3
closed
divide 3 2
failed UNKNOWN
itself 1 1 0 0
note psst
"""


IN_PIECES = Limits(fragment_size=1000)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_compiled_client_calls_our_servant(run: Run, kitchen: str, version: str) -> None:
    async def main() -> None:
        async with Orb(limits=IN_PIECES) as orb:
            servant = OurKitchen()
            servant.reference = orb.activate(servant)
            code, out, error = await output(
                kitchen, "call", to_ior(servant.reference), "-ORBmaxGIOPVersion", version
            )
            expected = EXPECTED
            if version == "1.0":  # which has no wide characters, and agrees on no code set
                expected = expected.replace("widen 955 33 955 33", "no wide text")
            assert (code, out) == (0, expected), error
            assert orb.server.counts == {}

    run(main())


def test_a_compiled_client_finds_our_servant_by_name(run: Run, kitchen: str) -> None:
    async def main() -> None:
        async with Orb() as orb:
            names = orb.proxy(NamingContext, serve_names(orb))
            servant = OurKitchen()
            servant.reference = orb.activate(servant)
            await names.bind(to_name("kitchen"), servant.reference)
            code, out, error = await output(kitchen, "call", f"corbaname::127.0.0.1:{orb.port}#kitchen")
            assert (code, out) == (0, EXPECTED), error

    run(main())


def test_a_compiled_client_manages_the_members_of_a_group(run: Run, kitchen: str) -> None:
    """The manager of object groups, by the IDL that we print of it."""
    manager = GroupManager()
    gateway = {"gateway": Iiop("127.0.0.1", 2810, b"gateway")}  # by which omniORB knows what to do with it
    group, number = manager.create_object("IDL:demo/Kitchen:1.0", gateway)

    async def main() -> None:
        async with Orb() as orb:
            servant = OurKitchen()
            servant.reference = orb.activate(servant)
            serve_groups(orb, manager)
            where = f"corbaloc::127.0.0.1:{orb.port}/GroupManager"
            newer = manager.set_properties_dynamically(group, {"port": 7401})
            code, out, error = await output(
                kitchen, "manage", where, to_ior(group), to_ior(servant.reference)
            )
            *lines, newest, gone, no_group = out.splitlines()
            assert (code, lines) == (
                0,
                [f"number {number}", "present", "at host.lan", "at 1.", "member says Hello, omni!"],
            ), error
            assert read(newest.removeprefix("newest ")) == newer
            assert (gone, no_group) == ("gone", "no group")
            assert manager.locations_of_members(group) == [] and orb.server.counts == {}

    run(main())


@asynccontextmanager
async def serving(kitchen: str, *options: str, **more: Any) -> AsyncIterator[str]:
    """The compiled server; its IOR."""
    options = options or ("-ORBendPoint", "giop:tcp:127.0.0.1:")
    async with running(kitchen, "serve", *options, **more) as process:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("minor", [0, 1, 2])
@pytest.mark.parametrize("little", [False, True])
def test_our_client_calls_a_compiled_server(run: Run, kitchen: str, minor: int, little: bool) -> None:
    async def main() -> None:
        async with serving(kitchen) as ior, Orb(little=little, limits=IN_PIECES) as orb:
            reference = at_version(read(ior), minor)
            proxy = orb.proxy(Kitchen, reference)
            await call_everything(orb, proxy, minor)
            assert orb.client.connections == 1

    run(main())


def at_version(reference: Reference, minor: int) -> Reference:
    """The same object, called with an older GIOP."""
    (way,) = reference.iiop()
    if minor == 2:
        return reference
    return read(
        f"corbaloc:iiop:1.{minor}@{way.host}:{way.port}/{''.join(f'%{each:02x}' for each in way.key)}"
    )


async def call_everything(orb: Orb, proxy: Any, minor: int) -> None:
    assert await proxy.area() == 12.5
    assert await proxy.title() == "Küche"
    assert await proxy.greet("Jörg") == "Hello, Jörg!"
    if minor == 2:
        assert await proxy.widen("λ!") == "λ!λ!"
    assert await proxy.echo(NUMBERS) == NUMBERS
    assert await proxy.total([1 << 30] * 1000) == 1000 << 30
    data = bytes(range(256)) * 400
    assert await proxy.reverse(data) == data[::-1]
    for course in Course:
        assert await proxy.menu(course) == [dish for dish in MENU if dish.course is course]
    assert await proxy.order("stew", 2) == MENU[1]
    with pytest.raises(SoldOut) as caught:
        await proxy.order("soup", 9)
    assert (caught.value.dish, caught.value.left) == ("soup", 3)
    with pytest.raises(Closed):
        await proxy.order("fish", 1)
    assert await proxy.divide(17, 5) == (3, 2)
    with pytest.raises(SystemException) as failed:
        await proxy.divide(1, 0)
    assert (failed.value.name, failed.value.minor, failed.value.completed) == ("BAD_PARAM", 7, "no")
    itself = await proxy.itself()
    assert itself.type_id == "IDL:demo/Kitchen:1.0"
    assert await orb.is_a(itself, Room)
    implicit: Any = orb.proxy(ImplicitObject, itself)
    assert not await implicit.is_a("IDL:demo/Garden:1.0")
    assert not await implicit.non_existent()
    await proxy.note("psst")
    while await proxy.notes() != ["psst"]:  # another thread of the server writes it down
        await asyncio.sleep(0)


def test_a_compiled_client_calls_a_group_through_its_gateway(
    run: Run, kitchen: str, free_port: FreePort
) -> None:
    """It passes over the profile that it does not know, and takes the next."""
    manager = GroupManager()
    group, _ = manager.create_object("IDL:demo/Kitchen:1.0", {"reliable": True, "port": free_port()})

    async def main() -> None:
        lo = Multicast(interface="lo")
        async with Orb(multicast=lo) as first, Orb(multicast=lo) as second:
            members = [OurKitchen(), OurKitchen()]
            for orb, member in zip((first, second), members, strict=True):
                await orb.join(group, member)
            ior = to_ior(first.gateway(group))
            code, _, error = await output(kitchen, "note", ior, "Küche".encode("latin-1"))
            assert code == 0, error
            for member in members:
                await until(lambda member=member: member.said == ["Küche"])  # type: ignore[misc]

    run(main())


def test_a_server_that_ends_is_missed(run: Run, kitchen: str) -> None:
    async def main() -> None:
        async with Orb() as orb:
            async with serving(kitchen) as ior:
                proxy = orb.proxy(Kitchen, ior)
                assert await proxy.area() == 12.5  # type: ignore[misc]
            await until(lambda: orb.client.connections == 0)
            with pytest.raises(
                SystemException, match=r"TRANSIENT: 127\.0\.0\.1:\d+ cannot be reached: "
            ) as caught:
                await proxy.area()  # type: ignore[misc]
            assert caught.value.completed == "no"

    run(main())


@pytest.fixture(autouse=True)
def only_loopback() -> Iterator[None]:
    """omniORB reads its configuration from here; there is none."""
    before = os.environ.get("OMNIORB_CONFIG")
    os.environ["OMNIORB_CONFIG"] = os.devnull
    yield
    os.environ.pop("OMNIORB_CONFIG")
    if before is not None:
        os.environ["OMNIORB_CONFIG"] = before


# TLS


class Secured:
    """Identities of one authority: one for us, one in files as omniORB wants them."""

    def __init__(self, folder: Path) -> None:
        found = find_library("omnisslTP4")
        if found is None:
            pytest.skip("omniORB's transport for TLS is not installed; as root, `make packages` installs it")
        self.environment = {**os.environ, "LD_PRELOAD": found}
        authority = Authority.make("lunch")
        self.ours = authority.issue("alice", hosts=["127.0.0.1"])
        authority.save(folder)
        authority.issue("omni", hosts=["127.0.0.1"]).save(folder / "omni.pem")
        self.trusting = ("-ORBsslCAFile", str(folder / CERTIFICATE))
        self.options = (
            *self.trusting,
            "-ORBsslKeyFile",
            str(folder / "omni.pem"),
            "-ORBsslKeyPassword",
            "none",
        )


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    pytest.importorskip("cryptography")
    return Secured(tmp_path)


def test_nameclt_uses_our_naming_service_over_tls(run: Run, secured: Secured) -> None:
    nameclt = tool("nameclt")

    async def main() -> None:
        async with Orb(tls=secured.ours) as orb:
            root = serve_names(orb)

            async def ask(where: str, *words: str) -> tuple[int, str, str]:
                init = ("-ORBInitRef", f"NameService={where}")
                return await output(nameclt, *init, *words, env=secured.environment)

            url = f"corbaloc:ssliop:1.2@127.0.0.1:{orb.port}/NameService"
            for where in (to_ior(root), url):
                assert await ask(where, *secured.options, "list") == (0, "", "")
            assert orb.server.counts == {}
            assert (await ask(url, *secured.trusting, "list"))[0] == 1  # which shows no certificate
            assert set(orb.server.counts) == {"handshake"}

    run(main())


def test_a_compiled_client_calls_our_servant_over_tls(run: Run, kitchen: str, secured: Secured) -> None:
    async def main() -> None:
        async with Orb(tls=secured.ours, limits=IN_PIECES) as orb:
            servant = OurKitchen()
            servant.reference = orb.activate(servant)
            code, out, error = await output(
                kitchen, "call", to_ior(servant.reference), *secured.options, env=secured.environment
            )
            assert (code, out) == (0, EXPECTED), error
            assert orb.server.counts == {}

    run(main())


def test_our_client_calls_a_compiled_server_over_tls(run: Run, kitchen: str, secured: Secured) -> None:
    async def main() -> None:
        options = ("-ORBendPoint", "giop:ssl:127.0.0.1:", *secured.options)
        async with serving(kitchen, *options, env=secured.environment) as ior, Orb(tls=secured.ours) as orb:
            (way,) = read(ior).iiop()
            assert way.port == 0 and way.secure is not None and way.member is None
            await call_everything(orb, orb.proxy(Kitchen, ior), 2)
            stranger = Authority.make("lunch").issue("alice")
            async with Orb(tls=stranger) as other:
                with pytest.raises(SystemException, match="NO_PERMISSION"):
                    await other.proxy(Kitchen, ior).area()

    run(main())
