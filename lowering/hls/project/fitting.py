"""How wide the streams of a circuit are on a board."""

from __future__ import annotations

from dcarray.ir.nodes import Region

from ..model.model import model
from ..network.compose import compose
from ..network.nodes import Network
from ..network.time_steps import LONGEST
from .boards import Board

WIDEST = 16
"""Elements that streams carry at a time at most, unless more are asked for."""
SHARE = 0.7
"""Of the board's DSP slices and LUTs, what a circuit may take to be wider, or have longer chains."""


def fitted(region: Region, board: Board, width: int | None = None, steps: int = LONGEST) -> Network:
    """Return the network of a region with streams of at most so many elements at a time, and chains of at
    most so many time steps.

    Without a width these are as many as a port to memory has room for.  If that takes more than the board
    has, half of that, and so on; then chains of time steps become shorter.

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
        return _shortened(region, board, width, steps)
    width = WIDEST
    while width > 1:
        network = compose(region, width=width, steps=steps)
        if _fits(network, board):
            return network
        width //= 2
    return _shortened(region, board, 1, steps)


def _shortened(region: Region, board: Board, width: int, steps: int) -> Network:
    """The network of a region with chains of time steps that are as long as the board has hardware for."""
    while True:
        network = compose(region, width=width, steps=steps)
        if steps == 1 or _fits(network, board):
            return network
        steps //= 2


def _fits(network: Network, board: Board) -> bool:
    cost = model(network).cost
    return cost.dsp <= SHARE * board.dsp and cost.lut <= SHARE * board.lut
