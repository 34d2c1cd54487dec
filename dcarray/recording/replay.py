"""Replay: statements of one recording that are recorded again in another one, with all they depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcarray.core.fp_state import watched_flags
from dcarray.core.store import Store
from dcarray.ir.log_entries import Declaration, Statement

from .log import Recording


class Replay:
    """Statements of a recording, kept beyond its end.

    Parameters
    ----------
    rec : Recording
        The recording of the statements, which has not ended.
    entries : mapping of int to Statement
        The statements by their position in the recording, in order.
    memory : mapping of int to ndarray, optional
        The memory of computed slots whose stores are dead; also of slots that only these statements use, with
        larger numbers than those of the recording.
    """

    def __init__(
        self,
        rec: Recording,
        entries: Mapping[int, Statement],
        memory: Mapping[int, np.ndarray[Any, Any]] | None = None,
    ) -> None:
        self._entries = list(entries.values())
        self._sites = [rec.sites[k] for k in entries]
        declared = rec.declarations()
        args = [arg for entry in self._entries for arg in entry.args]
        self._scalars = {
            arg: (rec.views[rec.kinds[arg]][arg], rec.kinds[arg]) for arg in args if type(arg) is int
        }
        used = {arg[0] for arg in args if type(arg) is not int}
        used.update(slot for entry in self._entries for slot in entry.outs)
        self._stores: dict[int, Store] = {}
        for slot in sorted(used):
            self._take(rec, declared, slot, memory or {})

    def _take(
        self, rec: Recording, declared: list[Declaration], slot: int, memory: Mapping[int, Any]
    ) -> None:
        """Keep the store of a slot, or a new one if it is dead; its family's head comes first."""
        if slot in self._stores:
            return
        store = rec.store_at(slot) if slot < len(declared) else None
        head = declared[slot].head if slot < len(declared) else slot
        if head != slot:
            self._take(rec, declared, head, memory)
        if store is None and slot in memory:
            store = Store(memory[slot].shape, memory[slot].dtype)
            store.bind(memory[slot])
        elif store is None:
            entry = declared[slot]
            store = Store(entry.shape, np.dtype(entry.char), None if head == slot else self._stores[head])
        self._stores[slot] = store

    def held(self, slot: int) -> Store | None:
        """Return the store of a slot if the statements use it; else None."""
        return self._stores.get(slot)

    def record(self, rec: Recording) -> None:
        """Record the statements again."""
        scalars = {k: rec.scalar(value, char) for k, (value, char) in self._scalars.items()}
        slots: dict[int, int] = {}
        for k, store in self._stores.items():
            head = store.family
            if store.rec is rec:
                slots[k] = store.slot
            elif store is head and store.mem is None and store.remote is None:
                slots[k] = rec.declare_new(store)
            else:
                slots[k] = rec.declare(store)
            head.used = rec
        for entry, site in zip(self._entries, self._sites, strict=True):
            for k in entry.outs:
                head = self._stores[k].family
                head.dirty = rec
                rec.writes = rec.writes or head.mem is not None or head.remote is not None
            outs = tuple([slots[k] for k in entry.outs])
            args = tuple([scalars[a] if type(a) is int else (slots[a[0]], *a[1:]) for a in entry.args])
            rec.log.append(entry._replace(outs=outs, args=args).entry())
            rec.sites.append(site)
            rec.watched |= watched_flags(site[2])
