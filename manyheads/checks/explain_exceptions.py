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

from ..box.worker.messages import Raised
from ..box.worker.result_form import OPAQUE, Form
from ..submission.newer_python import PYTHON
from ..submission.source import printable

LIMIT = 300  # characters of the evidence of one check
_KINDS = frozenset(
    (
        "tensor NoneType tuple list dict set str bytes bool int float complex ndarray function "
        "module generator type"
    ).split()
)
_LAYOUTS = [value for value in vars(torch).values() if isinstance(value, torch.layout)]
_DTYPES = [value for value in vars(torch).values() if isinstance(value, torch.dtype)]
# The worker describes a tensor that it does not send with exactly these words (`output_of`).
_OTHER_TENSORS = frozenset(
    f"{v} {dtype} tensor".replace("torch.", "") for v in _LAYOUTS for dtype in _DTYPES
)


class SafeText(str):
    """A text that no attempt can choose, such as the name of a dtype. Its digits are shown."""

    __slots__ = ()


def sanitize(text: str, limit: int = LIMIT, *, keeps_blanks: bool = False) -> str:
    """Return the text as one line of printable characters, cut at `limit` with "…".

    `::` becomes `:`, because it starts a command to a CI runner.

    Args:
        text: any text.
        limit: the largest number of characters.
        keeps_blanks: whether to keep blanks at the beginning, and several blanks between words.
    """
    line = re.sub(r":{2,}", ":", printable(text)).rstrip()
    line = line if keeps_blanks else re.sub(r" +", " ", line).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def join_sentences(*sentences: str) -> str:
    """Return the sentences in one line, without empty ones.

    Each but the last gets a full stop, unless it ends with one or with a question mark.
    """
    *earlier, last_sentence = [*filter(None, sentences)] or [""]
    return (
        "".join(
            f"{sentence.removesuffix('.')}{'' if sentence.endswith('?') else '.'} "
            for sentence in earlier
        )
        + last_sentence
    )


def kind_name(type_name: str) -> SafeText:
    """Return the type of a return value in words that may be shown: "a tensor", "a list of 3".

    Only common types are named, because an attempt could carry out information in other names. All
    others are "an object of another type".

    Args:
        type_name: the kind of an output, or the type from a misfit.
    """
    return SafeText(_kind_in_words(type_name))


def _kind_in_words(type_name: str) -> str:
    if type_name == "NoneType":
        return "None: is a return missing at its end?"
    if type_name == OPAQUE:
        return "a part that nobody looks at"
    # Only one digit is shown: the attempt chose the length, and knows the hidden inputs.
    if re.fullmatch(r"(tuple|list) of [0-9]", type_name):
        return f"a {type_name}{' or more' if type_name.endswith('9') else ''}"
    if type_name in _KINDS or type_name in _OTHER_TENSORS:
        return f"{'an' if type_name[0] in 'aeiou' or type_name == 'ndarray' else 'a'} {type_name}"
    if type_name in ("method", "builtin_function_or_method"):
        return "a method: are its brackets missing?"
    if type_name in LAYERS:
        return f"a layer, {type_name}: it is made, and not called"
    return "an object of another type"


def form_name(form: Form) -> str:
    """Return the required structure in words: "a tensor", "a pair (y, cache)"."""
    if form.is_leaf:
        return "anything" if form.kind == "opaque" else "a tensor"
    how_many = {1: "a tuple of 1", 2: "a pair", 3: "a triple"}.get(
        len(form.parts), f"a tuple of {len(form.parts)}"
    )
    return f"{how_many} ({', '.join(form.names)})" if form.names else how_many


# Only these type names may be shown. `explain` replaces all others.
_KNOWN = frozenset(
    """ArithmeticError AssertionError AttributeError BaseException EOFError EinopsError Exception
    FileNotFoundError FloatingPointError ImportError IndentationError IndexError KeyError
    KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotImplementedError
    OSError OverflowError PermissionError RecursionError RuntimeError StopIteration SyntaxError
    SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeError ValueError
    ZeroDivisionError""".split()
)
# Layers that a student may have forgotten to call. In kinds.yaml, LAYER matches any of their names.
LAYERS = ("Linear", "Dropout", "Softmax", "LayerNorm", "Identity", "Sequential", "ModuleList")
_LAYER = "LAYER", f"({'|'.join(LAYERS)})"
_REFUSALS = frozenset({"ValueError", "AssertionError"})
_OVERLOADS = ", but expected one of:"  # after this text PyTorch lists all signatures on many lines
_MISSING = re.compile(r"name '(\w+)' is not defined|(\w+) is not defined in this file")


@dataclass(frozen=True)
class Kind:
    """A kind of exception."""

    type: str  # the name of one of the exception's classes
    pattern: re.Pattern[str]  # matches a part of its message
    meaning: str
    misconception: str | None = None  # that causes the exception
    at_call: bool = False  # raised by the engine's call, outside the student's lines
    id: str = ""  # only of the kinds that this module looks for
    first: bool = False  # tried before all others

    def fits(self, raised: Raised) -> bool:
        """Return whether an exception is of this kind."""
        return (
            self.type in raised.bases
            and self.pattern.search(raised.message) is not None
            and not (self.at_call and raised.line)
        )


def _read() -> tuple[Kind, ...]:
    """Return the kinds of kinds.yaml, in their order."""
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
    """Return the first kind that fits the exception, or None.

    Kinds that are marked `first` come before all others. A NotImplementedError in a function that
    the student has begun to write is of the kind "left_open".
    """
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
    """Return whether the attempt refuses its arguments.

    Errors that Python or torch raise by themselves do not count.
    """
    return bool(_REFUSALS & set(raised.bases)) and kind_of(raised) is None


def says_unwritten(raised: Raised | None) -> bool:
    """Return whether the called function is still an empty stub.

    PyTorch also raises NotImplementedError, so the type alone is not enough.
    """
    return (
        raised is not None
        and raised.type == "NotImplementedError"
        and _is_one_of(raised, "unwritten")
    )


def is_unfinished(raised: Raised) -> bool:
    """Return whether the called function is not written completely, or is not defined.

    Such an exception shows nothing about the functions that are written.
    """
    return _is_one_of(raised, "unwritten", "left_open", "undefined")


def is_left_open(raised: Raised | None) -> bool:
    """Return whether the called function is begun, but raises NotImplementedError for a part."""
    return _is_one_of(raised, "left_open")


def is_undefined(raised: Raised) -> bool:
    """Return whether the file does not define the name of the call."""
    return _is_one_of(raised, "undefined")


def missing_name(raised: Raised | None) -> str:
    """Return the name that the file does not define, or "" if the call failed otherwise or not."""
    match = (
        _MISSING.match(raised.message)
        if raised and raised.type in ("NameError", "AttributeError")
        else None
    )
    return (match[1] or match[2]) if match else ""


def is_shape_fault(raised: Raised) -> bool:
    """Return whether an operation got tensors whose shapes do not fit."""
    return _is_one_of(raised, "unmultiplied", "unfit")


def is_dtype_fault(raised: Raised) -> bool:
    """Return whether an operation got tensors of different dtypes.

    Then the reply to the same call in another dtype shows more about the attempt.
    """
    exception_kind = kind_of(raised)
    return exception_kind is not None and exception_kind.misconception == "hard_coded_dtype"


def explain(raised: Raised) -> str:
    """Return a sentence with the type of the exception, and the line and the meaning if known."""
    name = next((base for base in raised.bases if base in _KNOWN), "an exception of its own")
    exception_kind = kind_of(raised)
    # If the message contains the text given here, the exception has another cause than its kind.
    misread = {"UnboundLocalError": "", "SyntaxError": "nested"}.get(raised.type)
    meaning = (
        f": {exception_kind.meaning}"
        if exception_kind and (misread is None or misread not in raised.message)
        else ""
    )
    if meaning and exception_kind and exception_kind.type == "SyntaxError":
        # A newer Python may accept the syntax. The version is added here and not in kinds.yaml,
        # because recorded files depend on kinds.yaml.
        meaning += f" {PYTHON}"
    return f"raised {name}{f' on line {raised.line}' if raised.line else ''}{meaning}"


def describe_exception(raised: Raised, requirement: str = "", *, is_shown: bool = True) -> str:
    """Return a text about the exception: its meaning, its message, and the requirement.

    Args:
        raised: the exception.
        requirement: a sentence about the required behaviour, or "".
        is_shown: whether to include the exception's message. Only the student may see it, and only
            if the call has no hidden inputs.
    """
    # the message of SystemExit is only a number or None
    has_no_message = says_unwritten(raised) or raised.type == "SystemExit"
    message, *_ = raised.message.split(_OVERLOADS)
    safe_message = sanitize(message) if is_shown and not has_no_message else ""
    return join_sentences(
        explain(raised),
        safe_message and f"Python says: {safe_message}".removesuffix("."),
        requirement,
    )
