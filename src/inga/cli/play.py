"""Play schedules in a browser, move by move: drag a message to another moment, switch the order, see clocks and queues.

  inga play
  inga play 'A!1 1>B B!2 2>C' --order fifo
  inga play --port 8080 --no-open

A server on this machine plays each schedule with the real protocol stacks; Ctrl-C ends it. The
address contains a secret, so that no other page in the browser can use the server. `inga sim --schedule` plays a schedule without a
browser.
"""

import argparse
import webbrowser

from inga.cli.output import print_json, tell
from inga.lab.play.game import play
from inga.lab.play.server import PlayServer
from inga.model.errors import UsageError

PORT_MAX = 65_535


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("schedule", nargs="?", default="", metavar="SCHEDULE", help="the first schedule (default: lunch)")
    add("--order", default="", metavar="O", help="the first order, such as fifo or vector")
    add("--port", type=int, default=0, metavar="P", help="port of the server (default: any free one)")
    add("--no-open", action="store_true", help="do not open a browser")


def run(options: argparse.Namespace) -> int:
    if not 0 <= options.port <= PORT_MAX:
        raise UsageError(f"--port is a number from 0 to {PORT_MAX}")
    if options.schedule or options.order:
        play(options.schedule, options.order or "vector")  # what cannot be played is said here
    order = options.order or ("vector" if options.schedule else "")
    with PlayServer(options.schedule, order, options.port) as server:
        if options.json:
            print_json({"url": server.url})
        else:
            tell(f"open {server.url}", "Ctrl-C ends it")
        if not options.no_open and not options.json:
            webbrowser.open(server.url)
        server.serve_forever()
    return 0
