from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from inga.model.errors import UsageError
from inga.pipeline.session import find_java, open_session

# A busy machine is no reason to fail: Hypothesis counts examples here, not milliseconds.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    try:
        find_java()
    except UsageError as error:
        pytest.skip(str(error))
    session = open_session("local[2]", name="inga tests")
    yield session
    session.stop()
