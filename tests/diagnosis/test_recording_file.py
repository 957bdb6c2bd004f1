"""A fault dictionary is saved to a file and loaded again.

The fingerprints of replies are stored exactly; tensors are stored in few bytes, rounded if allowed.
"""

import dataclasses
import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import (
    Call,
    Entry,
    ModuleFacts,
    Operations,
    Output,
    Raised,
    Reply,
)
from manyheads.checks.hidden_check import Drawn
from manyheads.course import CourseError, load_course
from manyheads.diagnosis import recording_file
from manyheads.diagnosis.compact_storage import (
    TensorColumns,
    from_rows,
    from_sizes,
    read_tensors,
    to_rows,
    to_sizes,
)
from manyheads.diagnosis.fault_dictionary import ORACLES, FaultDictionary, RecordedMutant
from manyheads.diagnosis.fingerprint import PLAIN, REPLY_FIELDS, ReplyFingerprint, fingerprint_of
from manyheads.diagnosis.observed_reply import observe_reply
from manyheads.diagnosis.oracles import is_violated
from manyheads.diagnosis.recording_file import load, read, save
from tests.make import REPOSITORY

ONES = torch.ones(2, dtype=torch.float64)
FACTS = ModuleFacts({"w": Entry((2,), "float32", "cpu")}, {}, True, False, (), {"heads": 2})
REPLY = Reply(
    outputs=(Output("tensor", ONES, "float64", "cpu", (2,)),),
    gradients={"args.0": ONES, "args.1": None},
    modules=(FACTS,),
    operations=Operations(fused=False),
)
RAISED = Raised("ValueError", ("ValueError",), "no", "call", None)
# changes of REPLY that change its fingerprint
CHANGES = [
    pytest.param(
        {"outputs": (Output("tensor", 2 * ONES, "float64", "cpu", (2,)),)}, id="another output"
    ),
    pytest.param(
        {"outputs": (Output("tensor", ONES * torch.nan, "float64", "cpu", (2,)),)},
        id="an output of NaN",
    ),
    pytest.param({"outputs": REPLY.outputs * 2}, id="an additional output"),
    pytest.param(
        {"outputs": (Output("tensor", ONES, "float32", "cpu", (2,)),)}, id="another dtype"
    ),
    pytest.param({"gradients": {"args.0": 2 * ONES, "args.1": None}}, id="another gradient"),
    pytest.param({"gradients": {"args.0": ONES, "args.1": ONES}}, id="an additional gradient"),
    pytest.param({"gradients": {"args.0": ONES}}, id="a missing gradient"),
    pytest.param({"mutated": ("args.0",)}, id="an argument changed in place"),
    pytest.param(
        {"modules": (dataclasses.replace(FACTS, attributes={"heads": 4}),)}, id="another attribute"
    ),
    pytest.param(
        {"modules": (dataclasses.replace(FACTS, parameters={}),)}, id="a missing parameter"
    ),
    pytest.param({"operations": Operations(fused=True)}, id="the fused function"),
    pytest.param({"operations": Operations(fused=False, kernels=("_softmax",))}, id="a softmax"),
    pytest.param(
        {"operations": Operations(fused=False, shapes=((2, 2),))}, id="a square intermediate shape"
    ),
    pytest.param({"raised": RAISED}, id="an exception"),
]
CALL = Call("mean", (torch.ones(2),))


def changed_reply(changes: Mapping[str, object]) -> Reply:
    """Return REPLY with these fields replaced."""
    return dataclasses.replace(REPLY, **changes)  # type: ignore[arg-type]


def test_the_changes_above_cover_every_field_of_a_fingerprint() -> None:
    """Otherwise the tests below would not check that a new field is recorded."""
    changed = [fingerprint_of(changed_reply(case.values[0])) for case in CHANGES]
    original = fingerprint_of(REPLY)
    fields = [field.name for field in dataclasses.fields(ReplyFingerprint)]
    assert {
        name
        for fingerprint in changed
        for name in fields
        if getattr(fingerprint, name) != getattr(original, name)
    } == {*fields}


def recording_of_one_call(*replies: ReplyFingerprint) -> FaultDictionary:
    """Return a recording of one call: the reply of each of its mutants."""
    mutants = tuple(RecordedMutant(f"mistake_{index}", (index,)) for index in range(len(replies)))
    return FaultDictionary("mean", "", (), (CALL,), ((torch.ones(2),),), (replies,), mutants, {})


@pytest.mark.parametrize("changes", CHANGES)
def test_replies_that_differ_still_differ_after_loading(changes: Mapping[str, object]) -> None:
    original, changed = fingerprint_of(REPLY), fingerprint_of(changed_reply(changes))
    assert changed != original
    ((first, second),) = load(save(recording_of_one_call(original, changed))).replies
    assert first.is_same(original)
    assert second.is_same(changed)
    assert [first.agrees(second, (field_name,)) for field_name in REPLY_FIELDS] == [
        original.agrees(changed, (field_name,)) for field_name in REPLY_FIELDS
    ]


def test_weights_are_stored_in_half_precision_and_missing_weights_stay_none() -> None:
    weights = torch.rand(2, 3, 5)
    stored = dataclasses.replace(
        recording_of_one_call(fingerprint_of(REPLY)), weights={0: (weights, None)}
    )
    assert load(save(recording_of_one_call(fingerprint_of(REPLY)))).weights == {}
    ((call, (restored, without_weights)),) = load(save(stored)).weights.items()
    assert restored is not None
    assert (call, without_weights, restored.dtype) == (0, None, torch.float32)
    torch.testing.assert_close(restored, weights, atol=1e-3, rtol=0)


def test_each_gradient_keeps_its_numbers_if_names_are_not_sorted() -> None:
    reply = dataclasses.replace(
        REPLY, gradients={"weight": torch.ones(3), "bias": torch.arange(3.0)}
    )
    original = fingerprint_of(reply)
    ((reloaded,),) = load(save(recording_of_one_call(original))).replies
    assert reloaded.is_same(original)


@pytest.mark.parametrize("field_name", PLAIN)
def test_every_field_has_an_oracle_that_detects_a_change(field_name: str) -> None:
    assert field_name in ORACLES, f"ORACLES in oracles.py lacks {field_name}"
    original = fingerprint_of(REPLY)
    changed_replies = [changed_reply(case.values[0]) for case in CHANGES]
    differing = [
        reply
        for reply in changed_replies
        if getattr(fingerprint_of(reply), field_name) != getattr(original, field_name)
    ]
    answered = [reply for reply in differing if reply.raised is None]
    assert answered
    assert all(
        is_violated(field_name, [observe_reply(CALL, original, (torch.ones(2).double(),), reply)])
        for reply in answered
    )


def test_every_field_of_a_fingerprint_is_recorded_and_compared() -> None:
    names = {field.name for field in dataclasses.fields(ReplyFingerprint)}
    assert {*PLAIN} == names - {"raised", "outputs", "gradients", "has_nan"}
    assert {*PLAIN} <= {*REPLY_FIELDS}


@pytest.mark.parametrize(
    ("fields", "differing_field"),
    [
        ((*recording_file._STORED_FIELDS, "peak"), "peak"),
        (recording_file._STORED_FIELDS[:-1], recording_file._STORED_FIELDS[-1]),
    ],
)
def test_a_changed_field_without_a_new_format_number_is_an_error(
    tmp_path, monkeypatch, fields, differing_field
) -> None:
    path = tmp_path / "01_mean.safetensors"
    path.write_bytes(save(recording_of_one_call(fingerprint_of(REPLY))))
    monkeypatch.setattr(recording_file, "_STORED_FIELDS", fields)
    load.cache_clear()
    with pytest.raises(CourseError) as caught:
        read(path)
    next_step = "Next: increase FORMAT in recording_file.py, then course release"
    assert str(caught.value).endswith(
        f"as this engine is, and differs from it in {differing_field}. {next_step}"
    )


@pytest.mark.recorded
@pytest.mark.parametrize("id_", ["self_attention", "rotary", "kv_cache"])
def test_a_real_recording_is_the_same_after_saving_and_loading(id_: str) -> None:
    exercise = next(e for e in load_course(REPOSITORY).exercises if e.id == id_)
    data = exercise.fingerprints.read_bytes()
    again = load(save(load(data)))
    original = load(data)
    assert again.checks == original.checks
    assert again.mutants == original.mutants
    for new_replies, old_replies in zip(again.replies, original.replies, strict=True):
        assert all(a.is_same(b) for a, b in zip(new_replies, old_replies, strict=True))
    for name in ("first", "second", "probe"):
        assert torch.equal(getattr(again.pairs, name), getattr(original.pairs, name))


@pytest.mark.recorded
def test_the_recordings_of_the_course_are_small() -> None:
    """Every student downloads the recordings of all exercises."""
    sizes = [exercise.fingerprints.stat().st_size for exercise in load_course(REPOSITORY).exercises]
    assert sum(sizes) < 18_000_000  # bytes


NOISE = torch.randn(6, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
# inputs that are stored as the seed they are drawn from
DRAWN = [Drawn(7, 0, 42, 1.0), Drawn(7, 1, 60, 0.25)]


def stored_tensor(columns: TensorColumns, index: int) -> Tensor:
    """Return the tensor with this index, read from the stored columns."""
    return read_tensors(columns.columns(), DRAWN, columns.specs)[index]


@pytest.mark.parametrize(
    "tensor",
    [
        pytest.param(NOISE, id="noise"),
        pytest.param(1e30 * NOISE, id="very large numbers"),
        pytest.param(torch.arange(5.0).double(), id="whole numbers"),
        pytest.param(torch.full((3, 3), -math.inf).triu(1).double(), id="a mask"),
        pytest.param(torch.tensor([math.nan, 0.0, math.inf]), id="numbers that are not finite"),
        pytest.param(NOISE > 0, id="booleans"),
        pytest.param(torch.arange(1000), id="positions"),
        pytest.param(torch.zeros(0, 3).double(), id="an empty tensor"),
        pytest.param(torch.tensor(0.3).double(), id="a single number"),
        pytest.param(NOISE[:1].expand(512, 7), id="many copies of a row"),
        pytest.param(
            DRAWN[0].numbers().view(2, 3, 7).transpose(0, 2), id="a drawn tensor, transposed"
        ),
        pytest.param(
            torch.cat([DRAWN[1].numbers(), DRAWN[0].numbers()[::4]]), id="parts of drawn tensors"
        ),
        pytest.param(
            DRAWN[0].numbers().index_fill(0, torch.tensor([5, 30]), 9.5),
            id="a drawn tensor with changes",
        ),
    ],
)
def test_a_tensor_is_restored_with_its_floats_in_float32(tensor: Tensor) -> None:
    columns = TensorColumns(DRAWN)
    columns.add(torch.rand(3, generator=torch.Generator().manual_seed(1)))
    stored = stored_tensor(columns, columns.add(tensor))
    expected = tensor.float() if tensor.is_floating_point() else tensor
    assert stored.dtype == expected.dtype
    torch.testing.assert_close(stored, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("factor", [1.0, 1e20, 1e-6])
def test_an_output_is_restored_to_a_millionth_of_its_largest_number(factor: float) -> None:
    output = factor * NOISE.clone()
    output[0, 0], output[1] = -math.inf, 0.0
    columns = TensorColumns(DRAWN)
    stored = stored_tensor(columns, columns.add(output, rounded=True))
    assert float(stored[0, 0]) == -math.inf
    assert bool((stored[1] == 0).all())
    assert float((stored[2:] - output[2:]).abs().max()) <= 1e-6 * float(output[2:].abs().max())
    assert not torch.equal(stored[2:], output[2:].float())


@pytest.mark.parametrize(
    "output", [NOISE > 0, torch.arange(9), torch.arange(9.0) / 8, DRAWN[0].numbers()[::2]], ids=str
)
def test_an_output_that_is_simple_or_drawn_is_restored_exactly(output: Tensor) -> None:
    columns = TensorColumns(DRAWN)
    stored = stored_tensor(columns, columns.add(output, rounded=True))
    torch.testing.assert_close(stored, output.to(stored.dtype), rtol=0, atol=0)


def test_an_integer_of_more_than_24_bits_is_rejected() -> None:
    with pytest.raises(ValueError, match="too large"):
        TensorColumns().add(torch.tensor([2**24 + 1]))


@pytest.mark.parametrize("factor", [1.0, 1e20, 1e-3])
def test_rows_of_numbers_are_restored_up_to_rounding(factor: float) -> None:
    rows = torch.cat([factor * NOISE, torch.zeros(1, 7)])
    restored = from_rows(*to_rows(rows))
    assert bool(((restored - rows).abs() <= 1.7e-5 * rows.abs().amax(1, keepdim=True)).all())
    assert float(from_rows(*to_rows(1e-12 * NOISE)).abs().max()) < 1e-9


@pytest.mark.parametrize("numbers", [[1.0], [0.0, 1.0], [0.0, 1e-4, 3.0, 1e25]])
def test_magnitudes_are_restored_to_ten_percent_and_zero_exactly(numbers: list[float]) -> None:
    sizes = torch.tensor(numbers, dtype=torch.float64)
    restored = from_sizes(to_sizes(sizes))
    assert restored.tolist() == pytest.approx(numbers, rel=0.1)
    assert bool(((restored == 0) == (sizes == 0)).all())


@pytest.mark.parametrize("name", ["numbers.raw", "numbers.high", "runs.length"])
def test_truncated_columns_are_rejected(name: str) -> None:
    columns = TensorColumns(DRAWN)
    columns.add(NOISE)
    columns.add(2 * NOISE, rounded=True)
    stored = columns.columns()
    with pytest.raises((ValueError, LookupError, RuntimeError)):
        read_tensors(stored | {name: stored[name][:-1]}, DRAWN, columns.specs)
