"""Hidden checks of the fused QKV: one projection, heads, causal attention, one projection back."""

import re
from itertools import product
from types import SimpleNamespace

import torch

from manyheads.box.worker.messages import Entries
from manyheads.checks import (
    HALF_PRECISION,
    CheckFailed,
    Layer,
    Module,
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

GPT2 = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
GPT2_BLOCK = 1024
ENOUGH = 20_000  # operations on the meta device, after which whoever has not refused is not going to
USUAL = {"B": (2, 4, 8, 16), "T": (4, 6, 8, 10, 16, 32), "nh": (2, 4, 8, 12), "C": (64, 12, 768, 32)}  # of lessons


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
    return candidate.module("CausalSelfAttention", C, nh, block, **options).loaded(weights)


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
    """keeps (B, T, C) for any batch, any length up to block_size and any number of heads"""
    s = sizes_of(draw)

    def fault(B, T, nh, C, block):
        answer = layer(attempt, C, nh, block, weights_of(draw, C))(draw(B, T, C))
        if answer.raised is None and tuple(answer.output.shape) == (B, T, C):
            return None
        return answer

    wrong = fault(s.B, s.T, s.nh, s.C, s.block)
    if wrong is not None:
        size = works_for_one_size_only(fault, wrong)
        expect(not size, f"it works with {size}, and not with another: read the sizes off x", "hard_coded_shape")
        assert_shape(wrong, (s.B, s.T, s.C))
    for B, T, nh in ((1, s.T, s.nh), (s.B, 1, s.nh), (s.B, s.block, s.nh), (s.B, s.T, 1)):
        wrong = fault(B, T, nh, s.C, s.block)
        if wrong is not None:
            assert_shape(wrong, (B, T, s.C))


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


@check(points=0.25, layer=Layer.FINITE, hint="Which row of the mask hides everything? What is softmax of nothing?")
def test_finite(attempt, draw):
    """gives numbers, however large the scores"""
    s = sizes_of(draw)
    weights, x = steep(draw, s)
    assert_finite(module(attempt, s, weights)(x))


@check(
    points=0.5, layer=Layer.CAUSALITY, hint="Print the weights for T = 4. Every row should end in zeros but the last."
)
def test_causal(attempt, draw):
    """does not see the future"""
    s = sizes_of(draw)
    ordinary, large = (weights_of(draw, s.C), draw(s.B, s.T, s.C)), steep(draw, s)
    for start, kind, (weights, x) in (
        (1, "", ordinary),
        (s.T - 2, "", ordinary),
        (s.T // 2, " of large scores", large),
    ):
        edited = x.clone()
        edited[:, start:, 2:] = draw(s.B, s.T - start, s.C - 2)
        before, after = (module(attempt, s, weights)(each).output for each in (x, edited))
        assert_shape(before, x.shape)
        assert_finite(before)
        moved = (before - after).abs().amax(dim=(0, 2)) > 1e-5 * before.abs().max()
        first = int(moved.nonzero()[0]) if moved.any() else s.T
        expect(first >= start, f"editing positions {start}…{s.T - 1}{kind} changes the output of position {first}")
        assert_finite(after)


@check(points=0.25, layer=Layer.CAUSALITY)
def test_independent(attempt, draw):
    """keeps batch entries apart, and heads apart"""
    s = sizes_of(draw)
    weights, x = {**weights_of(draw, s.C), "proj.weight": torch.eye(s.C, dtype=torch.float64)}, draw(s.B, s.T, s.C)
    base = module(attempt, s, weights)(x).output
    assert_shape(base, x.shape)
    edited = x.clone()
    edited[-1] = draw(s.T, s.C)
    other = module(attempt, s, weights)(edited)
    assert_same(base[:-1], other.output[:-1], "editing the last batch entry changes the output of another")

    h = s.nh - 1  # the last one: in another order it stands elsewhere, and what is added up ends before it
    mine = slice(h * s.hd, (h + 1) * s.hd)
    rows = weights["qkv.weight"].clone().view(3, s.C, s.C)
    rows[:, mine] = draw.weights(3, s.hd, s.C)
    after = module(attempt, s, {**weights, "qkv.weight": rows.view(-1, s.C)})(x).output
    moved = ((base - after).abs().amax(dim=(0, 1)) > 1e-5 * base.abs().max()).nonzero().flatten().tolist()
    expect(
        moved == list(range(s.C))[mine],
        f"with the identity for proj, another q, k, v in head {h} should move channels {mine.start}…{mine.stop - 1} of "
        f"{s.C}; it moves " + (f"{len(moved)} channels, {moved[0]}…{moved[-1]}" if moved else "none of yours"),
    )


@check(points=0.5, layer=Layer.VALUES, hint="A single token can only look at itself: what is left is v, projected.")
def test_single_token(attempt, reference, draw):
    """gives a single token its own value, projected"""
    s = sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, 1, s.C)
    answer, want = (module(c, s, weights)(x) for c in (attempt, reference))
    assert_shape(answer, x.shape)
    if difference(answer.output, want.output) <= TOLERANCE:
        return
    q, k, v = (x @ w.mT for w in weights["qkv.weight"].chunk(3))
    proj = weights["proj.weight"]
    others = {
        "q, projected": q @ proj.mT,
        "k, projected": k @ proj.mT,
        "x, projected": x @ proj.mT,
        "v as it is, not projected": v,
        "v, projected with proj's weight untransposed": v @ proj,
    }
    for what, other in others.items():
        same = torch.allclose(answer.output, other, atol=1e-4)
        expect(not same, f"a token alone should get v, projected; yours gets {what}")
    assert_matches(answer, want)


@check(points=0.5, layer=Layer.VALUES, hint="With one head, compare scores, weights and output by hand for T = 2.")
def test_single_head(attempt, reference, draw):
    """attends right with a single head"""
    s = sizes_of(draw)
    for weights, x in ((weights_of(draw, s.C), draw(s.B, s.T, s.C, scale=1.5)), deep(draw, s.B, s.T, s.C, 1)):
        assert_matches(*(layer(c, s.C, 1, s.block, weights)(x) for c in (attempt, reference)))


@check(points=0.75, layer=Layer.VALUES)
def test_values(attempt, reference, draw):
    """attends right with several heads"""
    s = sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C, scale=1.5)
    got, want = (module(c, s, weights)(x).output for c in (attempt, reference))
    assert_shape(got, want.shape)
    if difference(got, want) > TOLERANCE:
        compare_heads(got, want, s, weights)
    weights, x = deep(draw, s.B, s.T, s.C, s.nh)
    assert_matches(*(module(c, s, weights)(x) for c in (attempt, reference)), "with low scores, the output")
    s = large_sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C, scale=1.5)
    got, want = (module(c, s, weights)(x) for c in (attempt, reference))
    assert_matches(got, want, f"with {s.nh} heads and {s.T} tokens, the output")


def compare_heads(got, want, s, weights):
    """Fail with what the heads hold. To undo proj makes rounding errors larger: only where there is a real one."""
    proj = weights["proj.weight"]
    heads = (torch.linalg.solve(proj, y.mT).mT.unflatten(-1, (s.nh, s.hd)) for y in (got, want))
    mine, right = (y.transpose(1, 2).transpose(0, 1) for y in heads)  # (nh, B, T, hd), before proj
    close = [[bool(torch.allclose(a, b, atol=1e-4)) for b in right] for a in mine]
    for h, row in enumerate(close):
        found = row.index(True) if any(row) else h
        expect(found == h, f"before proj, the channels of head {h} hold what head {found} has worked out")
    right_heads = sum(row[h] for h, row in enumerate(close))
    expect(right_heads in (0, s.nh), f"{right_heads} of {s.nh} heads are right, the others are not")
    assert_matches(got, want)


@check(points=0.25, layer=Layer.GRADIENTS)
def test_gradients(attempt, reference, draw):
    """lets gradients through to x and to both weights"""
    s = sizes_of(draw)
    (weights, x), g = deep(draw, s.B, s.T, s.C, s.nh), draw(s.B, s.T, s.C)
    got, want = (module(c.asking(cotangent=g, random=True), s, weights)(x) for c in (attempt, reference))
    try:
        assert_gradients_match(got, want, "args.0", *weights)
    except CheckFailed as fault:
        if got.raised is not None:
            raise
        cut = is_cut(lambda w, x: module(attempt, s, w)(x).output, weights, x, g, got)
        raise CheckFailed(str(fault), "gradient_cut" if cut else "") from None


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
    module(attempt, s, weights_of(draw, s.C))(draw(s.B, s.T, s.C)).must_return()


@check(points=0.25, layer=Layer.HYGIENE)
def test_refuses_indivisible(attempt, draw):
    """refuses an n_embd that n_head does not divide, when it is made"""
    nh, hd = 5, 7
    answer = attempt.module("CausalSelfAttention", nh * hd + 1, nh, 8).built()
    assert_refused(answer, f"n_embd = {nh * hd + 1} with n_head = {nh}", suspect="divisibility_unchecked")
    layer(attempt, nh * hd, nh, 8, weights_of(draw, nh * hd))(
        draw(2, 8, nh * hd)
    ).must_return()  # who refuses everything?


@check(points=0.25, layer=Layer.HYGIENE)
def test_refuses_too_long(attempt, draw):
    """refuses more tokens than block_size"""
    s = sizes_of(draw)
    T, made = s.block + draw.integer(1, 3), module(attempt, s, weights_of(draw, s.C))
    made(draw(s.B, s.block, s.C)).must_return()
    answer = made(draw(s.B, T, s.C))
    what = f"T = {T} with block_size = {s.block}"
    assert_refused(answer, what, also=("RuntimeError",), suspect="context_unchecked")


@check(points=0.25, layer=Layer.HYGIENE)
def test_moves(attempt, draw):
    """works where .to(device) has put it"""
    s = sizes_of(draw)
    for device in {"meta", attempt.device} - {"cpu"}:
        answer = module(attempt.asking(watch=True), s, weights_of(draw, s.C)).on(device)
        answer = answer(torch.empty(s.B, s.T, s.C, device="meta") if device == "meta" else draw(s.B, s.T, s.C))
        expect_moved(answer, device)
        if answer.raised is not None:  # what fails everywhere does not move either
            module(attempt, s, weights_of(draw, s.C))(draw(s.B, s.T, s.C)).must_return()


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
    """follows the dtype of x, and leaves x as it was"""
    s = sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C)
    answers = {dtype: module(attempt.asking(dtype=dtype), s, weights)(x) for dtype in ("float32", "float64")}
    works = [dtype for dtype, answer in answers.items() if answer.raised is None]
    for dtype, answer in answers.items():
        suspect = "hard_coded_dtype" if registered(answer) else ""
        expect(not works or dtype in works, f"it works in {' '.join(works)} only: {dtype} fails", suspect)
        expect(answer.dtype in (dtype, answer.kind), f"{dtype} in should give {dtype} out, not {answer.dtype}", suspect)
        assert_unmutated(answer, suspect="input_mutated")


@check(points=0.25, layer=Layer.HYGIENE, hint="Who tells your dropout that training is over?")
def test_eval_is_calm(attempt, draw):
    """drops nothing in eval mode, and nothing where dropout is not given"""
    s = sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C)

    def output(seed, training=False, **options):
        made = module(attempt.asking(random=True, seed=seed), s, weights, **options)
        return (made.training() if training else made)(x).output.nan_to_num()

    first = output(1, dropout=0.5)
    if not torch.equal(first, output(2, dropout=0.5)):
        always_on = torch.equal(output(1), output(2))
        deaf = not always_on and weights_without_effect(lambda w: module(attempt.asking(random=True), s, w)(x), weights)
        suspect = "dropout_always_on" if always_on else "params_not_registered" if deaf else ""
        expect(False, "two runs in eval mode differ" + (f", whatever {deaf[0]} is" if deaf else ""), suspect)
    differs = "eval mode with dropout differs from training without: eval should do nothing at all"
    assert_same(output(1, training=True), first, differs)


DROP = 0.25
COPIES = 192


def dropped(attempt, draw, *, same_values, T=12):
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
    still = module(attempt, s, weights)(x[:1]).output
    drawn = module(attempt, s, weights, dropout=DROP).training()(x).output
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


@check(points=0.25, layer=Layer.HYGIENE, hint="In training, which tensor loses entries: scores, weights or output?")
def test_drops_weights(attempt, draw):
    """drops attention weights in training"""
    ratio = dropped(attempt, draw, same_values=True)
    zeros = silenced(ratio)
    if not varies(ratio):
        in_scores = varies(dropped(attempt, draw, same_values=False))
        expect(
            not in_scores,
            "the weights still sum to 1 in training: it is the scores that are dropped",
            "dropout_before_softmax",
        )
        expect(not zeros, "the output is dropped and the weights are not", "dropout_on_output_only")
        expect(False, "training and eval mode give the same: nothing is dropped", "dropout_missing")
    alone = dropped(attempt, draw, same_values=True, T=1)
    survivor = 1 / (1 - DROP) ** (2 if zeros else 1)
    expect(
        abs(float(alone.max()) - survivor) < 1e-4 * survivor,
        f"with dropout = {DROP}, what survives in a single token should be scaled by {survivor:.4g}; "
        f"yours is scaled by {float(alone.max()):.4g}",
    )


@check(points=0.25, layer=Layer.HYGIENE, hint="There are two dropouts: the second comes last of all.")
def test_drops_output(attempt, draw):
    """drops channels of the output in training"""
    ratio = dropped(attempt, draw, same_values=True)
    zeros = silenced(ratio)
    if zeros <= DROP / 4:
        some = varies(ratio) or varies(dropped(attempt, draw, same_values=False))
        expect(some, "training and eval mode give the same: nothing is dropped", "dropout_missing")
        expect(False, "in training no channel of the output is ever 0", "dropout_output_missing")
    error = (DROP * (1 - DROP) / ratio[:, 6:9].numel()) ** 0.5
    share = f"with dropout = {DROP}, {zeros:.0%} of the output is 0 in training"
    expect(abs(zeros - DROP) <= 8 * error, share)
    means = ratio.mean(dim=(1, 2))
    bias = abs(float(means.mean()) - 1)
    away = f"averaged over many runs, training is {bias:.0%} away from eval mode: what survives is to be scaled up"
    expect(bias <= 8 * float(means.std()) / COPIES**0.5 + 1e-9, away)


@check(points=0.25, layer=Layer.HYGIENE)
def test_written_out(attempt, draw):
    """writes the attention out"""
    s = sizes_of(draw)
    x, g = draw(s.B, s.T, s.C), draw(s.B, s.T, s.C)
    answer = module(attempt.asking(watch=True, cotangent=g, second=True, random=True), s, weights_of(draw, s.C))(x)
    seen = answer.reply.operations
    in_kernel = answer.raised is not None and re.search("derivative for .*(attention|flash)", answer.message)
    fused = "PyTorch's fused attention does the work: here the scores, the mask, the softmax and the sum are yours"
    expect(not in_kernel and not (seen and seen.fused), fused, "delegated")
    if answer.raised is not None and answer.raised.stage != "gradient":
        answer.must_return()
    expect(seen.made, "nothing of what it does can be seen", "delegated")


@check(
    points=0.25, layer=Layer.HYGIENE, hint="In every GPT-2 a head is 64 channels wide. 24 and 36 are numbers of layers."
)
def test_gpt2_sizes(attempt):
    """makes the four attentions of GPT-2"""
    single = attempt.asking(dtype="float32")
    for size, (C, nh) in GPT2.items():
        made = single.module("gpt2_attention", size).without_init()
        twin = single.module("CausalSelfAttention", C, nh, GPT2_BLOCK).without_init()
        built = made.beside(twin).built()
        alike = built.raised is None and built.module.alike  # then it answers as the class, which other checks judge
        if not alike or size == "small":  # large weights cost time
            expect_heads(made, twin, size, C, nh)
        if not alike:
            expect_block(made, twin, size, C)


def expect_heads(made, twin, size, C, nh):
    """It takes C channels, in heads as wide as they should be: seen in what it computes."""
    weights, x = head_probe(C)
    answer = made.loaded(weights)(x)
    if answer.raised is not None and twin.on("meta")(torch.empty(1, 2, C, device="meta")).raised is None:
        refused = {"ValueError", "AssertionError"} & set(answer.raised.bases)
        expect(not refused, f'gpt2_attention("{size}") is refused: its sizes are not those of GPT-2', "gpt2_sizes")
        wide = "RuntimeError" not in answer.raised.bases
        fits = wide or made.on("meta")(torch.empty(1, 2, C, device="meta")).raised is None
        expect(fits, f"{size} should take tokens of {C} channels; yours does not", "gpt2_sizes")
    width = answer.module.parameters.get("qkv.weight")
    expect(
        width is None or width.shape[-1] == C,
        f"{size} should have n_embd = {C}; yours has {width and width.shape[-1]}",
        "gpt2_sizes",
    )
    mine = channels_of_one_head(answer.output, x)
    if mine != C // nh and mine != channels_of_one_head(twin.loaded(weights)(x).output, x):
        expect(False, f"a head of {size} should be {C // nh} channels wide; yours is {mine} wide", "gpt2_sizes")


def head_probe(C):
    """q and k read channel 0 and nothing else; v and proj are the identity. Two tokens."""
    one, diagonal = torch.ones(C), torch.arange(C)
    rows = torch.cat([torch.tensor([0, C]), 2 * C + diagonal])
    qkv = Entries(
        (3 * C, C), torch.stack([rows, torch.cat([torch.tensor([0, 0]), diagonal])], dim=1), torch.ones(C + 2)
    )
    x = torch.stack([-one, one])[None]
    x[..., 0] *= 4.0
    return {"qkv.weight": qkv, "proj.weight": Entries((C, C), torch.stack([diagonal, diagonal], dim=1), one)}, x


def channels_of_one_head(output, x):
    """How many channels of token 1 are not the plain mean of both tokens: they share a head with channel 0."""
    assert_shape(output, x.shape)
    return int((output[0, 1].abs() > 0.1).sum())


def expect_block(made, twin, size, C):
    """1024 tokens are taken and 1025 refused, on a device that computes nothing; unless the class itself is to blame."""

    def takes(module, T):
        asked = Module(module.candidate.asking(watch=True, most_operations=ENOUGH), module.build).on("meta")
        answer = asked(torch.empty(1, T, C, device="meta"))
        return answer.raised is None or answer.reply.operations.stopped  # still at work: nobody is asked to be fast

    for T, right in ((GPT2_BLOCK, True), (GPT2_BLOCK + 1, False)):
        if takes(made, T) is not right and takes(twin, T) is right:
            told = f"{size} should take {GPT2_BLOCK} tokens and no more; yours {'refuses' if right else 'takes'} {T}"
            expect(False, told, "gpt2_sizes")


@check(points=0.25, layer=Layer.HYGIENE)
def test_gpt2_refuses(attempt):
    """refuses any other GPT-2, and lists the four"""
    for size in ("big", "tiny"):
        answer = attempt.asking(dtype="float32").module("gpt2_attention", size).without_init().built()
        assert_refused(answer, f'gpt2_attention("{size}")', suspect="gpt2_sizes")
        missing = [name for name in GPT2 if name not in answer.message]
        expect(not missing, f"the message does not list {' and '.join(missing)}: say which names there are")
    small = attempt.asking(dtype="float32").module("gpt2_attention", "small").without_init()
    width = small.built().module.parameters.get("qkv.weight")  # which is another check's business
    weights, x = head_probe(GPT2["small"][0] if width is None else width.shape[-1])
    small.loaded(weights)(x).must_return()  # who refuses everything?


@check(
    points=0,
    layer=Layer.HYGIENE,
    device="cuda",
    hint="A large negative number that fits float32 may not fit float16. What fits every dtype?",
)
def test_half_precision(attempt, reference, draw):
    """stays finite and near under autocast, in float16 and in bfloat16"""
    s = sizes_of(draw)
    weights, x = weights_of(draw, s.C), draw(s.B, s.T, s.C)
    exact = module(reference, s, weights)(x)
    for dtype in HALF_PRECISION:
        assert_near(module(attempt.asking(dtype="float32", autocast=dtype), s, weights)(x), exact)
