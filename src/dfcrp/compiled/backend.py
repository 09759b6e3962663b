"""From kernels to object code: frames and contracts in Numba's terms, and whole programs.

Numba types and lowers each kernel once for the types at hand. Its own way from there is to optimise
every function, to link it into each caller, to optimise that again, and to make machine code of
both. Here the functions of a unit are only collected; at the end they are linked into one program
in which everything but the exported functions is private, and that is optimised once.

Loading this module changes how Numba compiles in this process: nothing compiled here can be run
directly, it is written to a file and loaded from there (``compiled.library``).
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils, errors, typing
from numba.core import types as nb
from numba.core.dispatcher import Dispatcher
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    models,
    overload_method,
    register_model,
    typeof_impl,
)

from dfcrp.compiled import abi, library, linking, numba_internals, random
from dfcrp.compiled.abi import Description
from dfcrp.compiled.jit import CONTRACTS, Kernel, Stub, inline_kernel
from dfcrp.compiled.library import Unit
from dfcrp.compiled.numba_internals import Collected

_NUMBERS = {
    "f8": nb.float64,
    "f4": nb.float32,
    "i8": nb.int64,
    "i4": nb.int32,
    "i1": nb.int8,
    "u8": nb.uint64,
    "u1": nb.uint8,
    "b1": nb.boolean,
    "none": nb.none,
}
_CODES = {kind: code for code, kind in _NUMBERS.items()}
_WORD = ir.IntType(64)
_POINTER = ir.IntType(8).as_pointer()


# Frames.


class FrameType(nb.Type):
    """The address of a frame's block."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        super().__init__(name=f"Frame({abi.name_of(cls)})")

    def can_convert_to(self, typingctx: typing.Context, other: nb.Type) -> Conversion | None:
        """A likelihood of its own kind serves where any will do."""
        return Conversion.safe if isinstance(other, AnyType) else None


class AnyType(nb.Type):
    """The address of the block of any frame that keeps a contract."""

    def __init__(self, contract: str) -> None:
        self.contract = contract
        super().__init__(name=f"Any({contract})")


register_model(FrameType)(models.OpaqueModel)
register_model(AnyType)(models.OpaqueModel)


@lower_cast(FrameType, AnyType)
def _forget_class(context, builder, fromty, toty, value):
    return value


def numba_type(kind: Description) -> nb.Type:
    """A description in Numba's terms."""
    if isinstance(kind, str):
        return _NUMBERS[kind]
    head = kind[0]
    if head == "array":
        return nb.Array(_NUMBERS[kind[1]], kind[2], kind[3] if len(kind) > 3 else "C")
    if head == "frame":
        return FrameType(abi.class_named(kind[1]))
    if head == "any":
        return AnyType(kind[1])
    parts = [numba_type(part) for part in kind[-1]]
    if head == "named":
        cls = abi.class_named(kind[1])
        if all(part == parts[0] for part in parts):
            return nb.NamedUniTuple(parts[0], len(parts), cls)
        return nb.NamedTuple(parts, cls)
    return nb.Tuple(parts)


def description(kind: nb.Type) -> Description:
    """One of Numba's types as a description, for results."""
    if isinstance(kind, nb.Literal):
        kind = nb.unliteral(kind)
    if kind in _CODES:
        return _CODES[kind]
    if isinstance(kind, nb.Array):
        return ["array", _CODES[kind.dtype], kind.ndim]
    if isinstance(kind, nb.BaseNamedTuple):
        parts = [description(part) for part in kind.types]
        return ["named", abi.name_of(kind.instance_class), parts]
    if isinstance(kind, nb.BaseTuple):
        return ["tuple", [description(part) for part in kind]]
    raise TypeError(f"a kernel cannot return {kind}")


@infer_getattr
class _Fields(AttributeTemplate):
    key = FrameType

    def generic_resolve(self, frame: FrameType, name: str) -> nb.Type | None:
        """The type of a field."""
        found = abi.places(frame.cls).get(name)
        return None if found is None else numba_type(found[1])


def _load(builder: ir.IRBuilder, place: ir.Value) -> ir.Value:
    """A word of a block; blocks never change while compiled code runs, so it may be kept."""
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


@lower_getattr_generic(FrameType)
def _read_field(context, builder, frame, value, name):
    word, kind = abi.places(frame.cls)[name]
    words = builder.bitcast(value, _WORD.as_pointer())

    def load(offset: int, as_type: ir.Type) -> ir.Value:
        place = builder.gep(words, [_WORD(word + offset)], inbounds=True)
        return _load(builder, builder.bitcast(place, as_type.as_pointer()))

    if kind[0] == "array":
        found = numba_type(kind)
        array = context.make_array(found)(context, builder)
        element = context.get_data_type(found.dtype).as_pointer()
        array.meminfo = _POINTER(None)
        array.parent = _POINTER(None)
        array.nitems, array.itemsize = load(2, _WORD), load(3, _WORD)
        array.data = load(4, element)
        array.shape = cgutils.pack_array(builder, [load(5 + a, _WORD) for a in range(kind[2])])
        steps = [load(5 + kind[2] + a, _WORD) for a in range(kind[2])]
        array.strides = cgutils.pack_array(builder, steps)
        return array._getvalue()
    if kind == "f8":
        return load(0, ir.DoubleType())
    if kind == "b1":
        return builder.icmp_signed("!=", load(0, _WORD), _WORD(0))
    if kind[0] == "frame":
        return load(0, _POINTER)
    return load(0, _WORD)


# Kernels and functions by type.


@functools.cache
def dispatcher(kernel: Kernel) -> Dispatcher:
    """A kernel as Numba knows it."""
    lean = {} if kernel.arrays else numba_internals.LEAN
    return numba.njit(
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        forceinline=kernel.inline,
        **lean,
    )(kernel.py_func)


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel, context):
    return nb.Dispatcher(dispatcher(kernel))


class StubType(nb.Callable, nb.Opaque):
    """A function by type: the kernel for the first argument, or a call by address."""

    def __init__(self, stub: Stub) -> None:
        self.stub = stub
        super().__init__(f"Stub({stub.__module__}.{stub.__name__})")

    def _kernel(self, first: nb.Type) -> nb.Dispatcher:
        cls = first.cls if isinstance(first, FrameType) else first.instance_class
        return nb.Dispatcher(dispatcher(self.stub.of(cls)))

    def get_call_type(
        self, context: typing.Context, args: Sequence[nb.Type], kws: Mapping[str, nb.Type]
    ) -> typing.Signature:
        """The signature of a call."""
        if not isinstance(args[0], AnyType):
            return self._kernel(args[0]).get_call_type(context, args, kws)
        if self.stub.contract is not CONTRACTS[args[0].contract]:
            raise errors.TypingError(f"{self.name} is not asked of any {args[0].contract}")
        kinds = [numba_type(kind) for kind in self.stub.parameters]
        return typing.signature(numba_type(self.stub.result), args[0], *kinds)

    def get_call_signatures(self) -> tuple[tuple[()], bool]:
        """Any."""
        return (), True

    def get_impl_key(self, sig: typing.Signature) -> object:
        """What Numba finds the code by."""
        if isinstance(sig.args[0], AnyType):
            return self.stub
        return self._kernel(sig.args[0]).get_impl_key(sig)


@typeof_impl.register(Stub)
def _type_of_stub(stub, context):
    return StubType(stub)


def _register_call_by_address(stub: Stub) -> None:
    contract = stub.contract
    assert contract is not None
    slot = contract.functions.index(stub)

    @lower_builtin(stub, nb.VarArg(nb.Any))
    def generate(context, builder, signature, arguments):
        words = builder.bitcast(arguments[0], _WORD.as_pointer())
        table = builder.inttoptr(_load(builder, words), _WORD.as_pointer())
        place = builder.gep(table, [_WORD(slot)], inbounds=True)

        def find(function_type):
            return builder.inttoptr(_load(builder, place), function_type.as_pointer())

        return numba_internals.call_by_address(context, builder, signature, find, arguments)


# Random numbers.


@inline_kernel
def _next_word(words):
    """As ``Stream.next_word``."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    total = a + d
    found = ((total << numba.uint64(23)) | (total >> numba.uint64(41))) + a
    shifted = b << numba.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    words[0], words[1], words[2] = a, b, c
    words[3] = (d << numba.uint64(45)) | (d >> numba.uint64(19))
    return found


def _method(name: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    return overload_method(
        FrameType,
        name,
        strict=False,
        jit_options={
            "error_model": "numpy",
            **numba_internals.LEAN,
            "no_cpython_wrapper": True,
            "no_cfunc_wrapper": True,
            "forceinline": True,
        },
    )


@_method("layer_and_uniform")
def _layer_and_uniform(rng):
    def found(rng):
        word = _next_word(rng.words)
        return numba.int64(word & numba.uint64(255)), (word >> numba.uint64(11)) * 2.0**-53

    return found


@_method("random")
def _uniform(rng):
    return lambda rng: (_next_word(rng.words) >> numba.uint64(11)) * 2.0**-53


@_method("standard_normal")
def _normal(rng):
    return lambda rng: random.normal(rng)  # noqa: PLW0108 - compiled


@_method("standard_exponential")
def _exponential(rng):
    return lambda rng: random.exponential(rng)  # noqa: PLW0108 - compiled


@_method("standard_gamma")
def _gamma(rng, shape):
    return lambda rng, shape: random.gamma(rng, shape)  # noqa: PLW0108 - compiled


@_method("beta")
def _beta(rng, a, b):
    return lambda rng, a, b: random.beta(rng, a, b)  # noqa: PLW0108 - compiled


# Whole programs.


def _take_over() -> None:
    """Let Numba collect code in this process instead of running it."""
    for contract in CONTRACTS.values():
        for stub in contract.functions:
            _register_call_by_address(stub)
    numba_internals.take_over()


_take_over()


@functools.cache
def _machine() -> llvm.TargetMachine:
    """What machine code is made for: any processor of the last fifteen years."""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=library.CPU, opt=_OPTIMISATION, reloc="pic", codemodel="default"
    )


#: As Numba optimises its own code.
_OPTIMISATION = 3


def _optimise(program: llvm.ModuleRef) -> None:
    machine = _machine()
    tuning = llvm.create_pipeline_tuning_options(speed_level=_OPTIMISATION)
    tuning.loop_vectorization, tuning.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, tuning)
    passes = builder.getModulePassManager()
    passes.add_refprune_pass()
    passes.run(program, builder)
    program.verify()


#: What compiled code that creates arrays asks of Numba's run time, in LLVM's language: memory with
#: an owner that counts. The layout of an owner is Numba's (its ``MemInfo``), and counting is
#: compiled into the code. Addresses take eight bytes, as everywhere in ``compiled``. An owner has a
#: count, a destructor and what it is told (unused), data, bytes, an allocator (unused).
RUNTIME = """
%owner = type { i64, ptr, ptr, ptr, i64, ptr }

declare ptr @malloc(i64)
declare void @free(ptr)

define void @NRT_MemInfo_call_dtor(ptr %owner) {
  call void @free(ptr %owner)
  ret void
}

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment) {
  %step = zext i32 %alignment to i64
  %room = add i64 %size, %step
  %all = add i64 %room, 48
  %owner = call ptr @malloc(i64 %all)
  %none = icmp eq ptr %owner, null
  br i1 %none, label %end, label %fill

fill:
  %after = getelementptr %owner, ptr %owner, i64 1
  %least = ptrtoint ptr %after to i64
  %above = add i64 %least, %step
  %most = sub i64 %above, 1
  %steps = udiv i64 %most, %step
  %place = mul i64 %steps, %step
  %data = inttoptr i64 %place to ptr
  store i64 1, ptr %owner
  %destructor = getelementptr %owner, ptr %owner, i64 0, i32 1
  store ptr null, ptr %destructor
  %told = getelementptr %owner, ptr %owner, i64 0, i32 2
  store ptr null, ptr %told
  %data_field = getelementptr %owner, ptr %owner, i64 0, i32 3
  store ptr %data, ptr %data_field
  %size_field = getelementptr %owner, ptr %owner, i64 0, i32 4
  store i64 %size, ptr %size_field
  %allocator = getelementptr %owner, ptr %owner, i64 0, i32 5
  store ptr null, ptr %allocator
  br label %end

end:
  ret ptr %owner
}

define ptr @NRT_MemInfo_alloc_safe_aligned(i64 %size, i32 %alignment) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment)
  ret ptr %owner
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %owner
}

define ptr @NRT_MemInfo_alloc_safe(i64 %size) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %owner
}
"""


def _empty_program(name: str) -> llvm.ModuleRef:
    """The code that stands for Numba's run time, to which all else is added."""
    program = llvm.parse_assembly(RUNTIME)
    program.name = name
    program.triple = llvm.get_process_triple()
    program.data_layout = str(_machine().target_data)
    return program


def compile_unit(unit: Unit) -> tuple[bytes, dict[str, Description]]:
    """Object code of a unit's functions, and descriptions of their results."""
    program = _empty_program(unit.name)
    exported: dict[str, list[str]] = {}
    results = {}
    linked: dict[int, Collected] = {}
    for export in unit.exports:
        symbol, result, code = _compile_export(export)
        results[export.symbol] = result
        exported.setdefault(symbol, []).append(export.symbol)
        linked.update({id(part): part for part in code})
    for part in linked.values():
        for module in part.modules:
            program.link_in(module.clone())
    _hide_all_but(program, exported)
    for symbols in exported.values():
        if len(symbols) > 1:
            raise RuntimeError(f"one kernel serves as {symbols}; give each its own")
    _optimise(program)
    return _machine().emit_object(program), results


def _compile_export(export: library.Export) -> tuple[str, Description, list[Collected]]:
    """Of an exported kernel: its symbol, the description of its result, and all its code."""
    kinds = tuple(numba_type(kind) for kind in export.parameters)
    made = dispatcher(export.kernel)
    try:
        made.compile(kinds)
        symbol, returned, code = numba_internals.collected(made.overloads[kinds])
    except Exception as error:
        numba_internals.note_version(error)
        raise
    result = description(returned)
    if export.result not in (None, result):
        name = f"{export.kernel.__module__}.{export.kernel.__name__}"
        raise TypeError(f"{name} returns {result}; its contract says {export.result}")
    return symbol, result, code


def _hide_all_but(program: llvm.ModuleRef, exported: dict[str, list[str]]) -> None:
    """Make everything private but the exported functions, which get their own names."""
    for function in program.functions:
        if function.name == _RELEASE or function.name in exported:
            function.linkage = "external"
            if linking.EXPORTS_ARE_MARKED:
                function.storage_class = "dllexport"
        elif not function.is_declaration:
            function.linkage = "internal"
    for name, symbols in exported.items():
        program.get_function(name).name = symbols[0]


#: Gives back the memory of an array, in Numba's run time.
_RELEASE = library.RELEASE


def write_unit(unit: Unit, folder: Path) -> str | None:
    """Compile a unit into a folder: a shared library, or an object where nothing can link.

    Tells why it is an object although there is a linker.
    """
    home = folder / unit.stem
    with library.building(home):
        if library.beside(home, ".json").is_file():
            return None
        code, results = compile_unit(unit)
        part = library.beside(home, f".{os.getpid()}.o")
        shared = part.with_suffix(linking.SYSTEM.ending)
        part.write_bytes(code)
        trouble = None
        try:
            linked = linking.link(part, shared)
        except linking.CannotLink as error:
            linked, trouble = False, str(error)
        if linked:
            os.replace(shared, library.beside(home, linking.SYSTEM.ending))
            part.unlink()
        else:
            os.replace(part, library.beside(home, linking.OBJECT))
        described = part.with_suffix(".json")
        described.write_text(json.dumps(results))
        os.replace(described, library.beside(home, ".json"))
    return trouble
