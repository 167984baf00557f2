"""FNV-1a as machine code, for large files: compiled by llvmlite when it is installed and there is enough to do.

Chains do not depend on each other, so sixteen of them advance in four vectors of four 64-bit lanes, eight bytes a turn.
The multiplication by P = 2**40 + 0x1b3 is a shift, a product with a small constant and a sum, which is what vector
units have. Compiling takes about a tenth of a second, once a process; no file is left behind. Without llvmlite, on a
big-endian machine, or with ``TRAJCONFORM_KERNEL=numpy`` in the environment the numpy way of `trajconform.otj.checksum`
serves.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LANES = 4
_VECTORS = 4
CHAINS = _LANES * _VECTORS
"""Chains that advance together; numbers of frames that this divides are hashed fastest."""

_PRIME = 0x100000001B3
_lock = threading.Lock()
_loaded: list[Kernel | None] = []
_why = "not needed yet"


@dataclass(frozen=True)
class Kernel:
    """Compiled functions on addresses; both release the interpreter lock while they run.

    ``rows(base, stride, groups, size, states)`` advances ``groups * CHAINS`` states u64 by ``size`` bytes each, the
    bytes of chain k standing at ``base + k * stride``. ``chain(base, size, state)`` advances one.
    """

    rows: Callable[[int, int, int, int, int], None]
    chain: Callable[[int, int, int], int]
    keep: Any
    """What owns the machine code."""


def load() -> Kernel | None:
    """The compiled functions, compiled when first asked for; None where there are none (`description` says why)."""
    with _lock:
        if not _loaded:
            _loaded.append(_compile())
        return _loaded[0]


def description() -> str:
    """How checksums of large files are computed here, in a few words."""
    kernel = load()
    return f"compiled, {CHAINS} chains at a time ({_why})" if kernel else f"numpy ({_why})"


def _compile() -> Kernel | None:
    global _why
    if os.environ.get("TRAJCONFORM_KERNEL") == "numpy":
        _why = "TRAJCONFORM_KERNEL asks for it"
        return None
    if sys.byteorder != "little":
        _why = "the machine is big-endian"
        return None
    try:
        import llvmlite
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(_rows_text() + _chain_text())
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
        )
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        u64, address = ctypes.c_uint64, ctypes.c_void_p
        rows = ctypes.CFUNCTYPE(None, address, u64, u64, u64, address)(engine.get_function_address("fnv_rows"))
        chain = ctypes.CFUNCTYPE(u64, address, u64, u64)(engine.get_function_address("fnv_chain"))
    except ImportError:
        _why = "llvmlite is not installed; pip install 'trajconform[fast]' makes large files faster"
        return None
    except Exception as error:  # whatever a compiler has against this machine, the slower way still works
        _why = f"llvmlite cannot compile here: {type(error).__name__}: {error}"
        return None
    _why = f"llvmlite {llvmlite.__version__}, {llvm.get_host_cpu_name()}"
    return Kernel(rows, chain, (engine, machine))


def _splat(value: int) -> str:
    return "<" + ", ".join([f"i64 {value}"] * _LANES) + ">"


def _rows_text() -> str:
    """The function ``rows`` in the assembly language of LLVM."""
    vector = f"<{_LANES} x i64>"
    chains, vectors = range(CHAINS), range(_VECTORS)
    out = [
        "define void @fnv_rows(ptr %base, i64 %stride, i64 %groups, i64 %size, ptr %states) {",
        "entry:",
        "  %whole = and i64 %size, -8",
        "  br label %group",
        "group:",
        "  %g = phi i64 [0, %entry], [%next, %store]",
        "  %more = icmp ult i64 %g, %groups",
        "  br i1 %more, label %start, label %done",
        "start:",
        f"  %first = mul i64 %g, {CHAINS}",
    ]
    for k in chains:
        out += [f"  %row{k} = add i64 %first, {k}", f"  %at{k} = mul i64 %row{k}, %stride"]
        out += [f"  %p{k} = getelementptr i8, ptr %base, i64 %at{k}"]
    for v in vectors:
        out += [f"  %sp{v} = getelementptr i64, ptr %states, i64 %row{v * _LANES}"]
        out += [f"  %s{v} = load {vector}, ptr %sp{v}, align 8"]
    out += ["  br label %words", "words:", "  %j = phi i64 [0, %start], [%j8, %word]"]
    out += [f"  %h{v} = phi {vector} [%s{v}, %start], [%n{v}.7, %word]" for v in vectors]
    out += ["  %in = icmp ult i64 %j, %whole", "  br i1 %in, label %word, label %bytes", "word:"]
    out += _gather("w", "%j", "i64")
    for b in range(8):
        for v in vectors:
            before = f"%h{v}" if b == 0 else f"%n{v}.{b - 1}"
            out += [f"  %b{v}.{b} = lshr {vector} %w{v}, {_splat(8 * b)}"]
            out += [f"  %o{v}.{b} = and {vector} %b{v}.{b}, {_splat(255)}"]
            out += _step(f"{v}.{b}", before, f"%o{v}.{b}")
    out += ["  %j8 = add i64 %j, 8", "  br label %words"]
    out += ["bytes:", "  %i = phi i64 [%j, %words], [%i1, %byte]"]
    out += [f"  %t{v} = phi {vector} [%h{v}, %words], [%n{v}.t, %byte]" for v in vectors]
    out += ["  %left = icmp ult i64 %i, %size", "  br i1 %left, label %byte, label %store", "byte:"]
    out += _gather("z", "%i", "i8")
    for v in vectors:
        out += _step(f"{v}.t", f"%t{v}", f"%z{v}")
    out += ["  %i1 = add i64 %i, 1", "  br label %bytes", "store:"]
    out += [f"  store {vector} %t{v}, ptr %sp{v}, align 8" for v in vectors]
    out += ["  %next = add i64 %g, 1", "  br label %group", "done:", "  ret void", "}", ""]
    return "\n".join(out)


def _gather(name: str, place: str, kind: str) -> list[str]:
    """Vectors of what stands at one place of each chain, eight bytes or one."""
    out = []
    for k in range(CHAINS):
        v, lane = divmod(k, _LANES)
        target = f"%{name}{v}" if lane == _LANES - 1 else f"%{name}{v}.i{lane}"
        source = "zeroinitializer" if lane == 0 else f"%{name}{v}.i{lane - 1}"
        out += [f"  %{name}a{k} = getelementptr i8, ptr %p{k}, i64 {place}"]
        out += [f"  %{name}l{k} = load {kind}, ptr %{name}a{k}, align 1"]
        loaded = f"%{name}l{k}"
        if kind == "i8":
            out += [f"  %{name}x{k} = zext i8 {loaded} to i64"]
            loaded = f"%{name}x{k}"
        out += [f"  {target} = insertelement <{_LANES} x i64> {source}, i64 {loaded}, i32 {lane}"]
    return out


def _step(name: str, before: str, octet: str) -> list[str]:
    """``n = (before ^ octet) * P``, P being 2**40 + 0x1b3."""
    vector = f"<{_LANES} x i64>"
    return [
        f"  %x{name} = xor {vector} {before}, {octet}",
        f"  %m{name} = mul {vector} %x{name}, {_splat(_PRIME & 0xFFFFFFFF)}",
        f"  %l{name} = shl {vector} %x{name}, {_splat(40)}",
        f"  %n{name} = add {vector} %m{name}, %l{name}",
    ]


def _chain_text() -> str:
    """The function ``chain``: the definition itself."""
    return f"""
define i64 @fnv_chain(ptr %base, i64 %size, i64 %state) {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%i1, %body]
  %h = phi i64 [%state, %entry], [%n, %body]
  %in = icmp ult i64 %i, %size
  br i1 %in, label %body, label %done
body:
  %p = getelementptr i8, ptr %base, i64 %i
  %b = load i8, ptr %p
  %w = zext i8 %b to i64
  %x = xor i64 %h, %w
  %n = mul i64 %x, {_PRIME}
  %i1 = add i64 %i, 1
  br label %head
done:
  ret i64 %h
}}
"""
