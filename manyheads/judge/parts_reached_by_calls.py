"""The parts of an attempt that its failed calls reach, and an edit of one part.

Parts are functions, methods and the statements beside them. `parts_of` yields each as a CodePart,
which has the nodes that the rules of `single_edits` change. `CodePart.edit` makes the changed text.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, permutations
from typing import Any

from ..submission.source import Source, printable

# the most names of a part, and attributes of a class, that replace others: each pair is an edit
MAX_NAMES = 40
MAX_SHOWN = 160  # characters of the changed lines in an edit's description
# expressions that need no parentheses as an operand or a receiver
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict)
# nodes and fields that are not edited: they compute nothing
_LEFT_OUT = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
_NO_CODE = ("annotation", "returns", "decorator_list", "type_params", "msg")

# The category and tier of an edit, and the new text of each changed node. A tier says how late an
# edit is tried: from 0, a mistake that most attempts make, to 4, a rare one. The key type is Any
# because a mapping is invariant in its keys.
Change = tuple[str, int, Mapping[Any, str]]
Changes = Iterator[Change]  # the edits that a rule makes of one node


@dataclass(frozen=True)
class LineEdit:
    """A small change of an attempt.

    Attributes:
        category: The group of similar edits to which it belongs.
        tier: How late it is tried: edits of tier 0 come first.
        line: The first line of the text that it changes, or 0 if it changes nothing.
        before: The attempt before the edit.
        after: The attempt after it.
    """

    category: str
    tier: int
    line: int
    before: Source
    after: Source

    @property
    def description(self) -> str:
        """The changed lines before and after the edit, for the instructor."""
        old_lines = _changed_lines(self.before, self.after)
        return f"{old_lines} → {_changed_lines(self.after, self.before)}"


def _changed_lines(source: Source, other_source: Source) -> str:
    """Return the lines of `source` from its first to its last difference from the other text.

    The lines are joined to one, which is cut to MAX_SHOWN characters. The result is "" if the other
    text only has additional lines.
    """
    lines, other_lines = source.text.split("\n"), other_source.text.split("\n")
    start = _equal_at_start(lines, other_lines)
    # The line at `start` differs: only the lines after it may be equal at the end.
    equal_at_end = _equal_at_start(lines[start + 1 :][::-1], other_lines[start + 1 :][::-1])
    changed_lines = lines[start : len(lines) - equal_at_end]
    summary = printable(" ".join(line.strip() for line in changed_lines))
    return summary if len(summary) <= MAX_SHOWN else f"{summary[: MAX_SHOWN - 1]}…"


def _equal_at_start(lines: Sequence[object], other_lines: Sequence[object]) -> int:
    """Return how many lines at the beginning of both lists are equal."""
    count = 0
    for line, other_line in zip(lines, other_lines, strict=False):
        if line != other_line:
            break
        count += 1
    return count


@dataclass(frozen=True, eq=False)
class CodePart:
    """A part of the text whose nodes may be edited: a function, or a statement outside of all.

    Attributes:
        source: The whole text.
        data: The whole text in UTF-8.
        line_starts: The index in `data` at which each line begins.
        root: The node of the part.
        attributes: The attributes of self, each with the text of the function whose call made it,
            or "" if its value is not a call.
    """

    source: Source
    data: bytes
    line_starts: Sequence[int]
    root: ast.stmt
    attributes: Mapping[str, str]

    def span(self, node: Any) -> tuple[int, int]:
        """Return the indices in `data` at which a node with a position begins and ends."""
        # A syntax tree counts lines from 1, and columns in bytes.
        start = self.line_starts[node.lineno - 1] + node.col_offset
        end = self.line_starts[node.end_lineno - 1] + node.end_col_offset
        return start, end

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def atom(self, node: ast.AST) -> str:
        """Return the text of a node, in parentheses if a neighbour could split it."""
        return self.text(node) if isinstance(node, _ATOMS) else f"({self.text(node)})"

    def edit(self, category: str, tier: int, new_texts: Mapping[ast.AST, str]) -> LineEdit:
        """Return the edit of the whole text that replaces these nodes by new texts.

        The nodes must not overlap. The edit's line is the first line that changes; 0 if none does.
        """
        data, line = self.data, 0
        # From the last node to the first: a replacement moves only the text behind it.
        for node in sorted(new_texts, key=self.span, reverse=True):
            start, end = self.span(node)
            old, new = self.data[start:end], new_texts[node].encode()
            if new != old:
                data = data[:start] + new + data[end:]
                unchanged = _equal_at_start(old.splitlines(True), new.splitlines(True))
                line = node.lineno + unchanged  # type: ignore[attr-defined]
        return LineEdit(category, tier, line, self.source, replace(self.source, text=data.decode()))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The nodes that may be edited, each with its parent. The root has itself as its parent."""
        return dict(_nodes_with_parents(self.root, self.root))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes of `parents` that have a position in the text, in the order of the text.

        If two nodes begin at the same place, the outer one comes first.
        """
        spans = {node: self.span(node) for node in self.parents if hasattr(node, "lineno")}

        def start_and_length(node: ast.AST) -> tuple[int, int]:
            start, end = spans[node]
            return start, -end  # the longest one first

        return sorted(spans, key=start_and_length)

    @cached_property
    def names(self) -> list[str]:
        """The parameters and then the assigned names, at most MAX_NAMES, without self and _."""
        nodes = list(ast.walk(self.root))
        names = [node.arg for node in nodes if isinstance(node, ast.arg)]
        assigned = (node for node in nodes if isinstance(node, ast.Name))
        names += [node.id for node in assigned if isinstance(node.ctx, ast.Store)]
        return [name for name in dict.fromkeys(names) if name not in ("self", "_")][:MAX_NAMES]

    @cached_property
    def pairs(self) -> set[tuple[str, str]]:
        """Pairs of `names` that are assigned together, or are parameters of one function.

        Each pair occurs in both orders.
        """
        # `names` limits the pairs of a node, and a text may have thousands of such nodes.
        names = frozenset(self.names)
        pairs: set[tuple[str, str]] = set()
        for node in self.nodes:
            group: set[str] = set()
            if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store):
                group = {target.id for target in node.elts if isinstance(target, ast.Name)}
            elif isinstance(node, ast.FunctionDef | ast.Lambda):
                group = {parameter.arg for parameter in node.args.args}
            pairs.update(permutations(names & group, 2))
        return pairs


def _nodes_with_parents(node: ast.AST, outer: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield a node and all nodes in it whose text may be edited, each with its parent.

    Nodes of _LEFT_OUT, fields of _NO_CODE (such as annotations) and docstrings are skipped, with
    all nodes in them.
    """
    yield node, outer
    for name, value in ast.iter_fields(node):
        if name in _NO_CODE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, _LEFT_OUT) or not isinstance(child, ast.AST):
                continue
            if not is_docstring(child):
                yield from _nodes_with_parents(child, node)


def is_docstring(node: ast.AST) -> bool:
    """Return whether this is a statement that consists of a constant: a docstring, or `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def parts_of(source: Source, targets: Collection[str]) -> Iterator[CodePart]:
    """Yield the parts that may run in calls of these functions and classes.

    These are the functions that such calls reach (`_reached`); the members of reached classes that
    may run (`_may_run`); and all statements outside of functions and classes. If no target is
    defined in the text, every function and class counts as called.
    """
    data, statements = source.text.encode(), source.statements
    line_lengths = (len(line) + 1 for line in data.split(b"\n"))
    line_starts = list(accumulate(line_lengths, initial=0))
    reached = _reached_definitions(statements, targets)
    for statement in statements:
        code = CodePart(source, data, line_starts, statement, {})
        if not isinstance(statement, ast.ClassDef):
            if not isinstance(statement, ast.FunctionDef) or statement.name in reached:
                yield code
        elif statement.name in reached:
            attributes = _attributes(code)
            members = [member for member in statement.body if _may_run(member, reached)]
            yield from (replace(code, root=member, attributes=attributes) for member in members)


def _may_run(member: ast.stmt, reached: Collection[str]) -> bool:
    """Return whether a member of a reached class may run.

    A method may run if it is reached, or if Python or PyTorch calls it (__init__ and the like,
    forward). A statement outside of methods runs with its class.
    """
    if not isinstance(member, ast.FunctionDef):
        return True
    return member.name in reached or member.name == "forward" or member.name.startswith("__")


def _attributes(code: CodePart) -> dict[str, str]:
    """Return for each attribute of self in a class the text of the function that makes its value.

    In "self.drop = nn.Dropout(p)" this is "nn.Dropout". It is "" if the value is not a call. The
    first assignment to an attribute counts. A buffer always has "register_buffer". At most
    MAX_NAMES attributes are returned.
    """
    makers: dict[str, str] = {}
    for node in ast.walk(code.root):
        match node:
            case ast.Assign(targets, value):
                maker = code.text(value.func) if isinstance(value, ast.Call) else ""
                for target in targets:
                    match target:
                        case ast.Attribute(ast.Name("self"), attr):
                            makers.setdefault(attr, maker)
            case ast.Call(ast.Attribute(_, "register_buffer"), [ast.Constant(name), *_]):
                makers[str(name)] = "register_buffer"
    return dict(list(makers.items())[:MAX_NAMES])


def _reached_definitions(statements: Sequence[ast.stmt], targets: Collection[str]) -> set[str]:
    """Return the defined targets, and the names of all definitions that they use, directly or not.

    A definition uses another one if its text has that name, alone or as an attribute of any object.
    If no target is defined, every defined name is a target.
    """
    definitions = _definitions(statements)
    waiting = [target for target in targets if target in definitions] or list(definitions)
    reached: set[str] = set()
    searched: set[ast.stmt] = set()  # a statement may have thousands of names: a = b = c = …
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        new_statements = {*definitions[name]} - searched
        searched |= new_statements
        used_names = (
            getattr(node, "id", getattr(node, "attr", ""))
            for statement in new_statements
            for node in ast.walk(statement)
        )
        waiting += [used_name for used_name in used_names if used_name in definitions]
    return reached


def _definitions(statements: Sequence[ast.stmt]) -> Mapping[str, Sequence[ast.stmt]]:
    """Return for each name the statements of the module and of its classes that define it.

    These are functions, classes, and assignments: `split = cut`, `first, last = cut, join`, and
    `Heads.split = cut`, which defines both `Heads` and `split`.
    """
    definitions: dict[str, list[ast.stmt]] = defaultdict(list)
    for statement in statements:
        members = statement.body if isinstance(statement, ast.ClassDef) else []
        for member in (statement, *members):
            nodes: Iterable[ast.AST] = [member]
            if isinstance(member, ast.Assign | ast.AnnAssign):
                targets = member.targets if isinstance(member, ast.Assign) else [member.target]
                nodes = chain.from_iterable(map(ast.walk, targets))
            for node in nodes:
                if name := getattr(node, "id", getattr(node, "attr", getattr(node, "name", ""))):
                    definitions[name].append(member)
    return definitions
