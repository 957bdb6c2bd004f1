"""Hidden checks of the loop over heads: causal attention, one head at a time, from a given box of weights."""

from types import SimpleNamespace

import torch

from manyheads.checks import (
    CheckFailed,
    Layer,
    StandIn,
    assert_finite,
    assert_gradients_match,
    assert_matches,
    assert_shape,
    assert_unmutated,
    check,
    expect,
)

from ._functions import dtype, stays_on_the_device
from ._gradients import is_cut
from ._modules import asked_of, changed, directions
from ._shares import alike, by_head, qkv_alike, shares_out

TARGET = "mha_by_loop"
LESSONS = ((2, 8, 4, 16), (2, 5, 3, 4))  # B, T, nh, hd of the lesson and of its example
WEIGHTS = ("args.0.qkv.weight", "args.0.proj.weight")


def sizes_of(draw):
    """B, T, nh, hd and C that differ pairwise, none of them usual in lessons."""
    s = draw.sizes(B=[7], T=[9, 11], nh=[5], hd=[6])
    return changed(s, C=s.nh * s.hd)


def box(nh, qkv, proj):
    """The box of weights that an attempt is given."""
    return StandIn({"qkv": qkv, "proj": proj}, {"n_head": nh, "head_dim": proj.shape[0] // nh})


def drawn(draw, s):
    """Random weights, and an input."""
    return draw.weights(3 * s.C, s.C), draw.weights(s.C, s.C), draw(s.B, s.T, s.C)


def deep(draw, s):
    """Weights and an input with which every score, in every head, lies near −44: channel 0 is 1 in every token."""
    (qkv, proj, x), read = drawn(draw, s), directions(draw, s.nh, s.hd)
    qkv[: 2 * s.C] *= 0.1
    qkv[: 2 * s.C, 0] = torch.cat([read.flatten(), -read.flatten()])
    x[..., 0] = 1.0
    return qkv, proj, x


def calls_of(draw):
    """The function of the exercise with arguments for it by name."""
    s = sizes_of(draw)
    qkv, proj, x = drawn(draw, s)
    return {TARGET: {"mha": box(s.nh, qkv, proj), "x": x}}


def output_of(implementation, nh, qkv, proj, x):
    """What is returned, of the right shape."""
    answer = implementation.call(TARGET, box(nh, qkv, proj), x)
    assert_shape(answer, x.shape)
    return answer.output


def where_changed(before, after, *dims):
    """Where two outputs differ, over the other dimensions: indices along `dims`."""
    before, after = before.nan_to_num(nan=1e30), after.nan_to_num(nan=1e30)
    differs = (before - after).abs() > 1e-5 * before.abs().max().clamp_min(1e-30)
    others = [d for d in range(differs.dim()) if d not in dims]
    return [tuple(p) for p in differs.amax(dim=others).nonzero().tolist()]


@check(
    points=0.25, layer=Layer.SHAPE, hint="Each head gives (B, T, head_dim). What do n_head of them make, side by side?"
)
def test_shape(attempt, draw):
    """gives (B, T, C)"""
    s = sizes_of(draw)
    qkv, proj, x = drawn(draw, s)
    answer = attempt.call(TARGET, box(s.nh, qkv, proj), x)
    if answer.raised is not None and attempt.asking(random=True).call(TARGET, x, box(s.nh, qkv, proj)).raised is None:
        raise CheckFailed("the arguments are mha and x, in this order; yours takes x first", "interface")
    expect(answer.kind == "tensor", f"a tensor was expected; yours returned {answer.returned}", "interface")
    assert_shape(answer, (s.B, s.T, s.C))


@check(
    points=0.25,
    layer=Layer.FINITE,
    hint="A row that is −inf everywhere, or 0 · −inf, makes NaN. Which row has nothing to see?",
)
def test_finite(attempt, draw):
    """gives numbers everywhere"""
    s = sizes_of(draw)
    qkv, proj, x = drawn(draw, s)
    assert_finite(attempt.call(TARGET, box(s.nh, qkv, proj), x))


@check(
    points=0.5,
    layer=Layer.CAUSALITY,
    hint="Token t may look at the tokens 0…t. Fill the other scores with −inf, before the softmax.",
)
def test_causal(attempt, draw):
    """lets no token see the future"""
    s = sizes_of(draw)
    qkv, proj, x = deep(draw, s)
    before = output_of(attempt, s.nh, qkv, proj, x)
    for t in (1, s.T - 2):
        edited = x.clone()
        edited[:, t, 1:] = draw(s.B, s.C - 1)
        seen = [p for (p,) in where_changed(before, output_of(attempt, s.nh, qkv, proj, edited), 1)]
        early = " and ".join(str(p) for p in seen if p < t)
        told = f"a change of token {t} should reach the tokens {t}…{s.T - 1}; in yours it reaches token {early}"
        expect(not early, told)
        expect(t in seen, f"a change of token {t} does not reach token {t} itself")


@check(
    points=0.25,
    layer=Layer.CAUSALITY,
    hint="The sequences of a batch never meet: which of your steps joins or cuts axis 0?",
)
def test_sequences_apart(attempt, draw):
    """keeps the sequences of a batch apart"""
    s = sizes_of(draw)
    qkv, proj, x = drawn(draw, s)
    b = draw.integer(0, s.B - 1)
    edited = x.clone()
    edited[b] = draw(s.T, s.C)
    before, after = (output_of(attempt, s.nh, qkv, proj, each) for each in (x, edited))
    others = [p for (p,) in where_changed(before, after, 0) if p != b]
    expect(not others, f"a change of sequence {b} of {s.B} also changes what sequence {others and others[0]} gives")


@check(
    points=0.25,
    layer=Layer.CAUSALITY,
    hint="Head h reads channels h·hd … (h+1)·hd − 1 of q, k and v, and writes the same ones.",
)
def test_heads_apart(attempt, draw):
    """keeps the heads apart and in order"""
    s = sizes_of(draw)
    qkv, _, x = drawn(draw, s)
    h = s.nh - 1  # the last one: in another order it stands elsewhere, and what is added up ends before it
    eye = torch.eye(s.C, dtype=torch.float64)
    own = range(h * s.hd, (h + 1) * s.hd)
    edited = qkv.clone()
    for block in range(3):
        rows = slice(block * s.C + own[0], block * s.C + own[-1] + 1)
        edited[rows] = draw.weights(s.hd, s.C)
    before, after = (output_of(attempt, s.nh, each, eye, x) for each in (qkv, edited))
    seen = [c for (c,) in where_changed(before, after, 2)]
    told = f"new weights for head {h} of {s.nh} should change channels {own[0]}…{own[-1]} of the joined heads"
    stray = [str(c) for c in seen if c not in own]
    expect(
        not stray, f"{told}; in yours they change channel {' and '.join(stray[:3])}{' and more' if stray[3:] else ''}"
    )
    missed = [str(c) for c in own if c not in seen]
    expect(not missed, f"{told}; in yours channel {' and '.join(missed[:3])} stays as it was")


@check(
    points=0.5,
    layer=Layer.VALUES,
    hint="Equal scores make equal weights, whatever the scale: is it the values, the mask or the projection?",
)
def test_average(attempt, draw):
    """gives a query of zeros the mean of its past, projected"""
    s = sizes_of(draw)
    qkv, proj, x = drawn(draw, s)
    qkv[: s.C] = 0
    v = x @ qkv[2 * s.C :].T
    counts = torch.arange(1, s.T + 1, dtype=torch.float64)[:, None]
    assert_matches(attempt.call(TARGET, box(s.nh, qkv, proj), x), v.cumsum(dim=1) / counts @ proj.T)


@check(points=0.25, layer=Layer.VALUES, hint="One token has only itself to look at, and one head has all the channels.")
def test_one_of_each(attempt, draw):
    """works for one token, for one head and for many"""
    s = sizes_of(draw)
    qkv, proj, x = drawn(draw, s)
    alone = draw(s.B, 1, s.C)
    want = alone @ qkv[2 * s.C :].T @ proj.T
    assert_matches(attempt.call(TARGET, box(s.nh, qkv, proj), alone), want, "the output for one token")
    for heads, n in ((1, s), (13, SimpleNamespace(B=s.B, T=s.T, nh=13, hd=2, C=26))):
        qkv, proj, x = drawn(draw, n)
        qkv[: n.C] = 0.0  # queries without a preference: every head gives the mean of its values, whatever the scale
        mean = (x @ qkv[2 * n.C :].T).cumsum(dim=1) / torch.arange(1, n.T + 1, dtype=torch.float64)[:, None]
        noun = "head" if heads == 1 else "heads"
        assert_matches(attempt.call(TARGET, box(heads, qkv, proj), x), mean @ proj.T, f"the output of {heads} {noun}")


@check(
    points=0.5,
    layer=Layer.VALUES,
    hint="The usual suspects, in order: the scale, the cut of the stacked weight, the weight not transposed.",
)
def test_values(attempt, reference, draw):
    """computes the attention of every head"""
    large = draw.sizes(B=(2, 3), T=(40, 64), nh=(9, 12), hd=(4, 6))  # more heads and tokens than anybody tries by hand
    # With another head_dim, and as many tokens: there a product without the transpose fits, too.
    tied = draw.sizes(B=(5, 7), nh=(2, 4), hd=(8, 11))
    tied = changed(tied, T=tied.hd, C=tied.nh * tied.hd)
    for s in (sizes_of(draw), tied, changed(large, C=large.nh * large.hd)):
        qkv, proj, x = drawn(draw, s)
        got, want = (c.call(TARGET, box(s.nh, 2 * qkv, proj), x) for c in (attempt, reference))
        assert_matches(got, want, f"with {s.nh} heads and {s.T} tokens, the output")


@check(
    points=0.25,
    layer=Layer.GRADIENTS,
    hint="detach, .data and no_grad forget where numbers came from: use the weights as they are.",
)
def test_gradients(attempt, reference, draw):
    """lets gradients reach x and the weights"""
    s = sizes_of(draw)
    qkv, proj, x = drawn(draw, s)
    g = draw(s.B, s.T, s.C)
    got, want = (c.asking(cotangent=g).call(TARGET, box(s.nh, qkv, proj), x) for c in (attempt, reference))
    assert_shape(got, x.shape)
    cut = [name for name in ("args.1", *WEIGHTS) if got.gradient(name) is None]
    if tuple(cut) == WEIGHTS and copies_weights(attempt, s, qkv, proj, x):
        assert_gradients_match(got, want, "args.1")  # the layer was given copies: what reaches x is all there is
        return
    for name in cut:
        given = {"args.0.qkv.weight": qkv, "args.0.proj.weight": proj, "args.1": x}
        label = {"args.1": "x"}.get(name, name.removeprefix("args.0."))
        given[name] = given[name] + draw(*given[name].shape)
        used = bool((output_of(attempt, s.nh, *given.values()) != got.output).any())
        told = f"no gradient reaches {label}: " + ("something cuts the graph on the way" if used else "it is not used")
        raise CheckFailed(told, "gradient_cut" if used else "")
    try:
        assert_gradients_match(got, want, *WEIGHTS, "args.1")
    except CheckFailed as fault:
        given = {name: got.call.args[0].linears[name.split(".")[2]] for name in WEIGHTS}
        told = not got.reply.mutated  # who writes into the weights has the gradients of others
        cut = told and is_cut(lambda w, x: output_of(attempt, s.nh, *w.values(), x), given, x, g, got, want)
        raise CheckFailed(str(fault), "gradient_cut" if cut else "") from None


def copies_weights(attempt, s, qkv, proj, x):
    """Whether the attempt hands copies of the weights to a layer of torch's own, which nothing here forbids."""
    operations = attempt.asking(watch=True).call(TARGET, box(s.nh, qkv, proj), x).reply.operations
    return operations is not None and operations.fused


@check(points=0.25, layer=Layer.HYGIENE, hint="Take every size from x and from mha.")
def test_any_size(attempt, draw):
    """works for any sizes"""
    varied = draw.sizes(B=[5, 7], T=[11, 13], nh=[5, 7], hd=[9, 11])

    def ask(sizes):
        s = SimpleNamespace(B=sizes[0], T=sizes[1], nh=sizes[2], hd=sizes[3], C=sizes[2] * sizes[3])
        qkv, proj, x = drawn(draw, s)
        answer = attempt.call(TARGET, box(s.nh, qkv, proj), x)
        return answer, answer.raised is None and answer.output.shape == x.shape

    others = tuple(vars(varied).values())
    answer, works = ask(others)
    lesson = None if works else next((sizes for sizes in LESSONS if ask(sizes)[1]), None)
    if lesson is not None:
        single = [(*lesson[:i], others[i], *lesson[i + 1 :]) for i in range(4)]
        names = ("B", "T", "n_head", "head_dim")
        fixed = [f"{n} = {v}" for n, v, each in zip(names, others, single, strict=True) if not ask(each)[1]]
        B, T, nh, hd = lesson
        told = f"works for (B, T, C) = ({B}, {T}, {nh * hd}) with {nh} heads, but not for {' or '.join(fixed) or 'other sizes'}"
        # T alone may also be a mask of one size: the values tell these two apart, if anything does.
        raise CheckFailed(told, "" if [name[:1] for name in fixed] == ["T"] else "hard_coded_shape")
    assert_shape(answer, (varied.B, varied.T, varied.nh * varied.hd))


@check(
    points=0.25,
    layer=Layer.HYGIENE,
    hint="Operations that end in _ or =, and slices assigned to, change the tensor itself. And no dropout here.",
)
def test_leaves_its_arguments(attempt, draw):
    """leaves x and the weights as they were, and gives the same answer twice"""
    s = sizes_of(draw)
    qkv, proj, x = drawn(draw, s)
    assert_unmutated(attempt.asking(random=True).call(TARGET, box(s.nh, qkv, proj), x), suspect="input_mutated")
    asking = attempt.asking(random=True, runs=2)
    first, second = asking.call(TARGET, box(s.nh, qkv, proj), x).outputs
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        # Weights of zeros silence dropout, but not a layer that the attempt made for itself.
        nothing, eye = torch.zeros_like(qkv), torch.eye(s.C, dtype=torch.float64)
        silent = (asking.call(TARGET, box(s.nh, *each), x).output for each in ((nothing, eye), (qkv, 0 * eye)))
        own = any(bool(out.nan_to_num(nan=0.0).any()) for out in silent)
        told = (
            "of new random weights: use those of mha" if own else "of chance: the weights are all there is, no dropout"
        )
        raise CheckFailed(
            f"the same call gives two answers, because {told}", "params_not_registered" if own else "dropout_always_on"
        )


test_dtype = asked_of(
    calls_of,
    dtype,
    "returns the dtype that it is given",
    hint="A new tensor is float32 unless you say otherwise: dtype=x.dtype.",
)
test_device = asked_of(
    calls_of,
    stays_on_the_device,
    "stays on the device of x",
    hint="A mask, or any other new tensor, needs device=x.device.",
)


def attends_to_itself(attempt, draw):
    """Where all tokens are the same."""
    s = sizes_of(draw)
    given, x = (
        box(s.nh, qkv_alike(draw.weights(3 * s.C, s.C), s.nh), torch.eye(s.C, dtype=torch.float64)),
        alike(draw, s.C),
    )
    shares_out(lambda factor, n: by_head(attempt.call(TARGET, given, factor * x[:n]).output / factor, s.nh))


COUNTS_IF = {TARGET: attends_to_itself}
