"""Read hand-ins: from the download of a platform to the text of an attempt.

The steps, in order:

1. `collect_downloads` lists each download (`read_archives`), recognises the platform by the paths
   (`download_layouts`), finds the student of each file (`roster_and_times`) and its exercise
   (`find_submitted_files`), and writes OUT/<student>/<assignment>/NN_name.py with a journal
   (`intake_journal`).
2. `find_submitted_files` lists the submissions in such a folder.
3. `read` returns the attempt at one exercise as a `Source`, and `source` analyses its text.

For example, with a roster, lovelaceada_11_22_04_reshape_dance.py in Canvas' zip becomes
submitted/ada/multi_head_attention/04_reshape_dance.py. All files are read as data. No code of a
student runs.
"""

from .find_submitted_files import (
    ENDINGS,
    NotGraded,
    Submission,
    find_submissions,
    is_archive,
    is_reserved,
    is_student,
    printable_name,
    read_not_graded,
    write_not_graded,
)
from .read import (
    read_attempt,
    read_bytes,
    read_exercise,
    read_file,
    read_text,
    size_limit,
    too_large,
)
from .source import Source, Unreadable, lines_of, proved_line

__all__ = [
    "ENDINGS",
    "NotGraded",
    "Source",
    "Submission",
    "Unreadable",
    "find_submissions",
    "is_archive",
    "is_reserved",
    "is_student",
    "lines_of",
    "printable_name",
    "proved_line",
    "read_attempt",
    "read_bytes",
    "read_exercise",
    "read_file",
    "read_not_graded",
    "read_text",
    "size_limit",
    "too_large",
    "write_not_graded",
]
