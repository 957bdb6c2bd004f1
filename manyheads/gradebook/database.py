"""nbgrader's database, opened: SQLite, PostgreSQL, whatever its URL names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook, get_alembic_version
from sqlalchemy import inspect, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from ..errors import CourseFault
from .names import COURSE_ID


class GradebookError(CourseFault):
    """The database cannot be used. The text ends with what to do next."""


def open_gradebook(url: str) -> Gradebook:
    """Open the database, made on first use. Raises GradebookError."""
    try:
        with _alembic_in_reach():
            gradebook = Gradebook(_with_driver(url), COURSE_ID)
            _mark_version(gradebook)
        return gradebook
    except (SQLAlchemyError, ImportError, ValueError, OSError) as error:
        raise GradebookError(
            f"the gradebook cannot be opened ({reason(error)}). Next: check the URL, such as sqlite:///gradebook.db"
        ) from None


def demand_file(url: str) -> None:
    """SQLite makes the file that it does not find: who only reads wants none. Raises GradebookError."""
    try:
        parsed = make_url(url)
    except SQLAlchemyError:
        return  # open_gradebook says what is wrong with it
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise GradebookError(f"there is no {parsed.database}. Next: course grade SUBMITTED --gradebook {url}")


@contextmanager
def one_transaction(gradebook: Gradebook) -> Iterator[None]:
    """All or nothing: nbgrader's API commits after every row, which here only flushes. Commits at the end."""
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


def reason(error: BaseException) -> str:
    """The first line of a database's complaint, for one sentence."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _with_driver(url: str) -> str:
    """PostgreSQL through psycopg, which `manyheads[nbgrader]` installs. SQLAlchemy's own choice has changed before."""
    scheme, separator, rest = url.partition("://")
    return f"postgresql+psycopg{separator}{rest}" if scheme in ("postgresql", "postgres") else url


def _mark_version(gradebook: Gradebook) -> None:
    """Write the schema's version where a run was killed after it made the tables: `nbgrader db upgrade` asks for it."""
    if "alembic_version" not in inspect(gradebook.engine).get_table_names():
        gradebook.db.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
    if gradebook.db.execute(text("SELECT version_num FROM alembic_version")).first() is None:
        gradebook.db.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": get_alembic_version()})
    gradebook.db.commit()


@contextmanager
def _alembic_in_reach() -> Iterator[None]:
    """nbgrader calls the command `alembic` by name: let it find the one that is installed beside us."""
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        yield
    finally:
        os.environ["PATH"] = path
