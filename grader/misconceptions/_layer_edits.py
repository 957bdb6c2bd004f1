"""Edits of the layers of a reference: how a layer is made, and how it is called.

Each function takes the layers of the reference in the order query, key, value, output: for the name
of each layer the text that makes it, and the text of its argument.
"""


def layer_edit(layers, letters, definition="", call=""):
    """Return an edit of some layers. {0} stands for the name of a layer.

    Args:
        layers: the layers of the reference.
        letters: the layers to edit, from "qkvo".
        definition: a statement in place of the one that makes the layer; {1} is the text that makes
            it.
        call: an expression in place of the layer's call; {1} is the argument.
    """
    changes = {}
    for letter, (name, (constructor, argument)) in zip("qkvo", layers.items(), strict=False):
        if definition and letter in letters:
            changes[f"self.{name} = {constructor}"] = definition.format(name, constructor)
        if call and letter in letters:
            changes[f"self.{name}({argument})"] = call.format(name, argument)
    return changes


def renamed_layers(layers, new_names):
    """Return an edit that gives the layers these names, which a space separates."""
    changes = {}
    for (name, (constructor, argument)), new in zip(layers.items(), new_names.split(), strict=True):
        if new != name:
            changes[f"self.{name} = {constructor}"] = f"self.{new} = {constructor}"
            changes[f"self.{name}({argument})"] = f"self.{new}({argument})"
    return changes


# The weight is not transposed.
AS_STORED = "({1} @ self.{0}.weight + (0 if self.{0}.bias is None else self.{0}.bias))"
DETACHED = "self.{0}({1}.detach())"
# Ways to keep a layer, or to make it in each call: how it is made, and how it is called.
IN_A_LIST = ("self.{0} = [{1}]", "self.{0}[0].to(x)({1})")
AS_TENSOR = ("self.{0} = {1}.weight.detach()", "({1} @ self.{0}.to(x).T)")
AS_PLAIN_ATTRIBUTE = ("vars(self)['{0}'] = {1}", "")
IN_FORWARD = ("self.{0} = lambda: {1}", "self.{0}().to(x)({1})")
ANEW = ("self.{0} = {1}\n        self.new_{0} = lambda: {1}", "self.new_{0}().to(x)({1})")
