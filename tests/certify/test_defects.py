"""Planted defects are found, each with the planted event named; clean traces pass."""

from dataclasses import replace
from functools import cache
from random import Random

import pyarrow as pa
import pytest

from inga.certify.certificate import certify
from inga.certify.checks import CHECKS
from inga.certify.chunk import from_table
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.certify.verdict import Certificate
from inga.lab.traces import CONFLICTS, DEFECTS, KIND_DEFECTS, LEVEL_DEFECTS, Maker, Planted, TraceRecipe

pytestmark = pytest.mark.xdist_group("defects")  # they share their clean twins

EVENTS = 1500
ORDER = [check for check in CHECKS if check not in ("total", "views", "object", "clocks", "time")]
"""What every made trace keeps, as far as it has the rows."""


def made(recipe: TraceRecipe) -> tuple[Chunks, Planted | None]:
    """A made trace in memory, cut into chunks at random."""
    maker, random = Maker(recipe), Random(recipe.seed)
    parts: list[list[pa.Table]] = [[] for _ in range(recipe.members)]
    lengths = [0] * recipe.members
    for block in maker.blocks():
        for process, rows in enumerate(block):
            parts[process].append(rows.table(process, lengths[process] + 1))
            lengths[process] += len(rows.step)
    chunks = []
    for process, tables in enumerate(parts):
        whole = pa.concat_tables(tables)
        cuts = sorted(random.randrange(len(whole)) for _ in range(3))
        for low, high in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            part = whole.slice(low, high - low)
            chunks.append(from_table(part, process, recipe.members, recipe.receipt, where="made"))
    processes = [
        Process(f"p{at}", 1, count, complete=True, crashed=False) for at, count in enumerate(lengths)
    ]
    conflicts = {process.name: CONFLICTS for process in processes}
    return Chunks(chunks, processes, recipe.receipt, conflicts=conflicts), maker.planted


def assert_found(certificate: Certificate, planted: Planted) -> None:
    """The check fails, and a witness names the planted event: as its own, or as the one it is held against."""
    check = next(check for check in certificate.checks if check.name == planted.check)
    assert check.verdict == "fail"
    named = [(each.process, each.pos, each.message) for each in check.witnesses]
    named += [(each.against[0], each.against[1], each.message) for each in check.witnesses if each.against]
    named += [
        (each.against[0], each.against[2], each.other)
        for each in check.witnesses
        if each.against and each.other
    ]
    assert (planted.process, planted.pos, planted.message) in named


ALL_DEFECTS = [
    *(("plain", defect) for defect in (*DEFECTS, *LEVEL_DEFECTS)),
    *((kind, defect) for kind, defects in KIND_DEFECTS.items() for defect in defects),
]


def plant(kind: str, defect: str, seed: int) -> None:
    """One defect in a trace is found, and its clean twin passes."""
    levels = kind == "plain" and (defect in LEVEL_DEFECTS or seed % 3 == 0)
    receipt = "accept" if levels else "take" if seed % 2 else "deliver"
    members = 4 + seed % 3 if kind in ("total", "objects") else 3 + seed % 4
    events = (2 if levels else 1) * EVENTS
    recipe = TraceRecipe(
        events, members, burst=1 + seed % 3, receipt=receipt, seed=seed, defect=defect, kind=kind
    )
    source, planted = made(recipe)
    assert planted is not None
    checks = recipe.guarantees if kind != "plain" else ORDER
    assert_found(certify(source, checks, witnesses=1000, seed=seed), planted)
    certificate = clean(replace(recipe, defect=None))
    assert certificate.verdict == "pass" and not certificate.groups, certificate.to_json()


@cache
def clean(recipe: TraceRecipe) -> Certificate:
    """Of a trace without a defect, which is the twin of several that have one."""
    return certify(made(recipe)[0], recipe.guarantees, seed=recipe.seed)


@pytest.mark.parametrize(("kind", "defect"), ALL_DEFECTS)
def test_planted_defects_are_found(kind: str, defect: str) -> None:
    for seed in range(20):
        plant(kind, defect, seed)


@pytest.mark.hunt
@pytest.mark.parametrize(("kind", "defect"), ALL_DEFECTS)
def test_a_thousand_planted_defects_are_found(kind: str, defect: str) -> None:
    for seed in range(20, 1020):
        plant(kind, defect, seed)


@pytest.mark.parametrize("receipt", ["deliver", "take", "accept"])
def test_clean_traces_pass(receipt: str) -> None:
    for seed in range(20):
        recipe = TraceRecipe(2 * EVENTS, 3 + seed % 4, burst=1 + seed % 3, receipt=receipt, seed=seed)
        source, planted = made(recipe)
        certificate = certify(source, recipe.guarantees, seed=seed)
        assert planted is None
        assert certificate.verdict == "pass", certificate.to_json()
        assert certificate.groups == []


def test_what_only_a_receiver_did_spoils_no_other_check() -> None:
    """With receipts of their own, a lost or repeated or forged delivery leaves the stamps alone."""
    for defect, alone in (("loss", ["complete", "atomic"]), ("forgery", ["integrity"])):
        source, _ = made(TraceRecipe(EVENTS, receipt="take", members=4, seed=3, defect=defect))
        certificate = certify(source, ORDER)
        assert [check.name for check in certificate.checks if check.verdict == "fail"] == alone


def test_levels_spoil_no_other_check() -> None:
    """Acceptance makes stamps: a message never accepted was no cause, so what follows looks wrong too."""
    for defect, also in (("split", ["complete"]), ("noise", [])):
        source, planted = made(TraceRecipe(2 * EVENTS, receipt="accept", members=4, seed=3, defect=defect))
        assert planted is not None
        certificate = certify(source, ORDER)
        failed = {check.name for check in certificate.checks if check.verdict == "fail"}
        assert failed == {planted.check, *also}


def test_without_control_rows_quiet_is_open() -> None:
    source, _ = made(TraceRecipe(EVENTS, receipt="take", members=4, seed=3))
    (check,) = certify(source, ["quiet"]).checks
    assert check.verdict == "unknown"
    assert "control traffic" in check.reason
