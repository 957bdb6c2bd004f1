"""Dates and durations as course.yaml, overrides.yaml and platforms write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil
from typing import Annotated

from pydantic import AfterValidator, Field

from .written_form import WrittenAs

# A clock, then its zone.
_MOMENT = re.compile(r"(\S{8,10}[ T][\d:.,]+) ?([+-]\d\d(?::?\d\d)?|[A-Za-z][\w+/-]*)?")
_FIRST, _END = datetime(1990, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)
_UNITS = {name: timedelta(**{f"{name}s": 1}) for name in ("day", "hour", "minute", "second")}


def read_moment(text: str, zone: str = "") -> datetime | None:
    """Return the moment in UTC that an ISO 8601 date and time mean; None for all else, and never an
    exception.

    The text, such as 2026-12-01T18:00:30Z or 2026-12-01 18:00:30.5 Europe/Berlin, may come from a
    student, so nothing before 1990 or after 2100 is a moment. zone: of a text that names none. Of
    two moments that a clock shows alike, as in autumn, the later is meant.
    """
    match = _MOMENT.fullmatch(text.strip()) if len(text) <= 100 else None
    if match is None:
        return None
    clock, named = match[1], match[2] or zone
    try:
        if named[:1] in ("+", "-") or named == "Z":
            when = datetime.fromisoformat(clock + named).astimezone(UTC)
        elif tz := zone_named(named):
            local = datetime.fromisoformat(clock)
            when = max(local.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (0, 1))
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return when if _FIRST <= when < _END else None


def moment(text: str, zone: str = "") -> datetime:
    """Return what `read_moment` reads.

    Raises ValueError where that is nothing, or an hour that a zone's clocks skip.
    """
    when = read_moment(text, zone)
    if when is not None and (skipping := _zone_that_skips(text, zone)):
        problem = (
            f"is an hour that {skipping} skips, where clocks go forward: write an earlier or "
            "a later time"
        )
        raise ValueError(f"{text:.60} {problem}")
    if when is not None:
        return when
    if zone or read_moment(text, "UTC") is None:
        raise ValueError(
            f"{text!a:.60} is no date and time of 1990 to 2100, such as 2026-12-01 18:00 "
            "Europe/Berlin"
        )
    raise ValueError(
        f"{text:.60} has no zone: write +01:00 after it, or give the course a time_zone"
    )


def _zone_that_skips(text: str, zone: str) -> str:
    """Return the zone of a text that `read_moment` reads, if no clock there shows this time; else
    "".
    """
    match = _MOMENT.fullmatch(text.strip())
    name = (match and match[2]) or zone
    tz = zone_named(name) if match and name[:1] not in ("+", "-") and name != "Z" else None
    if match is None or tz is None:
        return ""
    local = datetime.fromisoformat(match[1])
    round_trip = local.replace(tzinfo=tz).astimezone(UTC).astimezone(tz).replace(tzinfo=None)
    return "" if round_trip == local else name


def zone_named(name: str) -> tzinfo | None:
    """Return the zone, such as Europe/Berlin or UTC; None where none is known by this name."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return UTC if name == "UTC" else ZoneInfo(name)  # a system may have no list of zones
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


def shown_moment(when: datetime, zone: str = "") -> str:
    """2026-12-01 18:00 Europe/Berlin, as people read it; in UTC where no zone is named or known."""
    tz = zone_named(zone)
    return f"{when.astimezone(tz):%Y-%m-%d %H:%M} {zone}" if tz else f"{when:%Y-%m-%d %H:%M} UTC"


def duration(text: str) -> timedelta:
    """Return how long a `Duration` is."""
    number, unit = re.findall("[0-9]+|[a-z]+", text)
    return int(number) * next(length for name, length in _UNITS.items() if name[0] == unit[0])


def shown_duration(lasted: timedelta) -> str:
    """30 seconds, 1 day 6 hours: the two largest units of which there are any.

    A begun second is one.
    """
    remaining, words = timedelta(seconds=ceil(lasted.total_seconds())), []
    for name, unit in _UNITS.items():
        count, remaining = divmod(remaining, unit)
        words += [f"{count} {name}" + "s" * (count > 1)] if count else []
    return " ".join(words[:2])


def _zone(name: str) -> str:
    # Where there is no list of zones, as on Windows, any name goes: students' commands need none.
    if zone_named(name) is None and zone_named("Europe/Berlin") is not None:
        raise ValueError(f"{name!a} is no time zone that is known here; one is Europe/Berlin")
    return name


Moment = Annotated[
    str,
    Field(description="such as 2026-12-01 18:00 in the course's time_zone, or 2026-12-01 17:00Z"),
]
Zone = Annotated[str, AfterValidator(_zone), Field(description="such as Europe/Berlin")]
Duration = Annotated[
    str,
    WrittenAs(
        "^[0-9]{1,4} ?(minutes?|min|m|hours?|h|days?|d)$", "a time such as 30 min, 2 h or 7 days"
    ),
    Field(description="such as 30 min, 2 h or 7 days"),
]
