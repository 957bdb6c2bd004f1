"""Explain a student's exception in one sentence, and make text that a student chose safe to show.

The message of an exception could reveal hidden inputs, so grading does not show it. The kinds of
exceptions in kinds.yaml are matched instead, and the kind is explained.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml

from ..box.worker.form import OPAQUE, Form
from ..box.worker.messages import Raised
from ..submission.newer_python import PYTHON
from ..submission.source import printable

LIMIT = 300  # characters of the evidence of one check
_KINDS = frozenset(
    (
        "tensor NoneType tuple list dict set str bytes bool int float complex ndarray function "
        "module generator type"
    ).split()
)
_LAYOUTS, _DTYPES = (
    [v for v in vars(torch).values() if isinstance(v, torch_type)]
    for torch_type in (torch.layout, torch.dtype)
)
# What the worker calls a tensor that is not sent, word for word: its type's name is no word.
_OTHER_TENSORS = frozenset(
    f"{v} {dtype} tensor".replace("torch.", "") for v in _LAYOUTS for dtype in _DTYPES
)


def sanitize(text: str, limit: int = LIMIT, *, keeps_blanks: bool = False) -> str:
    """Return one line of printable characters, without `::` (which starts a command to a CI
    runner), cut at `limit`.

    keeps_blanks: at its beginning and between words; else one alone stands between two words.
    """
    line = re.sub(r":{2,}", ":", printable(text)).rstrip()
    line = line if keeps_blanks else re.sub(r" +", " ", line).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def joined(*sentences: str) -> str:
    """Return sentences in a line, those that are not empty, each with one mark between it and the
    next.
    """
    *earlier, last = [*filter(None, sentences)] or [""]
    return (
        "".join(
            f"{sentence.removesuffix('.')}{'' if sentence.endswith('?') else '.'} "
            for sentence in earlier
        )
        + last
    )


def kind_name(type_name: str) -> str:
    """Return the type of a return value in words that may be shown: the name of a common type, or
    no name.
    """
    if type_name == "NoneType":
        return "None: is a return missing at its end?"
    if type_name == OPAQUE:
        return "a part that nobody looks at"
    # one digit: an attempt chose it, knowing its hidden inputs
    if re.fullmatch(r"(tuple|list) of [0-9]", type_name):
        return f"a {type_name}{' or more' if type_name.endswith('9') else ''}"
    if type_name in _KINDS or type_name in _OTHER_TENSORS:
        return f"{'an' if type_name[0] in 'aeiou' or type_name == 'ndarray' else 'a'} {type_name}"
    return "an object of another type"


def form_name(form: Form) -> str:
    """Return what is asked, in words: "a pair (y, cache)"."""
    if form.is_leaf:
        return "anything" if form.kind == "opaque" else "a tensor"
    how_many = {1: "a tuple of 1", 2: "a pair", 3: "a triple"}.get(
        len(form.parts), f"a tuple of {len(form.parts)}"
    )
    return f"{how_many} ({', '.join(form.names)})" if form.names else how_many


# Type names that may be shown. Any other becomes "an exception of its own".
_KNOWN = frozenset(
    """ArithmeticError AssertionError AttributeError BaseException EOFError EinopsError Exception
    FileNotFoundError FloatingPointError ImportError IndentationError IndexError KeyError
    KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotImplementedError
    OSError OverflowError PermissionError RecursionError RuntimeError StopIteration SyntaxError
    SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeError ValueError
    ZeroDivisionError""".split()
)
# Layers that a student may have forgotten to call: what stands in kinds.yaml for any of their
# names.
_LAYER = "LAYER", "(Linear|Dropout|Softmax|LayerNorm|Identity|Sequential|ModuleList)"
_REFUSALS = frozenset({"ValueError", "AssertionError"})
_OVERLOADS = ", but expected one of:"  # behind it PyTorch lists all signatures, on many lines
_MISSING = re.compile(r"name '(\w+)' is not defined|(\w+) is not defined in this file")


@dataclass(frozen=True)
class Kind:
    """A kind of exception: how to recognise it, what it means, and the misconception that causes
    it, if any.
    """

    type: str
    pattern: re.Pattern[str]
    meaning: str
    misconception: str | None = None
    at_call: bool = False  # raised by the engine's call, outside the student's lines
    id: str = ""  # of those that the engine asks for
    first: bool = False  # tried before all others

    def fits(self, raised: Raised) -> bool:
        """Return whether an exception is of this kind."""
        return (
            self.type in raised.bases
            and self.pattern.search(raised.message) is not None
            and not (self.at_call and raised.line)
        )


def _read() -> tuple[Kind, ...]:
    text = Path(__file__).with_name("kinds.yaml").read_bytes()
    exception_kinds = []
    for row in yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        pattern = re.compile("|".join(row.pop("says", ())).replace(*_LAYER), re.DOTALL)
        exception_kinds.append(Kind(row.pop("type"), pattern, row.pop("means"), **row))
    return tuple(exception_kinds)


KINDS = _read()
_IN_ORDER = sorted(KINDS, key=lambda exception_kind: not exception_kind.first)
_LEFT_OPEN = next(exception_kind for exception_kind in KINDS if exception_kind.id == "left_open")


def kind_of(raised: Raised) -> Kind | None:
    """Return the first kind that matches; None if none does."""
    exception_kind = next((candidate for candidate in _IN_ORDER if candidate.fits(raised)), None)
    return (
        _LEFT_OPEN
        if exception_kind and exception_kind.id == "unwritten" and raised.in_written
        else exception_kind
    )


def _is_one_of(raised: Raised | None, *ids: str) -> bool:
    exception_kind = kind_of(raised) if raised else None
    return exception_kind is not None and exception_kind.id in ids


def is_refusal(raised: Raised) -> bool:
    """Return whether the attempt refuses its arguments, as opposed to an error that Python or torch
    raises by itself.
    """
    return bool(_REFUSALS & set(raised.bases)) and kind_of(raised) is None


def says_unwritten(raised: Raised | None) -> bool:
    """Return whether what was called says that nothing is written in it. PyTorch raises exceptions
    of the same type.
    """
    return (
        raised is not None
        and raised.type == "NotImplementedError"
        and _is_one_of(raised, "unwritten")
    )


def is_unfinished(raised: Raised) -> bool:
    """Return whether what was called is not written or not there yet, which says nothing of the
    functions that are.
    """
    return _is_one_of(raised, "unwritten", "left_open", "undefined")


def is_left_open(raised: Raised | None) -> bool:
    """Return whether a function that has something in it says that a part of it is not written
    yet.
    """
    return _is_one_of(raised, "left_open")


def is_undefined(raised: Raised) -> bool:
    """Return whether the file has no such name as was asked for."""
    return _is_one_of(raised, "undefined")


def missing_name(raised: Raised | None) -> str:
    """Return the name for want of which a call raised; "" where it raised for another reason, or
    not at all.
    """
    named = (
        _MISSING.match(raised.message)
        if raised and raised.type in ("NameError", "AttributeError")
        else None
    )
    return (named[1] or named[2]) if named else ""


def is_shape_fault(raised: Raised) -> bool:
    """Return whether an operation got tensors whose shapes do not fit."""
    return _is_one_of(raised, "unmultiplied", "unfit")


def is_dtype_fault(raised: Raised) -> bool:
    """Return whether an operation got tensors of different dtypes. Then the answer in the other
    dtype says more.
    """
    exception_kind = kind_of(raised)
    return exception_kind is not None and exception_kind.misconception == "hard_coded_dtype"


def explain(raised: Raised) -> str:
    """Return one sentence: what was raised, where, and what that means."""
    name = next((base for base in raised.bases if base in _KNOWN), "an exception of its own")
    exception_kind = kind_of(raised)
    # not what the kind means
    misread = {"UnboundLocalError": "", "SyntaxError": "nested"}.get(raised.type)
    meaning = (
        f": {exception_kind.meaning}"
        if exception_kind and (misread is None or misread not in raised.message)
        else ""
    )
    if meaning and exception_kind and exception_kind.type == "SyntaxError":
        # a newer version may read it, and recordings depend on what stands in kinds.yaml
        meaning += f" {PYTHON}"
    return f"raised {name}{f' on line {raised.line}' if raised.line else ''}{meaning}"


def describe_exception(raised: Raised, requirement: str = "", *, is_shown: bool = True) -> str:
    """Return one sentence, with the exception's message where it is shown: to its student alone,
    where nothing is hidden.

    requirement: a sentence about what is due in its place.
    """
    # whose message is a number, or None
    says_nothing = says_unwritten(raised) or raised.type == "SystemExit"
    message, *_ = raised.message.split(_OVERLOADS)
    safe_message = sanitize(message) if is_shown and not says_nothing else ""
    return joined(
        explain(raised),
        safe_message and f"Python says: {safe_message}".removesuffix("."),
        requirement,
    )
