"""Show the contents of a CORBA reference to an object or a group, and the same reference in its other form.

  inga ior corbaloc:miop:1.0@1.0-TestDomain-1/225.6.7.8:12345
  inga ior IOR:000000000000001349444c3a... --json
  inga ior --type IDL:test/Hello:1.0 corbaloc:iiop:1.2@localhost:2809/hello
  some-server --print-reference | inga ior -

Shows its type, and its profiles with their components. Unknown profiles and components are shown by number and size,
and kept in the IOR that is printed.
"""

import argparse
import sys
from dataclasses import replace

from inga.cli.output import print_json, tell
from inga.corba.dissect.described import describe, text_of
from inga.corba.wire.reference import read

STANDARD_INPUT = "-"
REFERENCE_MAX = 1 << 20
"""Characters of a reference that is read from standard input."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("reference", metavar="REF", help="IOR:... or corbaloc:...; - reads it from standard input")
    add("--type", metavar="ID", help="the type of the object, such as IDL:test/Hello:1.0; a URL has none")


def run(options: argparse.Namespace) -> int:
    text = options.reference
    if text == STANDARD_INPUT:
        text = sys.stdin.read(REFERENCE_MAX)
    reference = read(text)
    if options.type is not None:
        reference = replace(reference, type_id=options.type)
    content = describe(reference)
    if options.json:
        print_json(content)
    else:
        tell(*text_of(content).split("\n"))
    return 0
