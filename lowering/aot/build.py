"""Building a shared library from its texts with the C compiler and linker."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from dcarray.lowering.cpu.c.target import compiler
from dcarray.lowering.errors import Unsupported

from .interface import Refused
from .library import OPTIONS, Sources

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
"""The processors that ``cpu`` may name, besides "native"."""


def command_text(source: str, library: str, cpu: str, blas: str) -> str:
    """Return the shell command that builds a library from its C source, to be shown to users."""
    return " ".join(["cc", *_options(cpu), "-shared", source, "-o", library, *linked(blas), "-lm"])


def _options(cpu: str) -> tuple[str, ...]:
    return (*OPTIONS, "-fPIC", "-fvisibility=default", f"-march={cpu}")


@cache
def has_library(name: str) -> bool:
    """Whether there is a C compiler that can link the library ``name`` (as in ``-lname``)."""
    with tempfile.TemporaryDirectory(prefix="dcarray-") as folder:
        source = Path(folder, "nothing.c")
        source.write_text("int dc_nothing;\n", encoding="utf-8")
        try:
            command = [
                *compiler(), "-shared", "-fPIC", str(source), f"-l{name}", "-o",
                str(Path(folder, "nothing.so")),
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, timeout=100, check=False)
        except (Unsupported, OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


def linked(blas: str) -> tuple[str, ...]:
    """Return the linker's options for a CBLAS, given as a name, as a library's path, or empty for none."""
    if not blas:
        return ()
    if "/" in blas or blas.endswith((".so", ".a")):
        path = Path(blas).resolve()
        return (str(path), f"-Wl,-rpath,{path.parent}") if path.suffix != ".a" else (str(path),)
    return (f"-l{blas}",)


def build(
    sources: Sources, to: Path, cpu: str = "native", blas: str = "", objects: Sequence[bytes] = (),
    extra: Sequence[str] = (),
) -> None:  # fmt: skip
    """Build a shared library.

    Parameters
    ----------
    sources : Sources
    to : Path
        The library's file.
    cpu : str, optional
        One of `LEVELS`, or "native".
    blas : str, optional
        The CBLAS to link with: a name as for ``-l``, or a path; empty for none.
    objects : sequence of bytes, optional
        Object code of the kernels that are not in the C source.
    extra : sequence of str, optional
        More options for the compiler.

    Raises
    ------
    Refused
        If there is no compiler, if it fails, or if it cannot link the BLAS.
    """
    try:
        command = [*compiler(), *_options(cpu), "-w", *extra, "-shared"]
    except Unsupported as error:
        raise Refused(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="dcarray-") as folder:
        source, exports = Path(folder, "library.c"), Path(folder, "exports")
        source.write_text(sources.c, encoding="utf-8")
        exports.write_text(f"{{ global: {' '.join(f'{name};' for name in sources.exported)} local: *; }};\n")
        files = [str(source)]
        for k, code in enumerate(objects):
            files.append(str(Path(folder, f"kernel{k}.o")))
            Path(files[-1]).write_bytes(code)
        command += [*files, "-o", str(to), f"-Wl,--version-script={exports}"]
        # functions of vectors are those of the C library's libmvec
        vectors = any(b"_ZGV" in code for code in objects)
        command += [*linked(blas), *(["-lmvec"] if vectors else []), "-lm"]
        if not any("sanitize" in option for option in extra):
            command.append("-Wl,--no-undefined")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise Refused(f"the C compiler cannot be run: {error}") from error
    if done.returncode:
        missing = blas and (
            f"cannot find -l{blas}" in done.stderr or "cblas_" in done.stderr or blas in done.stderr
        )
        what = f"the BLAS {blas!r} cannot be linked" if missing else "the C compiler fails"
        raise Refused(f"{what}: {done.stderr.strip()[-800:]}")
