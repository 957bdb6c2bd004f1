"""Hidden checks of SDPA equivalence: the same attention on two paths, and a fair comparison of them."""

import re
from itertools import product
from types import SimpleNamespace

import pytest
import torch

from manyheads.checks import (
    HALF_PRECISION,
    CheckFailed,
    Layer,
    assert_finite,
    assert_gradients_match,
    assert_matches,
    assert_near,
    assert_refused,
    assert_same,
    assert_shape,
    assert_unmutated,
    check,
    expect,
    is_cut,
    weights_without_effect,
)
from manyheads.checks.asserts import TOLERANCE, difference

USUAL = {"B": (2, 4, 8, 16), "T": (4, 6, 8, 10, 16, 32), "nh": (2, 4, 8, 12), "C": (64, 12, 768, 32)}  # of lessons


PATHS = {True: "flash=True", False: "flash=False"}
PLANTED = ((8.0, 0.3), (-8.0, 0.3), (8.0, 0.77))  # what SDPA's result is changed by: either sign, and two sequences
PARTED = 0.1  # what planting alone leaves between the paths: far more than rounding


def sizes_of(draw):
    """B, T, nh, hd, C and block that differ pairwise, so that no two axes can be mixed up unseen.

    None is usual in lessons: whoever hard-codes one is found in every check.
    """
    while True:
        s = draw.sizes(B=[7], T=[9, 11], nh=[5], hd=[6], block=[13, 17])
        s.C = s.nh * s.hd
        if len({*vars(s).values(), 3 * s.C}) == 7:
            return s


def large_sizes_of(draw):
    """The same, larger: more heads and tokens than anybody tries by hand."""
    while True:
        s = draw.sizes(B=(2, 3), T=(40, 64), nh=(9, 12), hd=(3, 5))
        s.C, s.block = s.nh * s.hd, s.T + draw.integer(1, 3)
        if len({*vars(s).values(), 3 * s.C}) == 7:
            return s


def weights_of(draw, C):
    return {"qkv.weight": draw.weights(3 * C, C), "proj.weight": draw.weights(C, C)}


def layer(candidate, C, nh, block, weights, **options):
    made = candidate.module("CausalSelfAttention", C, nh, block, **options).loaded(weights)
    return made.with_attributes(flash=options["flash"]) if "flash" in options else made


def module(candidate, s, weights, **options):
    return layer(candidate, s.C, s.nh, s.block, weights, **options)


def deep(draw, B, T, C, nh):
    """Weights and an input with which every score, in every head, lies near -44: channel 0 is 1 in every token."""
    weights, x, directions = weights_of(draw, C), draw(B, T, C), draw(nh, C // nh)
    directions *= (44 * (C / nh) ** 0.5) ** 0.5 / directions.norm(dim=-1, keepdim=True)
    weights["qkv.weight"][: 2 * C] *= 0.1
    weights["qkv.weight"][: 2 * C, 0] = torch.cat([directions.flatten(), -directions.flatten()])
    x[..., 0] = 1.0
    return weights, x


def steep(draw, s):
    """Weights and an input whose scores climb from -45 to 45 with the key's position, in every head."""
    q, k = torch.zeros(s.C, s.C, dtype=torch.float64), torch.zeros(s.C, s.C, dtype=torch.float64)
    q[:: s.hd, 0] = 45 * s.hd**0.5
    k[:: s.hd, 1] = 1.0
    x = draw(s.B, s.T, s.C)
    place = torch.arange(s.T, dtype=torch.float64)
    x[..., 0], x[..., 1] = 1.0, (2 * place - (s.T - 1)) / (s.T - 1)  # its middle is 0 on every processor
    return {"qkv.weight": torch.cat([q, k, draw.weights(s.C, s.C)]), "proj.weight": draw.weights(s.C, s.C)}, x


@check(points=0.25, layer=Layer.SHAPE)
def test_shape(attempt, draw):
    """keeps (B, T, C) on both paths, for any batch, length and number of heads"""
    s = sizes_of(draw)
    for flash in PATHS:

        def fault(B, T, nh, C, block, flash=flash):
            answer = layer(attempt, C, nh, block, weights_of(draw, C), flash=flash)(draw(B, T, C))
            if answer.raised is None and tuple(answer.output.shape) == (B, T, C):
                return None
            return answer

        wrong = fault(s.B, s.T, s.nh, s.C, s.block)
        if wrong is not None:
            size = works_for_one_size_only(fault, wrong)
            expect(not size, f"it works with {size}, and not with another: read the sizes off x", "hard_coded_shape")
            assert_shape(wrong, (s.B, s.T, s.C), PATHS[flash])
        for B, T, nh in ((1, s.block, s.nh), (s.B, 1, 1)):
            wrong = fault(B, T, nh, s.C, s.block)
            if wrong is not None:
                assert_shape(wrong, (B, T, s.C), PATHS[flash])


def works_for_one_size_only(fault, wrong):
    """The size from USUAL, in words, that mends an attempt that otherwise fails: it is written into the code."""
    if wrong.raised is not None and not re.search(
        r"is invalid for|must match|cannot be multiplied|split", wrong.message
    ):
        return ""
    right = {"B": 3, "T": 7, "nh": 3, "C": 15}  # no size of which is another's, and none of which is usual
    if fault(**right, block=7) is None:
        return ""
    for name, usual in USUAL.items():
        for value in usual:
            sizes = {**right, name: value}
            if name == "nh":
                sizes["C"] = 5 * value
            if name == "C":
                sizes["nh"] = 4
            if fault(**sizes, block=sizes["T"]) is None:
                return f"{name} = {value}"
    for B, T, (C, nh) in product((1, 2, 4), (4, 8, 10), ((64, 4), (12, 3), (12, 2))):
        if len({B, T, nh, C // nh, C}) == 5 and fault(B, T, nh, C, T) is None:
            return f"x of shape ({B}, {T}, {C})"
    return ""


def registered(answer):
    """Whether both weights are parameters: what is not cannot follow, which is a fault of its own."""
    return not answer.reply.modules or {"qkv.weight", "proj.weight"} <= answer.module.parameters.keys()


@check(
    points=0.25, layer=Layer.CAUSALITY, hint="is_causal=True on the fast path, and the mask by hand: try T = 3 on both."
)
def test_causal(attempt, draw):
    """does not see the future, on either path"""
    s = sizes_of(draw)
    ordinary, large = (weights_of(draw, s.C), draw(s.B, s.T, s.C)), steep(draw, s)
    for start, kind, (weights, x) in (
        (1, "", ordinary),
        (s.T - 2, "", ordinary),
        (s.T // 2, " of large scores", large),
    ):
        edited = x.clone()
        edited[:, start:, 2:] = draw(s.B, s.T - start, s.C - 2)
        for flash, path in PATHS.items():
            before, after = (module(attempt, s, weights, flash=flash)(each).output for each in (x, edited))
            assert_shape(before, x.shape)
            assert_finite(before, f"{path}: the output")
            moved = (before - after).abs().amax(dim=(0, 2)) > 1e-5 * before.abs().max()
            first = int(moved.nonzero()[0]) if moved.any() else s.T
            change = f"{path}: editing positions {start}…{s.T - 1}{kind} changes the output of position {first}"
            expect(first >= start, change)


@check(points=0.25, layer=Layer.CAUSALITY)
def test_independent(attempt, draw):
    """keeps batch entries apart, and heads apart, on both paths"""
    s = sizes_of(draw)
    weights, x = {**weights_of(draw, s.C), "proj.weight": torch.eye(s.C, dtype=torch.float64)}, draw(s.B, s.T, s.C)
    edited = x.clone()
    edited[-1] = draw(s.T, s.C)
    h = s.nh - 1  # the last one: in another order it stands elsewhere, and what is added up ends before it
    mine = slice(h * s.hd, (h + 1) * s.hd)
    rows = weights["qkv.weight"].clone().view(3, s.C, s.C)
    rows[:, mine] = draw.weights(3, s.hd, s.C)
    for flash, path in PATHS.items():
        base = module(attempt, s, weights, flash=flash)(x).output
        assert_shape(base, x.shape)
        other = module(attempt, s, weights, flash=flash)(edited).output
        assert_same(base[:-1], other[:-1], f"{path}: editing the last batch entry changes the output of another")
        after = module(attempt, s, {**weights, "qkv.weight": rows.view(-1, s.C)}, flash=flash)(x).output
        moved = ((base - after).abs().amax(dim=(0, 1)) > 1e-5 * base.abs().max()).nonzero().flatten().tolist()
        expect(
            moved == list(range(s.C))[mine],
            f"{path}: with the identity for proj, another q, k, v in head {h} should move channels "
            f"{mine.start}…{mine.stop - 1} of {s.C}; it moves "
            + (f"{len(moved)} channels, {moved[0]}…{moved[-1]}" if moved else "none of yours"),
        )


def assert_right_values(attempt, reference, draw, flash):
    """Several heads, one head and one token, against the reference."""
    s = sizes_of(draw)
    weights = weights_of(draw, s.C)
    for T, nh, what in ((s.T, s.nh, "several heads"), (s.T, 1, "one head"), (1, s.nh, "one token")):
        x = draw(s.B, T, s.C, scale=1.5)
        got, want = (layer(c, s.C, nh, s.block, weights, flash=flash)(x) for c in (attempt, reference))
        assert_matches(got, want, f"{PATHS[flash]}, {what}: the output")
    weights, x = deep(draw, s.B, s.T, s.C, s.nh)
    got, want = (module(c, s, weights, flash=flash)(x) for c in (attempt, reference))
    assert_matches(got, want, f"{PATHS[flash]}, with low scores: the output")
    s = large_sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C, scale=1.5)
    got, want = (module(c, s, weights, flash=flash)(x) for c in (attempt, reference))
    assert_matches(got, want, f"{PATHS[flash]}, {s.nh} heads and {s.T} tokens: the output")


@check(points=0.5, layer=Layer.VALUES, hint="It scales by itself. In its boolean mask True means: may look.")
def test_values_fast(attempt, reference, draw):
    """attends right with flash=True"""
    assert_right_values(attempt, reference, draw, flash=True)


@check(points=0.5, layer=Layer.VALUES)
def test_values_by_hand(attempt, reference, draw):
    """attends right with flash=False"""
    assert_right_values(attempt, reference, draw, flash=False)


@check(
    points=0.25, layer=Layer.VALUES, hint="Feed both paths the same q, k, v. Where do they part: scale, mask or merge?"
)
def test_paths_agree(attempt, draw):
    """gives the same on both paths, to 1e-5"""
    s = sizes_of(draw)
    for weights, x in ((weights_of(draw, s.C), draw(s.B, s.block, s.C)), steep(draw, s)):
        fast, by_hand = (module(attempt, s, weights, flash=flash)(x).output for flash in PATHS)
        assert_matches(fast, by_hand, "held against flash=False, flash=True")


@check(points=0.25, layer=Layer.GRADIENTS)
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to both weights, on both paths"""
    s = sizes_of(draw)
    (weights, x), g = deep(draw, s.B, s.T, s.C, s.nh), draw(s.B, s.T, s.C)
    for flash in PATHS:
        got, want = (
            module(c.asking(cotangent=g, random=True), s, weights, flash=flash)(x) for c in (attempt, reference)
        )
        try:
            assert_gradients_match(got, want, "args.0", *weights)
        except CheckFailed as fault:
            if got.raised is not None:
                raise

            def output(w, x, flash=flash):
                return module(attempt, s, w, flash=flash)(x).output

            cut = is_cut(output, weights, x, g, got)
            raise CheckFailed(f"{PATHS[flash]}: {fault}", "gradient_cut" if cut else "") from None


@check(points=0.25, layer=Layer.HYGIENE)
def test_parameters(attempt, draw):
    """has 4C² parameters, qkv.weight and proj.weight, and no others"""
    s = sizes_of(draw)
    found = attempt.module("CausalSelfAttention", s.C, s.nh, s.block).built().module.parameters
    wanted = {"qkv.weight": (3 * s.C, s.C), "proj.weight": (s.C, s.C)}
    extra, missing = found.keys() - wanted.keys(), wanted.keys() - found.keys()
    masks = [name for name in extra if found[name].shape[-2:] == (s.block, s.block)]
    expect(not masks, "the mask is among the parameters: an optimiser would change it", "mask_is_parameter")
    biases = sorted(name for name in extra if name in ("qkv.bias", "proj.bias"))
    expect(not biases, f"{' and '.join(biases)} should not exist: bias=False", "proj_bias")
    count = sum(torch.Size(found[name].shape).numel() for name in found)
    expect(
        not missing or count >= 4 * s.C**2,
        f"{' and '.join(sorted(missing))} cannot be found among parameters(): an optimiser would not train it",
        "params_not_registered",
    )
    expect(
        not extra, f"{count} parameters in {len(found)} tensors; 4C² = {4 * s.C**2} in two are enough", "params_extra"
    )
    for name, shape in wanted.items():
        expect(found[name].shape == shape, f"{name} should have shape {shape}; yours has {found[name].shape}")
    for flash in PATHS:
        module(attempt, s, weights_of(draw, s.C), flash=flash)(draw(s.B, s.T, s.C)).must_return()


@check(points=0.25, layer=Layer.HYGIENE)
def test_refuses_indivisible(attempt, draw):
    """refuses an n_embd that n_head does not divide, when it is made"""
    nh, hd = 5, 7
    answer = attempt.module("CausalSelfAttention", nh * hd + 1, nh, 8).built()
    assert_refused(answer, f"n_embd = {nh * hd + 1} with n_head = {nh}", suspect="divisibility_unchecked")
    for flash in PATHS:
        even = layer(attempt, nh * hd, nh, 8, weights_of(draw, nh * hd), flash=flash)
        even(draw(2, 8, nh * hd)).must_return()  # who refuses everything has refused nothing


@check(points=0.25, layer=Layer.HYGIENE, hint="SDPA has no mask to stumble over: who compares T with block_size?")
def test_refuses_too_long(attempt, draw):
    """refuses more tokens than block_size, on both paths"""
    s = sizes_of(draw)
    for flash, path in PATHS.items():
        T, made = s.block + draw.integer(1, 3), module(attempt, s, weights_of(draw, s.C), flash=flash)
        made(draw(s.B, s.block, s.C)).must_return()
        answer = made(draw(s.B, T, s.C))
        what = f"T = {T} with block_size = {s.block} and {path}"
        assert_refused(answer, what, also=("RuntimeError",), suspect="context_unchecked")


@check(points=0.25, layer=Layer.HYGIENE)
def test_moves(attempt, draw):
    """works where .to(device) has put it, on both paths"""
    s = sizes_of(draw)
    for flash in PATHS:
        for device in {"meta", attempt.device} - {"cpu"}:
            moved = module(attempt.asking(watch=True), s, weights_of(draw, s.C), flash=flash).on(device)
            answer = moved(torch.empty(s.B, s.T, s.C, device="meta") if device == "meta" else draw(s.B, s.T, s.C))
            expect_moved(answer, device)
            if answer.raised is not None:  # what fails everywhere does not move either
                module(attempt, s, weights_of(draw, s.C), flash=flash)(draw(s.B, s.T, s.C)).must_return()


def expect_moved(answer, device):
    no_gpu = re.search("CUDA|NVIDIA|HIP", answer.message)
    expect(not no_gpu, "it asks for a GPU, whatever the device of x", "hard_coded_device")
    where = answer.reply.outputs[0].device if answer.reply.outputs else None
    seen = answer.reply.operations
    stays = (seen is not None and seen.mixed) or where not in (None, device)
    stays = stays or re.search("on the expected device|the same device", answer.message)
    if stays and answer.reply.modules and any(len(t.shape) > 1 for t in answer.module.plain.values()):
        expect(
            False,
            "a tensor that the module holds stays behind when the module moves: make it a buffer",
            "mask_not_moved",
        )
    alone = "hard_coded_device" if registered(answer) else ""
    expect(not stays, "a tensor is made on a device of its own, not on that of x", alone)


@check(points=0.25, layer=Layer.HYGIENE)
def test_dtype_and_argument(attempt, draw):
    """follows the dtype of x, and leaves x as it was, on both paths"""
    s = sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C)
    for flash in PATHS:
        answers = {
            dtype: module(attempt.asking(dtype=dtype), s, weights, flash=flash)(x) for dtype in ("float32", "float64")
        }
        works = [dtype for dtype, answer in answers.items() if answer.raised is None]
        for dtype, answer in answers.items():
            suspect = "hard_coded_dtype" if registered(answer) else ""
            expect(not works or dtype in works, f"it works in {' '.join(works)} only: {dtype} fails", suspect)
            expect(
                answer.dtype in (dtype, answer.kind), f"{dtype} in should give {dtype} out, not {answer.dtype}", suspect
            )
            assert_unmutated(answer, suspect="input_mutated")


@check(points=0.25, layer=Layer.HYGIENE, hint="SDPA's dropout_p does not know about eval(): who tells it?")
def test_eval_is_calm(attempt, draw):
    """drops nothing in eval mode, and nothing where dropout is not given, on both paths"""
    s = sizes_of(draw)
    weights, x, asked = weights_of(draw, s.C), draw(s.B, s.T, s.C), attempt.asking(random=True)

    def output(flash, seed, training=False, **options):
        made = module(asked.asking(seed=seed), s, weights, flash=flash, **options)
        return (made.training() if training else made)(x).output.nan_to_num()

    for flash, path in PATHS.items():
        first = output(flash, 1, dropout=0.5)
        if not torch.equal(first, output(flash, 2, dropout=0.5)):
            always_on = torch.equal(output(flash, 1), output(flash, 2))
            deaf = not always_on and weights_without_effect(lambda w, f=flash: module(asked, s, w, flash=f)(x), weights)
            suspect = "dropout_always_on" if always_on else "params_not_registered" if deaf else ""
            whatever = f", whatever {deaf[0]} is" if deaf else ""
            expect(False, f"{path}: two runs in eval mode differ{whatever}", suspect)
        differs = f"{path}: eval mode with dropout differs from training without: eval should do nothing at all"
        assert_same(output(flash, 1, training=True), first, differs)


DROP = 0.25
COPIES = 192


def dropped(attempt, draw, flash, *, same_values, T=12):
    """An output in training and in eval mode, the former for many copies of one sequence; position 0 sees one token.

    With same_values every value is 1, so that weights which sum to 1 leave no trace.
    """
    s = SimpleNamespace(C=6, nh=2, block=12)
    weights, x = weights_of(draw, s.C), draw(1, T, s.C).expand(COPIES, T, s.C).clone()
    x[..., 0] = 1.0
    if same_values:
        weights["qkv.weight"][2 * s.C :] = torch.eye(s.C, dtype=torch.float64)[0]
    weights["proj.weight"] = weights["proj.weight"].abs() + 0.1
    attempt = attempt.asking(random=True)
    still = module(attempt, s, weights, flash=flash)(x[:1]).output
    drawn = module(attempt, s, weights, dropout=DROP, flash=flash).training()(x).output
    assert_shape(still, x[:1].shape)
    assert_shape(drawn, x.shape)
    assert_finite(still, "the output in eval mode")
    expect(bool((still != 0).all()), "the output in eval mode is 0 in places")
    nan = "the output in training is NaN, in eval mode it is not: 0 · -inf, where a masked score was dropped"
    expect(bool(drawn.isfinite().all()), nan, "dropout_before_softmax")
    return drawn / still


def silenced(ratio):
    """The share of zeros where at least four keys are seen in either direction: nothing but the output's dropout."""
    return float((ratio[:, 6:9] == 0).double().mean())


def varies(ratio):
    """Whether what is left takes many values there."""
    left = ratio[:, 6:9][ratio[:, 6:9] != 0]
    return left.numel() > 0 and float(left.max() - left.min()) > 1e-3 * float(left.abs().mean())


@check(points=0.25, layer=Layer.HYGIENE, hint="In training, which tensors lose entries, on which path? There are two.")
def test_drops(attempt, draw):
    """drops attention weights and channels of the output in training, on both paths"""
    for flash, path in PATHS.items():
        ratio = dropped(attempt, draw, flash, same_values=True)
        zeros, in_weights = silenced(ratio), varies(ratio)
        if not in_weights:
            in_scores = varies(dropped(attempt, draw, flash, same_values=False))
            sums = "the weights still sum to 1 in training: it is the scores that are dropped"
            expect(not in_scores, f"{path}: {sums}", "dropout_before_softmax")
            expect(not zeros, f"{path}: the output is dropped and the weights are not", "dropout_on_output_only")
            expect(False, f"{path}: training and eval mode give the same: nothing is dropped", "dropout_missing")
        never = f"{path}: in training no channel of the output is ever 0"
        expect(zeros > DROP / 4, never, "dropout_output_missing")
        error = (DROP * (1 - DROP) / ratio[:, 6:9].numel()) ** 0.5
        share = f"{path}: with dropout = {DROP}, {zeros:.0%} of the output is 0 in training"
        expect(abs(zeros - DROP) <= 8 * error, share)
        alone = float(dropped(attempt, draw, flash, same_values=True, T=1).max())
        survivor = 1 / (1 - DROP) ** 2
        expect(
            abs(alone - survivor) < 1e-4 * survivor,
            f"{path}: with dropout = {DROP}, what survives in a single token should be scaled by {survivor:.4g}; "
            f"yours is scaled by {alone:.4g}",
        )


@check(points=0.25, layer=Layer.HYGIENE)
def test_flag(attempt):
    """takes flash=True as its last argument, and obeys the attribute"""

    def made(*args):
        return attempt.asking(watch=True).module("CausalSelfAttention", 6, 2, 8, *args).reporting("flash")

    for args, wanted in (((), True), ((0.0, False), False), ((0.0, True), True)):
        answer = made(*args).built()
        answer.must_return()
        given = f"with flash={args[1]} as the last argument" if args else "without a word about flash"
        found = answer.module.attributes["flash"]
        yours = found if isinstance(found, bool) else "something else"
        expect(found == wanted, f"{given}, module.flash should be {wanted}; yours is {yours}", "interface")

    def fused(built, flash):
        answer = made(0.0, built).with_attributes(flash=flash)(torch.ones(2, 3, 6))
        answer.must_return()
        return answer.reply.operations.fused

    if fused(True, True) and not fused(False, False):
        obeys = fused(False, True) and not fused(True, False)
        expect(obeys, "setting module.flash after construction does not change the path", "interface")


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="One path calls the fused function, the other is yours. Neither does the other's work.",
)
def test_paths_differ(attempt, draw):
    """goes through SDPA without a (T, T) tensor with flash=True, and writes it out with flash=False"""
    s = SimpleNamespace(B=5, T=61, nh=5, C=30, block=67)  # two primes: nothing else
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C)
    answer = module(attempt.asking(watch=True, random=True), s, weights, flash=True)(x)
    assert_shape(answer, x.shape)
    seen = answer.reply.operations
    expect(seen.fused, "flash=True does not go through F.scaled_dot_product_attention", "delegated")
    squares = [n for n in seen.made if n % s.T**2 == 0 or n % s.block**2 == 0]
    which = "(T, T)" if any(n % s.T**2 == 0 for n in squares) else "(block_size, block_size)"
    expect(not squares, f"flash=True makes a tensor of shape {which} on the way: the squares are back", "delegated")

    s.T, s.block = 9, 13
    options = {"watch": True, "cotangent": draw(s.B, s.T, s.C), "second": True, "random": True}
    answer = module(attempt.asking(**options), s, weights, flash=False)(draw(s.B, s.T, s.C))
    seen = answer.reply.operations
    in_kernel = answer.raised is not None and re.search("derivative for .*(attention|flash)", answer.message)
    fused = "flash=False has PyTorch's fused attention do the work: on this path it is yours"
    expect(not in_kernel and not (seen and seen.fused), fused, "delegated")
    if answer.raised is not None and answer.raised.stage != "gradient":
        answer.must_return()
    expect(seen.made, "nothing of what flash=False does can be seen", "delegated")


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Does the flag flip between the two calls? Is dropout off? Largest, absolute?",
)
def test_measures(attempt, draw):
    """max_path_difference gives the largest absolute difference, with dropout off"""
    s = sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C)
    for planted in PLANTED:
        asked = attempt.asking(random=True, planted=planted)
        fast, by_hand = (module(asked, s, weights, flash=flash)(x) for flash in PATHS)
        for answer in (fast, by_hand):
            assert_shape(answer, x.shape)
            assert_finite(answer)
        apart = fast.output - by_hand.output
        if float(apart.abs().max()) > PARTED:
            judge_measure(asked, s, weights, x, apart)
        else:  # the fast path does without SDPA, which is another check's business
            judge_measure(asked, s, weights, x, apart, draw(*x.shape).sign() * (4 + draw(*x.shape).abs()))


def judge_measure(asked, s, weights, x, apart, added=None):
    """It gives the largest of these differences. added: to what forward gives with flash=True, and so to them."""

    def measured(*, training):
        made = module(asked, s, weights, dropout=0.5 if training else 0.0)
        made = made if added is None else made.adding(flash=added)
        return asked.call("max_path_difference", made.training() if training else made, x)

    def is_right(answer):
        return abs(float(answer.output) - worst) <= 1e-4 * worst

    differences = apart if added is None else apart + added
    worst, answer = float(differences.abs().max()), measured(training=True)
    answer.must_return()
    is_float = answer.kind in ("float", "float64")
    expect(is_float, f"max_path_difference should give a float; yours gives {answer.returned}", "interface")
    if is_right(answer) or not steady(asked, s, weights, x):
        return
    calm, given = measured(training=False), float(answer.output)
    awake = calm.raised is None and is_right(calm)
    expect(
        not awake, "in training mode it gives another number: dropout is at work while it compares", "path_difference"
    )
    expect(given != 0, "it gives 0, and the paths differ: is one path compared with itself?", "path_difference")
    for signed in (float(differences.max()), float(-differences.min())):
        told = "where the other path is the larger one, another number comes out: take the absolute value"
        expect(abs(given - signed) > 1e-4 * worst, told, "path_difference")
    expect(False, f"it gives {given / worst:.2g} times the largest absolute difference", "path_difference")


def steady(asked, s, weights, x):
    """Whether each path gives the same with another seed and with dropout, and leaves x alone: else no comparison of the
    paths can be right."""
    for flash in PATHS:
        was = module(asked, s, weights, flash=flash)(x)
        again = module(asked.asking(seed=1), s, weights, dropout=0.5, flash=flash)(x)
        if again.reply.mutated or difference(again.output, was.output) > TOLERANCE:
            return False
    return True


@check(points=0.25, layer=Layer.HYGIENE, hint="Note the flag and the mode before, and give them back in a finally.")
def test_leaves_no_trace(attempt, draw):
    """max_path_difference leaves the module as it was, and records no gradients"""
    s = sizes_of(draw)
    asked = attempt.asking(random=True, watch=True, cotangent=torch.zeros(()))
    for flash, training in ((True, True), (False, False)):
        made = module(asked, s, weights_of(draw, s.C), dropout=0.2, flash=flash).reporting("flash")
        answer = asked.call("max_path_difference", made.training() if training else made, draw(s.B, s.T, s.C))
        answer.must_return()
        facts, seen = answer.module, answer.reply.operations
        now = facts.attributes["flash"]
        expect(now == flash, f"module.flash was {flash} and is another afterwards", "path_difference")
        mode = f"module.training was {training} and is {facts.training} afterwards"
        expect(facts.training == training, mode, "path_difference")
        expect(not facts.changed, "the weights changed", "path_difference")
        expect(
            not seen.recorded, "gradients are recorded while it compares: nobody will ask for them", "path_difference"
        )
        assert_unmutated(answer, suspect="input_mutated")


@check(
    points=0,
    layer=Layer.HYGIENE,
    device="cuda",
    hint="A large negative number that fits float32 may not fit float16. What fits every dtype?",
)
def test_half_precision(attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16, on both paths"""
    s = sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C)
    for flash, path in PATHS.items():
        exact = module(reference, s, weights, flash=flash)(x)
        for dtype in HALF_PRECISION:
            asked = attempt.asking(dtype="float32", autocast=dtype)
            assert_near(module(asked, s, weights, flash=flash)(x), exact, f"{path}: the output")


@check(
    points=0,
    layer=Layer.HYGIENE,
    device="cuda",
    hint="What of shape (T, T) is made on the way? With is_causal=True not even a mask is needed.",
)
def test_memory(attempt, draw):
    """holds far less than a (T, T) matrix with flash=True, for T = 4096"""
    s = SimpleNamespace(B=1, T=4096, nh=12, C=192, block=4096)
    matrix = s.B * s.nh * s.T**2 * 4  # bytes in float32; a mask that all heads share is a twelfth
    asked = attempt.asking(dtype="float32", memory=True, random=True)
    answer = module(asked, s, weights_of(draw, s.C), flash=True)(draw(s.B, s.T, s.C))
    answer.must_return()
    if answer.reply.peak is None:
        pytest.skip("this device does not say how much memory a call holds")
    held = answer.reply.peak / matrix
    expect(held < 1 / 4, f"flash=True holds {held:.2f} times B · nh · T² numbers at its peak", "delegated")
