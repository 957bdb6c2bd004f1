"""Texts of course.yaml that have a form: what does not match is refused in words, and not with a
regular expression.

Example: `Share = Annotated[str, WrittenAs(r"^[0-9]+%$", "a share such as 10%")]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_SHOWN = 50  # characters of what an author wrote, so that a sentence stays on one line


@dataclass(frozen=True)
class WrittenAs:
    """Mark a field as a text that the pattern matches whole.

    The pattern stands in the JSON Schema that editors use, too.

    in_words: what should stand there, as a sentence says it.
    """

    pattern: str
    in_words: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the text's schema, with a validator that speaks before pydantic does."""
        text = core_schema.str_schema(pattern=self.pattern)
        return core_schema.no_info_before_validator_function(self._checked, text)

    def _checked(self, value: object) -> object:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise ValueError(f"{ascii(value)[:_SHOWN]} should be {self.in_words}")
        return value
