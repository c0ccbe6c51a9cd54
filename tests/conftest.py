"""For all tests."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from inga.model.compiled import compiled


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what scenarios print now into their files")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Let `xdist_group` keep a group in one worker, so that there is one Spark session for the whole run.

    So it is with those who share a fixture of their module, without being told: each worker would make its own.
    pytest-xdist 3.8 puts the name of the group into an attribute that pytest 9.2 does not look at any more.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    yield
    for item in items:
        if compiled and item.get_closest_marker("interpreted"):
            item.add_marker(pytest.mark.skip(reason="inga is compiled"))
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid:
            item._id = type(item._id).parse(grouped)  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    """Hundreds of thousands of objects stay to the end with the tests: the garbage collector need not go through them again and again."""
    gc.collect()
    gc.freeze()


def _shares_a_fixture(item: pytest.Item) -> bool:
    asked = getattr(item, "_fixtureinfo", None)
    fixtures = {} if asked is None else asked.name2fixturedefs
    return any(each.scope == "module" for found in fixtures.values() for each in found)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session of all tests, which are in the group `spark`. Two parts are enough to see that parts meet."""
    from inga.model.errors import UsageError
    from inga.pipeline.session import find_java, open_session

    try:
        find_java()
    except UsageError as error:
        pytest.skip(str(error))
    session = open_session("local[2]", name="inga tests")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    stop, session.stop = (
        session.stop,
        lambda: None,
    )  # whoever opens a session here gets this one, and would stop it
    yield session
    stop()


@pytest.fixture
def lent(spark: Any) -> None:
    """Commands get the session of the tests: a JVM of their own would cost more than what they do with it."""
