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
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils, codegen, errors, typing
from numba.core import types as nb
from numba.core.imputils import lower_builtin, lower_cast, lower_getattr_generic
from numba.core.options import DefaultOptions
from numba.core.registry import cpu_target
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import models, overload_method, register_model, typeof_impl

from dfcrp.compiled import abi, library, random
from dfcrp.compiled.abi import Description
from dfcrp.compiled.jit import CONTRACTS, Kernel, Stub, inline_kernel
from dfcrp.compiled.library import Unit

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

    def can_convert_to(self, typingctx: Any, other: Any) -> Any:
        """A likelihood of its own kind serves where any will do."""
        from numba.core.typeconv import Conversion

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


def numba_type(kind: Description) -> Any:
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


def description(kind: Any) -> Description:
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

    def generic_resolve(self, frame: Any, name: str) -> Any:
        """The type of a field."""
        found = abi.places(frame.cls).get(name)
        return None if found is None else numba_type(found[1])


def _load(builder: Any, place: Any) -> Any:
    """A word of a block; blocks never change while compiled code runs, so it may be kept."""
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


@lower_getattr_generic(FrameType)
def _read_field(context, builder, frame, value, name):
    word, kind = abi.places(frame.cls)[name]
    words = builder.bitcast(value, _WORD.as_pointer())

    def load(offset: int, as_type: Any) -> Any:
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
def dispatcher(kernel: Kernel) -> Any:
    """A kernel as Numba knows it."""
    lean = {} if kernel.arrays or not hasattr(DefaultOptions, "_nrt") else {"_nrt": False}
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

    def _kernel(self, first: Any) -> Any:
        cls = first.cls if isinstance(first, FrameType) else first.instance_class
        return nb.Dispatcher(dispatcher(self.stub.of(cls)))

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        if not isinstance(args[0], AnyType):
            return self._kernel(args[0]).get_call_type(context, args, kws)
        if self.stub.contract is not CONTRACTS[args[0].contract]:
            raise errors.TypingError(f"{self.name} is not asked of any {args[0].contract}")
        kinds = [numba_type(kind) for kind in self.stub.parameters]
        return typing.signature(numba_type(self.stub.result), args[0], *kinds)

    def get_call_signatures(self) -> Any:
        """Any."""
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
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
        convention = context.call_conv
        function_type = convention.get_function_type(signature.return_type, signature.args)
        words = builder.bitcast(arguments[0], _WORD.as_pointer())
        table = builder.inttoptr(_load(builder, words), _WORD.as_pointer())
        place = builder.gep(table, [_WORD(slot)], inbounds=True)
        function = builder.inttoptr(_load(builder, place), function_type.as_pointer())
        # As Numba calls its own functions; kernels raise nothing, so the status says nothing.
        room = cgutils.alloca_once(builder, function_type.args[0].pointee)
        trouble = cgutils.alloca_once(builder, function_type.args[1].pointee)
        packed = convention._get_arg_packer(signature.args).as_arguments(builder, arguments)
        builder.call(function, [room, trouble, *packed])
        value = builder.load(room)
        return context.get_returned_value(builder, signature.return_type, value)


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


def _method(name: str) -> Any:
    return overload_method(
        FrameType,
        name,
        strict=False,
        jit_options={
            "error_model": "numpy",
            "_nrt": False,
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


class _Collected(codegen.CPUCodeLibrary):
    """A function's code as it was lowered; what it calls is linked at the very end."""

    def add_llvm_module(self, ll_module: Any) -> None:
        """Keep the code."""
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        """Nothing yet."""
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is none in this process."""
        return 0

    def _finalize_specific(self) -> None:
        pass


class _Codegen(codegen.AOTCPUCodegen):
    _library_class = _Collected

    def set_env(self, name: str, env: Any) -> None:
        """Python's side of a function, which compiled code never asks for."""


#: What processor the code is for: any of the last fifteen years, as no fused operations are used
#: either way and results do not depend on it.
CPU = os.environ.get("DFCRP_CPU", "x86-64-v2" if library.platform.machine() == "x86_64" else "")


def _take_over() -> None:
    """Let Numba collect code in this process instead of running it."""
    context = cpu_target.target_context
    for contract in CONTRACTS.values():
        for stub in contract.functions:
            _register_call_by_address(stub)
    context._internal_codegen = _Codegen("dfcrp", CPU)
    # Numba keeps its functions by something that can be called, and wants a builtin for it.
    context.get_executable = lambda library, fndesc, env: [].append
    context.refresh()


_take_over()


def _closure(first: Any) -> list[Any]:
    """A library and all that it is linked with."""
    found, open_ones = {id(first): first}, [first]
    while open_ones:
        for other in open_ones.pop()._linking_libraries:
            if id(other) not in found:
                found[id(other)] = other
                open_ones.append(other)
    return list(found.values())


def compile_unit(unit: Unit) -> tuple[bytes, dict[str, Description]]:
    """Object code of a unit's functions, and descriptions of their results."""
    machine = cpu_target.target_context.codegen()
    program = llvm.parse_assembly(str(machine._create_empty_module(unit.name)))
    exported, results = {}, {}
    linked: dict[int, Any] = {}
    for export in unit.exports:
        kinds = tuple(numba_type(kind) for kind in export.parameters)
        made = dispatcher(export.kernel)
        made.compile(kinds)
        found = made.overloads[kinds]
        result = description(found.signature.return_type)
        if export.result not in (None, result):
            name = f"{export.kernel.__module__}.{export.kernel.__name__}"
            raise TypeError(f"{name} returns {result}; its contract says {export.result}")
        results[export.symbol] = result
        exported.setdefault(found.fndesc.llvm_func_name, []).append(export.symbol)
        for part in _closure(found.library):
            linked.setdefault(id(part), part)
    for part in linked.values():
        program.link_in(part._final_module.clone())
    for function in program.functions:
        if function.name == "NRT_decref" or function.name in exported:
            function.linkage = "external"
        elif not function.is_declaration:
            function.linkage = "internal"
    for name, symbols in exported.items():
        program.get_function(name).name = symbols[0]
    machine_manager, builder = machine._module_pass_manager()
    machine_manager.run(program, builder)
    program.verify()
    code = machine._tm.emit_object(program)
    for symbols in exported.values():
        if len(symbols) > 1:
            raise RuntimeError(f"one kernel serves as {symbols}; give each its own")
    return code, results


#: What Numba's run time is asked for by code that creates arrays.
_RUN_TIME = Path(__file__).with_name("runtime.c")


def write_unit(unit: Unit, folder: Path) -> None:
    """Compile a unit into a folder: a shared library, or an object where nothing can link."""
    home = folder / unit.stem
    with library.building(home):
        if library.beside(home, ".json").is_file():
            return
        code, results = compile_unit(unit)
        part = library.beside(home, ".o")
        part.write_bytes(code)
        compiler = library.linker()
        if compiler is not None:
            shared = library.beside(home, ".so.part")
            library.run_linker(
                [
                    *(compiler, "-shared", "-fPIC", "-O1", "-Wl,--no-undefined"),
                    *("-o", str(shared), str(part), str(_RUN_TIME), "-lm"),
                ]
            )
            os.replace(shared, library.beside(home, ".so"))
            part.unlink()
        described = library.beside(home, ".json.part")
        described.write_text(json.dumps(results))
        os.replace(described, library.beside(home, ".json"))


class load_object:
    """Object code that nothing has linked, loaded by LLVM."""

    def __init__(self, path: Path) -> None:
        import ctypes

        self._ctypes = ctypes
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(reloc="pic", codemodel="default")
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(path.read_bytes()))
        self._engine.finalize_object()

    def __getattr__(self, symbol: str) -> Any:
        address = self._engine.get_function_address(symbol)
        return self._ctypes.CFUNCTYPE(None, self._ctypes.c_void_p)(address)
