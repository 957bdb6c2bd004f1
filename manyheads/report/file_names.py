"""Names of files and folders for students, which every system accepts, and tells apart."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection

from ..submission import is_reserved
from ..submission.roster import folded

_PLAIN = re.compile(r"\w[\w @+.-]{0,50}")
_DIGEST = re.compile(r"-[0-9a-f]{12}", re.IGNORECASE)  # what ends the name of one who cannot have the own one


def file_stems(students: Collection[str]) -> Callable[[str], str]:
    """Makes the name of a file, without its ending, for each of these students.

    It is the student's name, if every system accepts that, and if no other differs from it in case alone: their files
    would overwrite one another where case does not count.
    """
    alike = Counter(folded(student) for student in students)

    def stem(student: str) -> str:
        taken = is_reserved(student) or student.endswith((" ", ".")) or _DIGEST.fullmatch(student[-13:])
        if _PLAIN.fullmatch(student) and not taken and alike[folded(student)] < 2:
            return student
        digest = hashlib.sha256(student.encode()).hexdigest()[:12]
        return f"{re.sub(r'[^a-zA-Z0-9]+', '_', student)[:40]}-{digest}"

    return stem
