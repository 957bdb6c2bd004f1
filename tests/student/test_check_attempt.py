"""`course check` compares an attempt with the recorded replies of the reference and of mutants."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from manyheads.box.worker.messages import Build, Call, Raised, Reply
from manyheads.checks.runner import LocalRecordingRunner, namespace_of
from manyheads.course import CourseError
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.fingerprint import ReplyFingerprint, comparable_fingerprint
from manyheads.diagnosis.recording_file import read
from manyheads.judge.attempt_runner import AttemptRunner
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_attempt
from manyheads.submission import Source, read_attempt
from tests.make import BY_SUMS, CLASS, TINY

pytestmark = pytest.mark.recorded

STEM = "01_running_mean"
RECORDING_FILE = TINY / "exercises" / "averages" / "fingerprints" / f"{STEM}.safetensors"


@pytest.fixture(scope="module")
def tiny_recording():
    """Return the fault dictionary of the exercise running_mean of the tiny course."""
    return read(RECORDING_FILE)


@pytest.fixture
def mutants(running_mean):
    """Return the mutants of running_mean."""
    return load_bank(running_mean).mutants


@pytest.fixture
def check_source(tiny, box, tiny_recording):
    """Return a function that checks a source in a new process."""

    def check(source: str) -> ExerciseResult:
        limits = tiny.limits.for_worker()
        attempt = AttemptRunner(box, Source(f"{STEM}.py", source), limits)
        try:
            return check_attempt(tiny_recording, attempt)
        finally:
            attempt.close()

    return check


def misconception_ids(result: ExerciseResult) -> list[str]:
    """Return the ids of the diagnosed misconceptions, in order."""
    return [diagnosed.id for diagnosed in result.diagnosis]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(rb"(?s).*", b"", id="an empty file"),
        pytest.param(rb"(?s).\Z", b"", id="a file that was cut off"),
        pytest.param(
            rb"(?s).*", b"version https://git-lfs.github.com/spec/v1\n", id="a pointer of Git LFS"
        ),
        pytest.param(b"running_mean", b"running\0mean", id="a header that is not JSON"),
        pytest.param(rb'(format\\":)\d', rb"\g<1>0", id="a format of another release"),
        pytest.param(b"expected", b"expekted", id="a missing entry"),
        pytest.param(rb'(counts\\":\[)\d', rb"\g<1>7", id="a missing reply"),
    ],
)
def test_the_error_for_a_damaged_recording_names_the_next_step(tmp_path, old, new):
    path = tmp_path / "f.safetensors"
    damaged, count = re.subn(old, new, RECORDING_FILE.read_bytes(), count=1)
    assert count == 1
    path.write_bytes(damaged)
    message = rf"^{path} cannot be read \(\w+\)\. As an .* Next: git checkout {path}$"
    with pytest.raises(CourseError, match=message):
        read(path)


def test_the_error_for_a_missing_recording_says_how_to_release_it(tmp_path):
    path = tmp_path / "f.safetensors"
    message = rf"^{path} is not here\. As an instructor who has not released it yet, make "
    with pytest.raises(CourseError, match=message):
        read(path)


FUNCTION_HEAD = "import torch\n\n\ndef running_mean(x):\n"


@pytest.mark.parametrize(
    ("source", "outcomes", "misconceptions"),
    [
        pytest.param(BY_SUMS, ["passed"] * 4, [], id="a right attempt"),
        pytest.param(
            f"import torch\ntorch.set_grad_enabled(False)\n{BY_SUMS}",
            ["passed"] * 4,
            [],
            id="a right attempt that switches gradients off",
        ),
        pytest.param(
            FUNCTION_HEAD + "    return x.cumsum(0) / max(len(x), 1)\n",
            ["failed", "failed", "failed", "passed"],
            ["counts_all", "empty_unchecked"],
            id="two misconceptions at once",
        ),
        pytest.param(
            BY_SUMS.replace("/ x", "/ 6 if len(x) == 6 else x.cumsum(0) / x"),
            ["failed", "passed", "passed", "passed"],
            [],
            id="a misconception for six numbers only",
        ),
        pytest.param(
            FUNCTION_HEAD + "    raise NotImplementedError()\n",
            ["error"] * 4,
            ["stub_untouched"],
            id="the stub",
        ),
        pytest.param(CLASS["cat"], ["crashed"] * 4, [], id="an attempt that ends its process"),
    ],
)
def test_a_file_gets_its_outcomes_and_misconceptions(
    check_source, source, outcomes, misconceptions
):
    result = check_source(source)
    assert [check.outcome for check in result.checks] == outcomes
    assert misconception_ids(result) == misconceptions
    assert result.score == outcomes.count("passed")


def test_failed_checks_come_first_and_only_they_have_evidence(check_source):
    result = check_source(CLASS["ben"])
    assert misconception_ids(result) == ["counts_all"]
    assert [(check.id, check.outcome, bool(check.evidence)) for check in result.checks] == [
        ("values", "failed", True),
        ("gradients", "failed", True),
        ("shape", "passed", False),
        ("refuses_nothing", "passed", False),
    ]


def test_a_notimplementederror_raised_by_pytorch_does_not_count_as_a_stub(check_source):
    result = check_source(FUNCTION_HEAD + "    return (x > 0).softmax(0)\n")
    assert {check.outcome for check in result.checks} == {"error"}
    assert (misconception_ids(result), [function.state for function in result.functions]) == (
        [],
        ["wrong"],
    )
    assert "not implemented for 'Bool'" in result.checks[0].evidence


def test_the_untouched_stub_is_recognised_as_script_and_as_notebook(tiny_recording, averages):
    folder = TINY / "exercises" / averages.id
    for stub, suffix in ((None, ".py"), (tiny_recording.stub, ".ipynb")):
        attempt = read_attempt(folder, STEM, stub, 1024)
        assert (attempt.name, attempt.code_digest) == (STEM + suffix, tiny_recording.stub)


def texts_in(value: object) -> Iterator[str]:
    """Yield all strings and keys of this JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from (key, *texts_in(child))
    elif isinstance(value, list):
        for child in value:
            yield from texts_in(child)


def test_the_recording_contains_no_code(tiny):
    data = RECORDING_FILE.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    body = json.loads(header["__metadata__"]["body"])
    statements = [text for text in texts_in(body) if "\n" in text or is_code(text)]
    assert statements == []
    recorded_text = "\n".join(texts_in(body))
    for path in tiny.hidden_files():
        lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
        code = [line for line in lines if len(line) > 20 and '"""' not in line]
        if path.suffix == ".py":
            assert [line for line in code if line in recorded_text] == []


def is_code(text: str) -> bool:
    """Return whether this text is Python code that computes or assigns something."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Assign | ast.BinOp | ast.Import) for node in nodes)


@pytest.mark.parametrize(
    ("exception_type", "stage", "subject", "recorded", "expected"),
    [
        pytest.param(
            "RuntimeError",
            "call",
            Build("Layer"),
            "refused",
            "refused",
            id="a RuntimeError in a module",
        ),
        pytest.param(
            "ValueError",
            "call",
            Build("Layer"),
            "refused",
            "refused",
            id="a ValueError in a module",
        ),
        pytest.param(
            "RuntimeError",
            "build",
            Build("Layer"),
            "refused",
            "other",
            id="a RuntimeError in the constructor",
        ),
        pytest.param(
            "RuntimeError", "call", "layer", "refused", "other", id="a RuntimeError in a function"
        ),
        pytest.param("KeyError", "call", Build("Layer"), "refused", "other", id="a KeyError"),
        pytest.param(
            "RuntimeError",
            "call",
            Build("Layer"),
            None,
            "other",
            id="a call that should be accepted",
        ),
    ],
)
def test_only_some_exceptions_of_a_refused_call_count_as_refusals(
    exception_type, stage, subject, recorded, expected
):
    reply = Reply(raised=Raised(exception_type, (exception_type, "Exception"), "no", stage, 3))
    fingerprint = comparable_fingerprint(ReplyFingerprint(raised=recorded), Call(subject), reply)
    assert fingerprint.raised == expected


def check_namespace(recording, namespace) -> ExerciseResult:
    """Check the functions of this namespace in this process."""
    return check_attempt(recording, LocalRecordingRunner(namespace))


def with_check(recording, id_: str, **changes: object):
    """Return the recording with these fields of one check replaced."""
    checks = [
        check.model_copy(update=changes) if check.id == id_ else check for check in recording.checks
    ]
    return replace(recording, checks=tuple(checks))


@pytest.fixture(scope="module")
def right_namespace():
    """Return the namespace of a right attempt."""
    return namespace_of(TINY / "grader/right/running_mean/loop.py")


def test_a_check_of_the_shape_fails_for_a_function_that_only_returns_zeros(tiny_recording):
    result = check_namespace(tiny_recording, {"running_mean": torch.zeros_like})
    (shape,) = (check for check in result.checks if check.id == "shape")
    assert (shape.outcome, shape.function) == ("failed", "running_mean")
    assert shape.evidence == "running_mean gives 0 in every place, whatever it is given"


@pytest.mark.parametrize("is_trivial", [True, False])
def test_a_second_call_is_made_only_if_the_first_output_is_trivial(
    tiny_recording, right_namespace, is_trivial
):
    inputs = []

    def attempt(x):
        inputs.append(x)
        answer = right_namespace["running_mean"](x)
        return 0 * answer if is_trivial or len(x) == 9 else answer

    check_namespace(tiny_recording, {"running_mean": attempt})
    (condition,) = tiny_recording.conditions
    (further_input,) = condition.calls[1].args
    assert any(torch.equal(x, further_input) for x in inputs) is is_trivial


def test_calls_that_no_check_uses_are_not_compared(tiny_recording, mutants):
    checks = tuple(check for check in tiny_recording.checks if check.id != "gradients")
    (mutant,) = (mutant for mutant in mutants if mutant.id == "counts_all")
    result = check_namespace(replace(tiny_recording, checks=checks), mutant.namespace)
    assert misconception_ids(result) == ["counts_all"]


def test_a_check_without_oracles_is_left_to_the_grading(tiny_recording, right_namespace):
    changed = with_check(tiny_recording, "gradients", oracle_uses=())
    result = check_namespace(changed, right_namespace)
    assert (result.score, result.max_score, result.unseen) == (3, 4, 1)
    assert result.unseen_checks == ("lets gradients through",)
    assert result.is_done


@pytest.mark.parametrize("mutant_fails_check", [True, False])
def test_a_hidden_check_is_unseen_only_if_the_named_mutant_passes_it(
    tiny_recording, mutants, mutant_fails_check
):
    (index,) = (i for i, mutant in enumerate(tiny_recording.mutants) if mutant.id == "counts_all")
    kills = list(tiny_recording.kills)
    kills[index] = "".join(
        str(int(mutant_fails_check or id_ == "values")) for id_ in tiny_recording.hidden
    )
    hidden_check = with_check(tiny_recording, "gradients", oracle_uses=())
    (mutant,) = (mutant for mutant in mutants if mutant.id == "counts_all")
    result = check_namespace(replace(hidden_check, kills=tuple(kills)), mutant.namespace)
    assert misconception_ids(result) == ["counts_all"]
    assert result.unseen_checks == (() if mutant_fails_check else ("lets gradients through",))


def test_the_last_check_runs_only_if_all_others_pass(tiny_recording, mutants, right_namespace):
    last_check = tiny_recording.visible[-1]
    changed = with_check(tiny_recording, last_check.id, is_last=True)
    result = check_namespace(changed, right_namespace)
    assert last_check.id in {check.id for check in result.checks}
    values_of_fails_another = set()
    for mutant in mutants:
        baseline = check_namespace(tiny_recording, mutant.namespace)
        fails_another = any(
            check.outcome != "passed" for check in baseline.checks if check.id != last_check.id
        )
        result = check_namespace(changed, mutant.namespace)
        outcomes = {check.id: (check.outcome, check.max_score) for check in result.checks}
        assert (outcomes[last_check.id] == ("skipped", last_check.points)) is fails_another
        assert (result.unseen, result.max_score) == (0, baseline.max_score)
        values_of_fails_another.add(fails_another)
    assert True in values_of_fails_another
