"""Explain a student's exception in one sentence.

The exception's own message could reveal hidden inputs, so it is not shown. It is
matched against known kinds of exceptions, and the kind is explained.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..box.worker.answers import Raised

# Type names that may be shown. Any other becomes "an exception of its own".
_KNOWN = frozenset(
    """ArithmeticError AssertionError AttributeError BaseException EOFError EinopsError Exception FileNotFoundError
    FloatingPointError ImportError IndentationError IndexError KeyError KeyboardInterrupt LookupError MemoryError
    ModuleNotFoundError NameError NotImplementedError OSError OverflowError PermissionError RecursionError RuntimeError
    StopIteration SyntaxError SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeError ValueError
    ZeroDivisionError""".split()
)


@dataclass(frozen=True)
class Kind:
    """A kind of exception: how to recognise it, what it means, and the misconception that causes it, if any."""

    type: str
    pattern: re.Pattern[str]
    meaning: str
    misconception: str | None = None
    at_call: bool = False  # raised by the engine's call, outside the student's lines


def _kind(type_: str, pattern: str, meaning: str, misconception: str | None = None, at_call: bool = False) -> Kind:
    return Kind(type_, re.compile(pattern, re.DOTALL), meaning, misconception, at_call)


# What says nothing of the functions that are written.
_UNWRITTEN = _kind("NotImplementedError", "", "nothing is written here yet", "stub_untouched")
_LEFT_OPEN = _kind("NotImplementedError", r"(?!)", "the case that comes to this line is not written yet")
_UNDEFINED = _kind(
    "AttributeError",
    r"is not defined in this file",
    "a name that the exercise asks for is not defined",
    "interface",
    True,
)

_LEFT_OVER = _kind(
    "BdbQuit", "", "a breakpoint() is left just above, where nobody answers the debugger. Take it out before you check"
)
_UNMULTIPLIED = _kind(
    "RuntimeError",
    r"mat1 and mat2 shapes cannot be multiplied|size mismatch|inconsistent tensor size|"
    r"Expected size for first two dimensions of batch2|dot : expected both vectors|"
    r"does not broadcast with previously seen size",
    "two tensors whose shapes cannot be multiplied",
)
_UNFIT = _kind(
    "RuntimeError",
    r"The size of tensor a .* must match the size of tensor b|The expanded size of the tensor|"
    r"shapes? .* (are|is) not broadcastable|Attempting to broadcast a dimension|output with shape .* doesn't match the broadcast shape",
    "two tensors whose shapes do not fit each other",
)
_NUMBERS_AS_MASK = _kind(
    "Exception",
    r"masked_fill_? only supports boolean masks|expected condition to be a boolean tensor|"
    r"'?bitwise_(not|and|or)_\w+'?\"? not implemented for '(Float|Double|Half|BFloat16)'|"
    r"only implemented on integer and Boolean|tensors used as indices must be",
    "a mask of numbers where a bool one is needed",
    "mask_not_bool",
)
# PyTorch's own exceptions of the type that a stub raises: what they are about is written.
_OF_PYTORCH = (
    _kind(
        "NotImplementedError",
        r"^\"\w+\" not implemented for '\w+'",
        "an operation that PyTorch does not have for this dtype, such as a softmax of bool or of whole numbers",
    ),
    _kind(
        "NotImplementedError",
        r"^Could not run '\w+::|^aten[.:]|^The register_meta function for |^\w+ is not supported for \w+ types",
        "an operation that PyTorch does not have for this kind of tensor",
    ),
    _kind(
        "NotImplementedError",
        r"^Cannot copy out of meta tensor",
        "numbers are taken from a tensor on a device that keeps none",
    ),
)
# Layers of torch.nn that a student may have forgotten to call, and what one does with tensors.
_LAYER = r"(Linear|Dropout|Softmax|LayerNorm|Identity|Sequential|ModuleList)"
_OF_TENSORS = (
    "view|reshape|transpose|permute|mT|T|t|split|chunk|unbind|shape|size|unflatten|flatten|swapaxes|unsqueeze|squeeze|"
    "contiguous|masked_fill|softmax|matmul|dim|ndim|movedim|mean|sum|expand"
)

KINDS = (
    _LEFT_OVER,
    _kind("NotImplementedError", r'missing the required "forward"', "a module that has no forward was called"),
    _UNWRITTEN,
    _kind(
        "RuntimeError",
        r"view size is not compatible",
        "a .view of a tensor whose memory is in another order (after a transpose or permute)",
        "view_not_contiguous",
    ),
    _kind(
        "AttributeError",
        r"before Module\.__init__\(\) call|object has no attribute '_(modules|parameters|buffers)'",
        "a layer was set before super().__init__() had run",
        "super_init_missing",
    ),
    _kind(
        "Exception",
        rf"'{_LAYER}' object has no attribute '({_OF_TENSORS})'|'{_LAYER}' object is not (subscriptable|iterable)|"
        rf"unsupported operand type\(s\) for .*'{_LAYER}'|must be Tensor, not {_LAYER}\b|but got {_LAYER}\b|"
        rf"unknown to einops .*torch\.nn\.modules|non-iterable {_LAYER}\b|'{_LAYER}' has no len|got \([^)]*\b{_LAYER}\b",
        "a layer is used where a tensor is due: has it been called?",
        "layer_not_called",
    ),
    _UNMULTIPLIED,
    _UNFIT,
    _kind(
        "RuntimeError",
        r"shape '.*' is invalid for input of size|don't multiply up to the size",
        "a reshape to a shape with another number of elements",
    ),
    _kind(
        "IndexError",
        r"Dimension out of range|too many indices for tensor|tuple index out",
        "an axis that this tensor does not have",
    ),
    _kind("IndexError", r"out of bounds for dimension|out of range for tensor", "an index beyond the end of an axis"),
    _kind(
        "IndexError",
        r"shape of the mask .* does not match",
        "a mask whose shape does not fit the tensor it selects from",
    ),
    _kind(
        "RuntimeError",
        r"must be a (3D tensor|matrix)|number of (subscripts|dimensions) in the|tensor with <= 2 dimensions",
        "an operation that wants a tensor with another number of axes",
    ),
    _NUMBERS_AS_MASK,
    _kind(
        "RuntimeError",
        r"(Negation|Subtraction), the `-` operator, (on|with) a bool tensor",
        "arithmetic with a bool mask",
    ),
    _kind(
        "RuntimeError",
        r"expected (m1 and m2|scalar type|mat1 and mat2)|to have the same dtype|dtype.* ([Dd]ouble|[Ff]loat)\b|"
        r"Expected attn_mask dtype",
        "tensors of different dtypes in one operation",
        "hard_coded_dtype",
    ),
    _kind(
        "Exception",
        r"Torch not compiled with (CUDA|HIP|XPU|MPS)|Found no NVIDIA driver|No CUDA GPUs are available|"
        r"PyTorch is not linked with support for|Cannot access accelerator device|"
        r"MPS backend is supported on|required to move .* to mps",
        "a device is asked for by its name, and this machine has none",
        "hard_coded_device",
    ),
    _kind(
        "RuntimeError",
        r"all tensors to be on the same device|is not on the expected device|CUDA|cuda",
        "tensors on different devices in one operation",
    ),
    _kind(
        "RuntimeError",
        r"leaf Variable that requires grad|modified by an inplace operation",
        "an in-place change of a tensor that a gradient needs",
        "input_mutated",
    ),
    _kind("ValueError", r"values to unpack", "something is taken apart into another number of parts than it has"),
    _kind(
        "RuntimeError",
        r"split_with_sizes expects|split expects at least|Sizes of tensors must match|expects each tensor to be equal",
        "tensors are split or joined, and their sizes do not add up",
    ),
    _kind("EinopsError", "", "an einops pattern that does not fit the tensor's shape"),
    _kind("TypeError", r"NoneType", "None is used as if it were a tensor: does every function return its result?"),
    _kind("NameError", "", "a name is used that is defined nowhere"),
    _kind("RuntimeError", r"derivative for .* is not implemented", "a fused function, which has no second derivative"),
    _UNDEFINED,
    _kind(
        "TypeError",
        r"unexpected keyword argument|multiple values for argument|positional argument|required keyword-only",
        "the arguments differ from the ones that the exercise names",
        "interface",
        True,
    ),
    _kind("TypeError", r"not a torch\.nn\.Module", "what was built is not a torch.nn.Module", "interface", True),
    _kind("SyntaxError", "", "this is not valid Python", "load_error"),
    _kind("ModuleNotFoundError", "", "a module that is not there is imported", "load_error"),
    _kind("ImportError", "", "a name that is not there is imported", "load_error"),
    _kind("SystemExit", "", "the code asked Python to exit"),
    _kind("MemoryError", "", "more memory was asked for than an attempt may have"),
    _kind(
        "RuntimeError", r"can't allocate memory|not enough memory", "more memory was asked for than an attempt may have"
    ),
    _kind("RecursionError", "", "a function calls itself without end"),
    _kind("EOFError", r"reading a line", "input() waits for somebody to type, and nobody does while a file is checked"),
    *_OF_PYTORCH,  # last, for a release records the place of a kind here
    _LEFT_OPEN,
)
_IN_ORDER = (_NUMBERS_AS_MASK, *_OF_PYTORCH, *KINDS)

_REFUSALS = frozenset({"ValueError", "AssertionError"})


def is_refusal(raised: Raised) -> bool:
    """Return whether the attempt refuses its arguments, as opposed to an error that Python or torch raises by itself."""
    return bool(_REFUSALS & set(raised.bases)) and kind_of(raised) is None


def says_unwritten(raised: Raised | None) -> bool:
    """Return whether what was called says that nothing is written in it. PyTorch raises exceptions of the same type."""
    return raised is not None and raised.type == "NotImplementedError" and kind_of(raised) is _UNWRITTEN


def is_unfinished(raised: Raised) -> bool:
    """Return whether what was called is not written or not there yet, which says nothing of the functions that are."""
    return kind_of(raised) in (_UNWRITTEN, _LEFT_OPEN, _UNDEFINED)


def is_left_open(raised: Raised | None) -> bool:
    """Return whether a function that has something in it says that a part of it is not written yet."""
    return raised is not None and kind_of(raised) is _LEFT_OPEN


def is_undefined(raised: Raised) -> bool:
    """Return whether the file has no such name as was asked for."""
    return kind_of(raised) is _UNDEFINED


def is_shape_fault(raised: Raised) -> bool:
    """Return whether an operation got tensors whose shapes do not fit."""
    return kind_of(raised) in (_UNMULTIPLIED, _UNFIT)


def is_dtype_fault(raised: Raised) -> bool:
    """Return whether an operation got tensors of different dtypes. Then the answer in the other dtype says more."""
    kind = kind_of(raised)
    return kind is not None and kind.misconception == "hard_coded_dtype"


def kind_of(raised: Raised) -> Kind | None:
    """Return the first kind that matches; None if none does."""
    for kind in _IN_ORDER:
        if kind.type in raised.bases and kind.pattern.search(raised.message) and not (kind.at_call and raised.line):
            return _LEFT_OPEN if kind is _UNWRITTEN and raised.in_written else kind
    return None


def explain(raised: Raised) -> str:
    """Return one sentence: what was raised, where, and what that means."""
    name = next((base for base in raised.bases if base in _KNOWN), "an exception of its own")
    kind = kind_of(raised)
    misread = {"UnboundLocalError": "", "SyntaxError": "nested"}.get(raised.type)  # not what the kind means
    meaning = f": {kind.meaning}" if kind and (misread is None or misread not in raised.message) else ""
    return f"raised {name}{f' on line {raised.line}' if raised.line else ''}{meaning}"
