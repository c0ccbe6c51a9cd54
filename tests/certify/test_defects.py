"""Planted defects are found, each with the planted event named; clean traces pass."""

from random import Random

import pyarrow as pa
import pytest

from inga.certify.certificate import BUILT, certify
from inga.certify.chunk import from_table
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.certify.verdict import Certificate
from inga.lab.traces import DEFECTS, LEVEL_DEFECTS, Maker, Planted, Recipe

EVENTS = 1500


def made(recipe: Recipe) -> tuple[Chunks, Planted | None]:
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
    return Chunks(chunks, processes, recipe.receipt), maker.planted


def assert_found(certificate: Certificate, planted: Planted) -> None:
    check = next(check for check in certificate.checks if check.name == planted.check)
    assert check.verdict == "fail"
    named = [(each.process, each.pos, each.message) for each in check.witnesses]
    assert (planted.process, planted.pos, planted.message) in named


@pytest.mark.parametrize("defect", DEFECTS)
def test_fifty_of_each_kind_are_found(defect: str) -> None:
    for seed in range(50):
        receipt = "take" if seed % 2 else "deliver"
        members = 3 + seed % 4
        recipe = Recipe(EVENTS, members, burst=1 + seed % 3, receipt=receipt, seed=seed, defect=defect)
        source, planted = made(recipe)
        assert planted is not None

        assert_found(certify(source, BUILT, witnesses=1000, seed=seed), planted)


@pytest.mark.parametrize("defect", [*DEFECTS, *LEVEL_DEFECTS])
def test_fifty_of_each_kind_are_found_among_levels(defect: str) -> None:
    for seed in range(50):
        members = 3 + seed % 4
        recipe = Recipe(2 * EVENTS, members, burst=1 + seed % 3, receipt="accept", seed=seed, defect=defect)
        source, planted = made(recipe)
        assert planted is not None

        assert_found(certify(source, BUILT, witnesses=1000, seed=seed), planted)


@pytest.mark.parametrize("receipt", ["deliver", "take", "accept"])
def test_clean_traces_pass(receipt: str) -> None:
    for seed in range(20):
        recipe = Recipe(2 * EVENTS, 3 + seed % 4, burst=1 + seed % 3, receipt=receipt, seed=seed)
        source, planted = made(recipe)
        certificate = certify(source, recipe.guarantees, seed=seed)
        assert planted is None
        assert certificate.verdict == "pass", certificate.to_json()
        assert certificate.groups == []


def test_what_only_a_receiver_did_spoils_no_other_check() -> None:
    """With receipts of their own, a lost or repeated or forged delivery leaves the stamps alone."""
    for defect, alone in (("loss", ["complete", "atomic"]), ("forgery", ["integrity"])):
        source, _ = made(Recipe(EVENTS, receipt="take", members=4, seed=3, defect=defect))
        certificate = certify(source, BUILT)
        assert [check.name for check in certificate.checks if check.verdict == "fail"] == alone


def test_levels_spoil_no_other_check() -> None:
    """Acceptance makes stamps: a message never accepted was no cause, so what follows looks wrong too."""
    for defect, also in (("split", ["complete"]), ("noise", [])):
        source, planted = made(Recipe(2 * EVENTS, receipt="accept", members=4, seed=3, defect=defect))
        assert planted is not None
        certificate = certify(source, BUILT)
        failed = {check.name for check in certificate.checks if check.verdict == "fail"}
        assert failed == {planted.check, *also}


def test_without_control_rows_quiet_is_open() -> None:
    source, _ = made(Recipe(EVENTS, receipt="take", members=4, seed=3))
    (check,) = certify(source, ["quiet"]).checks
    assert check.verdict == "unknown"
    assert "control traffic" in check.reason
