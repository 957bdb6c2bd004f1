"""A recording comes back from its file as it was recorded: every facet of every reply, and every pair."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from manyheads.box.worker.answers import Reply
from manyheads.box.worker.messages import Call
from manyheads.course import CourseError, load_course
from manyheads.diagnosis.aspects import is_broken
from manyheads.diagnosis.fingerprint import FACETS, PLAIN, ReplyFingerprint, fingerprint_of
from manyheads.diagnosis.observe import observed
from manyheads.diagnosis.recording import ASPECTS, RecordedMutant, Recording
from manyheads.diagnosis.recording_file import FORMAT, loaded, read, save
from tests.make import REPOSITORY

from .test_same_reply import OTHERS, REPLY

CALL = Call("mean", (torch.ones(2),))


def recording(*replies: ReplyFingerprint) -> Recording:
    """A recording of one call with these replies."""
    mutants = tuple(RecordedMutant(f"mistake_{place}", (place,)) for place in range(len(replies)))
    return Recording("mean", "", (), (CALL,), ((torch.ones(2),),), (replies,), mutants, {})


CHANGES = [pytest.param(case.values[0], id=case.id) for case in OTHERS]


@pytest.mark.parametrize("changes", CHANGES)
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


def test_every_facet_is_changed_by_one_of_these() -> None:
    right = fingerprint_of(REPLY)
    changed = [fingerprint_of(dataclasses.replace(REPLY, **case.values[0])) for case in CHANGES]  # type: ignore[arg-type]
    assert {name for each in changed for name in PLAIN if getattr(each, name) != getattr(right, name)} == {*PLAIN}


@pytest.mark.parametrize("facet", PLAIN)
def test_every_facet_can_be_asked_by_a_visible_check(facet: str) -> None:
    assert facet in ASPECTS
    right = fingerprint_of(REPLY)
    others = [dataclasses.replace(REPLY, **case.values[0]) for case in CHANGES]  # type: ignore[arg-type]
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
    assert all(
        a.is_same(b)
        for mine, others in zip(again.replies, before.replies, strict=True)
        for a, b in zip(mine, others, strict=True)
    )
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
    pytest.param(lambda data: data.replace(b'format\\":%d' % FORMAT, b'format\\":0'), "ValueError",
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
