"""Makes these checks runnable by hand: pytest grader/checks --attempt FILE_OR_FOLDER"""

from manyheads.judge.byhand import *  # noqa: F403
