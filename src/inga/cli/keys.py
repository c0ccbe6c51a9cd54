"""Make and show the secrets and certificates with which members of a group prove who they are.

  inga keys secret lunch.secret                       a secret that all members share
  inga keys authority lunch                           or an authority, in the directory lunch,
  inga keys member alice --authority lunch            which issues a certificate for each member: alice.pem
  inga keys member bob --authority lunch --host bob.example.org --host 192.0.2.7
  inga keys show alice.pem                            what is in a file, without its private parts

Existing files are never overwritten. Files with private parts are readable by their owner alone.
"""

import argparse
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from inga.cli.output import print_json, tell
from inga.keys.authority import AUTHORITY_DAYS, CERTIFICATE, KEY, MEMBER_DAYS, Authority
from inga.keys.files import SECRET_PREFIX, read_keys
from inga.keys.secret import Secret
from inga.model.errors import KeysError
from inga.model.text import printable


def add_options(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="WHAT")
    secret = kinds.add_parser("secret", help="a secret that all members of a group share")
    secret.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: standard output")
    authority = kinds.add_parser("authority", help="an authority, which issues certificates")
    authority.add_argument("name", metavar="NAME")
    authority.add_argument("--out", type=Path, metavar="DIR", help="the directory for it (default: NAME)")
    _add_days(authority, AUTHORITY_DAYS)
    member = kinds.add_parser("member", help="a certificate and a private key for a member")
    member.add_argument("name", metavar="NAME")
    member.add_argument("--authority", type=Path, required=True, metavar="DIR", help="where the authority is")
    member.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="HOST",
        help="a name or address under which foreign programs reach the member by TLS; may be repeated",
    )
    member.add_argument("--out", type=Path, metavar="FILE", help="the file for it (default: NAME.pem)")
    _add_days(member, MEMBER_DAYS)
    show = kinds.add_parser("show", help="the contents of a file, without its private parts")
    show.add_argument("file", type=Path, metavar="FILE")
    for each in (secret, authority, member, show):  # --json may stand behind the word, too
        each.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def _add_days(parser: argparse.ArgumentParser, default: float) -> None:
    help_text = f"how long the certificate is valid (default {default:g})"
    parser.add_argument("--days", type=float, default=default, metavar="DAYS", help=help_text)


def run(options: argparse.Namespace) -> int:
    content, lines = _KINDS[options.kind](options)
    if options.json:
        print_json(content)
    else:
        tell(*lines)
    return 0


_Result = tuple[dict[str, Any], list[str]]


def _secret(options: argparse.Namespace) -> _Result:
    secret = Secret.make()
    if options.file is None:
        return {"secret": secret.text()}, [secret.text()]
    path = secret.save(options.file)
    return {"file": str(path), "fingerprint": secret.fingerprint()}, [
        f"{printable(str(path))}: a new secret of {secret.bits} bits, fingerprint {secret.fingerprint()}",
        "next: copy the file to every member by a way that nobody else sees (scp, a store of secrets), then there:",
        f"      inga.join(..., secret={f'file:{path}'!r})",
    ]


def _authority(options: argparse.Namespace) -> _Result:
    authority = Authority.make(options.name, options.days)
    folder = authority.save(options.out or quote(options.name, safe=" "))
    name = printable(str(folder))
    return {"directory": str(folder), **_said(authority.certificate)}, [
        f"{name}: the new authority {printable(authority.name)}; {CERTIFICATE} is for everybody",
        f"      whoever has {KEY} can be any member: keep it where no member runs",
        f"next: inga keys member NAME --authority {name}",
    ]


def _member(options: argparse.Namespace) -> _Result:
    member = Authority.load(options.authority).issue(options.name, options.host, options.days)
    path = member.save(options.out or f"{quote(options.name, safe=' ')}.pem")
    return {"file": str(path), **_said(member.certificate)}, [
        f"{printable(str(path))}: certificate and private key of {printable(member.name)}",
        f"next: move the file to the machine of {printable(member.name)}, then there:",
        f"      inga.join(..., identity={str(path)!r}), or inga.Orb(tls=inga.Identity.load({str(path)!r}))",
    ]


def _show(options: argparse.Namespace) -> _Result:
    content = read_keys(options.file)
    if content.lower().lstrip().startswith(SECRET_PREFIX.encode()):
        secret = Secret.load(options.file)
        return {"kind": "secret", "bits": secret.bits, "fingerprint": secret.fingerprint()}, [
            f"secret       of {secret.bits} bits",
            f"fingerprint  {secret.fingerprint()}",
        ]
    from inga.keys.certificates import read_pem

    certificates, key = read_pem(content, printable(str(options.file)))
    if not certificates and key is None:
        raise KeysError("malformed", f"{printable(str(options.file))} holds no secret, key or certificate")
    found = list(map(_said, certificates))
    lines = [f"{title:<11}  {value}" for each in found for title, value in each.items() if value]
    return {"certificates": found, "private_key": key is not None}, [
        *lines,
        *(["private key  Ed25519, not shown"] if key is not None else []),
    ]


def _said(certificate: bytes) -> dict[str, str]:
    """What a certificate says."""
    from inga.keys.certificates import facts

    known = facts(certificate)
    return {
        "authority" if known.is_authority else "member": printable(known.name),
        "issued by": "" if known.is_authority else printable(known.issuer),
        "hosts": ", ".join(map(printable, known.hosts)),
        "valid": f"{_moment(known.begins)} to {_moment(known.ends)}",
        "sha256": known.fingerprint,
    }


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


_KINDS = {"secret": _secret, "authority": _authority, "member": _member, "show": _show}
