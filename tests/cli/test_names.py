"""`inga names`: it serves, says where, ends when asked, and refuses what cannot be right."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.corba.broker.idl import SystemException
from inga.corba.broker.naming import NamingContext, to_name
from inga.corba.orb.lookup import resolve
from inga.corba.orb.orb import Orb
from inga.corba.wire.reference import read
from inga.keys.authority import Authority
from inga.keys.identity import Identity

pytestmark = pytest.mark.network

SECONDS = 60.0
GROUP = read("corbaloc:miop:1.0@1.0-TestDomain-1/239.7.7.9:12345")


def serve(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "inga", "names", "--port", "0", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip


def use(*services: str, tls: Identity | None = None) -> None:
    """Bind by the first reference, resolve by all."""

    async def bind_and_resolve() -> None:
        async with Orb(tls=tls) as orb:
            await orb.proxy(NamingContext, services[0]).bind(to_name("lunch.group"), GROUP)
            for service in services:
                assert await resolve(orb, service, "lunch.group") == GROUP

    asyncio.run(asyncio.wait_for(bind_and_resolve(), SECONDS))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_asked_to_end(number: signal.Signals) -> None:
    names = serve()
    assert names.stdout is not None
    ior, corbaloc = names.stdout.readline().strip(), names.stdout.readline().strip()
    assert ior.startswith("IOR:")
    assert corbaloc.startswith("corbaloc:iiop:1.2@127.0.0.1:")
    assert corbaloc.endswith("/NameService")
    use(ior, corbaloc)
    names.send_signal(number)
    assert names.communicate(timeout=SECONDS) == ("", "")
    assert names.returncode == 0


def test_one_object_of_json() -> None:
    names = serve("--json", "--published", "localhost")
    assert names.stdout is not None
    told = json.loads(names.stdout.readline())
    assert told["corbaloc"] == f"corbaloc:iiop:1.2@localhost:{told['port']}/NameService"
    assert next(read(told["ior"]).iiop()).host == "localhost"
    use(told["ior"])
    names.send_signal(signal.SIGINT)
    assert names.communicate(timeout=SECONDS)[0] == ""


def test_names_over_tls(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    authority = Authority.make("lunch")
    names = serve("--tls", str(authority.issue("names", hosts=["127.0.0.1"]).save(tmp_path / "names.pem")))
    assert names.stdout is not None
    ior, corbaloc = names.stdout.readline().strip(), names.stdout.readline().strip()
    assert corbaloc.startswith("corbaloc:ssliop:1.2@127.0.0.1:")
    use(ior, corbaloc, tls=authority.issue("alice"))
    with pytest.raises(SystemException, match="NO_PERMISSION"):
        use(ior)
    names.send_signal(signal.SIGTERM)
    assert names.communicate(timeout=SECONDS) == ("", "")


def test_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for words, message in [
            (["--port", str(port)], f"cannot listen at 127.0.0.1:{port}: Address already in use"),
            (["--port", "65536"], "--port is 0 to 65535, not 65536"),
            (["--host", "0.0.0.0"], "say with --published which of them references name"),
            (["--host", "a..b"], "cannot listen at a..b:2809: there can be no host of that name"),
        ]:
            assert main(["names", *words]) == 2
            assert message in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["names", "--help"])
    assert "inga names --port 0 --json" in capsys.readouterr().out
