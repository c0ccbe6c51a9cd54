"""The harm that an attacker does to a group, plain and secured: goodput while it sends as fast as one core can, and violations.

*Undisturbed* means that the same core is as busy with something else, so that the comparison shows the work that the attacker
causes, not the processor time that it takes.
"""

import socket
from typing import Any

from inga.keys.secret import Secret
from inga.lab.bench import BenchRow, SayProgress
from inga.lab.hostile import FORMER, KINDS
from inga.runs.cluster import Cluster
from inga.runs.live import free_ports

MEMBERS, SIZE = 3, 1024
SECONDS, QUICK = 60.0, 3.0
PATIENCE = 60.0
"""Seconds after the end of the flood after which a run has failed."""


def run(progress: SayProgress, note: SayProgress, *, quick: bool) -> list[BenchRow]:
    """Measure messages per second and receiver under each kind of flood, against none."""
    seconds = QUICK if quick else SECONDS
    secret = Secret.make().text()
    rows = []
    for how, options, kinds in (
        ("plain", {}, [kind for kind in KINDS if kind != FORMER]),  # a plain group has no keys to keep
        ("secured", {"secret": secret}, KINDS),
    ):
        progress(f"{how}, undisturbed")
        calm = _play("nothing", seconds, options)
        for kind in kinds:
            progress(f"{how}, {kind} for {seconds:g} s")
            found = _play(kind, seconds, options)
            rows.append(
                BenchRow(
                    f"{how}, {kind}", calm["rate"], found["rate"], "messages/s and receiver", "undisturbed"
                )
            )
            note(
                f"{how}, {kind}: {found['sent'] / seconds:,.0f} hostile datagrams/s, {found['rejected']:,} dropped, "
                f"{found['wrong']} wrong deliveries, {found['excluded']} members excluded, {found['ended']} ended, "
                f"{found['grown'] / 1024:+.0f} MiB against {calm['grown'] / 1024:+.0f}"
            )
    return rows


def _play(kind: str, seconds: float, options: dict[str, Any]) -> dict[str, float]:
    names = [f"member{i}" for i in range(MEMBERS)]
    via = f"udp://239.7.7.8:{free_ports(1, socket.SOCK_DGRAM)[0]}"
    common = {"members": names, "via": via, "order": "causal", "size": SIZE, "seconds": seconds, **options}
    with Cluster("inga.lab.jobs_hostile:talk", [{**common, "name": name} for name in names]) as group:
        people = [each["who"] for each in group.gather("ready", timeout=PATIENCE)]
        stranger = {**common, "kind": kind, "people": people, "name": "former"}
        with Cluster("inga.lab.jobs_hostile:disturb", [stranger]) as others:
            others.gather("ready", timeout=PATIENCE)
            others.tell("go")
            group.tell("go")
            ends = group.gather("done", timeout=seconds + PATIENCE)
            sent = others.gather("done", timeout=PATIENCE)[0]["sent"]
            group.tell("close")
            others.tell("close")
    return {
        "rate": sum(end["taken"] for end in ends) / (seconds * MEMBERS),
        "sent": sent,
        "wrong": sum(end["wrong"] for end in ends),
        "excluded": max(end["excluded"] for end in ends),
        "ended": sum(bool(end["ended"]) for end in ends),
        "rejected": sum(end["rejected"] for end in ends),
        "grown": max(end["grown"] for end in ends),
    }
