"""Projects for vendors' tools: their files, and how they are written to a folder."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dcarray.ir import interp
from dcarray.ir.nodes import Region
from dcarray.ir.numpy_views import NDArray

from ..network.nodes import Network
from . import intel_files, vitis_files
from .boards import Board
from .design import Design
from .fitting import fitted
from .guide import readme
from .placement import placed
from .test_bench import header, processes, support, test_bench


@dataclass(frozen=True)
class Project:
    """The files of a project folder for a vendor's tools.

    Attributes
    ----------
    name : str
        The name of the kernel.
    target : str
        "vitis" or "intel".
    network : Network
        The circuit.
    files : mapping of str to str or bytes
        The contents of the files by their path in the folder.
    path : pathlib.Path or None
        The folder, if the files have been written; else None.
    """

    name: str
    target: str
    network: Network
    files: Mapping[str, str | bytes]
    path: Path | None = None

    def write(self, path: str | Path) -> Project:
        """Write the files to a folder, which is created if needed; other files in it stay.

        Raises
        ------
        OSError
            If the folder or a file cannot be written.
        """
        folder = Path(path)
        for name, content in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                file.write_text(content)
            else:
                file.write_bytes(content)
        return replace(self, path=folder)

    def __repr__(self) -> str:
        where = "not written" if self.path is None else str(self.path)
        return f"<{self.target} project {self.name}: {len(self.files)} files, {where}>"


def project(
    region: Region,
    memory: Mapping[str, NDArray],
    name: str,
    source: str,
    board: Board,
    clock: int,
    width: int | None = None,
) -> Project:
    """Return the project of a region.

    Parameters
    ----------
    region : Region
        A region without symbols.
    memory : mapping of str to numpy.ndarray
        The values of its input arrays.
    name : str
        The name of the kernel, an identifier.
    source : str
        The place of the function in the user's source, for comments.
    board : Board
    clock : int
        The target frequency in MHz.
    width : int, optional
        The most elements that a stream carries at a time.

    Raises
    ------
    Unsupported
        If the region cannot be a circuit on this board; the text names the statement or array.
    """
    network = fitted(region, board, width)
    banks = placed(network, board)
    expected = interp.run(region, {key: array.copy() for key, array in memory.items()})
    design = Design(name, source, network, board, clock, banks, memory, expected)
    own = vitis_files if board.target == "vitis" else intel_files
    files: dict[str, str | bytes] = {
        "README.md": readme(design),
        **own.files(design),
        f"kernel/{name}.h": header(design),
        "test/test_bench.cpp": test_bench(design),
        "test/csim/processes.cpp": processes(design),
        **support(design),
    }
    for a in design.given:
        files[a.file] = _npy(memory[a.array.name])
    for a in design.results:
        files[a.file] = _npy(expected[a.array.name])
    return Project(name, board.target, network, files)


def _npy(array: NDArray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(array).reshape(array.shape), version=(1, 0))
    return file.getvalue()
