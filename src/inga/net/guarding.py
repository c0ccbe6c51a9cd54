"""Makes the guard of a live member from its secret or identity, after checking it."""

import os
import time
from functools import cache

from inga.keys.identity import Identity
from inga.keys.secret import Secret
from inga.model.errors import KeysError, UsageError
from inga.model.text import printable
from inga.net.log import report
from inga.net.options import JoinOptions
from inga.net.sieve import LARGE
from inga.recipes import Recipe
from inga.secure.credentials import Certified, Credentials, KnownSecret
from inga.secure.guard import GroupGuard
from inga.secure.sealing import AES, CHACHA, load_ciphers

FILE = "file:"
"""The prefix that marks a text as the path of a file, not as the secret itself."""


def guard_of(said: JoinOptions, recipe: Recipe, group: str, name: str) -> GroupGuard | None:
    """The guard of a member with a secret or an identity; None for a member with neither."""
    try:
        credentials = _credentials(said, name)
    except OSError as error:
        raise KeysError(
            "unreadable", f"{printable(str(error.filename))} cannot be read: {error.strerror}"
        ) from None
    if credentials is None:
        return None
    if recipe.wire != "inga":
        raise UsageError(
            f"order {recipe.name!r} speaks a wire format of others, which has no place for a secret or an identity"
        )
    load_ciphers()
    guard = GroupGuard(group, name, credentials, entropy=os.urandom, kind=fastest())
    if guard.longest_word > LARGE:
        raise UsageError(
            f"{name!r} and its certificate are too long: to prove who it is takes {guard.longest_word} octets, and what comes "
            f"from somebody who has not done so may have {LARGE}"
        )
    return guard


@cache
def warn_plain(group: str, order: str, *, can_be_secured: bool) -> None:
    """Warn, once for each group, that everybody who reaches its network can read and forge its messages."""
    remedy = "pass secret= or identity=, which `inga keys` makes"
    if not can_be_secured:
        remedy = (
            f"order {order!r} speaks a wire format of others and cannot be: keep its network to yourselves"
        )
    report(
        "group.plain",
        "group %s is not secured: whoever reaches its network can read what is said in it, speak in the name of members and "
        "stall it; %s",
        group,
        remedy,
    )


def _credentials(said: JoinOptions, name: str) -> Credentials | None:
    secret, identity = said["secret"], said["identity"]
    if secret is not None and identity is not None:
        raise UsageError("a group has a secret or certificates: pass secret or identity, not both")
    if secret is not None:
        return KnownSecret(_secret(secret))
    if identity is None:
        return None
    known = identity if isinstance(identity, Identity) else Identity.load(identity)
    if known.name != name:
        raise UsageError(f"the certificate is that of {known.name!r}, not of {name!r}")
    try:
        known.check(time.time())
    except KeysError as error:
        where = "the identity" if isinstance(identity, Identity) else printable(os.fspath(identity))
        raise KeysError(
            error.reason, f"{where}: {error}; `inga keys member {name} --authority DIR` makes another"
        ) from None
    return Certified(known, time.time)


def _secret(said: Secret | str | os.PathLike[str]) -> Secret:
    if isinstance(said, Secret):
        return said
    if isinstance(said, os.PathLike):
        return Secret.load(said)
    if isinstance(said, str):
        return Secret.load(said.removeprefix(FILE)) if said.startswith(FILE) else Secret.parse(said)
    raise UsageError(
        f"secret is a Secret, its text, or the path of a file as 'file:PATH', not {type(said).__name__}"
    )


@cache
def fastest() -> int:
    """The cipher that is faster on this machine, measured once."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

    data, times = bytes(16384), {}
    for kind, cipher in ((AES, AESGCM(bytes(32))), (CHACHA, ChaCha20Poly1305(bytes(32)))):
        tries = []
        for _ in range(5):
            start = time.perf_counter()
            cipher.encrypt(bytes(12), data, None)
            tries.append(time.perf_counter() - start)
        times[kind] = min(tries)
    return min(times, key=lambda kind: times[kind])
