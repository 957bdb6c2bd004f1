"""The fixtures of all checks. With them the checks also run by hand:

pytest grader/checks --attempt FILE_OR_FOLDER
"""

import pytest

from manyheads.judge.pytest_plugin import *  # noqa: F403


@pytest.fixture
def sizes(request, draw):
    """Return the file's SIZES: they differ pairwise, so that swapped axes show."""
    choices = request.module.SIZES
    return draw.sizes(**choices) if isinstance(choices, dict) else choices(draw)


@pytest.fixture
def weights(request, draw, sizes):
    """Return weights of the file's MODULE by name."""
    return request.module.MODULE.weights(draw, sizes)


@pytest.fixture
def x(request, draw, sizes, weights):
    """Return the input of the file's MODULE, which is drawn after its weights."""
    return request.module.MODULE.inputs(draw, sizes)[0]
