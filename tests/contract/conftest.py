"""The suite runs for every case. What does not keep the contract yet is listed here, with what it does instead."""

import pytest

from .group import CASES, Case

ON_MIOP = tuple(case.name for case in CASES if "miop" in case.order)
OBJECTS = tuple(case.name for case in CASES if case.order.endswith(("object", "total")))
BARE = tuple(case.name for case in CASES if case.protocol)

KNOWN: dict[str, tuple[tuple[str, ...], str]] = {
    "test_repairs_for_one_request_are_bounded": (BARE, "links send all copies again at one time"),
}
"""By test: the cases that fail, and why. A case that is mended fails here until its name is taken out."""


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names, why = KNOWN.get(getattr(item, "originalname", ""), ((), ""))
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")  # type: ignore[attr-defined]
        if isinstance(case, Case) and case.name in names:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))
