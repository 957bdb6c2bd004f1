"""The module that an exercise asks for, and the checks that all modules share.

The checks do not depend on the names of inputs and layers.
"""

import re
from types import SimpleNamespace

import torch

from manyheads.checks import (
    Evidence,
    Listed,
    Sizes,
    agrees,
    assert_finite,
    assert_matches,
    assert_refused,
    assert_shape,
    assert_unmutated,
    check,
    expect,
    replace_sizes,
)
from manyheads.checks.asserts import HALF_PRECISION, assert_near
from manyheads.checks.module_expectations import (
    HINT,
    P,
    expect_gradients,
    is_cut,
    judge_again,
    judge_modes_again,
    moved_after_a_call,
    weights_without_effect,
)

LOWEST_SCORE = 44.0  # scores can lie this far below 0: the number that hides a key must lie deeper
ONE_PATH = {"": {}}


def width_of_heads(s, _=None):
    """Return the width of all heads together."""
    return s.nh * s.hd


class Subject:
    """The module that an exercise asks for, with the general requirements of all modules.

    Each exercise describes its module in a subclass. The methods with @check are the requirements
    that a CONTRACT may list.

    Attributes:
        name: the name of the class.
        arguments: the constructor's arguments, each with the name of its size.
        projections: the weights that make queries, keys and values, in this order. For each weight:
            its name, how many of the three it holds, and the name of the size that is its number of
            heads.
        sizes: the sizes that the module is tried with.
        paths: the options that choose a path, by the evidence's name for the path. A single path
            has no name.
        room: the evidence's words for the longest sequence.
        flattening: the factor of the weights of queries and keys where scores should lie close
            together.
    """

    name: str
    arguments: tuple[tuple[str, str], ...]
    projections: tuple[tuple[str, int, str], ...]
    sizes: Sizes
    paths = ONE_PATH
    room = "block_size ="
    flattening = 0.125

    def shapes(self, s, **options):
        """Return the shapes of the parameters by name.

        Args:
            options: further arguments of the constructor.
        """
        raise NotImplementedError

    def given_arguments(self, s, **overrides):
        """Return the constructor's arguments by name.

        Args:
            overrides: arguments that replace those from the sizes.
        """
        return {name: getattr(s, size) for name, size in self.arguments} | overrides

    def rows(self, weights, s):
        """Return the rows that make queries, keys and values, each with its number of heads.

        The rows are views of the weights, (heads · hd, C).
        """
        return [
            (rows, getattr(s, nh))
            for name, n, nh in self.projections
            for rows in weights[name].chunk(n)
        ]

    def inputs(self, draw, s, scale=1.0):
        """Return the arguments of forward for these sizes."""
        return (draw(s.B, s.T, s.C, scale=scale),)

    def sides(self, inputs):
        """Return the input of the queries, and the input of the keys and values.

        The latter is the second input, or the first if there is only one.
        """
        return inputs[0], inputs[1 if len(inputs) > 1 else 0]

    def output(self, answer):
        """Return the part of an answer that is compared."""
        return answer

    def answers(self, module, inputs):
        """Return the answers of one instance to these inputs."""
        return [module(*inputs)]

    def of_first_call(self, inputs):
        """Return the inputs of the first call among those that answer these inputs."""
        return inputs

    def weights(self, draw, s, **options):
        """Return weights by name. Every bias is non-zero."""
        weights = {}
        for name, shape in self.shapes(s, **options).items():
            if len(shape) > 1:
                weights[name] = draw.weights(*shape)
            else:
                weights[name] = draw(*shape, scale=0.5 if "W_" in name else 1.0)
        return weights

    def weights_and_inputs(self, draw, s, scale=1.0, **options):
        """Return weights and inputs for these sizes. `scale` applies to the inputs."""
        return self.weights(draw, s, **options), self.inputs(draw, s, scale)

    def low_scores(self, draw, s, **options):
        """Return weights and inputs with which all scores of all heads are near −LOWEST_SCORE.

        Channel 0 is 1 in every token.
        """
        weights, inputs = self.weights_and_inputs(draw, s, **options)
        (q, heads), (k, of_keys), _ = self.rows(weights, s)
        # how the queries of each head read channel 0; keys read the opposite
        read = draw(of_keys, len(k) // of_keys)
        read = round_float32(
            read * ((LOWEST_SCORE * read.shape[1] ** 0.5) ** 0.5 / read.norm(dim=-1, keepdim=True))
        )
        for rows in (q, k):
            rows *= self.flattening
        q[:, 0], k[:, 0] = (
            read.repeat_interleave(heads // of_keys, dim=0).flatten(),
            -read.flatten(),
        )
        for x in self.sides(inputs):
            x[..., 0] = 1.0
        return weights, inputs

    def ascending_scores(self, draw, s):
        """Return weights and inputs whose scores rise with the key's position, in every head.

        They rise from −44.5 to 44.5.
        """
        weights, inputs = self.weights_and_inputs(draw, s)
        (q, _), (k, _), _ = self.rows(weights, s)
        q.zero_()[:: s.hd, 0] = round_float32(torch.tensor(44.5 * s.hd**0.5))
        k.zero_()[:: s.hd, 1] = 1.0
        x, context = self.sides(inputs)
        last_key = context.shape[1] - 1
        # From −1 to 1, in a form whose middle is exactly 0 on every processor.
        x[..., 0], context[..., 1] = (
            1.0,
            round_float32(
                (2 * torch.arange(last_key + 1, dtype=torch.float64) - last_key) / last_key
            ),
        )
        return weights, inputs

    def passing_on(self, weights):
        """Return the same weights with an output projection that changes nothing."""
        identity = {name: torch.zeros_like(w) for name, w in weights.items() if "proj." in name}
        for w in identity.values():
            if w.dim() > 1:
                w.fill_diagonal_(1.0)
        return {**weights, **identity}

    def module(self, implementation, s, weights, **options):
        """Return the module of these sizes with these weights."""
        module = implementation.module(self.name, *self.given_arguments(s).values(), **options)
        return module.with_parameters(weights)

    def checked_output(self, implementation, s, weights, *inputs, **options):
        """Return the output, and fail unless its shape is right.

        It must be as wide as the input, or d_out wide if the sizes have a d_out.
        """
        answer = self.module(implementation, s, weights, **options)(*inputs)
        *rows, width = inputs[0].shape
        assert_shape(answer, (*rows, getattr(s, "d_out", width)))
        return answer.output

    def both(self, attempt, reference, s, weights, inputs, **options):
        modules = (
            self.module(implementation, s, weights, **options)
            for implementation in (attempt, reference)
        )
        return [self.output(module(*inputs)) for module in modules]

    def assert_matches(self, attempt, reference, s, weights, inputs, label="", **options):
        """Fail unless the attempt gives what the reference gives."""
        assert_matches(*self.both(attempt, reference, s, weights, inputs, **options), label)

    def is_registered(self, answer, s):
        """Return whether all weights are parameters, and were so when they were loaded.

        Weights of a layer that is made anew in every call are not. Such weights cannot follow the
        module to a device, which is another fault.
        """
        if not answer.reply.modules:
            return True
        return {*self.shapes(s)} <= answer.module.parameters.keys() - {*answer.module.unloaded}

    @check(points=0.25, layer="hygiene")
    def parameters(self, attempt, reference, draw):
        """has the parameters that are asked for, and no others"""
        s = self.sizes(draw)
        answer = attempt.module(self.name, *self.given_arguments(s).values()).build_only()
        actual, expected = answer.module.parameters, self.shapes(s)
        extra, missing = actual.keys() - expected.keys(), expected.keys() - actual.keys()
        block = getattr(s, "block", None)
        masks = [name for name in extra if actual[name].shape[-2:] == (block, block)]
        expect(
            not masks,
            "the mask is among the parameters: an optimiser would change it",
            "mask_is_parameter",
        )
        layers = {name.rpartition(".")[0] for name in expected}
        biases = sorted(
            name for name in extra if name.endswith(".bias") and name.rpartition(".")[0] in layers
        )
        expect(
            not biases,
            Evidence("{} should not exist: bias=False", Listed(biases, " and ")),
            "proj_bias",
        )
        unbiased = sorted(
            name for name in missing if name.endswith(".bias") and name[:-4] + "weight" in actual
        )
        expect(
            not unbiased,
            Evidence("there is no {}, and there should be", Listed(unbiased, " and ")),
            "proj_bias",
        )
        lost = Evidence(
            "{} cannot be found among parameters(): an optimiser would not train it",
            Listed(sorted(missing), " and "),
        )
        expect(not missing or extra, lost, "params_not_registered")
        evidence = Evidence(
            "there are {}; {} are asked for", Listed(sorted(actual)), Listed(sorted(expected))
        )
        expect(
            not extra,
            evidence
            if len(str(evidence)) < 300
            else Evidence("there are {} parameters too many", len(extra)),
            "params_extra",
        )
        for name, shape in expected.items():
            evidence = Evidence(
                "{} should have shape {}; yours has {}", name, shape, tuple(actual[name].shape)
            )
            expect(tuple(actual[name].shape) == shape, evidence, "layer_widths")
        for options in self.paths.values():
            weights, inputs = self.weights_and_inputs(draw, s)
            self.module(attempt, s, weights, **options)(*inputs).must_return()

    @check(points=0.25, layer="hygiene")
    def refuses_indivisible(self, attempt, reference, draw):
        """refuses an n_embd that n_head does not divide, when it is made"""
        s = SimpleNamespace(B=2, T=8, nh=6, hd=7, C=42, block=8)
        # 3 · 44 is divisible by n_head, so an attempt that tests the width of qkv accepts it.
        judge_refused(self, attempt, draw, s, {"n_embd": 44, "n_head": s.nh})

    @check(
        points=0.25,
        layer="hygiene",
        hint="Take d_out % num_heads in __init__, and raise a ValueError that names both.",
    )
    def refuses_uneven_heads(self, attempt, reference, draw):
        """refuses, when it is made, a d_out that does not divide into heads"""
        s = self.sizes(draw)
        odd, swapped = (
            {"d_out": s.d_out + 1, "num_heads": s.nh},
            {"d_out": s.nh, "num_heads": s.d_out},
        )
        longest = {"T": s.block} if "block" in vars(s) else {}
        judge_refused(self, attempt, draw, replace_sizes(s, **longest), odd, swapped)

    @check(
        points=0.25,
        layer="hygiene",
        hint="Compare T with block_size first, and raise a ValueError that names both.",
    )
    def refuses_too_long(self, attempt, reference, draw):
        """refuses more tokens than block_size"""
        s = self.sizes(draw)
        for path, options in self.paths.items():
            weights, (x,) = self.weights_and_inputs(draw, replace_sizes(s, T=s.block + 1))
            module = self.module(attempt, s, weights, **options)
            module(x[:, 1:]).must_return()
            label = Evidence("T = {} with {} {}", s.block + 1, self.room, s.block)
            if path:
                label = Evidence("{} and {}", label, path)
            assert_refused(module(x), label, also=("RuntimeError",), suspect="context_unchecked")

    @check(points=0.25, layer="hygiene")
    def moves(self, attempt, reference, draw):
        """works where .to(device) has put it"""
        s = self.sizes(draw)
        for options in self.paths.values():
            weights, inputs = self.weights_and_inputs(draw, s)
            module = self.module(attempt.with_options(watch=True), s, weights, **options)
            on_meta = [torch.empty_like(tensor, device="meta") for tensor in inputs]
            answers = [("meta", False, self.answers(module.on_device("meta"), on_meta)[-1])]
            if attempt.device not in ("cpu", "meta"):
                answers.append(
                    (
                        attempt.device,
                        False,
                        self.answers(module.on_device(attempt.device), inputs)[-1],
                    )
                )
            moved_later = module.with_options(around=moved_after_a_call(self.of_first_call(inputs)))
            answers.append(("meta", True, self.answers(moved_later, on_meta)[-1]))
            for device, is_moved_later, answer in answers:
                judge_moved(self, s, answer, device, is_moved_later)
            if any(answer.raised is not None for *_, answer in answers):
                # If the call fails on the CPU, too, the device is not to blame.
                self.answers(self.module(attempt, s, weights, **options), inputs)[-1].must_return()

    @check(
        points=0.25,
        layer="hygiene",
        hint="Name no dtype in forward, and compute new tensors instead of x.mul_.",
    )
    def dtype_and_argument(self, attempt, reference, draw):
        """follows the dtype of its input, and leaves the input as it was"""
        s = self.sizes(draw)
        expect_dtype_kept(self, attempt, s, *self.weights_and_inputs(draw, s))

    @check(points=0.25, layer="hygiene", hint=HINT)
    def again(self, attempt, reference, draw):
        """answers every call as a fresh instance would"""
        expect_same_again(self, attempt, draw, self.sizes(draw))

    @check(
        points=0.25,
        layer="hygiene",
        hint="Is there a dropout, or a layer that is made anew in forward?",
    )
    def steady(self, attempt, reference, draw):
        """gives the same at every call, in training too"""
        s = self.sizes(draw)
        weights, inputs = self.weights_and_inputs(draw, s)
        implementation = attempt.with_options(random=True)

        def answer(seed, training=False):
            module = self.module(implementation.with_options(seed=seed), s, weights)
            return (module.in_training_mode() if training else module)(*inputs)

        def output(seed, training=False):
            return answer(seed, training).output.nan_to_num()

        eval_output = output(1)
        differ = "two runs on the same input differ, in eval mode"
        if not torch.equal(eval_output, output(2)):
            deaf = weights_without_effect(
                lambda w: self.module(implementation, s, w)(*inputs), weights
            )
            evidence = Evidence("{}, whatever {} is", differ, deaf[0]) if deaf else differ
            once = answer(1) if deaf else None
            parameter = once.module.parameters.get(deaf[0]) if once and once.reply.modules else None
            # A layer of another width keeps its own weights, because the given ones do not fit.
            # Then the missing effect has another reason.
            narrow = parameter is not None and tuple(parameter.shape) != tuple(
                self.shapes(s)[deaf[0]]
            )
            suspect = "params_not_registered" if deaf else "dropout_always_on"
            expect(False, evidence, "" if narrow else suspect)
        awake = "training mode gives another output than eval mode: no dropout is asked for here"
        expect(
            torch.equal(output(1, training=True), output(2, training=True)), awake, "dropout_extra"
        )
        expect(agrees(output(1, training=True), eval_output), awake)

    @check(
        points=0,
        layer="hygiene",
        hint="A large negative number that fits float32 may not fit float16. What fits all?",
        device="cuda",
    )
    def half_precision(self, attempt, reference, draw):
        """stays finite and near under autocast, in float16 and in bfloat16"""
        s = self.sizes(draw)
        weights, inputs = self.weights_and_inputs(draw, s)
        for path, options in self.paths.items():
            exact = self.module(reference, s, weights, **options)(*inputs)
            for dtype in HALF_PRECISION:
                implementation = attempt.with_options(dtype="float32", autocast=dtype)
                assert_near(
                    self.module(implementation, s, weights, **options)(*inputs),
                    exact,
                    with_path_name(path, "the output"),
                )


def with_path_name(path, evidence):
    """Return the evidence, with the name of the path in front if there are two paths."""
    return Evidence("{}: {}", path, evidence) if path else evidence


def round_float32(tensor):
    """Return the numbers rounded to float32, as a fault dictionary stores them.

    With such numbers a recorded call need not be made again.
    """
    return tensor.float().double()


def expect_causal(subject, attempt, draw, s, weights, inputs):
    """Fail unless an edit of later positions leaves earlier ones as they were."""
    ordinary, ascending = (weights, inputs), subject.ascending_scores(draw, s)
    cases = ((1, "", ordinary), (s.T - 2, "", ordinary), (s.T // 2, " of large scores", ascending))
    for start, suffix, (weights, (x,)) in cases:
        edited = x.clone()
        edited[:, start:, 2:] = draw(s.B, s.T - start, s.C - 2)
        for path, options in subject.paths.items():
            baseline, after = (
                subject.checked_output(attempt, s, weights, tokens, **options)
                for tokens in (x, edited)
            )
            assert_finite(baseline, with_path_name(path, "the output"))
            moved = (baseline - after).abs().amax(dim=(0, 2)) > 1e-5 * baseline.abs().max()
            earliest = int(moved.nonzero()[0]) if moved.any() else s.T
            change = Evidence(
                "editing positions {}…{}{} changes the output of position {}",
                start,
                s.T - 1,
                suffix,
                earliest,
            )
            expect(earliest >= start, with_path_name(path, change))
            assert_finite(after, with_path_name(path, "the output"))


def judge_gradients(
    subject, attempt, reference, s, weights, inputs, g, path="", random=False, **options
):
    """Fail unless gradients reach the inputs and every weight, and are the reference's.

    A suspected cut is tested by steps of the weights and of the first input.

    Args:
        g: the cotangents of the output.
        random: whether dropout may be active. Then no mutant is compared with the values.
    """
    x, other_inputs = inputs[0], inputs[1:]
    implementations = (
        implementation.with_options(cotangent=g, random=random)
        for implementation in (attempt, reference)
    )
    got, want = (
        subject.module(implementation, s, weights, **options)(*inputs)
        for implementation in implementations
    )
    names = [
        f"args.{i}"
        for i, tensor in enumerate(inputs)
        if tensor is not None and tensor.is_floating_point()
    ]

    def output(weights, x):
        return subject.output(
            subject.module(attempt, s, weights, **options)(x, *other_inputs)
        ).output

    cotangent = g[0] if isinstance(g, tuple) else g
    expect_gradients(
        got,
        want,
        (*names, *weights),
        lambda: is_cut(output, weights, x, cotangent, got, want),
        path,
    )


def judge_refused(subject, attempt, draw, s, *cases):
    """Fail unless the constructor refuses each of these cases, and accepts the right sizes.

    Args:
        cases: arguments by name, in place of those from the sizes.
    """
    for options in subject.paths.values():
        weights, inputs = subject.weights_and_inputs(draw, s)
        # an attempt that refuses everything fails here
        subject.module(attempt, s, weights, **options)(*inputs).must_return()
    for case in cases:
        answer = attempt.module(
            subject.name, *subject.given_arguments(s, **case).values()
        ).build_only()
        label = Listed([Evidence("{} = {}", name, value) for name, value in case.items()], " with ")
        assert_refused(answer, label, suspect="divisibility_unchecked")


def judge_moved(subject, s, answer, device, is_moved_later):
    """Fail unless everything that a moved module needed was on its new device.

    Args:
        is_moved_later: whether the module was moved after a call, not before.
    """
    # a weight that is no parameter cannot follow the module, which is another fault
    registered = subject.is_registered(answer, s)
    no_gpu = re.search("CUDA|NVIDIA|HIP", answer.message)
    expect(not no_gpu, "it asks for a GPU, whatever the device of x", "hard_coded_device")
    output_device = answer.reply.outputs[0].device if answer.reply.outputs else None
    operations = answer.reply.operations
    stays = (operations is not None and operations.mixed) or output_device not in (None, device)
    stays = stays or re.search("on the expected device|the same device", answer.message)
    shapes = (
        [t.shape for t in answer.module.plain.values()] if stays and answer.reply.modules else []
    )
    # A mask has rows and columns, and length 1 on every axis before them. A kept input or cache
    # has a larger length there.
    holds_mask = any(len(shape) > 1 and {*shape[:-2]} <= {1} for shape in shapes)
    behind = "a tensor that the module holds stays behind when the module moves: make it a buffer"
    expect(not holds_mask, behind, "mask_not_moved" if registered else "")
    leftover = "a tensor that was made in an earlier call stays behind when the module moves"
    expect(not (stays and is_moved_later), leftover)
    evidence = "a tensor is made on a device of its own, not on that of x"
    expect(not stays, evidence, "hard_coded_device" if registered else "")


def expect_dtype_kept(subject, attempt, s, weights, inputs):
    """Fail unless the answer has the dtype of the input, and the input is unchanged.

    Returns the answers on the last path.
    """
    for options in subject.paths.values():
        modules = {
            n: subject.module(attempt.with_options(dtype=n), s, weights, **options)
            for n in ("float32", "float64")
        }
        answers = {dtype: subject.answers(module, inputs) for dtype, module in modules.items()}
        works = [
            dtype for dtype, (first_answer, *_) in answers.items() if first_answer.raised is None
        ]
        for dtype, several in answers.items():
            suspect = "hard_coded_dtype" if subject.is_registered(several[0], s) else ""
            expect(
                not works or dtype in works,
                Evidence("it works in {} only: {} fails", Listed(works, " "), dtype),
                suspect,
            )
            for answer in map(subject.output, several):
                follows = answer.dtype in (dtype, answer.kind)
                expect(
                    follows,
                    Evidence("{} in should give {} out, not {}", dtype, dtype, answer.dtype),
                    suspect,
                )
            assert_unmutated(several[0], suspect="input_mutated")
    return [answer for several in answers.values() for answer in several]


def expect_same_again(subject, attempt, draw, s):
    """Fail unless one instance answers calls of several sizes as fresh ones would."""
    weights = subject.weights(draw, s)
    inputs = [subject.inputs(draw, sizes) for sizes in (s, s, replace_sizes(s, B=3, T=s.block))]
    for options in subject.paths.values():
        judge_again(subject.module(attempt, s, weights, **options), *inputs)


def judge_modes(subject, attempt, draw):
    """Fail unless eval mode turns dropout off, and training mode turns it on again."""
    s = subject.sizes(draw)
    passing, token = subject.passing_on(subject.weights(draw, s)), draw(1, 1, s.C)
    for options in subject.paths.values():
        judge_modes_again(subject.module(attempt, s, passing, **options, dropout=P), token, s.nh)
