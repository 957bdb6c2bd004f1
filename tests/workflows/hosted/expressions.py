"""The service's expressions, as far as our workflows use them. What it does not know is an error, never a guess."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Value = Any  # None, bool, float, str, or a mapping that is still to be read from
STATUS = {"always", "success", "failure", "cancelled"}

_TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][\w-]*)|(?P<sign>==|!=|&&|\|\||[!().,]))"
)
_IN_TEXT = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


class UnknownExpression(Exception):
    """An expression, a context or a function that this evaluator does not know."""


@dataclass(frozen=True)
class Contexts:
    """What an expression may read, and the functions that say how the job stands."""

    values: Mapping[str, Mapping[str, Value]]
    status: Mapping[str, Callable[[], bool]]


def evaluate(expression: str, contexts: Contexts) -> Value:
    """The value of an expression without its `${{ }}`."""
    return _Parser(expression, contexts).whole()


def fill(text: str, contexts: Contexts) -> str:
    """A text with every `${{ }}` in it replaced, as in `run:`, `with:` and `env:`."""
    return _IN_TEXT.sub(lambda m: as_text(evaluate(m[1], contexts)), text)


def condition(text: str | bool, contexts: Contexts) -> bool:
    """An `if:`, with or without `${{ }}`. Without a status function of its own it asks for success() too."""
    if isinstance(text, bool):
        return text and contexts.status["success"]()
    whole = re.fullmatch(r"\s*\$\{\{(.*)\}\}\s*", text, re.DOTALL)
    expression = whole[1] if whole else text
    if "${{" in expression:
        raise UnknownExpression(text)
    asks = any(re.search(rf"\b{name}\s*\(", expression) for name in STATUS)
    holds = truth(evaluate(expression, contexts))
    return holds and (asks or contexts.status["success"]())


def truth(value: Value) -> bool:
    """false, 0, -0, "", null and nothing else are false."""
    return not (value is None or value is False or value == 0 or value == "")


def as_text(value: Value) -> str:
    """A value inside a text."""
    if isinstance(value, Mapping | list):
        raise UnknownExpression(f"an object in a text: {value!r}")
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _equal(a: Value, b: Value) -> bool:
    """The service compares texts without their case, and other kinds as numbers."""
    if isinstance(a, str) and isinstance(b, str):
        return a.lower() == b.lower()
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        raise UnknownExpression("objects are not compared here")
    return bool(type(a) is type(b) and a == b) or _number(a) == _number(b)


def _number(value: Value) -> float:
    if value is None:
        return 0.0
    if isinstance(value, str):
        try:
            return float(value or 0)
        except ValueError:
            return float("nan")
    return float(value)


class _Parser:
    """or → and → equality → not → primary. Evaluates as it reads: nothing in here has side effects."""

    def __init__(self, expression: str, contexts: Contexts) -> None:
        self._text, self._contexts = expression, contexts
        self._tokens = list(_tokens(expression))
        self._place = 0

    def whole(self) -> Value:
        value = self._either()
        if self._place != len(self._tokens):
            raise UnknownExpression(self._text)
        return value

    def _either(self) -> Value:
        value = self._both()
        while self._take("||"):
            other = self._both()
            value = value if truth(value) else other
        return value

    def _both(self) -> Value:
        value = self._compared()
        while self._take("&&"):
            other = self._compared()
            value = other if truth(value) else value
        return value

    def _compared(self) -> Value:
        value = self._negated()
        for sign in ("==", "!="):
            if self._take(sign):
                return _equal(value, self._negated()) == (sign == "==")
        return value

    def _negated(self) -> Value:
        return not truth(self._negated()) if self._take("!") else self._primary()

    def _primary(self) -> Value:
        if self._take("("):
            value = self._either()
            self._must(")")
            return value
        kind, token = self._next()
        if kind == "string":
            return token[1:-1].replace("''", "'")
        if kind == "number":
            return float(token)
        if kind == "name":
            return self._named(token)
        raise UnknownExpression(self._text)

    def _named(self, name: str) -> Value:
        if name in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[name]
        if self._take("("):
            self._must(")")
            if name not in self._contexts.status:
                raise UnknownExpression(f"{name}()")
            return self._contexts.status[name]()
        if name not in self._contexts.values:
            raise UnknownExpression(f"the context {name} in {self._text}")
        value: Value = self._contexts.values[name]
        while self._take("."):
            kind, part = self._next()
            if kind != "name":
                raise UnknownExpression(self._text)
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def _take(self, sign: str) -> bool:
        found = self._place < len(self._tokens) and self._tokens[self._place] == ("sign", sign)
        self._place += found
        return found

    def _must(self, sign: str) -> None:
        if not self._take(sign):
            raise UnknownExpression(self._text)

    def _next(self) -> tuple[str, str]:
        if self._place == len(self._tokens):
            raise UnknownExpression(self._text)
        self._place += 1
        return self._tokens[self._place - 1]


def _tokens(text: str):
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise UnknownExpression(text)
        yield match.lastgroup, match[match.lastgroup]
        place = match.end()
