"""`Pass`, a named rewrite of regions, and `Log`, in which passes note what they did and what they refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from dcarray.ir.nodes import Region
from dcarray.ir.records import record


@record(frozen=True, slots=True)
class Note:
    """One line of the log: a change that a pass made or refused to make, and at which recorded call."""

    pass_name: str
    kind: Literal["done", "refused"]
    text: str
    loc: Any = None


@dataclass(slots=True)
class Log:
    """A log of passes: their changes and refusals, each note once."""

    notes: list[Note] = field(default_factory=list)
    _seen: set[Note] = field(default_factory=set)

    def done(self, pass_name: str, text: str, loc: Any = None) -> None:
        """Record that something was changed."""
        self._put(Note(pass_name, "done", text, loc))

    def refused(self, pass_name: str, text: str, loc: Any = None) -> None:
        """Record why something was left as it is."""
        self._put(Note(pass_name, "refused", text, loc))

    def forget(self, pass_name: str) -> None:
        """Drop the refusals of a pass that is about to look again."""
        stale = [note for note in self.notes if note.kind == "refused" and note.pass_name == pass_name]
        if stale:
            self._seen.difference_update(stale)
            self.notes = [note for note in self.notes if note in self._seen]

    def _put(self, note: Note) -> None:
        if note not in self._seen:
            self._seen.add(note)
            self.notes.append(note)

    def __str__(self) -> str:
        return "\n".join(f"{note.pass_name}: {note.kind}: {note.text}" for note in self.notes)


@record(frozen=True, slots=True)
class Pass:
    """A named rewrite of a region: a valid region in, a valid region out, and the *same object* when
    there was nothing to change."""

    name: str
    fn: Callable[[Region, Log], Region]
