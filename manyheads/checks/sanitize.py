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
    [v for v in vars(torch).values() if isinstance(v, kind)] for kind in (torch.layout, torch.dtype)
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
    *before, last = [*filter(None, sentences)] or [""]
    return (
        "".join(f"{said.removesuffix('.')}{'' if said.endswith('?') else '.'} " for said in before)
        + last
    )


def kind_name(kind: str) -> str:
    """Return the type of a return value in words that may be shown: the name of a common type, or
    no name.
    """
    if kind == "NoneType":
        return "None: is a return missing at its end?"
    if kind == OPAQUE:
        return "a part that nobody looks at"
    # one digit: an attempt chose it, knowing its hidden inputs
    if re.fullmatch(r"(tuple|list) of [0-9]", kind):
        return f"a {kind}{' or more' if kind.endswith('9') else ''}"
    if kind in _KINDS or kind in _OTHER_TENSORS:
        return f"{'an' if kind[0] in 'aeiou' or kind == 'ndarray' else 'a'} {kind}"
    return "an object of another type"


def form_name(form: Form) -> str:
    """Return what is asked, in words: "a pair (y, cache)"."""
    if form.is_leaf:
        return "anything" if form.kind == "opaque" else "a tensor"
    how_many = {1: "a tuple of 1", 2: "a pair", 3: "a triple"}.get(
        len(form.parts), f"a tuple of {len(form.parts)}"
    )
    return f"{how_many} ({', '.join(form.names)})" if form.names else how_many
