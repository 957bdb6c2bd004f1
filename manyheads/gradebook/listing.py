"""Which notebooks an nbgrader command takes: as nbgrader lists them, but for folders whose names hold *, ? or [.

nbgrader reads the folder's name as a pattern, matches nothing, and leaves such a student out.
"""

from __future__ import annotations

import glob
import os
from typing import Any

from nbgrader.converters.base import NbGraderException


def init_notebooks(converter: Any) -> None:
    """In place of nbgrader's BaseConverter.init_notebooks. Raises NbGraderException where nothing matches."""
    directory = converter.coursedir
    converter.assignments, converter.notebooks = {}, []
    exact = converter._format_source(directory.assignment_id, directory.student_id)
    for folder in folders_named(exact, directory.student_id):
        found = glob.glob(os.path.join(glob.escape(folder), directory.notebook_id + ".ipynb"))
        if found:
            converter.assignments[folder] = found
        else:
            converter.log.warning("No notebooks were matched by '%s'", folder)
    if not converter.assignments:
        message = f"No notebooks were matched by '{exact}'"
        converter.log.error(message)
        raise NbGraderException(message)


def folders_named(exact: str, student: str) -> list[str]:
    """The folders that a path with this student in it names: that of one student, or all that it matches as a pattern.

    "*" is everybody, although a student's folder may have that name, too.
    """
    return [exact] if student != "*" and os.path.isdir(exact) else sorted(glob.glob(exact))
