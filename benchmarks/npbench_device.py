"""NPBench on a device, beside the peers that use it: a part of ``python -m benchmarks gpu``."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from . import npbench
from .npbench_suite import SCALAR, asked_for

PEERS = {"cupy": 3.75, "jax": 0.0}
"""The peers by name, and how many times their speed is aimed at in the geometric mean."""
NONE_BELOW = 0.95


def absent(device: str) -> dict[str, str]:
    """Return the peers that cannot be compared on a device, with the reason."""
    found = {}
    for name in PEERS:
        if not device.startswith("cuda"):
            found[name] = f"does not use {device}"
        elif importlib.util.find_spec(name) is None:
            found[name] = "not installed"
    return {
        **found,
        "torch.compile": "NPBench has no version for it",
        "cupy.fuse": "NPBench has no version for it",
    }


def run(args: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Run the benchmarks of ``args.suite``; returns how many results of ours are wrong or missing."""
    chosen = asked_for(argparse.ArgumentParser(prog="python -m benchmarks gpu"), args.suite, args.only)
    missing = absent(args.device)
    names = ["numpy", "device", *(name for name in PEERS if name not in missing)]
    os.environ["DCARRAY_DEVICE"] = args.device  # of the processes that it starts
    how = argparse.Namespace(
        size=args.size, rounds=args.rounds, share=False, first=1, turn=0.05, pause=0.2, warm=20.0,
        limit=300.0, skip_above=60.0,
    )  # fmt: skip
    tell(f"\nNPBench, size {args.size}: how many times as fast as each, arrays on {args.device} beforehand")
    for name, reason in missing.items():
        tell(f"  {name} is left out: {reason}")
    others = [name for name in names if name != "device"]
    tell(f"  {'benchmark':<26}{'ms':>10}" + "".join(f"{name:>10}" for name in others))
    rows: dict[str, dict[str, float]] = {}
    wrong = 0
    for bench in chosen:
        if args.size not in bench.sizes:
            continue
        told = npbench.measure(bench, names, {}, how)
        ours = told.get("device", {})
        if "wrong" in told["numpy"]:
            tell(f"  {bench.name:<26}left out: NumPy: {told['numpy']['wrong']}")
        elif "seconds" not in ours:
            wrong += 1
            tell(f"  {bench.name:<26}WRONG: {ours.get('wrong', 'not run')}")
        else:
            rows[bench.name] = {name: _times(told, name) for name in others}
            cells = "".join(
                f"{value:10.2f}" if value else f"{'-':>10}" for value in rows[bench.name].values()
            )
            tell(f"  {bench.name:<26}{ours['seconds'][0] * 1e3:10.3f}{cells}")
    for title, names_of in (("whole-array codes", rows.keys() - SCALAR), ("all", rows.keys())):
        tell(f"  geometric mean, {title}: " + _means({name: rows[name] for name in names_of}, others))
    return wrong


def _times(told: Mapping[str, Any], name: str) -> float:
    """How many times as fast as a peer we are; 0 where it has no result."""
    if "speedup" not in told.get(name, {}):
        return 0.0
    return float(told["device"]["speedup"][0] / told[name]["speedup"][0])


def _means(rows: Mapping[str, Mapping[str, float]], others: list[str]) -> str:
    """The geometric means of some benchmarks, and what is below the aim."""
    parts = []
    for name in others:
        known = {bench: row[name] for bench, row in rows.items() if row[name]}
        if not known:
            continue
        mean = math.exp(sum(map(math.log, known.values())) / len(known))
        below = sorted(bench for bench, value in known.items() if value < NONE_BELOW)
        aim = f" (aim {PEERS[name]:g})" if PEERS.get(name) else ""
        parts.append(f"{name} {mean:.2f}{aim}, {len(below)} of {len(known)} below {NONE_BELOW}")
    return "; ".join(parts) or "none"
