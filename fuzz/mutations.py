"""Small mistakes in kernels: every place where one can be made, and the code with it made.

A mistake is what a tired programmer could write: another operator, a bound off by one, a term or
a statement left out, branches swapped, a constant doubled. Only bodies of kernels are changed;
annotations, docstrings and what is not compiled are left alone.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, ModuleType

_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_CALLS = {"max": "min", "min": "max"}
#: Parts of a function that are not its body.
_ASIDE = {"decorator_list", "annotation", "returns", "args", "type_params"}


@dataclass(frozen=True)
class Mutant:
    """One mistake."""

    module: str
    function: str
    line: int
    #: What stands in that line.
    where: str
    #: What was there and what is there now, in short.
    change: str
    #: Which of the places of the function, and which of the mistakes there.
    place: int
    way: int
    #: First and last line of the statement; of a compound one, of its head.
    lines: tuple[int, int]

    @property
    def name(self) -> str:
        """Says it in one line; unique."""
        return f"{self.module}.{self.function} [{self.place}.{self.way}] {self.change}"


@dataclass(frozen=True)
class _Place:
    """Where a node hangs in the tree."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    #: The statement that it is part of.
    statement: ast.AST

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def mutants_of(module: ModuleType) -> list[Mutant]:
    """Every mistake in the kernels of a module."""
    found, source = [], inspect.getsource(module).splitlines()
    for function in _kernels(module):
        for number, place in enumerate(_places(function)):
            for way, node in enumerate(_ways(place)):
                change = f"{_text(place.node)} → {_text(node)}"
                line = getattr(place.node, "lineno", function.lineno)
                lines = _lines(place.statement)
                where = source[line - 1].strip()
                name = module.__name__, function.name
                found.append(Mutant(*name, line, where, change, number, way, lines))
    return found


def _lines(statement: ast.AST) -> tuple[int, int]:
    """Where a statement stands, without the statements in it."""
    first, last = statement.lineno, statement.end_lineno  # type: ignore[attr-defined]
    inside = getattr(statement, "body", None)
    return first, max(first, inside[0].lineno - 1) if inside else last


def plant(module: ModuleType, mutant: Mutant) -> None:
    """Make the mistake, in this process: whoever calls the function gets the wrong code."""
    whole = getattr(module, mutant.function)
    getattr(whole, "py_func", whole).__code__ = code_with(module, mutant)


def code_with(module: ModuleType, mutant: Mutant) -> CodeType:
    """The code of the function with the mistake made."""
    [function] = [one for one in _kernels(module) if one.name == mutant.function]
    changed = copy.deepcopy(function)
    place = list(_places(changed))[mutant.place]
    place.put(list(_ways(place))[mutant.way])
    return compiled(changed, module)


def compiled(function: ast.FunctionDef, module: ModuleType) -> CodeType:
    """The code of a function of a module."""
    bare = copy.deepcopy(function)
    bare.decorator_list = []
    tree = ast.fix_missing_locations(ast.Module([bare], []))
    # This module's own flags hold: annotations are not evaluated.
    code = compile(tree, module.__file__ or "?", "exec")
    names = dict(vars(module))
    exec(code, names)
    made: CodeType = names[function.name].__code__
    return made


@functools.cache
def _kernels(module: ModuleType) -> list[ast.FunctionDef]:
    return kernels_of(inspect.getsource(module))


def kernels_of(source: str) -> list[ast.FunctionDef]:
    """The compiled functions of a module."""
    return [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
        and any("kernel" in ast.unparse(one) for one in node.decorator_list)
    ]


def _places(function: ast.FunctionDef) -> Iterator[_Place]:
    """Every node of the body, always in the same order."""
    waiting: list[tuple[ast.AST, ast.AST]] = [(function, function)]
    while waiting:
        parent, around = waiting.pop(0)
        for field, value in ast.iter_fields(parent):
            if field in _ASIDE:
                continue
            listed = value if isinstance(value, list) else [value]
            for index, node in enumerate(listed):
                if isinstance(node, ast.AST) and not _is_text(node):
                    statement = node if isinstance(node, ast.stmt) else around
                    number = index if isinstance(value, list) else None
                    yield _Place(parent, field, number, node, statement)
                    waiting.append((node, statement))


def _is_text(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Expr) else node
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _ways(place: _Place) -> Iterator[ast.AST]:
    """The mistakes that can be made with one node."""
    node = place.node
    if isinstance(node, ast.BinOp):
        yield from _other_sums(node)
    elif isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
        yield ast.AugAssign(node.target, _OPERATORS[type(node.op)](), node.value)
        yield ast.Pass()
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and not _is_chance(node):
        yield ast.Compare(node.left, [_COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant):
        yield from _other_constants(place)
    elif isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Call):
        yield from _other_calls(node)
    elif _can_go(node):
        yield ast.Pass()


def _is_chance(node: ast.Compare) -> bool:
    """Whether a random number is compared, which equals nothing but with a chance of 2^-53."""
    return any(
        isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "rng"
        for one in ast.walk(node)
    )


def _other_sums(node: ast.BinOp) -> Iterator[ast.AST]:
    if type(node.op) in _OPERATORS:
        yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
    if isinstance(node.op, ast.Add | ast.Sub):
        yield node.left
        yield ast.BinOp(ast.BinOp(ast.Constant(0.5), ast.Mult(), node.left), node.op, node.right)


def _other_constants(place: _Place) -> Iterator[ast.AST]:
    value = place.node.value if isinstance(place.node, ast.Constant) else None
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
    elif isinstance(value, float):
        yield ast.Constant(2.0 * value if value else 1.0)


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        yield ast.Call(ast.Name(_CALLS[node.func.id], ast.Load()), node.args, node.keywords)
    if isinstance(node.func, ast.Name) and node.func.id == "range":
        end = 0 if len(node.args) == 1 else 1
        less = ast.BinOp(node.args[end], ast.Sub(), ast.Constant(1))
        yield ast.Call(node.func, [*node.args[:end], less, *node.args[end + 1 :]], [])
        if end:
            more = ast.BinOp(node.args[0], ast.Add(), ast.Constant(1))
            yield ast.Call(node.func, [more, *node.args[1:]], [])


def _can_go(node: ast.AST) -> bool:
    """Whether a statement can be left out without a name that is missing afterwards."""
    if isinstance(node, ast.Assign):
        return not any(isinstance(one, ast.Name) for t in node.targets for one in _parts(t))
    return isinstance(node, ast.Expr | ast.Continue | ast.Break)


def _parts(target: ast.AST) -> list[ast.AST]:
    return list(target.elts) if isinstance(target, ast.Tuple) else [target]


def _text(node: ast.AST, longest: int = 90) -> str:
    """One line of code."""
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split("\n")[0]
    return text if len(text) <= longest else text[: longest - 1] + "…"
