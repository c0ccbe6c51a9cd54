"""Run a CORBA naming service, in which clients look up groups and objects by name.

  inga names
  inga names --port 0 --json
  inga names --tls alice.pem           for whoever has a certificate of the same authority (inga keys)
  omniNames' clients:  nameclt -ORBInitRef NameService=corbaloc::127.0.0.1:2809/NameService list

Prints the service's IOR and corbaloc URL, then serves until Ctrl-C. Names are kept in memory only.
"""

import argparse
import asyncio
import signal
import sys
from contextlib import suppress

from inga.cli.output import print_json, tell
from inga.corba.orb.lookup import serve_names
from inga.corba.orb.orb import Orb
from inga.corba.wire.reference import CORBALOC_PORT, to_corbaloc, to_ior
from inga.keys.identity import Identity
from inga.model.errors import UsageError
from inga.net.loop import run as run_loop


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--host",
        default="127.0.0.1",
        metavar="HOST",
        help="listen on this address (default 127.0.0.1: this machine only)",
    )
    add(
        "--port",
        type=int,
        default=CORBALOC_PORT,
        metavar="PORT",
        help=f"listen on this port, 0 for a free one (default {CORBALOC_PORT})",
    )
    add("--tls", metavar="FILE", help="accept TLS only, with this identity, made by `inga keys member`")
    add("--published", metavar="HOST", help="the host name in references (default: that of --host)")


def run(options: argparse.Namespace) -> int:
    if not 0 <= options.port < 1 << 16:
        raise UsageError(f"--port is 0 to 65535, not {options.port}")
    if options.host in ("", "0.0.0.0", "::") and not options.published:
        raise UsageError(
            "--host listens on all addresses: say with --published which of them references name"
        )
    with suppress(asyncio.CancelledError):
        run_loop(_serve(options))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    tls = None if options.tls is None else Identity.load(options.tls)
    async with Orb(options.host, options.port, published=options.published, tls=tls) as orb:
        root = serve_names(orb)
        if options.json:
            print_json({"ior": to_ior(root), "corbaloc": to_corbaloc(root), "port": orb.port})
        else:
            tell(to_ior(root), to_corbaloc(root))
        sys.stdout.flush()  # Whoever started us waits for it.
        await asked.wait()
