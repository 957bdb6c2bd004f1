"""The report shows no parameter name that an attempt makes from hidden inputs.

Names that do not depend on an input are shown.
"""

import re

import pytest

from manyheads.course import Exercise, load_course
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.submission import Source
from tests.make import REPOSITORY

NUMBER = re.compile(r".{,40}\d{4}.{,20}")
# Code for the module's __init__ that makes names from MET, the inputs of earlier calls.
INPUTS_AS_DIGITS_OF_NAMES = """
        for number in MET[:8]:
            self.register_parameter(f"n{abs(number):.9f}".replace(".", ""), \
nn.Parameter(torch.ones(1)))
"""
INPUTS_AS_WORDS_OF_THE_FILE = """
        words = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()
        for word, number in zip(words, MET):
            if number > 0:
                self.register_parameter(word, nn.Parameter(torch.ones(1)))
"""
INPUTS_AS_NAMES_OF_BUFFERS = """
        for number in MET[:8]:
            self.register_buffer(f"n{abs(number):.9f}".replace(".", ""), torch.ones(1))
        self.more = nn.Parameter(torch.ones(1))
"""


@pytest.fixture(scope="module")
def fused_qkv() -> Exercise:
    return next(
        exercise for exercise in load_course(REPOSITORY).exercises if exercise.id == "fused_qkv"
    )


def grade_reference(exercise: Exercise, box, init_code: str) -> ExerciseResult:
    """Grade the reference with this code added to its __init__, and inputs kept in MET."""
    source = exercise.solution.read_text(encoding="utf-8")
    position = source.index("self.qkv = ")
    source = f"MET = []\n{source[:position]}{init_code.strip()}\n        {source[position:]}"
    source = re.sub(
        r"(def forward\(self, x.*\n(?:        \"\"\"(?:.|\n)*?\"\"\"\n)?)",
        r"\1        MET.extend(x.flatten().tolist())\n",
        source,
    )
    assert "MET.extend" in source
    judge = Judge(
        load_course(REPOSITORY),
        box,
        Settings(secret=b"secret", lines=False, exercises=(exercise.id,)),
    )
    result = judge.grade_attempt("s", exercise, Source(f"{exercise.stem}.py", source))
    assert judge.faults == []
    return result


def numbers_in(result: ExerciseResult) -> list[str]:
    """Return the numbers of four digits or more in the evidence, with some words around each.

    The evidence of public calls comes from a process that has met no hidden input.
    """
    return NUMBER.findall("\n".join(check.evidence for check in result.checks))


def parameters_evidence(result: ExerciseResult) -> str:
    """Return the evidence of the failed check of parameter names."""
    (check,) = [check for check in result.checks if check.id == "parameters"]
    assert check.outcome == "failed"
    return check.evidence


def test_names_made_of_hidden_inputs_are_only_counted(box, fused_qkv):
    """The report once showed eight such names, with nine digits each."""
    result = grade_reference(fused_qkv, box, INPUTS_AS_DIGITS_OF_NAMES)
    assert "another name 8" in parameters_evidence(result)
    assert [] == numbers_in(result)


def test_a_hidden_input_cannot_choose_which_words_are_shown(box, fused_qkv):
    evidence = parameters_evidence(grade_reference(fused_qkv, box, INPUTS_AS_WORDS_OF_THE_FILE))
    assert "another name 1" in evidence
    # which of these words occur would show the signs of hidden inputs
    assert not re.search("alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa", evidence)


def test_names_of_buffers_are_not_shown(box, fused_qkv):
    result = grade_reference(fused_qkv, box, INPUTS_AS_NAMES_OF_BUFFERS)
    assert "there are more, " in parameters_evidence(result)
    assert [] == numbers_in(result)


@pytest.mark.parametrize(
    "names", [("temperature",), ("norm.weight", "norm.bias"), ("scales.0", "scales.1")]
)
def test_names_that_depend_on_no_input_are_shown(box, fused_qkv, names):
    init_lines = {
        "temperature": "self.temperature = nn.Parameter(torch.ones(1))",
        "norm.weight": "self.norm = nn.LayerNorm(n_embd)",
        "scales.0": "self.scales = nn.ParameterList([torch.ones(1), torch.ones(2)])",
    }
    listed_names = sorted([*names, "qkv.weight", "proj.weight"])
    assert f"there are {', '.join(listed_names)}; " in parameters_evidence(
        grade_reference(fused_qkv, box, init_lines[names[0]])
    )
