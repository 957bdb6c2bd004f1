"""Which of its own functions an attempt's function uses."""

from __future__ import annotations

from manyheads.submission.uses import uses

TEXT = """
def scores(q, k): return q @ k.mT
def helper(q, k): return scores(q, k)
def attend(q, k, v): return helper(q, k) @ v
class Head(Module):
    def forward(self, x): return attend(x, x, x) + Head.size
if __name__ == "__main__":
    def scores(): return attend
"""


def test_what_is_used_by_way_of_another_is_used() -> None:
    assert uses(TEXT) == {
        "scores": frozenset(),
        "helper": {"scores"},
        "attend": {"helper", "scores"},
        "Head": {"attend", "helper", "scores"},
    }


def test_of_a_text_that_is_no_python_nothing_is_known() -> None:
    assert uses("def f(:") == {}
