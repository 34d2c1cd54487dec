"""`record`: frozen data classes with slots, whose methods are compiled when they are first called.

`dataclasses.dataclass` compiles six functions for every class at import, and its module imports `ast`, which
takes even longer.  The functions of `dataclasses` still accept a record as a data class; `replaced` does what
`dataclasses.replace` does, without that module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record", "replaced"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import replace as replaced
else:

    def record(*, frozen, slots, eq=True, weakref_slot=False):
        """Return a class decorator like `dataclasses.dataclass` with these arguments, of which ``frozen`` and
        ``slots`` must be True."""
        assert frozen and slots
        return lambda cls: _as_record(cls, eq, ("__weakref__",) * weakref_slot)

    def replaced(it, /, **changes):
        """Return a copy of a record with the values of some fields replaced."""
        cls = type(it)
        return cls(**{name: getattr(it, name) for name in cls._fields_of_record} | changes)

    _MISSING = object()

    class _Field:
        """A field's default value or factory, and whether comparison and ``repr`` use the field."""

        __slots__ = ("compare", "default", "factory", "kind", "repr")

        def __init__(self, kind, default):
            self.kind, self.default, self.factory = kind, default, _MISSING
            self.compare = self.repr = True
            if hasattr(default, "default_factory"):  # of ``dataclasses.field``
                from dataclasses import MISSING

                self.default = _MISSING if default.default is MISSING else default.default
                self.factory = _MISSING if default.default_factory is MISSING else default.default_factory
                self.compare, self.repr = default.compare, default.repr

    class _DataclassFields:
        """The attribute ``__dataclass_fields__`` of a record, made when it is first asked for."""

        def __get__(self, instance, owner):
            from dataclasses import _FIELD, MISSING, field

            fields = {}
            for name, one in owner._fields_of_record.items():
                given = {"default": one.default, "default_factory": one.factory}
                given = {key: MISSING if value is _MISSING else value for key, value in given.items()}
                fields[name] = it = field(compare=one.compare, repr=one.repr, **given)
                it.name, it.type, it._field_type = name, one.kind, _FIELD
            owner.__dataclass_fields__ = fields
            return fields

    def _as_record(cls, eq, extra):
        members = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        fields = {}
        for base in reversed(cls.__mro__[1:]):
            fields.update(getattr(base, "_fields_of_record", ()))
        inherited = set(fields)
        for name, kind in _annotations(cls).items():
            if not str(kind).startswith(("ClassVar", "typing.ClassVar")):
                fields[name] = _Field(kind, members.pop(name, _MISSING))
        members["__slots__"] = (*[name for name in fields if name not in inherited], *extra)
        own = {
            "_fields_of_record": fields,
            "__dataclass_fields__": _DataclassFields(),
            "__match_args__": tuple(fields),
        }
        members |= {**own, **_COMMON, **members}
        it = type(cls)(cls.__name__, cls.__bases__, members)
        it.__qualname__ = cls.__qualname__
        makers = {"__init__": _init, "__eq__": _eq, "__hash__": _hash} if eq else {"__init__": _init}
        for name, text in makers.items():
            if members.get(name) is None:  # __hash__ is None where there is an __eq__
                setattr(it, name, _compiled_later(it, name, text, fields))
        return it

    def _annotations(cls):
        if "__annotations__" in vars(cls):
            return vars(cls)["__annotations__"]
        from inspect import get_annotations

        return get_annotations(cls)

    def _compiled_later(owner, name, text, fields):
        def first(self, *args, **given):
            known = {"missing": _MISSING}
            for key, one in fields.items():
                known |= {f"set_{key}": getattr(owner, key).__set__}
                known |= {f"default_{key}": one.default, f"make_{key}": one.factory}
            exec(f"def {name}(self, {text(fields)}", known)
            known[name].__qualname__ = f"{owner.__qualname__}.{name}"
            setattr(owner, name, known[name])
            return known[name](self, *args, **given)

        return first

    def _init(fields):
        head, body = [], []
        for key, one in fields.items():
            by_factory = one.factory is not _MISSING
            value = f"make_{key}() if {key} is missing else {key}" if by_factory else key
            default = "missing" if by_factory else f"default_{key}"
            head.append(key if not by_factory and one.default is _MISSING else f"{key}={default}")
            body.append(f"    set_{key}(self, {value})")
        return "\n".join([", ".join(head) + "):", *body, "    return None"])

    def _eq(fields):
        mine, others = ("".join(f"{who}.{key}, " for key in _compared(fields)) for who in ("self", "other"))
        return (
            "other):\n    if self is other: return True\n    if other.__class__ is not self.__class__:"
            f" return NotImplemented\n    return ({mine}) == ({others})"
        )

    def _hash(fields):
        return f"):\n    return hash(({''.join(f'self.{key}, ' for key in _compared(fields))}))"

    def _compared(fields):
        return [key for key, one in fields.items() if one.compare]

    def _repr(self):
        shown = [f"{k}={getattr(self, k)!r}" for k, one in self._fields_of_record.items() if one.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _refuse(self, name, *value):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot change {name!r}")

    def _state(self):
        return [getattr(self, name) for name in self._fields_of_record]

    def _restore(self, state):
        for name, value in zip(self._fields_of_record, state, strict=True):
            object.__setattr__(self, name, value)

    _COMMON = {
        "__repr__": _repr,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getstate__": _state,
        "__setstate__": _restore,
    }
