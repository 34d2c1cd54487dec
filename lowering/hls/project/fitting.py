"""The search for the largest circuit of a region that fits on a board."""

from __future__ import annotations

from dcarray.ir.nodes import Region

from ..model.model import model
from ..network.compose import compose
from ..network.nodes import Network
from ..network.time_steps import MAX_STEPS
from .boards import Board

ELEMENTS = 32
"""Processing elements that a product of matrices has at most."""
SHARE = 0.7
"""Of the board's DSP slices, LUTs and block memory, what a circuit may take to be larger."""


def fitted(
    region: Region, board: Board, width: int | None = None, steps: int = MAX_STEPS, elements: int = ELEMENTS
) -> Network:
    """Return the largest network of a region for which a board has enough hardware; if none fits, the
    smallest.

    Parameters
    ----------
    region : Region
    board : Board
    width : int, optional
        The most elements that a stream carries at a time; by default as many as fit into a memory port.
    steps : int, optional
        The most time steps that a chain has.
    elements : int, optional
        The most processing elements that a matrix product has.

    Raises
    ------
    Unsupported
        If the region cannot be a network.
    ValueError
        If the width is no power of 2 from 1 to 64.
    """
    if width is not None and (type(width) is not int or width not in (1, 2, 4, 8, 16, 32, 64)):
        raise ValueError(f"width is a power of 2 from 1 to 64, not {width!r}")
    for wide in (16, 8, 4, 2, 1) if width is None else (width,):
        network = compose(region, width=wide, steps=steps, elements=elements)
        if _fits(network, board):
            return network
    while not _fits(network, board) and (steps > 1 or elements > 1):
        steps, elements = max(steps // 2, 1), max(elements // 2, 1)
        network = compose(region, width=wide, steps=steps, elements=elements)
    return network


def _fits(network: Network, board: Board) -> bool:
    cost = model(network).cost
    pairs = ((cost.dsp, board.dsp), (cost.lut, board.lut), (cost.bram, board.blocks))
    return all(needed <= SHARE * there for needed, there in pairs)
