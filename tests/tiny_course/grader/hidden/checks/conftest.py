"""Makes these checks runnable by hand: pytest grader/hidden/checks --attempt FILE_OR_FOLDER"""

from grader.judge.byhand import *  # noqa: F403
