"""`course release`: exercises/ from solutions/."""

from __future__ import annotations

from rich.console import Console

from .options import CourseOption, course_of


def release(course: CourseOption = None) -> None:
    """Make exercises/ (stubs, notebooks, fingerprints) from solutions/.

    Example: `course release`
    """
    loaded = course_of(course)
    from ..authoring.release import write_release
    from ..judge.catalogue import Catalogue

    with Catalogue(loaded) as catalogue:
        written = write_release(loaded, catalogue)
    console = Console(highlight=False)
    console.print(f"{len(written)} files in {loaded.root / 'exercises'}. Next: course verify", soft_wrap=True)
