"""What all checks of modules share: whether an answer follows its input's device and dtype."""

import re

from manyheads.checks import assert_unmutated, expect


def expect_moved(answer, device, registered):
    """Nothing stays on another device than this one, where the module and its input are.

    registered: whether all weights are parameters. One that is not cannot follow the module, which is another fault.
    """
    no_gpu = re.search("CUDA|NVIDIA|HIP", answer.message)
    expect(not no_gpu, "it asks for a GPU, whatever the device of x", "hard_coded_device")
    where = answer.reply.outputs[0].device if answer.reply.outputs else None
    seen = answer.reply.operations
    stays = (seen is not None and seen.mixed) or where not in (None, device)
    stays = stays or re.search("on the expected device|the same device", answer.message)
    if stays and answer.reply.modules and any(len(t.shape) > 1 for t in answer.module.plain.values()):
        behind = "a tensor that the module holds stays behind when the module moves: make it a buffer"
        expect(False, behind, "mask_not_moved" if registered else "")
    alone = "hard_coded_device" if registered else ""
    expect(not stays, "a tensor is made on a device of its own, not on that of x", alone)


def expect_dtype_and_argument(ask, registered):
    """In each dtype the output has that of x, which does not change; the answers, by dtype.

    ask: by dtype. registered: by answer, as above.
    """
    answers = {dtype: ask(dtype) for dtype in ("float32", "float64")}
    works = [dtype for dtype, answer in answers.items() if answer.raised is None]
    for dtype, answer in answers.items():
        suspect = "hard_coded_dtype" if registered(answer) else ""
        expect(not works or dtype in works, f"it works in {' '.join(works)} only: {dtype} fails", suspect)
        follows = answer.dtype in (dtype, answer.kind)
        expect(follows, f"{dtype} in should give {dtype} out, not {answer.dtype}", suspect)
        assert_unmutated(answer, suspect="input_mutated")
    return answers
