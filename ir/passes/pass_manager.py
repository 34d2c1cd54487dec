"""Pipelines: the passes that run on a region and their order, as immutable values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from dcarray.ir import dims
from dcarray.ir.analysis.effects import touched_arrays
from dcarray.ir.nodes import Branch, Loop, Region, While
from dcarray.ir.records import record

from .base import Log, Note, Pass
from .nested import NESTED, in_bodies

#: Every pass shrinks something, so this is never reached; a third party's pass might not.
MAX_ROUNDS = 12

#: Called after each pass that changed the whole region, with its name, the region and what it did.
Observer = Callable[[str, Region, Sequence[Note]], None]


@record(frozen=True, slots=True)
class Pipeline:
    """Three sequences of passes; the entry ``NESTED`` runs the sequence it is in on bodies of loops and
    branches.

    Attributes
    ----------
    early : tuple of Pass
        Run to a fixpoint before all others, where there is control flow.
    passes : tuple of Pass
        Run to a fixpoint.
    final : tuple of Pass
        Run once after the others' fixpoint: the others need not handle the statements that these make.
    """

    early: tuple[Pass, ...] = ()
    passes: tuple[Pass, ...] = ()
    final: tuple[Pass, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the passes, each once."""
        return tuple(dict.fromkeys(one.name for one in (*self.early, *self.passes, *self.final)))

    def with_pass(self, new: Pass, *, after: str | None = None, before: str | None = None) -> Pipeline:
        """Return a pipeline with one pass more.

        Parameters
        ----------
        new : Pass
        after, before : str, optional
            The pass of ``passes``, or else of ``final``, beside which it runs; at the end of ``passes`` if
            neither is given.

        Raises
        ------
        ValueError
            If no pass of ``passes`` or ``final`` has the name in ``after`` or ``before``, or if both are
            given.
        """
        if after is not None and before is not None:
            raise ValueError("a pass runs after one or before one, not both")
        name = before if after is None else after
        if name is None:
            return replace(self, passes=(*self.passes, new))
        for field in ("passes", "final"):
            sequence: tuple[Pass, ...] = getattr(self, field)
            names = [one.name for one in sequence]
            if name in names:
                k = names.index(name) + (after is not None)
                return replace(self, **{field: (*sequence[:k], new, *sequence[k:])})
        raise self._unknown(name, replace(self, early=()))

    def without(self, name: str) -> Pipeline:
        """Return a pipeline in which no sequence has the pass of this name.

        Raises
        ------
        ValueError
            If no sequence has a pass of this name.
        """
        if name not in self.names:
            raise self._unknown(name, self)
        early, passes, final = (
            tuple(one for one in sequence if one.name != name)
            for sequence in (self.early, self.passes, self.final)
        )
        return Pipeline(early, passes, final)

    @staticmethod
    def _unknown(name: str, there: Pipeline) -> ValueError:
        return ValueError(f"no pass is called {name!r}; the passes are {', '.join(there.names)}")

    def run(
        self, region: Region, log: Log | None = None, debug: int = 0, on_change: Observer | None = None
    ) -> Region:
        """Run the passes on a region.

        Parameters
        ----------
        region : Region
        log : Log, optional
            Receives what was done and what was refused.
        debug : int
            Other than 0: verify the region before the first and after every pass that changed it.
        on_change : callable, optional
            See `Observer`.

        Returns
        -------
        Region
            The same object if nothing changed.
        """
        log = log if log is not None else Log()

        def changed(name: str, after: Region, notes: Sequence[Note]) -> None:
            if debug:
                _verify(after, name)
            if on_change is not None:
                on_change(name, after, notes)

        if debug:
            _verify(region, "the recorder")
        with dims.assuming(region.guards) if region.guards else nullcontext():
            settled: _Settled = {}
            if any(isinstance(stmt, Loop | While | Branch) for stmt in region.body):
                region = _fixpoint(self.early, region, log, settled, changed)
            region = _fixpoint(self.passes, region, log, settled, changed)
            for one in self.final:
                region = _apply(one, self.final, region, log, settled, changed)
            return region


#: What passes leave as it is, by the pass and the statements: the rest of the region, and what proofs go by.
_Settled = dict[tuple[int, int], object]


def _apply(
    one: Pass,
    sequence: tuple[Pass, ...],
    region: Region,
    log: Log,
    settled: _Settled,
    changed: Observer | None,
) -> Region:
    """Run one pass of a sequence."""
    said = len(log.notes)
    if one is NESTED:
        after = in_bodies(region, log, lambda body, inner: _fixpoint(sequence, body, inner, settled))
    else:
        after = one.fn(region, log)
    if changed is not None and after is not region:
        changed(one.name, after, [note for note in log.notes[said:] if note.kind == "done"])
    return after


def _fixpoint(
    passes: tuple[Pass, ...], region: Region, log: Log, settled: _Settled, changed: Observer | None = None
) -> Region:
    """Run the passes, one after the other and again, until none of them changes the region."""
    idle = 0  # number of passes in a row that changed nothing
    state = _state(region)
    for _ in range(MAX_ROUNDS):
        for one in passes:
            key = id(one), id(region.body)
            after = region
            if one is NESTED or settled.get(key) != state:
                log.forget(one.name)
                after = _apply(one, passes, region, log, settled, changed)
            if after is region:
                idle, settled[key] = idle + 1, state
            else:
                idle, region, state = 0, after, _state(after)
            if idle >= len(passes):
                return region
    return region


def _state(region: Region) -> object:
    """Return a value that is equal for regions on which passes must act alike: statements, arrays,
    assumptions."""
    used = frozenset[str]().union(*map(touched_arrays, region.body))
    based = {array.base for array in region.arrays}
    arrays = [a for a in region.arrays if a.name in used or a.base is not None or a.name in based]
    return region.body, arrays, region.symbols, region.guards, dims.known()


def _verify(region: Region, author: str) -> None:
    from dcarray.ir.verify import VerifyError, verify

    try:
        verify(region)
    except VerifyError as error:
        error.add_note(f"the region was made by {author}")
        raise
