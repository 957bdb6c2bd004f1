"""Texts of course.yaml that have a form: what does not match is refused in words, and not with a regular expression.

Example: `Share = Annotated[str, Field(pattern=SHARE), written_as(SHARE, "a share such as 10%")]`. The pattern of the field stands
in the JSON Schema that editors use.
"""

from __future__ import annotations

import re

from pydantic import BeforeValidator

_SHOWN = 50  # characters of what an author wrote, so that a sentence stays on one line


def written_as(pattern: str, form: str) -> BeforeValidator:
    """Return a validator that refuses what does not match the pattern. form: what should stand there, in words."""
    compiled = re.compile(pattern)

    def check(value: object) -> object:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError(f"{ascii(value)[:_SHOWN]} should be {form}")
        return value

    return BeforeValidator(check)
