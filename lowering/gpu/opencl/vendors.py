"""Registration of OpenCL runtimes that are installed as wheels, so that OpenCL's loader finds them.

The loader reads a folder of ``.icd`` files, each with the path of a runtime's library.  The wheel
``intel-opencl-rt`` has such a file, but with a placeholder instead of the path.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["wheel_runtime", "wheel_runtime_added"]

_WHEEL: Final = "intel-opencl-rt"
_LIBRARY: Final = "libintelocl.so"
_VARIABLE: Final = "OCL_ICD_VENDORS"
_SYSTEM: Final = "/etc/OpenCL/vendors"


def wheel_runtime() -> Path | None:
    """Return the path of the OpenCL runtime's library that is installed as a wheel; None without one."""
    try:
        files = metadata.files(_WHEEL) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == _LIBRARY:
            path = Path(os.path.normpath(file.locate()))
            return path if path.exists() else None
    return None


def _vendor_files(vendors: Path) -> list[Path]:
    """Return the ``.icd`` files that OpenCL's loader would read: all those of a folder, or the one file."""
    if vendors.is_dir():
        return sorted(vendors.glob("*.icd"))
    return [vendors] if vendors.suffix == ".icd" and vendors.exists() else []


@contextmanager
def wheel_runtime_added() -> Iterator[None]:
    """A context in which OpenCL's loader finds the wheel's runtime besides the system's or the user's
    runtimes.

    The loader looks only once, at the first call of OpenCL, which must be in the ``with`` block.
    """
    own = os.environ.get(_VARIABLE)
    known = _vendor_files(Path(own or _SYSTEM))
    library = wheel_runtime()
    texts = [own or "", *(file.read_text(errors="replace") for file in known)]
    if library is None or any(library.name in text for text in texts):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="dcarray-opencl-") as folder:
        for file in known:
            shutil.copy(file, folder)
        if own and not known:  # the path of a library, which the loader takes, too
            Path(folder, "own.icd").write_text(own + "\n")
        Path(folder, "wheel.icd").write_text(f"{library}\n")
        os.environ[_VARIABLE] = folder
        try:
            yield
        finally:
            if own is None:
                del os.environ[_VARIABLE]
            else:
                os.environ[_VARIABLE] = own
