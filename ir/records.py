"""`record`: frozen data classes with slots, whose methods are compiled when they are first called.

`dataclasses.dataclass` compiles six functions for every class at import, which takes longer than all else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import _FIELD, MISSING, Field, FrozenInstanceError, field
    from inspect import get_annotations

    def record(*, frozen, slots, eq=True, weakref_slot=False):
        """Return what `dataclasses.dataclass` with these arguments does, for classes that are ``frozen`` and
        have ``slots``."""
        assert frozen and slots
        return lambda cls: _made(cls, eq, ("__weakref__",) * weakref_slot)

    def _made(cls, eq, extra):
        members = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        fields = {}
        for base in reversed(cls.__mro__[1:]):
            fields.update(vars(base).get("__dataclass_fields__", ()))
        inherited = set(fields)
        for name, kind in get_annotations(cls).items():
            if not str(kind).startswith(("ClassVar", "typing.ClassVar")):
                default = members.pop(name, MISSING)
                fields[name] = one = default if isinstance(default, Field) else field(default=default)
                one.name, one.type, one._field_type = name, kind, _FIELD
        members["__slots__"] = (*[name for name in fields if name not in inherited], *extra)
        members |= {"__dataclass_fields__": fields, "__match_args__": tuple(fields), **_COMMON, **members}
        made = type(cls)(cls.__name__, cls.__bases__, members)
        made.__qualname__ = cls.__qualname__
        makers = {"__init__": _init, "__eq__": _eq, "__hash__": _hash} if eq else {"__init__": _init}
        for name, text in makers.items():
            if members.get(name) is None:  # __hash__ is None where there is an __eq__
                setattr(made, name, _made_later(made, name, text, fields))
        return made

    def _made_later(owner, name, text, fields):
        def first(self, *args, **given):
            known = {"missing": MISSING}
            for key, one in fields.items():
                known |= {f"set_{key}": getattr(owner, key).__set__}
                known |= {f"default_{key}": one.default, f"make_{key}": one.default_factory}
            exec(f"def {name}(self, {text(fields)}", known)
            known[name].__qualname__ = f"{owner.__qualname__}.{name}"
            setattr(owner, name, known[name])
            return known[name](self, *args, **given)

        return first

    def _init(fields):
        head, body = [], []
        for key, one in fields.items():
            made = one.default_factory is not MISSING
            value = f"make_{key}() if {key} is missing else {key}" if made else key
            default = "missing" if made else f"default_{key}"
            head.append(key if not made and one.default is MISSING else f"{key}={default}")
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
        shown = [f"{k}={getattr(self, k)!r}" for k, one in self.__dataclass_fields__.items() if one.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _refuse(self, name, *value):
        raise FrozenInstanceError(f"cannot change {name!r}")

    def _state(self):
        return [getattr(self, name) for name in self.__dataclass_fields__]

    def _restore(self, state):
        for name, value in zip(self.__dataclass_fields__, state, strict=True):
            object.__setattr__(self, name, value)

    _COMMON = {
        "__repr__": _repr,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getstate__": _state,
        "__setstate__": _restore,
    }
