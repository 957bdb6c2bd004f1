"""The service's expressions, as far as our workflows use them. What it does not know is an error, never a guess.

Each is made into one of Python's, in which nothing is left but texts, `and`, `or`, `not`, `==`, `!=`, brackets and two calls.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Value = Any  # None, bool, number, text, or a mapping that is still to be read from
STATUS = {"always", "success", "failure", "cancelled"}

_SIGNS = {"&&": " and ", "||": " or ", "!": " not ", "==": "==", "!=": "!=", "(": "(", ")": ")"}
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<call>\w+)\(\)|(?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)"
    r"|(?P<sign>==|!=|&&|\|\||[!()]))"
)
_IN_TEXT = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


class UnknownExpression(Exception):
    """An expression, a context or a function that this evaluator does not know."""


class Text(str):
    """The service compares texts without their case; nothing is the same as an empty one."""

    def __eq__(self, other: object) -> bool:
        return str(other or "").lower() == self.lower()

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


@dataclass(frozen=True)
class Contexts:
    """What an expression may read, and the functions that say how the job stands."""

    values: Mapping[str, Mapping[str, Value]]
    status: Mapping[str, Callable[[], bool]]

    def read(self, path: str) -> Value:
        """The value of a name; None where a context has nothing of it."""
        first, *parts = path.split(".")
        if first not in self.values:
            raise UnknownExpression(f"the context {first}")
        value: Value = self.values[first]
        for part in parts:
            value = value.get(part) if isinstance(value, Mapping) else None
        return Text(value) if isinstance(value, str) else value

    def call(self, name: str) -> bool:
        """What a function says."""
        if name not in self.status:
            raise UnknownExpression(f"{name}()")
        return self.status[name]()


def evaluate(expression: str, contexts: Contexts) -> Value:
    """The value of an expression without its `${{ }}`."""
    place, parts = 0, list[str]()
    while expression[place:].strip():
        match = _TOKEN.match(expression, place)
        if match is None:
            raise UnknownExpression(expression)
        if match["text"]:
            text = match["text"][1:-1].replace("''", "'")
            parts.append(f"Text({text!r})")
        elif match["sign"]:
            parts.append(_SIGNS[match["sign"]])
        else:
            parts.append(f"call({match['call']!r})" if match["call"] else f"read({match['name']!r})")
        place = match.end()
    try:
        return eval("".join(parts), {"__builtins__": {}}, {"Text": Text, "read": contexts.read, "call": contexts.call})
    except SyntaxError:
        raise UnknownExpression(expression) from None


def fill(text: str, contexts: Contexts) -> str:
    """A text with every `${{ }}` in it replaced, as in `run:`, `with:` and `env:`."""

    def shown(match: re.Match[str]) -> str:
        value = evaluate(match[1], contexts)
        if isinstance(value, Mapping | list):
            raise UnknownExpression(f"an object in a text: {value!r}")
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    return _IN_TEXT.sub(shown, text)


def condition(text: str | bool, contexts: Contexts) -> bool:
    """An `if:`, with or without `${{ }}`. Without a status function of its own it asks for success() too."""
    if isinstance(text, bool):
        return text and contexts.status["success"]()
    whole = re.fullmatch(r"\s*\$\{\{(.*)\}\}\s*", text, re.DOTALL)
    expression = whole[1] if whole else text
    if "${{" in expression:
        raise UnknownExpression(text)
    asks = any(re.search(rf"\b{name}\s*\(", expression) for name in STATUS)
    return bool(evaluate(expression, contexts)) and (asks or contexts.status["success"]())
