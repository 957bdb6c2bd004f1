"""Delegating to the fused function where the math is to be written out: everything else is earned, that check is not.

Watching which operations run can be dodged. The check also asks for what the fused function alone cannot give.
"""

import json
import shutil
from pathlib import Path

import pytest

from manyheads.course import load_course
from tests.hostile.conftest import HERE, grade, hands_in
from tests.make import REPOSITORY, edited

WRITTEN_OUT = (HERE / "attempts" / "delegating" / "written_out.py").read_text(encoding="utf-8")
MATH = WRITTEN_OUT[WRITTEN_OUT.index("        scores =") : WRITTEN_OUT.index("        return self.resid")]
IMPORTS = "from torch import nn\n"
OTHER_NAME = f"{IMPORTS}mix = torch._C._nn.scaled_dot_product_attention\n"
RATE = "self.p if self.training else 0.0"
GIVEN = f"(q, k, v, dropout_p={RATE}, is_causal=True)"
IN_A_THREAD = f"""{IMPORTS}from concurrent.futures import ThreadPoolExecutor


def fused(q, k, v, p, grad):
    with torch.set_grad_enabled(grad):
        return F.scaled_dot_product_attention{GIVEN.replace(RATE, "p")}
"""
MULTIHEAD = f"""        mha = nn.MultiheadAttention(C, self.n_head, {RATE}, bias=False, batch_first=True)
        mha = mha.to(x.device, x.dtype).train(self.training)
        hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        out, _ = F.multi_head_attention_forward(
            *[x.transpose(0, 1)] * 3, C, self.n_head, self.qkv.weight, None, None, None, False,
            self.p, self.proj.weight, None, self.training, None, False, hidden,
        )
        return self.resid(out.transpose(0, 1))
"""
DELEGATES = {  # what stands in the place of the math, and of an import
    "fused_function": [(MATH, f"        y = F.scaled_dot_product_attention{GIVEN}\n")],
    "operator_by_its_own_name": [(MATH,
        f"        y = torch.ops.aten.scaled_dot_product_attention(q, k, v, None, {RATE}, True)\n")],
    "function_under_another_name": [(IMPORTS, OTHER_NAME),
        (MATH, f"        with torch._C.DisableTorchFunction():\n            y = mix{GIVEN}\n")],
    "in_another_thread": [(IMPORTS, IN_A_THREAD), (MATH, "        with ThreadPoolExecutor(1) as pool:\n"
        f"            y = pool.submit(fused, q, k, v, {RATE}, torch.is_grad_enabled()).result()\n")],
    "multihead_module": [(MATH, MULTIHEAD)],
}  # fmt: skip
EXERCISE, CHECK = "fused_qkv", "written_out"


@pytest.fixture(scope="module")
def exercises(classes):
    """Each attempt's exercise, graded on a copy of the real course, under its own limits.

    No line is searched for: on a real exercise that takes longer than all else.
    """

    def plant(course: Path) -> None:
        for name in ("course.yaml", "solutions", "grader"):
            source, target = REPOSITORY / name, course / name
            target.parent.mkdir(parents=True, exist_ok=True)
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copy(source, target) if source.is_file() else shutil.copytree(source, target, ignore=ignored)

    loaded = load_course(REPOSITORY)
    exercise = next(e for e in loaded.exercises if e.id == EXERCISE)
    texts = {"written_out": WRITTEN_OUT} | {name: edited(WRITTEN_OUT, *pairs) for name, pairs in DELEGATES.items()}
    students = {name: hands_in(text, f"{exercise.stem}.py") for name, text in texts.items()}
    make = {"plant": plant, "assignment": exercise.assignment.id, "seconds": 120.0}
    make["options"] = ("--exercise", EXERCISE, "--no-lines")
    run = classes.get("delegating", lambda root: grade(root, students, **make))
    assert run.status == 0, run.text
    return {student: json.loads(result)["exercises"][0] for student, result in run.results.items()}


def test_written_out_math_earns_all(exercises):
    assert exercises["written_out"]["score"] == exercises["written_out"]["max_score"], exercises["written_out"]


@pytest.mark.parametrize("trick", DELEGATES)
def test_delegating_is_found_and_costs_its_check_alone(exercises, trick):
    lost = [check["id"] for check in exercises[trick]["checks"] if check["outcome"] != "passed"]
    assert lost == [CHECK]
    assert "delegated" in [found["id"] for found in exercises[trick]["diagnosis"]]
