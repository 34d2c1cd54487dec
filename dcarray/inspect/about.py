"""``dc.info``: versions, processor, targets, devices and options, as a bug report needs them."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import Any

import numpy as np

from dcarray.core import floor
from dcarray.core.config import Options, current
from dcarray.core.device_names import AUTO, cpu_name, devices
from dcarray.ir.records import record

from .c_module import why_python


@record(frozen=True, slots=True)
class Info:
    """The versions, processor, targets, devices and options of this installation; ``print`` shows them for a
    bug report.

    Attributes
    ----------
    versions : dict of str
        The versions of Python, of this package and of those that it uses.
    device : str
        The device of new arrays without ``device=``.
    cpu : str
        The name of the processor.
    cpu_features : tuple of str
        The instruction sets that NumPy has found on it.
    threads : int
        Threads that a kernel uses.
    cache_dir : str or None
        The folder of compiled code and plans.
    blas : str
        The BLAS of NumPy.
    floor : tuple of str
        The parts of the floor that are under NumPy.
    options : Options
        The values of all options.
    speedups : bool
        Whether the C module is used, which makes small calls faster.
    why_python : str
        Why the C module is not used; empty if it is.
    targets : dict of str
        For each built-in target the compiler that it uses, or what is missing and the command that installs
        it.
    devices : dict of str
        The description of each device.
    auto : str
        The devices between which ``device="auto"`` chooses, and the measured rates that it compares, if any.
    """

    versions: dict[str, str]
    device: str
    cpu: str
    cpu_features: tuple[str, ...]
    threads: int
    cache_dir: str | None
    blas: str
    floor: tuple[str, ...]
    options: Options
    speedups: bool
    why_python: str
    targets: dict[str, str]
    devices: dict[str, str]
    auto: str

    def __str__(self) -> str:
        rows = [(name, version) for name, version in self.versions.items()]
        rows += [
            ("device", self.device),
            ("cpu", self.cpu),
            ("cpu features", " ".join(self.cpu_features) or "baseline"),
            ("threads", str(self.threads)),
            ("blas", self.blas),
            ("floor", ", ".join(self.floor) or "none"),
            ("small calls", "in C" if self.speedups else f"in Python: {self.why_python}"),
            ("cache folder", self.cache_dir or "none"),
        ]
        rows += [(f"target {name}", text) for name, text in self.targets.items()]
        rows += [(f"device {name}", text) for name, text in {**self.devices, AUTO: self.auto}.items()]
        shown = {"device", "threads", "cache_dir"}
        rows += [(name, str(value)) for name, value in asdict(self.options).items() if name not in shown]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _version(name: str) -> str:
    import importlib.util  # slow to import, and only needed here
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "present" if importlib.util.find_spec(name) else "not installed"


def _cpu_features() -> tuple[str, ...]:
    try:
        from numpy._core import _multiarray_umath  # type: ignore[attr-defined]
    except ImportError:  # a private place of NumPy; only shown, never relied on
        return ()
    return tuple(sorted(k for k, present in _multiarray_umath.__cpu_features__.items() if present))


def _blas() -> str:
    config: Any = np.show_config(mode="dicts")
    entry = (config or {}).get("Build Dependencies", {}).get("blas", {})
    return f"{entry.get('name', 'unknown')} {entry.get('version', '')}".strip()


def _targets(versions: dict[str, str]) -> dict[str, str]:
    """Return, for each target, the compiler that it uses, or what is missing and how to install it."""
    from dcarray.lowering.cpu.c.target import compiler
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.gpu import devices

    texts = {"cpu": f"LLVM, by llvmlite {versions['llvmlite']}"}
    try:
        texts["c"] = " ".join(compiler())
    except Unsupported as error:
        texts["c"] = f"missing: {error}; pip install 'dcarray[c]'"
    missing = devices.missing()
    for kind, package in (("opencl", "pyopencl"), ("cuda", "cupy")):
        texts[kind] = f"missing: {missing[kind]}" if kind in missing else f"by {package} {versions[package]}"
    return texts


def _auto(options: Options) -> str:
    """The devices between which ``device="auto"`` chooses, and the rates that it compares."""
    from dcarray.offload.auto import auto_device

    device = auto_device()
    if device is None:
        return "the processor, since there is no other"
    rates = device.known_rates(options)
    return f"{device.description}; " + ("not measured yet" if rates is None else f"rates {rates}")


def info() -> Info:
    """Return versions, processor, BLAS, targets, devices and the options in force.

    Returns
    -------
    Info
        ``print`` shows it as a table.

    Examples
    --------
    >>> import dcarray as dc
    >>> dc.info().device
    'cpu'
    """
    names = ("dcarray", "numpy", "llvmlite", "array-api-compat", "mpi4py", "cupy", "pyopencl")
    versions = {"python": platform.python_version(), **{name: _version(name) for name in names}}
    now, why = current(), why_python()
    floor.install()
    return Info(
        versions=versions, device=now.device, cpu=cpu_name(), cpu_features=_cpu_features(),
        threads=now.threads, cache_dir=now.cache_dir, blas=_blas(), floor=floor.parts(), options=now,
        speedups=not why, why_python=why, targets=_targets(versions),
        devices={one.name: one.description for one in devices()}, auto=_auto(now),
    )  # fmt: skip
