"""nbgrader on this course: source/ from solutions/, release to exercises/, autograde in the box.

Other assignments may stand in source/ beside it: they go nbgrader's own way.

nbgrader generate_assignment multi_head_attention --force
nbgrader autograde multi_head_attention
nbgrader generate_feedback multi_head_attention
"""

import os
import sysconfig
from pathlib import Path

root = Path(__file__).parent
try:
    from manyheads.authoring.make_stub import STUB
    from manyheads.course import load_course
    from manyheads.platforms.nbgrader_gradebook import COURSE_ID
    from manyheads.platforms.wrap_nbgrader_commands import SOURCE, Collect, prepare

    course = load_course(root)
    prepare(course)
except Exception as fault:
    # nbgrader reports an error in this file and goes on without it: it would run student code with
    # no box around it.
    raise SystemExit(
        f"nothing was done, for {Path(__file__).name} cannot prepare nbgrader: {fault}"
    ) from None
c = get_config()  # noqa: F821

# nbgrader starts programs by their bare names: those beside this Python are found without an
# activated environment.
os.environ["PATH"] = os.pathsep.join(
    [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
)

c.CourseDirectory.root = str(root)
c.CourseDirectory.course_id = COURSE_ID
c.CourseDirectory.source_directory = str(SOURCE)
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    ".pytest_cache",
    ".gitignore",
]

# A stub is the same in what nbgrader releases: run untouched, it says which part to write.
c.ClearSolutions.code_stub = {"python": "\n".join(STUB)}

# A link that a student leaves in the exchange hands in nothing of this folder.
c.ExchangeFactory.collect = Collect
