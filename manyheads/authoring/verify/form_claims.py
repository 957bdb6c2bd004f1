"""Claims about points of form: answers that say nothing earn none, and silence earns none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...box.level import Box
from ...checks.marks import Layer
from ...course import Course, Exercise
from ...judge.grade_submission import Judge, Settings
from ...judge.run_checks import Catalogue
from ...report.words import score_words
from ...submission import AttemptSource
from .claim import SECRET, Claim

# Each such attempt is the reference, with every function and every module's forward replaced by something that does
# not answer. It keeps what could earn points by mistake: names, weights, buffers, unchanged arguments.

SILENT_WAYS = {
    "raises an error": "raise RuntimeError('no')",
    "refuses everything": "raise ValueError('no')",
    "asks Python to exit": "raise SystemExit(0)",
    "ends its process": "os._exit(0)",
    "never ends": "while True: pass",
    "returns None": "return None",
    "returns a tuple": "return (right(*args, **kwargs),)",
    "returns a list": "return [right(*args, **kwargs)]",
    "returns text": "return 'right'",
    "returns what equals everything": "return Equal()",
    "is a generator": "yield right(*args, **kwargs)",
}
SECONDS_PER_CALL, SECONDS = 0.2, 1.0  # short limits, because some of these attempts never end
EQUAL = """
class Equal:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self
"""
_ENDING = """

theirs = dict(globals())

import os

import torch
{helpers}

def instead_of(right):
    def answer(*args, **kwargs):
        {body}

    return answer


for name, value in theirs.items():
    if getattr(value, "__module__", None) != __name__:
        continue
    if isinstance(value, type):
        if "{method}" in vars(value):
            setattr(value, "{method}", instead_of(getattr(value, "{method}")))
    elif callable(value):
        globals()[name] = instead_of(value)
"""


def verify_silent(course: Course, box: Box, exercise: Exercise) -> Claim:
    """Return the claim about an exercise."""
    limits = course.limits.model_copy(update={"seconds_per_call": SECONDS_PER_CALL, "seconds_per_attempt": SECONDS})
    with_short_limits = replace(course, file=course.file.model_copy(update={"limits": limits}))
    judge = Judge(with_short_limits, box, Settings(SECRET, exercises=(exercise.id,), diagnoses=False, lines=False))
    methods = ("forward", "__init__") if "def forward(" in exercise.solution.read_text("utf-8") else ("forward",)
    tried = [(way, replaced(exercise, body, EQUAL, method)) for method in methods for way, body in SILENT_WAYS.items()]
    says = f"an attempt that gives no answer passes no check ({len(tried)} ways)"
    return earns_nothing(judge, exercise, says, tried, "let these checks ask every function for an answer")


def replaced(exercise: Exercise, body: str, helpers: str, method: str = "forward") -> str:
    """Return the text of the reference in which `body` stands for every function and every module's `method`.

    The body is given `right`, what it stands for, with `args` and `kwargs`. helpers: what it needs.
    """
    ending = _ENDING.replace("{helpers}", helpers).replace("{body}", body).replace("{method}", method)
    return exercise.solution.read_text("utf-8") + ending


def earns_nothing(judge: Judge, exercise: Exercise, says: str, tried: Sequence[tuple[str, str]], next_: str) -> Claim:
    """Return the claim that none of these attempts, each with its way, passes a check."""
    failures = []
    for way, text in tried:
        result = judge.grade_attempt("silent", exercise, AttemptSource(f"{exercise.id}.py", text))
        if passed := ", ".join(check.id for check in result.checks if check.outcome == "passed"):
            failures.append(f"an attempt that {way} earns {score_words(result.score)} with {passed}")
    return Claim.but_for(failures, exercise.id, says, len(tried), next_)


# Each attempt is the reference, with what its functions and its modules' forwards return replaced. It keeps what could
# earn points by mistake: names, weights, refusals, shapes, dtypes, devices, and the operations on the way.

# What is given instead of a tensor, and of a number. x: the first tensor of numbers that the function was given.
WAYS = {
    "gives zeros": ("torch.zeros_like(out)", "0"),
    "gives ones": ("torch.ones_like(out)", "1"),
    "gives a ramp": ("torch.arange(out.numel()).view(out.shape).to(out)", "7"),
    "gives the identity matrix": ("torch.eye(*(1, *out.shape)[-2:]).expand(out.shape).to(out)", "7"),
    "gives NaN": ("torch.full_like(out, float('nan'))", "float('nan')"),
    "gives infinity": ("torch.full_like(out, float('inf'))", "float('inf')"),
    "gives torch's noise": (
        "(torch.randn(out.shape) > 0 if truths(out) else torch.randn(out.shape)).to(out)",
        "torch.randn(()).item()",
    ),
    "gives noise of its own": ("noise(out, os.urandom(7))", "int.from_bytes(os.urandom(3), 'big')"),
    "gives the same noise each time": ("noise(out, b'0')", "7"),
    "gives ones and its argument's sum times 1e-9": ("torch.ones_like(out) + (x.sum() * 1e-9).to(out)", "7"),
    "gives its argument in the right shape": ("filled(out, x)", "7"),
    "gives its argument": ("x", "7"),
    "gives a copy of its argument": ("x.clone()", "7"),
    "gives zeros like its argument": ("torch.zeros_like(x)", "7"),
    "gives noise like its argument": ("torch.randn_like(x)", "7"),
    "gives NaN like its argument": ("x * float('nan')", "7"),
}
WRONG = {
    "scales its numbers": ("out * 1.5 if out.is_floating_point() else out", "out * 2"),
    "gives one wrong number": ("with_a_wrong_number(out)", "out * 2"),
}
HYGIENE_SHARE = 0.5  # of the checks of hygiene: some judge dropout by its values
_BODY = "return nothing_of(right(*args, **kwargs), [*args, *kwargs.values()])"
_HELPERS = """
def truths(out):
    return not out.is_floating_point()


def noise(out, seed):
    generator = torch.Generator().manual_seed(int.from_bytes(seed, "big"))
    numbers = torch.randn(out.shape, generator=generator)
    return (numbers > 0 if truths(out) else numbers).to(out)


def filled(out, x):
    if torch.equal(out.flatten().double().sort().values, x.flatten().double().sort().values):
        return x  # whoever is to move numbers may move them wrongly, and has said something
    return x.flatten().repeat(out.numel() // max(1, x.numel()) + 1)[: out.numel()].view(out.shape).to(out)


def with_a_wrong_number(out):
    wrong = out.clone()
    if out.numel() and not out.is_meta:
        last = (-1,) * out.dim()
        wrong[last] = ~wrong[last] if out.dtype == torch.bool else wrong[last] + 1
    return wrong


def nothing_of(out, given):
    if isinstance(out, torch.Tensor):
        numbers = [x for x in given if isinstance(x, torch.Tensor) and x.is_floating_point()]
        x = numbers[0] if numbers else torch.zeros_like(out)
        return {tensor}
    if isinstance(out, (tuple, list)):
        return type(out)(nothing_of(part, given) for part in out)
    if isinstance(out, dict):
        return {name: nothing_of(part, given) for name, part in out.items()}
    return {number} if isinstance(out, (int, float)) else out
"""


def verify_empty(course: Course, catalogue: Catalogue, box: Box, exercise: Exercise) -> Iterator[Claim]:
    """Yield both claims about an exercise."""
    judge = Judge(course, box, Settings(SECRET, exercises=(exercise.id,), diagnoses=False, lines=False))
    says = f"an attempt whose answers say nothing passes no check ({len(WAYS)} ways)"
    ask = "let these checks ask for an answer that another input changes"
    yield earns_nothing(judge, exercise, says, attempts(exercise, WAYS), ask)
    yield _keeps_its_form(judge, exercise, {check.id: check.layer for check in catalogue.checks(exercise)})


def attempts(exercise: Exercise, ways: Mapping[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """Return an attempt for each of these ways, with the way."""
    return [
        (way, replaced(exercise, _BODY, _HELPERS.replace("{tensor}", tensor).replace("{number}", number)))
        for way, (tensor, number) in ways.items()
    ]


def _keeps_its_form(judge: Judge, exercise: Exercise, layers: Mapping[str, Layer]) -> Claim:
    """Return the claim that wrong numbers fail no check of shape or finiteness, and few of hygiene."""
    failures = []
    for way, text in attempts(exercise, WRONG):
        result = judge.grade_attempt("wrong", exercise, AttemptSource(f"{exercise.id}.py", text))
        failed = [check.id for check in result.checks if check.outcome != "passed"]
        form = [id_ for id_ in failed if layers[id_] in (Layer.SHAPE, Layer.FINITE)]
        hygiene = [id_ for id_, layer in layers.items() if layer == Layer.HYGIENE]
        lost = [id_ for id_ in failed if id_ in hygiene]
        if form or len(lost) > HYGIENE_SHARE * len(hygiene):
            failures.append(f"an attempt that {way} fails {', '.join([*form, *lost])}")
    says = f"an attempt with wrong numbers keeps its points of form ({len(WRONG)} ways)"
    ask = "let these checks ask for no right numbers"
    return Claim.but_for(failures, exercise.id, says, len(WRONG), ask)
