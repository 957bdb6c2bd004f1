"""The fixtures of all checks. With them the checks also run by hand:

pytest grader/checks --attempt FILE_OR_FOLDER
"""

import pytest

from manyheads.judge.pytest_plugin import *  # noqa: F403


@pytest.fixture
def sizes(request, draw):
    """Return the file's SIZES: they differ pairwise, so that swapped axes show."""
    return draw.sizes(**request.module.SIZES)
