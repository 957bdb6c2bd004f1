"""Open nbgrader's database: SQLite, PostgreSQL, or whatever its URL names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Grade, Gradebook, get_alembic_version
from sqlalchemy import inspect, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from ..errors import CourseFault
from .nbgrader_names import COURSE_ID

MOST_POINTS = 1e6  # of one cell: infinity and what adds up to it are a slip


def open_gradebook(url: str) -> Gradebook:
    """Open the database; it is created on first use. Raises CourseFault."""
    try:
        with _alembic_on_path():
            gradebook = Gradebook(_with_driver(url), COURSE_ID)
            _mark_version(gradebook)
        return gradebook
    except (SQLAlchemyError, ImportError, ValueError, OSError) as error:
        raise CourseFault(
            f"the gradebook cannot be opened ({reason(error)}). Next: check the URL, such as sqlite:///gradebook.db"
        ) from None


def demand_file(url: str) -> None:
    """Raise CourseFault if an SQLite file is missing, because SQLite would create it even for reading."""
    try:
        parsed = make_url(url)
    except SQLAlchemyError:
        return  # open_gradebook reports the error
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise CourseFault(f"there is no {parsed.database}. Next: course grade SUBMITTED --gradebook {url}")


@contextmanager
def reading(url: str) -> Iterator[Gradebook]:
    """Open a database that is there, to read it. Raises CourseFault."""
    demand_file(url)
    book = open_gradebook(url)
    try:
        yield book
    except SQLAlchemyError as error:
        raise CourseFault(f"the gradebook cannot be read ({reason(error)}). Next: nbgrader db upgrade") from None
    finally:
        book.close()


@contextmanager
def one_transaction(gradebook: Gradebook) -> Iterator[None]:
    """Make one transaction: nbgrader's API commits after every row, so its commits only flush until the end."""
    session = gradebook.db
    commit = session.commit
    session.commit = session.flush
    try:
        yield
        commit()
    except BaseException:
        session.rollback()
        raise
    finally:
        session.commit = commit


def demand_points(student: str, notebook: str, grade: Grade) -> None:
    """Raise CourseFault where a cell has a score that is no number of points: formgrader and SQL take any."""
    for kind in ("auto_score", "manual_score", "extra_credit"):
        value = getattr(grade, kind)
        if value is not None and not (isinstance(value, int | float) and abs(value) <= MOST_POINTS):
            raise CourseFault(
                f"the gradebook's {kind.replace('_', ' ')} of {student} in {notebook}, cell {grade.name}, is {value!a}, "
                "which is no number of points. Next: enter another one in formgrader, then the same command again"
            )


def reason(error: BaseException) -> str:
    """Return the first line of a database's error message."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _with_driver(url: str) -> str:
    """Return the URL with psycopg as PostgreSQL's driver, which `manyheads[nbgrader]` installs. SQLAlchemy's default may change."""
    scheme, separator, rest = url.partition("://")
    return f"postgresql+psycopg{separator}{rest}" if scheme in ("postgresql", "postgres") else url


def _mark_version(gradebook: Gradebook) -> None:
    """Write the schema's version if a killed run left it out, because `nbgrader db upgrade` needs it."""
    if "alembic_version" not in inspect(gradebook.engine).get_table_names():
        gradebook.db.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
    if gradebook.db.execute(text("SELECT version_num FROM alembic_version")).first() is None:
        gradebook.db.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": get_alembic_version()})
    gradebook.db.commit()


@contextmanager
def _alembic_on_path() -> Iterator[None]:
    """Put the folder of this Python on the PATH, where nbgrader finds the command `alembic`."""
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        yield
    finally:
        os.environ["PATH"] = path
