"""For all tests."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let `xdist_group` keep a group in one worker, so that there is one Spark session for the whole run.

    pytest-xdist 3.8 puts the name of the group into an attribute that pytest 9.2 does not look at any more.
    """
    for item in items:
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid:
            item._id = type(item._id).parse(grouped)  # type: ignore[attr-defined]
