"""How wide the streams of a circuit are on a board."""

from __future__ import annotations

from dcarray.ir.nodes import Region

from ..model.model import model
from ..network.compose import compose
from ..network.nodes import Network
from .boards import Board

WIDEST = 16
"""Elements that streams carry at a time at most, unless more are asked for."""
SHARE = 0.7
"""Of the board's DSP slices and LUTs, what a circuit may take to be made wider."""


def fitted(region: Region, board: Board, width: int | None = None) -> Network:
    """Return the network of a region with streams of at most so many elements at a time.

    Without a width these are as many as a port to memory has room for, or, if the board has too little
    hardware, half of that, and so on.

    Raises
    ------
    Unsupported
        If the region cannot be a network.
    ValueError
        If the width is no power of 2 from 1 to 64.
    """
    if width is not None:
        if type(width) is not int or width not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"width is a power of 2 from 1 to 64, not {width!r}")
        return compose(region, width=width)
    width = WIDEST
    while True:
        network = compose(region, width=width)
        cost = model(network).cost
        if width == 1 or (cost.dsp <= SHARE * board.dsp and cost.lut <= SHARE * board.lut):
            return network
        width //= 2
