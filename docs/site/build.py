"""Put pages together, and have Sphinx make a site of them. A link or an anchor that leads nowhere
ends the build.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

from manyheads.course import load_course

from .commands import commands_page
from .finish import finish_page
from .misconceptions import misconception_pages
from .rooms import rooms_picture
from .schemas import schema_page

HERE = Path(__file__).parent
DOCS = HERE.parent
ROOT = DOCS.parent
GROUPS = {
    "Start": ["student", "instructor", "faq"],
    "How to": [
        "collect",
        "decisions",
        "reports",
        "nbgrader",
        "gradescope",
        "pull-requests",
        "cluster",
        "writing-exercises",
        "contributing",
    ],
    "Reference": [
        "commands",
        "course-yaml",
        "overrides-yaml",
        "results",
        "checks",
        "misconceptions",
    ],
    "Explanation": [
        "diagnosis",
        "architecture",
        "walks",
        "threat-model",
        "performance",
        "attention",
        "gallery",
    ],
}


class SiteFault(Exception):
    """Sphinx has warned of something; its words are on stderr."""


def build(target: Path) -> Path:
    """Build the site into a folder, and return its first page. Raises SiteFault."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        write_pages(source)
        shutil.copy(HERE / "conf.py", source)
        if build_main(
            ["--fail-on-warning", "--keep-going", "--quiet", "-b", "html", str(source), str(target)]
        ):
            raise SiteFault(
                "the site has faults, which are named above. Next: mend the pages, then make docs"
            )
    for path in target.glob("*.html"):
        path.write_text(finish_page(path.read_text(encoding="utf-8")), encoding="utf-8")
    return target / "index.html"


def write_pages(source: Path) -> None:
    """Write all pages into a folder: those of docs/, README.md as the first, and those that are
    made from the code.
    """
    for path in (*DOCS.glob("*.md"), *DOCS.glob("*.png"), *DOCS.glob("*.svg")):
        shutil.copy(path, source)
    (source / "_static").mkdir()
    shutil.copy(HERE / "style.css", source / "_static")
    for name, text in made_pages().items():
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    (source / "rooms.svg").write_text(rooms_picture(), encoding="utf-8")
    architecture = source / "architecture.md"
    picture = "![The rooms of the engine, and which imports which.](rooms.svg)\n\n"
    architecture.write_text(
        architecture.read_text(encoding="utf-8").replace("\n| room |", f"\n{picture}| room |", 1)
    )
    for path in source.glob("*.md"):
        path.write_text(remove_dead_links(path.read_text(encoding="utf-8")), encoding="utf-8")
    readme, contributing = (_of_docs(ROOT / name) for name in ("README.md", "CONTRIBUTING.md"))
    (source / "contributing.md").write_text(contributing, encoding="utf-8")
    trees = "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(names) + "\n```\n"
        for title, names in GROUPS.items()
    )
    (source / "index.md").write_text(f"{readme}\n{trees}", encoding="utf-8")


def made_pages() -> dict[str, str]:
    """Return the reference pages, by name: each is made from what it is about."""
    return {
        "commands": commands_page(),
        "course-yaml": schema_page(
            "course", "course.yaml", "What stands in `course.yaml`, at the root of a course."
        ),
        "overrides-yaml": schema_page(
            "overrides",
            "overrides.yaml",
            "What a human decides. [decisions.md](decisions.md) shows it at work.",
        ),
        "results": schema_page(
            "result",
            "A result",
            "What `course grade` writes: `results/<student>/<assignment>.json`.",
        ),
        **misconception_pages(load_course(ROOT)),
    }


def _of_docs(path: Path) -> str:
    """Return a page of the repository's root as a page beside those of docs/."""
    text = (
        path.read_text(encoding="utf-8")
        .replace("](docs/", "](")
        .replace("](CONTRIBUTING.md", "](contributing.md")
    )
    return remove_dead_links(text)


def remove_dead_links(text: str) -> str:
    """Return a page without its links to files that no page is made of: their words stay."""
    return re.sub(
        r"\[([^\]]*)\]\((?!https?:|#|(?!CHANGELOG)[\w-]+\.(?:md|svg|png)(?:#|\)))[^)]*\)",
        r"\1",
        text,
    )
