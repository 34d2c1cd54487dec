"""All use of llvmlite: the description of this machine, and compiling and linking of LLVM text.

All calls of llvmlite are here, behind one lock.  The lock is held across ``fork``, so that a
child never inherits LLVM in the middle of a compilation.  llvmlite is imported when first needed.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from dcarray.ir.records import record
from dcarray.lowering.cpu.llvm.passes.nontemporal_stores import use_streaming_stores
from dcarray.lowering.cpu.llvm.passes.quiet_compare import quiet_comparisons
from dcarray.lowering.cpu.llvm.passes.select_operands import isolate_select_operands
from dcarray.lowering.runtime import libm
from dcarray.lowering.runtime.disk import sha256
from dcarray.lowering.runtime.forks import held_in_forks
from dcarray.lowering.runtime.stopping import symbols

from .elf_linker import LOCK, MATHEMATICS, keep

_count = 0
_MAX_REDUCED = 30_000
"""Characters of optimised text from which on a module is emitted without loop strength reduction, which then
takes most of the time of a code generator whose code is about as fast without it."""
_QUICK = 1
"""The level of optimisation of code for this process, for which a program waits: what the emitter writes
leaves little to the passes that higher levels add, which take a third of LLVM's time."""
_BEST = 3  # the level of libraries, for which nobody waits
_KNOWN = 22  # the last version of LLVM that has been seen to have the option: it ends the process without


@record(frozen=True, slots=True)
class Machine:
    """The features of the processor and of NumPy that the emitter depends on."""

    vector_bits: int = 128  # the preferred width of vector registers
    # ABI letter and register bits of the vector math library's widest variants that the processor can run
    vector_math: tuple[str, int] | None = None
    half: bool = False  # the processor converts float16 itself
    fused_complex: bool = False  # NumPy multiplies complex numbers with fused multiply-adds
    exact_sincos: bool = False  # `math.sincos` has NumPy's bits
    quiet_comparisons: bool = (
        False  # a pass makes comparisons raise no flag for a NaN: `passes.quiet_compare`
    )
    masks: bool = False  # vector instructions take masks at no cost
    scaled_magnitude: bool = False  # NumPy's |z| is the larger part times ``sqrt(1 + ratio**2)``
    nontemporal: bool = False  # the processor has weakly ordered streaming stores
    exact_powers: bool = False  # `math.powers` has NumPy's bits
    exact_exp: bool = False  # `math.exponential` has NumPy's bits


_WIDE_DIVISION = re.compile(r"\b[us](div|rem) (exact )?i(6[5-9]|[7-9]\d|\d{3})\b")
"""What LLVM makes of the sum over a range with a step that is known at run time only."""


@cache
def _llvm() -> Any:
    """Return the llvmlite binding, initialised."""
    import llvmlite.binding as llvm

    # Finalisers of llvmlite's objects take its own lock, in any thread.
    its_lock = getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)
    if its_lock is not None:
        held_in_forks(its_lock)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _load_libraries() -> frozenset[str]:
    """Load the mathematical libraries so that generated code can call them; return the names found."""
    loaded = set()
    for name in MATHEMATICS:
        try:
            _llvm().load_library_permanently(name)
            loaded.add(name)
        except RuntimeError:
            continue
    for name, address in symbols.items():
        _llvm().add_symbol(name, address)
    return frozenset(loaded)


@cache
def _host() -> tuple[str, str, frozenset[str]]:
    with LOCK:
        llvm = _llvm()
        features = llvm.get_host_cpu_features()
        return llvm.get_host_cpu_name(), features.flatten(), frozenset(k for k, on in features.items() if on)


def _x86() -> bool:
    return platform.machine() in ("x86_64", "AMD64")


def _fused_complex() -> bool:
    """Whether NumPy multiplies complex numbers with fused multiply-adds, by a test: the real part of the
    square of 0.1+0.1j is 0 only if both products are rounded."""
    import numpy as np

    x = np.array([complex(0.1, 0.1)] * 8)
    return bool((np.multiply(x, x).real != 0.0).all())


def _scaled_magnitude() -> bool:
    """Whether NumPy computes complex absolute values as ``large * sqrt(1 + ratio**2)``, by a test."""
    from math import sqrt
    from random import Random

    import numpy as np

    rng = Random(0)
    parts = np.array([[rng.gauss() * 2.0 ** rng.randrange(-30, 30) for _ in range(2)] for _ in range(499)])

    def length(low: float, high: float) -> float:
        n, d = (low / high).as_integer_ratio()
        return sqrt((n * n + d * d) / (d * d)) * high  # integers: rounded once

    formula = [length(*sorted(map(abs, pair))) for pair in parts.tolist()]
    return bool(formula == np.absolute(parts.view(complex)[:, 0]).tolist())


@cache
def machine() -> Machine:
    """Return the description of the processor that this process runs on."""

    with LOCK:
        name, _, features = _host()
        x86 = _x86()
        wide = {"avx512f", "avx512vl", "avx512dq", "avx512bw"} <= features
        # The first AVX-512 servers lower their clock for 512-bit code.
        bits = (
            512
            if wide and name not in ("skylake-avx512", "cascadelake")
            else 256
            if "avx" in features
            else 128
        )
        math = ("e", 512) if bits == 512 else ("d", 256) if {"avx2", "fma"} <= features else None
        if not x86 or "libmvec.so.1" not in _load_libraries():
            math = None
        half = "f16c" in features or not x86
        fast = {"avx2", "fma"} <= features
        own = fast and libm.matches_glibc("sin")
        fused = _fused_complex()
        lengths, masks = fused and _scaled_magnitude(), "avx512vl" in features
        power = fast and libm.matches_glibc("power")
        exps = fast and libm.matches_glibc("exp")
        return Machine(bits, math, half, fused, own, wide, masks, lengths, x86, power, exps)


@cache
def fingerprint() -> str:
    """Return a digest of compiler, processor and libraries, on which object code depends besides its text."""
    llvm = _llvm()
    parts = (llvm.llvm_version_info, llvm.get_default_triple(), _host()[:2], machine())
    return sha256(repr(parts).encode()).hexdigest()[:16]


@cache
def _target_machine(opt: int = _QUICK) -> Any:
    llvm = _llvm()
    name, features, _ = _host()
    target = llvm.Target.from_default_triple()
    return keep(target.create_target_machine(cpu=name, features=features, opt=opt, jit=True))


@cache
def _library_machine(level: str) -> Any:
    """Return llvmlite's target machine for position-independent code, for this processor ("native") or for a
    level of x86-64."""
    llvm = _llvm()
    name, features, _ = _host() if level == "native" else (level, "", frozenset())
    target = llvm.Target.from_default_triple()
    return keep(target.create_target_machine(cpu=name, features=features, opt=_BEST, reloc="pic"))


def _parse(text: str) -> Any:
    llvm = _llvm()
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = llvm.get_default_triple()
    module.data_layout = str(_target_machine().target_data)
    return module


def _optimise(text: str, tm: Any = None, level: int = _QUICK, masks: bool | None = None) -> Any:
    llvm, module = _llvm(), _parse(text)
    tm = _target_machine() if tm is None else tm
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    builder = llvm.create_pass_builder(tm, tuning)
    builder.getModulePassManager().run(module, builder)
    text = str(module)
    changed = use_streaming_stores(text)
    if _x86():
        masks = "avx512vl" in _host()[2] if masks is None else masks
        changed = isolate_select_operands(changed, masks)
        if masks:
            changed = quiet_comparisons(changed)
    if changed == text:
        return module
    module = llvm.parse_assembly(changed)
    module.verify()
    return module


@contextmanager
def _strength_reduction(on: bool) -> Iterator[None]:
    """A context in which LLVM's loop strength reduction is on, or off."""
    if on or _llvm().llvm_version_info[0] > _KNOWN:
        yield
        return
    with _option("--disable-lsr=true", "--disable-lsr=false"):
        yield


@contextmanager
def _option(inside: str, after: str) -> Iterator[None]:
    """A context in which the LLVM option ``inside`` is set; at its end ``after`` is."""
    llvm = _llvm()
    llvm.set_option("dcarray", inside)
    try:
        yield
    finally:
        llvm.set_option("dcarray", after)


def compile_object(text: str, optimised: bool = True) -> bytes:
    """Return the object code of a module in LLVM text for this processor; ``optimised``: whether LLVM's
    optimiser runs on it first."""
    with LOCK:
        module = _optimise(text) if optimised else _parse(text)
        written = str(module)
        if _WIDE_DIVISION.search(written):  # which is a call of a function that is not here
            with _option("--replexitval=never", "--replexitval=cheap"):
                module = _optimise(text)
            written = str(module)
            if _WIDE_DIVISION.search(written):
                raise RuntimeError("a division of integers of 128 bits")
        _load_libraries()
        for name in (function.name for function in module.functions if function.is_declaration):
            if not name.startswith("llvm.") and not _llvm().address_of_symbol(name):
                # Loading code with an unresolved symbol would end the process.
                raise RuntimeError(f"there is no function {name} here")
        machine = _target_machine() if optimised else _target_machine(0)
        with _strength_reduction(not optimised or len(written) <= _MAX_REDUCED):
            return bytes(machine.emit_object(module))


def library_object(text: str, level: str, machine: Machine) -> bytes:
    """Return the object code of a module given as LLVM text, for a shared library.

    Parameters
    ----------
    text : str
    level : str
        "native" or a level of x86-64.
    machine : Machine
        The description of the machine for which the text was emitted.

    Raises
    ------
    RuntimeError
        If the module calls a function that it does not define and the process does not have.
    """
    with LOCK:
        tm = _library_machine(level)
        module = _optimise(text, tm, _BEST, machine.masks)
        _load_libraries()
        for name in (function.name for function in module.functions if function.is_declaration):
            if not name.startswith("llvm.") and not _llvm().address_of_symbol(name):
                raise RuntimeError(f"there is no function {name} here")
        return bytes(tm.emit_object(module))


def assembly(text: str) -> str:
    """Return the assembly of ``compile_object``'s result, for inspection."""
    with LOCK:
        module = _optimise(text)
        with _strength_reduction(len(str(module)) <= _MAX_REDUCED):
            return str(_target_machine().emit_assembly(module))


def optimised(text: str) -> str:
    """Return the optimised LLVM text of ``compile_object``'s result, for inspection."""
    with LOCK:
        return str(_optimise(text))


@cache
def _jit() -> Any:
    _load_libraries()
    return keep(_llvm().create_lljit_compiler(_target_machine()))


def link(code: bytes, names: Sequence[str]) -> tuple[int, ...]:
    """Link object code into this process with LLVM, for as long as it runs; return the addresses of the
    functions ``names``.  Raises RuntimeError if the code cannot be linked."""
    global _count
    with LOCK:
        _count += 1
        builder = _llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in names:
            builder.export_symbol(name)
        tracker = keep(builder.link(_jit(), f"kernels{_count}"))
        addresses = tuple(int(tracker[name]) for name in names)
    if not all(addresses):
        raise RuntimeError(f"object code lacks one of {', '.join(names)}")
    return addresses
