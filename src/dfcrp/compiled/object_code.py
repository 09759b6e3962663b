"""Object code that nothing has linked, loaded by LLVM; this needs llvmlite, but not Numba."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any


class ObjectCode:
    """Functions of object code as attributes, like those of a ``ctypes.CDLL``."""

    def __init__(self, path: Path) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(reloc="pic", codemodel="default")
        # The engine keeps the code in memory.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(path.read_bytes()))
        self._engine.finalize_object()

    def __getattr__(self, symbol: str) -> Any:
        address = self._engine.get_function_address(symbol)
        if not address:
            raise AttributeError(f"there is no {symbol} in this code")
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
