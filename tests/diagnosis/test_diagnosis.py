"""Names from behaviour: singles, pairs, alternatives, and silence where nothing matches. In the box, on the tiny course."""

from __future__ import annotations

import pytest
from manyheads.diagnosis.table import VALUES

from manyheads.checks.implementation import LocalRunner
from manyheads.course import load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.fingerprint import fingerprint_of
from manyheads.diagnosis.recording_file import current
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import AttemptSource

RIGHT = "x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)"
GUARD = "    if len(x) == 0:\n        raise ValueError('none')\n"


@pytest.fixture(scope="module")
def judge(box, tiny):
    return Judge(tiny, box, Settings(b"test"))


def named(judge, running_mean, body: str) -> list[tuple[str, tuple[str, ...]]]:
    source = AttemptSource("01_running_mean.py", f"import torch\n\ndef running_mean(x):\n{body}\n")
    result = judge.grade_attempt("somebody", running_mean, source)
    return [(d.id, d.alternatives) for d in result.diagnosis]


@pytest.mark.parametrize(("body", "expected"), [
    pytest.param(f"{GUARD}    return {RIGHT}", [], id="nothing is wrong"),
    pytest.param(f"{GUARD}    return x.cumsum(0)", ["sum_not_mean"], id="one fault, by its values"),
    pytest.param(f"    return {RIGHT}", ["empty_unchecked"], id="one fault, proven by a check"),
    pytest.param("    return x.cumsum(0)", ["sum_not_mean", "empty_unchecked"], id="a value and a refusal"),
    pytest.param(f"{GUARD}    return x.sum().expand_as(x) / len(x)", ["counts_all", "sees_future"],
        id="a pair of values"),
    pytest.param(f"{GUARD}    return ({RIGHT}).detach()", ["gradient_cut"], id="only the gradient"),
    pytest.param(f"{GUARD}    return ({RIGHT}) ** 2", [], id="wrong in a way that nobody listed"),
    pytest.param(f"{GUARD}    return x[1:].cumsum(0)", [], id="another shape that nobody listed"),
    pytest.param(f"{GUARD}    return ({RIGHT})[:5]", ["hard_coded_shape"], id="a size that never changes"),
    pytest.param("    raise ValueError('no')", [], id="a refusal of everything is no untouched stub"),
    pytest.param("    raise AssertionError('Torch not compiled with CUDA enabled')", ["hard_coded_device"],
        id="a device that is not there is no refusal"),
    pytest.param("    x[0]\n    return x.cumsum(0)", ["sum_not_mean"], id="values, beside a refusal of its own kind"),
    pytest.param("    raise NotImplementedError()", ["stub_untouched"], id="nothing written yet"),
    pytest.param(f"{GUARD}    return x.unfold(0, 2, 1).T.view(-1)", ["view_not_contiguous"],
        id="an exception that says it"),
    pytest.param(f"{GUARD}    return undefined", [], id="an exception that nobody knows"),
])  # fmt: skip
def test_the_names(judge, running_mean, body, expected):
    assert [id_ for id_, _ in named(judge, running_mean, body)] == expected


def test_a_missing_function_is_an_interface_fault(judge, running_mean):
    source = AttemptSource("01_running_mean.py", "def another(x):\n    return x")
    result = judge.grade_attempt("somebody", running_mean, source)
    assert [d.id for d in result.diagnosis] == ["interface"]


def test_a_type_error_of_the_students_own_is_none(judge, running_mean):
    body = f"{GUARD}    return torch.cumsum(x, nonsense=0)"
    assert named(judge, running_mean, body) == []


def test_every_probe_tells_something(catalogue, tiny, running_mean):
    table = catalogue.tables.of(running_mean)
    assert not table.silent.all(1).any(), "a class that no probe shows cannot be found"
    assert not table.silent.all(0).any(), "a probe that shows nothing is not worth asking"


def test_mutants_of_one_class_answer_alike(catalogue, running_mean):
    bank, table = load_bank(running_mean), catalogue.tables.of(running_mean)
    for members in table.classes:
        for call in table.calls:
            first, *others = (fingerprint_of(LocalRunner(bank.mutants[m].namespace).execute(call)) for m in members)
            assert all(first.agrees(each, VALUES) for each in others)


def test_where_the_recording_is_stale_every_mutant_is_replayed(box, tiny_copy):
    """Grading goes on while an instructor mends the course; nothing but the pairs' answers is missing."""
    bank = tiny_copy / "grader/misconceptions/running_mean.py"
    bank.write_text(bank.read_text(encoding="utf-8") + "\n\nMENDED = True\n", encoding="utf-8")
    course = load_course(tiny_copy)
    (exercise,) = course.exercises
    assert current(exercise) is None
    found = named(Judge(course, box, Settings(b"test")), exercise, f"{GUARD}    return x.cumsum(0)")
    assert found == [("sum_not_mean", ())]
