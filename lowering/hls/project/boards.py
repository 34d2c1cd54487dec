"""The table of FPGA boards: their names in the vendors' tools, their memory and their hardware."""

from __future__ import annotations

from dcarray.ir.records import record

_GiB = 1 << 30


@record(frozen=True, slots=True)
class Board:
    """An FPGA board.

    Attributes
    ----------
    name : str
    target : str
        "vitis" or "intel": the tools that it is for.
    title : str
        The manufacturer's name of the board.
    part : str
        The device, as Vitis HLS calls it.
    platform : str
        The platform of ``v++ --platform``, or the board of ``aoc -board``.
    memory : str
        The kind of its memory, as ``v++`` calls it: "DDR" or "HBM".
    banks : int
        The number of memory banks.
    bank_bytes : int
        The size of each memory bank in bytes.
    dsp, lut, blocks : int
        The numbers of DSP slices, LUTs and 18-Kbit memory blocks of the device; for Intel's, of DSP blocks,
        twice the ALMs, and 20-Kbit blocks.
    clock : int
        The target clock frequency in MHz.
    native_accumulation : bool
        Whether one accumulator can add a float32 in every cycle, as the DSP blocks of Arria 10 and Stratix 10
        can; otherwise sums have several accumulators.
    """

    name: str
    target: str
    title: str
    part: str
    platform: str
    memory: str
    banks: int
    bank_bytes: int
    dsp: int
    lut: int
    blocks: int
    clock: int = 300
    native_accumulation: bool = False


BOARDS = {
    board.name: board
    for board in (
        Board(
            "u250", "vitis", "AMD Alveo U250", "xcu250-figd2104-2L-e",
            "xilinx_u250_gen3x16_xdma_4_1_202210_1", "DDR", 4, 16 * _GiB,
            12_288, 1_728_000, 5_376,
        ),
        Board(
            "u280", "vitis", "AMD Alveo U280", "xcu280-fsvh2892-2L-e",
            "xilinx_u280_gen3x16_xdma_1_202211_1", "HBM", 32, _GiB // 4,
            9_024, 1_303_680, 4_032,
        ),
        Board(
            "u55c", "vitis", "AMD Alveo U55C", "xcu55c-fsvh2892-2L-e",
            "xilinx_u55c_gen3x16_xdma_3_202210_1", "HBM", 32, _GiB // 2,
            9_024, 1_303_680, 4_032,
        ),
        Board(
            "520n", "intel", "BittWare 520N (Stratix 10)", "", "p520_max_sg280h", "DDR", 4,
            8 * _GiB, 5_760, 1_866_240, 11_721,
            native_accumulation=True,
        ),
        Board(
            "a10", "intel", "Intel PAC with Arria 10 GX", "", "pac_a10", "DDR", 2, 4 * _GiB,
            1_518, 854_400, 2_713,
            clock=240, native_accumulation=True,
        ),
    )
}  # fmt: skip
DEFAULT = {"vitis": "u250", "intel": "520n"}


def board_of(target: str, name: str | None) -> Board:
    """Return the board with this name; for None the default board of the target.

    Raises
    ------
    ValueError
        If there is no such target or board, or if the board is for another target.
    """
    if target not in DEFAULT:
        raise ValueError(f"target is 'vitis' or 'intel', not {target!r}")
    chosen = BOARDS.get(DEFAULT[target] if name is None else name)
    if chosen is None or chosen.target != target:
        known = ", ".join(repr(one.name) for one in BOARDS.values() if one.target == target)
        raise ValueError(f"boards of the target {target!r} are {known}, not {name!r}")
    return chosen
