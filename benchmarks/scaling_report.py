"""The report of a run of the scaling benchmark: a section of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .document import GENERATED
from .measure import described, interval

__all__ = ["section"]


def _bytes(n: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f} B"


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


# ---- what a run says -----------------------------------------------------------------------------
Ratio = tuple[float, float, float]  # the median over the turns, and the interval that holds it with 95%


def _ratio(contenders: Mapping[str, Any], over: str, under: str) -> Ratio | None:
    """Return the ratio of two contenders' times, by the ratios within each round; None without times."""
    times = [contenders.get(name, {}) for name in (over, under)]
    if not all("seconds" in each for each in times):
        return None
    return interval([a / b for a, b in zip(*(each["times"] for each in times), strict=False)])


def efficiency(found: Mapping[str, Any], ranks: int) -> tuple[Ratio | None, Ratio | None]:
    """Return the weak-scaling efficiency relative to one process, and to as many independent processes."""
    contenders, several = found["scaling"]["contenders"], f"dcarray {ranks}"
    return _ratio(contenders, "dcarray 1", several), _ratio(contenders, f"dcarray x{ranks}", several)


def _percent(ratio: Ratio) -> str:
    return f"{ratio[0]:.0%} [{100 * ratio[1]:.0f}, {100 * ratio[2]:.0f}]"


# ---- the document ------------------------------------------------------------------------------------
def section(told: Mapping[str, Any]) -> str:
    """Return the document's section with the figures, in Markdown."""
    out = [GENERATED, "", f"`python -m benchmarks scaling`: {described(told['machine'])}.", ""]
    if told["programs"]:
        out += [*_measured(told), ""]
    out += [*_counts(told["counts"], told["daint"])]
    return "\n".join(out) + "\n"


def _measured(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of measured times."""
    programs = told["programs"]
    ranks = list(dict.fromkeys(r for found in programs.values() for r in found.get("model", {})))
    cores = int(told["machine"]["cores"])
    yield (
        "The table shows weak scaling, with one thread a rank. Times are medians of "
        f"{told['rounds']} rounds, in each of which every contender runs. *Efficiency* is the time of one "
        "process, divided by the time of all ranks on as many times the work. In parentheses it is compared "
        "with as many independent processes at the same time, which share the machine as the ranks do. Both "
        "are medians [95% intervals] of the ratios within a round. *Model* is the error of the predicted "
        "time."
        + (f" Sizes are Table 2's for Dask, divided by {told['shrink']:g}." if told["shrink"] != 1 else "")
    )
    yield ""
    heads = ["kernel", "NumPy", "1 rank"]
    for r in ranks:
        marked = " (oversubscribed)" if int(r) > cores else ""
        heads += [f"{r} ranks{marked}", "efficiency", "model"]
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    for name, found in programs.items():
        contenders = found["scaling"]["contenders"]
        cells = [name]
        for contender in ("numpy 1", "dcarray 1"):
            seconds = contenders.get(contender, {}).get("seconds")
            cells.append(_seconds(seconds) if seconds else "failed")
        for r in ranks:
            each = contenders.get(f"dcarray {r}", {})
            alone, beside = efficiency(found, int(r))
            cells.append(_seconds(each["seconds"]) if "seconds" in each else each.get("wrong", ""))
            cells.append((_percent(alone) if alone else "") + (f" ({_percent(beside)})" if beside else ""))
            cells.append(f"{found['model'][r]['error']:+.0%}" if r in found.get("model", {}) else "")
        yield "| " + " | ".join(cells) + " |"


def _counts(counts: Mapping[str, Any], daint: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of counted and modelled figures."""
    shown = [r for r in ("2", "36", "1024", "1296") if all(r in each for each in counts.values())]
    yield (
        "The table shows plans at the sizes of Table 2, made without data: the bytes that a rank receives in "
        "one call, and the modelled efficiency of weak scaling. In parentheses the bytes are divided by the "
        "reference: what a rank receives if all arrays are cut into equal parts over the best grid, with "
        "SUMMA for products of matrices. Below 1 the plan sends less than that: every rank has some vectors "
        "whole, a large factor of a product is not sent, or a rank has one neighbour instead of two. The "
        "model is of a machine "
        f"{daint['name']}. Parameters: {daint['source']}."
    )
    yield ""
    heads = [f"{r} ranks" for r in shown]
    yield "| kernel | reference, in numbers | " + " | ".join(f"{head} | efficiency" for head in heads) + " |"
    yield "|---|---|" + "---:|---:|" * len(heads)
    for name, rows in counts.items():
        cells = [name, f"`{rows[shown[-1]]['formula']}`"]
        for r in shown:
            each = rows[r]
            over = f" ({each['bytes'] / each['bound']:.2f})" if each["bound"] else ""
            cells += [f"{_bytes(each['bytes'])}{over}", f"{each['efficiency']:.0%}"]
        yield "| " + " | ".join(cells) + " |"
