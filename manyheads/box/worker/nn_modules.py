"""Build the `nn.Module`s of a call, load their state by name, and report on them.

`build_module` makes a module as a `Build` describes it. After the call, `Built.facts` reports its
parameters, buffers and other tensors. `is_same` compares modules and arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from .messages import (
    LARGEST,
    NAME_LIMIT,
    Attribute,
    Build,
    DeviceArgument,
    Entries,
    Entry,
    ModuleFacts,
    StandIn,
    dtype_name,
    plain,
    type_name,
)

_PLAIN = (bool, int, float, str, bytes, type(None), set, frozenset, torch.dtype, torch.device)


# Compared pairs by their ids. If the objects were not kept, Python could use an id again.
_Compared = dict[tuple[int, int], tuple[object, object]]


def is_same(a: object, b: object, met: _Compared | None = None) -> bool:
    """Return whether no difference between two objects is found.

    Tensors must have the same type, shape, dtype and device, and the same numbers, with NaN equal
    to NaN. The numbers of parameters and of tensors on the meta device are not compared. Plain
    values, such as numbers and texts, must be equal and of the same type. Lists and tuples are
    compared element by element, mappings entry by entry in their order, and other objects by the
    name of their class and by their attributes. The keys of mappings with integer keys only, and
    the mode of modules, do not count.

    Args:
        a: the first object.
        b: the second object.
        met: the pairs that were compared before.
    """
    met = {} if met is None else met
    if (id(a), id(b)) in met or a is b:
        return True
    met[id(a), id(b)] = a, b
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        alike = (type(a), a.shape, a.dtype, a.device) == (type(b), b.shape, b.dtype, b.device)
        if not alike or isinstance(a, nn.Parameter):
            return alike
        return a.is_meta or torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(is_same(*pair, met) for pair in zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        # PyTorch numbers all hooks with one counter, so equal modules have hooks with other keys.
        hooks = all(type(key) is int for key in (*a, *b))
        return (hooks or list(a) == list(b)) and is_same([*a.values()], [*b.values()], met)
    if (
        isinstance(a, _PLAIN)
        or isinstance(b, _PLAIN)
        or type(a).__qualname__ != type(b).__qualname__
    ):
        return type(a) is type(b) and a == b
    if isinstance(a, nn.Module) and isinstance(b, nn.Module):
        return is_same(_without_mode(a), _without_mode(b), met)
    return is_same(getattr(a, "__dict__", {}), getattr(b, "__dict__", {}), met)


def _without_mode(module: nn.Module) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if name != "training"}


PLAIN_LIMIT = 64  # unregistered tensors that are reported
# attributes that every module has: they hold registered tensors or none
_EVERY_MODULES = frozenset(vars(nn.Module()))
_NUMBERS = (bool, int, float, str, type(None))


class Built:
    """A module of the attempt, and the data for a report on its state after the call.

    Its initial parameters are copied only if the build asks for a report of attributes.
    """

    def __init__(self, build: Build, module: nn.Module, unloaded: tuple[str, ...]) -> None:
        self.build, self.module, self.unloaded = build, module, unloaded
        copied = parameters_of(module).items() if build.report else ()
        self._before = {name: p.detach().clone() for name, p in copied if p.device.type != "meta"}

    def facts(self) -> ModuleFacts:
        """Return the state of the module now.

        `changed` is False for a module whose build asks for no report of attributes.
        """
        initial = self._before.items()
        current = parameters_of(self.module)
        return ModuleFacts(
            parameters={name: _entry(p) for name, p in current.items()},
            buffers=_in_order(self.module.buffers()),
            training=all(m.training for m in self.module.modules()),
            changed=any(
                n not in current or p.dtype != current[n].dtype or not torch.equal(p, current[n])
                for n, p in initial
            ),
            unloaded=self.unloaded,
            attributes={
                name: _plain(getattr(self.module, name, None)) for name in self.build.report
            },
            plain=_in_order(_plain_tensors(self.module).values()),
        )


def build_module(namespace: Mapping[str, object], build: Build) -> Built:
    """Build the module, and load its state. An exception in the attempt's code is passed on.

    In this order: the module is made, converted to the dtype, loaded with the state, moved to the
    device, put in its mode, and given its attributes.
    """
    module = make_module(namespace, build)
    if build.dtype:
        module = module.to(getattr(torch, build.dtype))
    unloaded = () if build.state is None else _load(module, build.state)
    if build.device:
        module = module.to(build.device)
    module.train(build.training)
    for name, value in build.attributes.items():
        setattr(module, name, value)
    return Built(build, module, unloaded)


def make_module(namespace: Mapping[str, object], build: Build) -> nn.Module:
    """Return the module that the attempt's class or function makes.

    Raises TypeError if the result is not a module. An exception in the attempt's code is passed on.
    """
    make = lookup(namespace, build.target)
    kwargs = {name: plain_argument(value) for name, value in build.kwargs.items()}
    with _without_init() if build.skip_init else nullcontext():
        module = make(*map(plain_argument, build.args), **kwargs)
    if not isinstance(module, nn.Module):
        raise TypeError(f"{build.target} gave a {type_name(type(module))}, not a torch.nn.Module")
    return module


def lookup(namespace: Mapping[str, object], name: str) -> Callable[..., object]:
    """Return the attempt's function or class of that name.

    Raises AttributeError if there is none.
    """
    function = namespace.get(name)
    if not callable(function):
        raise AttributeError(f"{name} is not defined in this file")
    return function


def plain_argument(value: object) -> object:
    """Return the torch.device or module that an argument describes, or the argument unchanged."""
    if isinstance(value, DeviceArgument):
        return torch.device(value.name)
    if isinstance(value, StandIn):
        return _stand_in(value)
    return value


class Module(nn.Module):
    """The module made from a StandIn: layers and attributes, without a forward.

    The name is short because a student reads it in AttributeErrors.
    """


def _stand_in(spec: StandIn) -> nn.Module:
    """Return a module with a copy of each weight in a linear layer, in eval mode."""
    module = Module()
    for name, weight in spec.linears.items():
        rows, columns = weight.shape
        with _without_init(), torch.no_grad():  # torch.nn.utils.skip_init would import sympy
            linear = nn.Linear(columns, rows, bias=False, dtype=weight.dtype, device=weight.device)
            linear.weight.copy_(weight)
        setattr(module, name, linear)
    for name, value in spec.attributes.items():
        setattr(module, name, value)
    return module.eval()


def _load(module: nn.Module, state: Mapping[str, Tensor | Entries]) -> tuple[str, ...]:
    """Load the state, and return the names for which the module has no tensor of the same shape.

    First, parameters that the state does not name become zero, unless they have at most two values.
    """
    unloaded = []
    with torch.no_grad():
        for name, parameter in parameters_of(module).items():
            if name not in state and not at_most_two_values(parameter):
                parameter.zero_()
        for name, value in state.items():
            target = _find(module, name)
            if target is None or target.shape != torch.Size(value.shape):
                unloaded.append(name)
            elif isinstance(value, Entries):
                target.zero_()
                target[tuple(value.indices.T)] = value.values.to(target.dtype)
            else:
                target.copy_(value)
    return tuple(unloaded)


def parameters_of(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters by name. Names with fewer dots come first.

    A parameter has several names if a layer is also in a list, for example. Then its name with the
    fewest dots counts.
    """
    names: dict[nn.Parameter, str] = {}
    for name, parameter in sorted(
        module.named_parameters(remove_duplicate=False), key=lambda pair: pair[0].count(".")
    ):
        names.setdefault(parameter, name)
    return {name: parameter for parameter, name in names.items()}


def at_most_two_values(tensor: Tensor) -> bool:
    """Return whether the tensor has at most two distinct values (ones; zeros and ones).

    Such a tensor is not a random weight.
    """
    return not tensor.numel() or bool(((tensor == tensor.min()) | (tensor == tensor.max())).all())


def _plain_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the first PLAIN_LIMIT unregistered tensors in attributes, by dotted names.

    Tensors in lists, tuples and mappings count, but not those in nested ones.
    """
    named_tensors: dict[str, Tensor] = {}
    for prefix, submodule in module.named_modules():
        for name, value in vars(submodule).items():
            if name in _EVERY_MODULES or type(value) in _NUMBERS:
                continue
            elements = value.values() if isinstance(value, Mapping) else value
            members = elements if isinstance(value, Mapping | list | tuple) else [value]
            tensors = [item for item in members if isinstance(item, Tensor)]
            tensor_name = f"{prefix}.{name}".lstrip(".")
            for i, tensor in enumerate(tensors):
                named_tensors[f"{tensor_name}.{i}" if i else tensor_name] = tensor
    return dict(list(named_tensors.items())[:PLAIN_LIMIT])


def _find(module: nn.Module, name: str) -> Tensor | None:
    """Return the tensor at a dotted name.

    It need not be registered, so that values can be judged even if the registration is wrong.
    """
    current: object = module
    for attribute in name.split("."):
        current = getattr(current, attribute, None)
    return current.data if isinstance(current, Tensor) else None


def _in_order(tensors: Iterable[Tensor]) -> dict[str, Entry]:
    return {str(index): _entry(tensor) for index, tensor in enumerate(tensors)}


def _entry(tensor: Tensor) -> Entry:
    return Entry(tuple(tensor.shape), dtype_name(tensor.dtype), tensor.device.type)


def _plain(value: object) -> Attribute:
    """Return a number or a text unchanged, and the name of the type for any other value.

    A whole number that no tensor can hold is also replaced by the name of its type.
    """
    value_type: Any = type(value)  # isinstance would call a `__class__` that the attempt defines
    if value_type is bool:
        return value is True
    if issubclass(value_type, int) and abs(int.__int__(value)) < LARGEST:  # type: ignore[arg-type]
        return int.__int__(value)  # type: ignore[arg-type]
    if issubclass(value_type, float):
        return float.__float__(value)  # type: ignore[arg-type]
    if issubclass(value_type, str):
        return plain(value, NAME_LIMIT)  # type: ignore[arg-type]
    return type_name(value_type)


def _mark_as_random(tensor: Tensor, *args: object, **kwargs: object) -> Tensor:
    """Write three different numbers to a tensor in place of random initial values.

    With them `at_most_two_values` recognises a weight. Without them the tensor would keep the
    random content of its memory.
    """
    if tensor.is_contiguous():
        with torch.no_grad():
            leading = tensor.view(-1)[:3]
            leading.copy_(torch.arange(len(leading)))
    return tensor


@contextmanager
def _without_init() -> Iterator[None]:
    """Replace the random initialisers in `torch.nn.init` by `_mark_as_random` for a while."""
    initializers = (
        "kaiming_uniform_ kaiming_normal_ xavier_uniform_ xavier_normal_ trunc_normal_ "
        "normal_ uniform_"
    )
    saved = {name: getattr(nn.init, name) for name in initializers.split()}
    for name in saved:
        setattr(nn.init, name, _mark_as_random)
    try:
        yield
    finally:
        for name, function in saved.items():
            setattr(nn.init, name, function)
