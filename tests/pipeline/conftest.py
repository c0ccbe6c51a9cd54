from collections.abc import Iterator
from typing import Any

import pytest

from inga.model.errors import UsageError
from inga.pipeline.session import find_java, open_session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs all Spark tests, so that there is one session for the whole run."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    try:
        find_java()
    except UsageError as error:
        pytest.skip(str(error))
    session = open_session("local[2]", name="inga tests")
    yield session
    session.stop()
