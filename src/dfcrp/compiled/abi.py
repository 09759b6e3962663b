"""How values cross from Python into compiled code: declared types, frames, arguments, results.

Compiled code knows fixed types only. A *frame* is a named tuple whose fields are declared with the
types below; compiled code is handed the address of one block of words for it, in which an array
takes its descriptor, a number a word, and another frame its address. Nothing is counted or copied:
whoever calls keeps the arrays alive. The first word is the address of a table of functions, where
a class of frames has one (``compiled.jit.Contract``).

A type is described by plain strings and lists, so that a compiled library can be used, and its
description read from a file, by a process that never loads Numba:

    "f8", "f4", "i8", "i4", "i1", "u1", "u8", "b1", "none"    numbers, truth values, nothing
    ["array", "f8", 2]                                    an array in C order
    ["frame", "module:Class"], ["any", "likelihood"]      the address of a block
    ["tuple", [...]], ["named", "module:Class", [...]]    several values
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import struct
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

F8 = Annotated[NDArray[np.float64], ("array", "f8", 1)]
F8x2 = Annotated[NDArray[np.float64], ("array", "f8", 2)]
F8x3 = Annotated[NDArray[np.float64], ("array", "f8", 3)]
F4x2 = Annotated[NDArray[np.float32], ("array", "f4", 2)]
I8 = Annotated[NDArray[np.int64], ("array", "i8", 1)]
I8x2 = Annotated[NDArray[np.int64], ("array", "i8", 2)]
I8x3 = Annotated[NDArray[np.int64], ("array", "i8", 3)]
I4 = Annotated[NDArray[np.int32], ("array", "i4", 1)]
I4x2 = Annotated[NDArray[np.int32], ("array", "i4", 2)]
I4x3 = Annotated[NDArray[np.int32], ("array", "i4", 3)]
I1 = Annotated[NDArray[np.int8], ("array", "i1", 1)]
B1 = Annotated[NDArray[np.bool_], ("array", "b1", 1)]
U1x2 = Annotated[NDArray[np.uint8], ("array", "u1", 2)]
U8 = Annotated[NDArray[np.uint64], ("array", "u8", 1)]

#: A type in words that JSON can hold: a code, or a list of a kind of type and what it is of.
Description: TypeAlias = Any
#: The type of a word that a compiled function takes.
Word: TypeAlias = "type[ctypes._SimpleCData[Any]]"
_SCALARS: dict[object, str] = {float: "f8", int: "i8", bool: "b1", None: "none"}
_CTYPES: dict[str, Word] = {
    "f8": ctypes.c_double,
    "f4": ctypes.c_float,
    "i8": ctypes.c_int64,
    "i4": ctypes.c_int32,
    "i1": ctypes.c_int8,
    "u8": ctypes.c_uint64,
    "u1": ctypes.c_uint8,
    "b1": ctypes.c_int8,
}
_DTYPES: dict[str, np.dtype[Any]] = {
    "f8": np.dtype(np.float64),
    "f4": np.dtype(np.float32),
    "i8": np.dtype(np.int64),
    "i4": np.dtype(np.int32),
    "i1": np.dtype(np.int8),
    "u8": np.dtype(np.uint64),
    "u1": np.dtype(np.uint8),
    "b1": np.dtype(np.bool_),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}


def frame(cls: Any) -> Any:
    """Make a class of named tuples one of frames."""
    cls.is_frame = True
    return cls


def is_frame(cls: object) -> bool:
    """Whether compiled code is handed values of a class by address."""
    return getattr(cls, "is_frame", False)


def name_of(cls: type) -> str:
    """A class, as descriptions name it."""
    name = f"{cls.__module__}:{cls.__qualname__}"
    _CLASSES[name] = cls
    return name


#: Classes that have been named.
_CLASSES: dict[str, type] = {}


def class_named(name: str) -> type:
    """The class that a description names."""
    if name not in _CLASSES:
        module, _, path = name.partition(":")
        found: Any = functools.reduce(getattr, path.split("."), importlib.import_module(module))
        _CLASSES[name] = found
    return _CLASSES[name]


def described(annotation: Any) -> Description:
    """The description of a declared type."""
    if get_origin(annotation) is Annotated:
        return list(get_args(annotation)[1])
    if get_origin(annotation) is tuple:
        return ["tuple", [described(part) for part in get_args(annotation)]]
    if is_frame(annotation):
        return ["frame", name_of(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, tuple):
        return ["named", name_of(annotation), [kind for _, kind in layout(annotation)]]
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    raise TypeError(f"compiled code has no type for {annotation!r}")


@functools.cache
def layout(cls: Any) -> tuple[tuple[str, Description], ...]:
    """The declared fields of a class of named tuples, in order."""
    hints = get_type_hints(cls, include_extras=True)
    fields: tuple[str, ...] = cls._fields
    try:
        return tuple((name, described(hints[name])) for name in fields)
    except TypeError as reason:
        raise TypeError(f"{cls.__qualname__}: {reason}") from None


@functools.cache
def places(cls: type) -> dict[str, tuple[int, Description]]:
    """Of each field of a class of frames: its first word in the block, and its description."""
    found, word = {}, 1
    for name, kind in layout(cls):
        found[name] = (word, kind)
        word += 5 + 2 * kind[2] if kind[0] == "array" else 1
    return found


class Frame:
    """A named tuple laid out for compiled code; it keeps alive what the block points to.

    Made once by whoever calls the same kernels again and again; a plain named tuple does as well.
    """

    def __init__(self, value: tuple[Any, ...]) -> None:
        self.value = value
        self.size = 0  # bytes of all its arrays
        cls = type(value)
        words: list[int] = [0]
        kept: list[Frame] = []
        for (name, kind), part in zip(layout(cls), value, strict=True):
            if kind[0] == "array":
                words += _array_words(part, kind, name)
                self.size += part.nbytes
            elif kind == "f8":
                words.append(struct.unpack("q", struct.pack("d", part))[0])
            elif kind[0] == "frame":
                inner = frame_of(part)
                self.size += inner.size
                kept.append(inner)
                words.append(inner.address)
            else:
                words.append(int(part))
        self._kept = kept
        self._block = np.array(words, dtype=np.int64)
        self._told = False
        self.address: int = _address(self._block)

    def with_table(self) -> int:
        """The address, of a block that knows the functions of its class."""
        if not self._told:
            self._block[0] = table_of(type(self.value))
            self._told = True
        return self.address


#: Frames of small named tuples, by identity: tests call kernels with the same ones again and again,
#: and laying them out takes longer than most calls. A frame keeps its tuple alive, so that no other
#: tuple has its identity.
_RECENT: dict[int, Frame] = {}
MOST_RECENT, SMALL_FRAME = 64, 1 << 16


def frame_of(value: tuple[Any, ...] | Frame) -> Frame:
    """The frame of a named tuple; of a small one, that of an earlier call."""
    if isinstance(value, Frame):
        return value
    found = _RECENT.get(id(value))
    if found is None:
        found = Frame(value)
        if found.size <= SMALL_FRAME:
            if len(_RECENT) >= MOST_RECENT:
                _RECENT.clear()
            _RECENT[id(value)] = found
    return found


def table_of(cls: type) -> int:
    """The address of the functions by which a class of frames keeps its contract."""
    find = getattr(cls, "function_table", None)
    if find is None:
        raise TypeError(f"{cls.__qualname__} is neither a likelihood nor a prior")
    return int(find())


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _array_words(array: object, kind: Description, name: str) -> tuple[int, ...]:
    """An array's descriptor, as Numba lays it out."""
    if (
        not isinstance(array, np.ndarray)
        or array.dtype != _DTYPES[kind[1]]
        or array.ndim != kind[2]
        or not (array.flags.c_contiguous or len(kind) > 3)
    ):
        found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)
        order = (
            "" if isinstance(array, np.ndarray) and array.flags.c_contiguous else ", in no order"
        )
        raise TypeError(f"{name}: an array {kind[1:]} was declared, not {found}{order}")
    return (0, 0, array.size, array.itemsize, _address(array), *array.shape, *array.strides)


def description_of(value: object) -> Description:
    """The description of a value that is handed to a kernel whose types are not declared."""
    if isinstance(value, Frame):
        value = value.value
    if isinstance(value, np.ndarray):
        kind = ["array", _CODES[value.dtype], value.ndim]
        return kind if value.flags.c_contiguous else [*kind, "A"]
    if isinstance(value, bool | np.bool_):
        return "b1"
    if isinstance(value, int | np.integer):
        return "i8"
    if isinstance(value, float | np.floating):
        return "f8"
    if is_frame(type(value)):
        return ["frame", name_of(type(value))]
    if isinstance(value, tuple):
        parts = [description_of(part) for part in value]
        return (
            ["named", name_of(type(value)), parts]
            if hasattr(value, "_fields")
            else ["tuple", parts]
        )
    raise TypeError(f"compiled code has no type for {value!r}")


#: Appends the words of one argument, and what must live until the call is over.
Adder = Callable[[Any, list[float], list[object]], None]


def adder(kind: Description, name: str, *, tables: bool) -> Adder:
    """How arguments of a declared type become the words that a compiled function takes.

    With ``tables``, frames know the functions of their class, for calls by address.
    """
    head = kind if isinstance(kind, str) else kind[0]
    if head == "frame":
        cls = class_named(kind[1])
        told = tables and hasattr(cls, "function_table")

        def add(value: Any, words: list[float], kept: list[object]) -> None:
            block = frame_of(value)
            if type(block.value) is not cls:
                raise TypeError(f"{name}: {kind[1]} was declared, not {type(block.value)}")
            kept.append(block)
            words.append(block.with_table() if told else block.address)

    elif head == "any":

        def add(value: Any, words: list[float], kept: list[object]) -> None:
            block = frame_of(value)
            kept.append(block)
            words.append(block.with_table())

    elif head == "array":

        def add(value: Any, words: list[float], kept: list[object]) -> None:
            words.extend(_array_words(value, kind, name))

    elif head in ("tuple", "named"):
        parts = [adder(part, name, tables=tables) for part in kind[-1]]

        def add(value: Any, words: list[float], kept: list[object]) -> None:
            for part, held in zip(parts, value, strict=True):
                part(held, words, kept)

    else:
        plain = float if head[0] == "f" else int

        def add(value: Any, words: list[float], kept: list[object]) -> None:
            words.append(plain(value))

    return add


def word_types(kind: Description) -> list[Word]:
    """The types of the words that an argument becomes."""
    head = kind if isinstance(kind, str) else kind[0]
    if head in ("frame", "any"):
        return [ctypes.c_void_p]
    if head == "array":
        return [ctypes.c_int64] * (5 + 2 * kind[2])
    if head in ("tuple", "named"):
        return [found for part in kind[-1] for found in word_types(part)]
    return [_CTYPES[head]]


def size_and_alignment(kind: Description) -> tuple[int, int]:
    """Bytes that a result takes."""
    if isinstance(kind, str):
        width = 8 if kind == "none" else ctypes.sizeof(_CTYPES[kind])
        return width, width
    if kind[0] == "array":
        return 8 * (5 + 2 * kind[2]), 8
    if kind[0] in ("tuple", "named"):
        at, widest = 0, 1
        for part in kind[-1]:
            size, alignment = size_and_alignment(part)
            at = -(-at // alignment) * alignment + size
            widest = max(widest, alignment)
        return -(-at // widest) * widest, widest
    return 8, 8


def read(kind: Description, room: ctypes.Array[ctypes.c_char], at: int, owners: list[int]) -> Any:
    """A result of a declared type from the bytes at ``at``.

    Arrays are copied; the addresses of those who own the originals are added to ``owners``.
    """
    if kind == "none":
        return None
    if isinstance(kind, str):
        value = _CTYPES[kind].from_buffer(room, at).value
        return bool(value) if kind == "b1" else value
    if kind[0] == "array":
        words = (ctypes.c_int64 * (5 + 2 * kind[2])).from_buffer(room, at)
        shape, dtype = tuple(words[5 : 5 + kind[2]]), _DTYPES[kind[1]]
        owners.append(words[0])
        array = np.empty(shape, dtype)
        if array.size > 0:
            strides = tuple(words[5 + kind[2] :])
            size = (
                sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + array.itemsize
            )
            memory = (ctypes.c_char * size).from_address(words[4])
            array[...] = np.ndarray(shape, dtype, memory, strides=strides)
        return array
    parts = []
    for part in kind[-1]:
        size, alignment = size_and_alignment(part)
        at = -(-at // alignment) * alignment
        parts.append(read(part, room, at, owners))
        at += size
    return class_named(kind[1])(*parts) if kind[0] == "named" else tuple(parts)
