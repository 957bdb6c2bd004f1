"""A reply that is the reference's to the last bit has its fingerprint, and a recording comes back from its file."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from manyheads.authoring.record_calls import is_same_reply
from manyheads.box.worker.answers import Entry, ModuleFacts, Operations, Output, Raised, Reply
from manyheads.box.worker.messages import Call
from manyheads.course import CourseError, load_course
from manyheads.diagnosis.aspects import is_broken
from manyheads.diagnosis.fingerprint import FACETS, PLAIN, ReplyFingerprint, fingerprint_of
from manyheads.diagnosis.observe import observed
from manyheads.diagnosis.recording import ASPECTS, RecordedMutant, Recording
from manyheads.diagnosis.recording_file import FORMAT, loaded, read, save
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
OTHERS = [
    pytest.param({"outputs": (Output("tensor", 2 * ONES, "float64", "cpu", (2,)),)}, id="another output"),
    pytest.param({"outputs": (Output("tensor", ONES * torch.nan, "float64", "cpu", (2,)),)}, id="no number"),
    pytest.param({"outputs": REPLY.outputs * 2}, id="one output more"),
    pytest.param({"outputs": (Output("tensor", ONES, "float32", "cpu", (2,)),)}, id="another dtype"),
    pytest.param({"gradients": {"args.0": 2 * ONES, "args.1": None}}, id="another gradient"),
    pytest.param({"gradients": {"args.0": ONES, "args.1": ONES}}, id="a gradient that the other lacks"),
    pytest.param({"gradients": {"args.0": ONES}}, id="no such gradient"),
    pytest.param({"mutated": ("args.0",)}, id="an argument changed in place"),
    pytest.param({"modules": (dataclasses.replace(FACTS, attributes={"heads": 4}),)}, id="another attribute"),
    pytest.param({"modules": (dataclasses.replace(FACTS, parameters={}),)}, id="a parameter less"),
    pytest.param({"operations": Operations(fused=True)}, id="the fused function"),
    pytest.param({"operations": Operations(fused=False, kernels=("_softmax",))}, id="a softmax"),
    pytest.param({"operations": Operations(fused=False, shapes=((2, 2),))}, id="a square on the way"),
    pytest.param({"raised": RAISED}, id="an exception"),
]
CALL = Call("mean", (torch.ones(2),))


def test_a_copy_is_the_same() -> None:
    again = dataclasses.replace(REPLY, gradients={"args.0": ONES.clone(), "args.1": None})
    assert is_same_reply(REPLY, again)


@pytest.mark.parametrize("changes", OTHERS)
def test_what_has_another_fingerprint_is_another_reply(changes: dict[str, object]) -> None:
    other = dataclasses.replace(REPLY, **changes)  # type: ignore[arg-type]
    assert fingerprint_of(other) != fingerprint_of(REPLY)
    assert not is_same_reply(REPLY, other)


def test_all_that_a_fingerprint_has_is_looked_at() -> None:
    """What is added to recording, and not here, is recorded as the reference's where the numbers are the same."""
    changed = [fingerprint_of(dataclasses.replace(REPLY, **case.values[0])) for case in OTHERS]  # type: ignore[arg-type]
    right = fingerprint_of(REPLY)
    fields = [each.name for each in dataclasses.fields(ReplyFingerprint)]
    assert {name for each in changed for name in fields if getattr(each, name) != getattr(right, name)} == {*fields}


def recording(*replies: ReplyFingerprint) -> Recording:
    """A recording of one call with these replies."""
    mutants = tuple(RecordedMutant(f"mistake_{place}", (place,)) for place in range(len(replies)))
    return Recording("mean", "", (), (CALL,), ((torch.ones(2),),), (replies,), mutants, {})


@pytest.mark.parametrize("changes", OTHERS)
def test_a_reply_that_is_another_is_another_in_the_file(changes: Mapping[str, object]) -> None:
    right, other = fingerprint_of(REPLY), fingerprint_of(dataclasses.replace(REPLY, **changes))  # type: ignore[arg-type]
    ((first, second),) = loaded(save(recording(right, other))).replies
    assert first.is_same(right)
    assert second.is_same(other)
    assert [first.agrees(second, (facet,)) for facet in FACETS] == [right.agrees(other, (facet,)) for facet in FACETS]


def test_gradients_keep_their_numbers_in_whatever_order_they_come() -> None:
    reply = dataclasses.replace(REPLY, gradients={"weight": torch.ones(3), "bias": torch.arange(3.0)})
    right = fingerprint_of(reply)
    ((found,),) = loaded(save(recording(right))).replies
    assert found.is_same(right)


@pytest.mark.parametrize("facet", PLAIN)
def test_every_facet_can_be_asked_by_a_visible_check(facet: str) -> None:
    assert facet in ASPECTS
    right = fingerprint_of(REPLY)
    others = [dataclasses.replace(REPLY, **case.values[0]) for case in OTHERS]  # type: ignore[arg-type]
    broken = [reply for reply in others if getattr(fingerprint_of(reply), facet) != getattr(right, facet)]
    asked = [reply for reply in broken if reply.raised is None]
    assert asked
    assert all(is_broken(facet, [observed(CALL, right, (torch.ones(2).double(),), reply)]) for reply in asked)


def test_a_new_facet_is_read_recorded_compared_and_asked_without_another_line() -> None:
    """What a facet needs beside its field stands in `PLAIN`, in `FACETS` and in `ASPECTS`, which are made of the fields."""
    names = [each.name for each in dataclasses.fields(ReplyFingerprint) if "of" in each.metadata]
    assert list(PLAIN) == names
    assert {*names} <= {*FACETS}
    assert {*names} <= {*ASPECTS}


@pytest.mark.recorded
@pytest.mark.parametrize("id_", ["self_attention", "rotary", "kv_cache"])
def test_a_real_recording_written_again_is_the_same_file(id_: str) -> None:
    exercise = next(each for each in load_course(REPOSITORY).exercises if each.id == id_)
    data = exercise.fingerprints.read_bytes()
    again = loaded(save(loaded(data)))
    before = loaded(data)
    assert again.checks == before.checks
    assert again.mutants == before.mutants
    for mine, others in zip(again.replies, before.replies, strict=True):
        assert all(a.is_same(b) for a, b in zip(mine, others, strict=True))
    for name in ("first", "second", "probe"):
        assert torch.equal(getattr(again.pairs, name), getattr(before.pairs, name))


@pytest.mark.recorded
def test_a_class_repository_is_small() -> None:
    """Every student downloads the recordings of all exercises."""
    sizes = [each.fingerprints.stat().st_size for each in load_course(REPOSITORY).exercises]
    assert sum(sizes) < 18_000_000


@pytest.mark.parametrize(("damage", "problem"), [
    pytest.param(lambda data: data[:-8], "SafetensorError", id="cut off"),
    pytest.param(lambda data: b"", "SafetensorError", id="empty"),
    pytest.param(lambda data: data.replace(b'format\\":%d' % FORMAT, b'format\\":99'), "ValueError",
        id="another format"),
    pytest.param(lambda data: data.replace(b'counts\\":[2]', b'counts\\":[3]'), "ValueError", id="a reply too few"),
])  # fmt: skip
def test_a_damaged_file_is_one_sentence(tmp_path: Path, damage: object, problem: str) -> None:
    assert callable(damage)
    whole = save(recording(fingerprint_of(REPLY), fingerprint_of(Reply())))
    path = tmp_path / "01_mean.safetensors"
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    with pytest.raises(CourseError, match=rf"cannot be read \({problem}\)\. As an instructor, .* Next: git checkout "):
        read(path)
