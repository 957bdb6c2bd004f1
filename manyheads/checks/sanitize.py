"""Make text safe to show. A student chose some of it, for example a parameter's or a type's
name.
"""

from __future__ import annotations

import re

import torch

from ..box.worker.form import OPAQUE, Form
from ..submission.source_text import printable

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
