"""Which of its own functions an attempt's function uses."""

import time

from manyheads.judge.function_states import named_in, uses

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
    assert {name: uses(TEXT, name) for name in named_in(TEXT)} == {
        "scores": frozenset(),
        "helper": {"scores"},
        "attend": {"helper", "scores"},
        "Head": {"attend", "helper", "scores"},
    }


def test_of_a_text_that_is_no_python_nothing_is_known() -> None:
    assert named_in("def f(:") == {}
    assert uses("def f(:", "f") == frozenset()


def test_a_file_of_thousands_of_functions_takes_no_time() -> None:
    text = "\n".join(f"def f{i}():f{i + 1}" for i in range(4900))
    started = time.process_time()
    assert len(uses(text, "f0")) == 4899
    assert time.process_time() - started < 3  # for all of them at once, 10 s
