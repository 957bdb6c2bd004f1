"""Makes these checks runnable by hand: pytest grader/checks --attempt FILE_OR_FOLDER"""

from manyheads.judge.pytest_plugin import *  # noqa: F403
