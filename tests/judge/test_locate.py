"""How a misconception shows itself in a function."""

from __future__ import annotations

import pytest
from manyheads.judge.locate import Ways

ATTEMPT = {"first": 2, "second": 3, "third": 9}
REFERENCE = {"first": 1, "second": 1, "third": 9}


@pytest.mark.parametrize(("mutant", "is_seen", "is_all", "can_show"), [
    pytest.param({"first": 2, "second": 3, "third": 9}, True, True, True, id="it answers as the attempt does"),
    pytest.param({"first": 2, "second": 4, "third": 9}, True, False, True, id="but for a call"),
    pytest.param({"first": 2, "second": 3, "third": 8}, True, False, True, id="but where the attempt is right"),
    pytest.param({"first": 4, "second": 4, "third": 9}, False, False, True, id="it is wrong in another way"),
    pytest.param({"first": 1, "second": 1, "third": 8}, False, False, False, id="it is wrong elsewhere"),
])  # fmt: skip
def test_a_mutant_has_a_function_s_mistake_if_it_answers_all_its_calls_alike(
    mutant: dict[str, int], is_seen: bool, is_all: bool, can_show: bool
) -> None:
    ways = Ways(
        mutants=lambda id_: [mutant],
        calls={("f", False): ["first", "second"], ("f", True): ["third"]},
        alike=lambda mutant, call: mutant[call] == ATTEMPT[call],
        differs=lambda mutant, call: mutant[call] != REFERENCE[call],
    )
    said = ways.is_seen("id", "f"), ways.is_all("id", "f"), ways.can_show("id", "f")
    assert said == (is_seen, is_all, can_show)
