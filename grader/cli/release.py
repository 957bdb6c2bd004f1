"""`course release`: exercises/ from solutions/."""

from __future__ import annotations

from rich.console import Console

from .options import CourseOption, course_of


def release(course: CourseOption = None) -> None:
    """Make exercises/ (stubs, notebooks, fingerprints) from solutions/.

    Example: `course release`
    """
    from ..authoring.release import write_release
    from ..judge.catalogue import Catalogue

    loaded = course_of(course)
    with Catalogue(loaded) as catalogue:
        written = write_release(loaded, catalogue)
    Console(highlight=False).print(f"{len(written)} files in {loaded.root / 'exercises'}. Next: course verify")
