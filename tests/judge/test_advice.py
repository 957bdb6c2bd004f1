"""What a line that raised an exception shows by itself."""

import time

import pytest

from manyheads.box.worker.answers import Raised
from manyheads.judge.advice import AXIS_LOST, TRANSPOSED, advice

UNFIT = "The size of tensor a (5) must match the size of tensor b (7) at non-singleton dimension 0"


def raised(line: int | None, message: str = UNFIT) -> Raised:
    return Raised("RuntimeError", ("RuntimeError", "Exception"), message, "call", line)


@pytest.mark.parametrize(("lines", "said"), [
    pytest.param(["return q @ k.T / 2"], TRANSPOSED, id="T of three axes"),
    pytest.param(["return e / e.sum(-1)"], AXIS_LOST, id="a sum in the division"),
    pytest.param(["return e / torch.sum(e, dim=-1)"], AXIS_LOST, id="torch's sum"),
    pytest.param(["total = e.sum(dim=-1)", "return e / total"], AXIS_LOST, id="a sum with a name"),
    pytest.param(["m = e.max(-1)[0]", "return (e - m).exp()"], AXIS_LOST, id="a maximum, which has two parts"),
    pytest.param(["return e / e.sum(-1, keepdim=True)"], "", id="an axis that is kept"),
    pytest.param(["return e / e.sum(-1, True)"], "", id="an axis that is kept by position"),
    pytest.param(["return e / e.sum()"], "", id="a sum over everything, which fits everything"),
    pytest.param(["return q @ k.mT"], "", id="a transpose of the last two"),
    pytest.param(["return q @ (k"], "", id="no Python"),
])  # fmt: skip
def test_the_line_says_what_is_known_of_it(lines: list[str], said: str) -> None:
    source = "\n".join(["def f(q, k, e):", *(f"    {line}" for line in lines)])
    assert advice(source, raised(len(lines) + 1)) == said


def test_other_exceptions_and_other_lines_are_not_the_lines_fault() -> None:
    source = "def f(q, k):\n    k = k.T\n    return q @ k\n"
    assert advice(source, raised(3)) == advice(source, raised(None)) == advice(source, raised(2, "no such thing")) == ""


def test_of_a_matrix_t_turns_what_it_should() -> None:
    unfit = "mat1 and mat2 shapes cannot be multiplied (77x30 and 6x30)"
    assert advice("def f(x, w):\n    return x @ w, x @ w.T\n", raised(2, unfit)) == ""


def test_functions_within_functions_are_looked_at_once() -> None:
    heads = "".join(f"{' ' * depth}def f{depth}(q, e):\n" for depth in range(90))
    source = f"{heads}{' ' * 90}{'a=1;' * 45_000}total = e.sum(-1); return e / total\n"
    started = time.process_time()
    assert advice(source, raised(91)) == AXIS_LOST
    assert time.process_time() - started < 5  # for each function that it is in, twice as long
