"""The tracer: from the source of a loop or of statements, and entry values, to a region."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from dcarray.core.errors import Untraceable
from dcarray.core.store import COMPILED
from dcarray.core.strides import contiguous
from dcarray.ir import dims
from dcarray.ir.analysis.effects import reads, writes
from dcarray.ir.nodes import Array, Compute, Dim, Region, Symbol
from dcarray.ir.ops import const
from dcarray.ir.verify import VerifyError, verify
from dcarray.lowering.runtime.parsing import parse

from ..entry.entry_values import (
    CHARACTERS,
    ArrayType,
    Constant,
    EntryValue,
    Function,
    ListType,
    LoopDescription,
    PublicObject,
    Result,
    ScalarType,
    TracedLoop,
)  # fmt: skip
from ..entry.generators import Generator, GlobalGenerator
from ..entry.names import ENDED, RETURNED, START
from ..entry.sizes import LARGEST, SymbolicSize
from ..operations.arithmetic import Arithmetic
from ..operations.arrays import Arrays
from ..operations.calls import Calls
from ..operations.flag_checks import dead_input, with_checked_temporaries
from ..operations.indexing import basic_key
from ..operations.memory import Memory
from ..operations.public_objects import public_object
from ..operations.reductions import Reductions
from ..operations.scope import Scope
from ..operations.texts import Text
from ..operations.values import (
    INT_OR_FLOAT,
    Data,
    GrownList,
    Masked,
    NumberList,
    PythonOrNumpy,
    RaggedList,
    RandomGenerator,
    Stack,
    Unbound,
    is_array,
    is_int,
    is_number,
    kind_of,
    whole_window,
)
from ..syntax.appends import counting, growing_names
from ..syntax.identity import handed_on
from ..syntax.loop_exits import lowered, lowered_loop
from ..syntax.path_names import counted, is_stacked
from ..syntax.syntax_facts import stores
from ..syntax.tries import without_tries
from .branches import FALLS_THROUGH
from .dead_values import dead_targets
from .expressions import Frame
from .recursion import MOST_TRACES, Recursions

_INT, _MIXED = np.dtype(np.int64), np.dtype(complex)
_MOST_KINDS = 8  # times that statements are traced again since lists get numbers of other types


def trace(request: LoopDescription) -> TracedLoop:
    """Return the region of a loop, or of statements.

    Raises
    ------
    Untraceable
        If a part of it is not supported, or not proved to run without an error.
    """
    try:
        return _trace(request, False)
    except Untraceable as error:
        if not _symbols(request):
            raise
        reason = error
    try:  # names may have their types, or values at all, only if loops run
        return _trace(request, True)
    except Untraceable:
        raise reason from None


def _trace(request: LoopDescription, loops_run: bool) -> TracedLoop:
    """Trace the statements, once more if lists turn out to get numbers of other types than assumed."""
    kinds: dict[str, Any] = {}
    reason: Untraceable | None = None
    for _ in range(_MOST_KINDS):
        tracer = _tracer(request, loops_run)
        tracer.lists.kinds = dict(kinds)
        try:
            return replace(tracer.run_trace(), symbols=tuple(tracer.given.items()))
        except Untraceable as error:
            reason = reason or error
            if not tracer.lists.wanted.items() <= kinds.items():
                reason = None  # which comes of these types
        if tracer.lists.wanted.items() <= kinds.items():
            break
        kinds |= tracer.lists.wanted
    raise Untraceable("lists get numbers of too many types", request.line) if reason is None else reason


def _tracer(request: LoopDescription, loops_run: bool) -> Tracer:
    given = {f"n{k}": text for k, (text, _) in enumerate(_symbols(request))}
    least = dict(_symbols(request))
    scope = Scope(request.line, {symbol: (least[text], LARGEST) for symbol, text in given.items()})
    scope.loops_run = loops_run
    tracer = Tracer(request, Memory(scope, request.file, request.flagless))
    tracer.symbols = tuple(Symbol(symbol, least[text]) for symbol, text in given.items())
    tracer.sizes = {text: dims.symbol(symbol, least[text]) for symbol, text in given.items()}
    tracer.given = given
    return tracer


def _symbols(request: LoopDescription) -> tuple[tuple[str, int], ...]:
    """Return the names of the symbols, and the least value of each."""
    return (*request.symbols, (START, -LARGEST)) if request.resumed else request.symbols


class Tracer(Recursions):
    """The tracer of a loop.

    Attributes
    ----------
    symbols : tuple of Symbol
        The symbolic sizes of the region.
    given : dict of str to str
        The Python expressions of the symbols' values, by their names.
    """

    symbols: tuple[Symbol, ...] = ()
    given: Mapping[str, str] = MappingProxyType({})

    def __init__(self, request: LoopDescription, memory: Memory) -> None:
        super().__init__(Calls(Reductions(Arrays(Arithmetic(memory)))))
        self.judged = set()
        self.sizes: dict[str, Dim] = {}  # what the names of symbolic sizes are
        self.request = request
        self._entries = dict(request.names)
        self._values: dict[str, Any] = {}
        self._names: dict[int, Any] = {}
        self._generators: dict[str, RandomGenerator] = {}
        self.functions, self.traces_left = {}, iter(range(MOST_TRACES))
        self._copies: dict[str, Data] = {}  # of arrays that are other geometries of memory, as results

    def run_trace(self) -> TracedLoop:
        request = self.request
        try:
            body = without_tries(parse(request.source).body)
        except SyntaxError as error:
            raise self.scope.fail("the source is not understood") from error
        if ENDED in request.live:  # a site's loop, after which the program returns
            (loop,) = body
            assert isinstance(loop, ast.For | ast.While)
            body, _ = lowered_loop(loop, ENDED, of_site=True)
        else:
            body = lowered(body)
        if may_not_end(request.source, request.names):
            self.memory.track_checks()
        self.calls.draws.allowed = True
        body, growing = counting(body)
        names = {name: self._entry(name) for name in self._entries}
        frame = Frame(dict(names), {}, request.file, request.line - 1, growing=growing_names(body))
        if request.resumed:
            self.start = self.sizes[START]
        returned = self.statements(body, frame, growing)
        bound = stores(*body) | growing.keys() | {name for name in names if is_stacked(name)}
        bound &= request.live & frame.names.keys()
        results = [(name, self._result(name, frame.names[name])) for name in sorted(bound)]
        if returned is not FALLS_THROUGH:
            results.append((RETURNED, self._returned(RETURNED, returned)))
        new = {name for name, result in results if result.is_new()}
        new |= {name for name, value in request.names if isinstance(value, ListType)}
        if request.by_identity and (kept := new & handed_on(request.source, RETURNED)):
            raise self.scope.fail(f"{min(kept)} may be an object of before, and the file compares identity")
        region, inputs = self.region()
        return TracedLoop(region, inputs, tuple(results), self.memory.may_raise, polls=self.memory.polls)

    def statements(self, body: list[ast.stmt], frame: Frame, growing: Mapping[str, int]) -> Any:
        self.outermost = body[-1 if ENDED in self.request.live else 0]
        self._dead_targets = dead_targets(body, self.request.live)
        if not growing:
            return self.block(body, frame, self.request.live)
        assert isinstance(self.outermost, ast.For)
        self.begin_growing(self.outermost, growing, frame)
        returned = self.block(body, frame, self.request.live | frozenset(map(counted, growing)))
        self.end_growing(growing, frame)
        return returned

    # ---- entry values -------------------------------------------------------------------------------
    def _entry(self, name: str) -> Any:
        """Return the value that a name has when the loop begins."""
        if is_stacked(name) and name not in self._values:
            self._values[name] = self.stack_of(self._plain_entry(name), name)
            return self._values[name]
        return self._plain_entry(name)

    def _plain_entry(self, name: str) -> Any:
        if name not in self._values:
            value = self._entries[name]
            if isinstance(value, ArrayType):
                own = self._array(name, value) if value.same is None else self._entry(value.same)
                self._values[name] = own
            elif isinstance(value, Generator):
                self._values[name] = RandomGenerator(name, value)
            elif isinstance(value, ListType) and value.dtype == CHARACTERS:
                self._values[name] = Text(self._array(name, ArrayType(CHARACTERS, value.shape, (), False)))
            elif isinstance(value, ListType):
                mixed = value.mixed or self.lists.kinds.get(name) == INT_OR_FLOAT
                dtype = _MIXED if mixed else value.dtype
                shape = value.shape[1:] if value.ragged else value.shape
                array = self._array(name, ArrayType(dtype, shape, ()))
                self._values[name] = NumberList(array, False, mixed, name, value.of_tuples)
                if value.ragged:
                    places = ArrayType(_INT, value.shape[:1], ())
                    parts = [self._array(f"{name}.{part}", places) for part in ("starts", "lengths")]
                    self._values[name] = self.lists.ragged(self._values[name], *parts)
            else:
                self._values[name] = self._known_value(value, name)
        return self._values[name]

    def _known_value(self, value: EntryValue, text: str) -> Any:
        """Return the traced value of a non-array with the Python expression ``text``."""
        if isinstance(value, ScalarType):
            weak = {"f": float, "c": complex, "b": bool}.get(value.dtype.kind) if value.weak else None
            if value.dtype.char not in COMPILED or (value.weak and weak is None):
                return Unbound(f"{text} is a scalar that does not compile")
            return self.memory.entry_scalar(text, value.dtype, weak)
        known = value.value if isinstance(value, Constant) else None
        if isinstance(known, tuple | list):
            return type(known)(self._known_value(v, f"{text}[{k}]") for k, v in enumerate(known))
        if isinstance(known, dict):
            return {key: self._known_value(v, f"{text}[{key!r}]") for key, v in known.items()}
        return self.constant(value)

    def _size(self, value: SymbolicSize) -> Dim:
        total: Dim = value.constant
        for name, factor in value.factors:
            total = total + factor * self.sizes[name]
        return dims.simplify(total)

    def _array(self, name: str, value: ArrayType) -> Any:
        if value.dtype.char not in COMPILED or not value.dtype.isnative:
            return Unbound(f"{name} has the dtype {value.dtype}")
        shape = tuple([self._size(n) if isinstance(n, SymbolicSize) else n for n in value.shape])
        in_c_order = not value.strides or contiguous(shape, value.strides)
        array = self.memory.name(name)
        self.memory.declare(Array(array, value.dtype, shape, "in", None if in_c_order else value.strides))
        self.memory.inputs[array] = name
        if not value.writeable:
            self.memory.unwriteable.add(array)
        return self.memory.view(whole_window(array, shape), value.dtype, name)

    def constant(self, value: EntryValue) -> Any:
        """Return the traced value of a global name or default of a function."""
        if isinstance(value, PublicObject):
            number = public_object(value.name)
            return number if isinstance(number, float) else value
        if isinstance(value, Function):
            return value
        if isinstance(value, GlobalGenerator):
            return self._generators.setdefault(value.name, RandomGenerator(value.name, value.kind))
        if isinstance(value, SymbolicSize):
            missing = [name for name in value.names if name not in self.sizes]
            return Unbound(f"no argument has the size {missing[0]}") if missing else self._size(value)
        if isinstance(value, Constant):
            plain = value.value
            if isinstance(plain, tuple | list):
                return type(plain)(self.constant(v) for v in plain)
            return plain
        return Unbound("a global array or scalar")

    # ---- results ------------------------------------------------------------------------------------
    def _returned(self, name: str, value: Any) -> Result:
        """Return the description of the returned value."""
        if type(value) is tuple:
            parts = tuple([self._returned(f"{name}{k}", v) for k, v in enumerate(value)])
            return Result("tuple", value=parts)
        if is_array(value):
            value = self.memory.array(value, name)
        return self._result(name, value)

    def _result(self, name: str, value: Any) -> Result:
        if isinstance(value, Unbound) or (type(value) is float and value != value):
            is_nan = f"{name} is a NaN, which Python finds by identity"
            raise self.scope.fail(value.reason if isinstance(value, Unbound) else is_nan)
        if is_int(value) and type(value) is not int:
            value = self.memory.value(self.math.expr(value, _INT), scalar=True, weak=int)
        if is_array(value):
            if value.entry_name:
                return Result("alias", value.entry_name)
            return self._result_array(name, value)
        if isinstance(value, RaggedList) or (isinstance(value, NumberList) and value.array.entry_name):
            return Result("alias", value.name if isinstance(value, RaggedList) else value.array.entry_name)
        if isinstance(value, Stack):
            value = GrownList(value.items, self.math.length(value))
        if isinstance(value, NumberList | GrownList):
            return self._result_list(name, value)
        if isinstance(value, Data):
            return Result("scalar", self._result_scalar(name, value), weak=value.weak is not None)
        if isinstance(value, PythonOrNumpy) and value.is_numpy is not None:
            of_type = kind_of(value.python).__name__, self._result_scalar(name, value.is_numpy)
            weak = value.numpy.weak is not None
            return Result("either", self._result_scalar(name, value.numpy), weak=weak, value=of_type)
        if (is_number(value) and not isinstance(value, Masked)) or value is None or isinstance(value, str):
            return Result("value", value=value)
        if type(value) is tuple:
            known = [entry for entry, one in self._values.items() if one is value]
            if known:
                return Result("alias", known[0])
            return self._returned(name, value)
        raise self.scope.fail(f"{name} has a value that compiled code cannot return")

    def _result_list(self, name: str, value: NumberList | GrownList) -> Result:
        """Return the description of a new list; each has one name."""
        items = value.items if isinstance(value, GrownList) else value
        window = items.array.window
        array = None if window is None else self.memory.arrays[window.array]
        if array is None or array.role != "temp" or window != whole_window(array.name, array.shape):
            raise self.scope.fail(f"{name} has a value that compiled code cannot return")
        self.memory.arrays[array.name] = replace(array, role="out")
        count = self._result_scalar(name, value.count) if isinstance(value, GrownList) else None
        kind = "mixed list" if items.mixed else "list"
        return Result(kind, array.name, not items.of_numpy, count, items.of_tuples)

    def _result_scalar(self, name: str, value: Data) -> str:
        """Return the name of a new output without axes, to which a new statement stores the value."""
        array = self.memory.new((), value.dtype, name, "out")
        self.memory.emit(Compute(array, value.expr, loc=self.memory.loc))
        return array.array

    def _result_array(self, name: str, value: Data) -> Result:
        """Return the description of an array: new memory (role "out"), a view of it or of an entry value."""
        window = value.window
        assert window is not None
        array = self.memory.arrays[window.array]
        if value.readonly:
            raise self.scope.fail(f"{name} is a view")
        if array.name in self.memory.joined:
            raise self.scope.fail(f"{name} depends on a condition")
        if array.name in self.memory.reordered:
            raise self.scope.fail(f"{name} may lie in another order than C: return a copy of it, x.copy()")
        if array.base is not None:  # all that share its memory share that of one result
            if array.name not in self._copies:
                whole = self.memory.view(whole_window(array.name, array.shape), array.dtype)
                self._copies[array.name] = self.memory.copy(whole, name)
            copied = self._copies[array.name].window
            assert copied is not None
            return self._result_array(
                name, self.memory.view(replace(window, array=copied.array), value.dtype)
            )
        if array.role in ("in", "inout"):
            base = Result("alias", self.memory.inputs[array.name])
            if not isinstance(self._entries.get(base.name), ArrayType):
                raise self.scope.fail(f"{name} is a view")
        else:
            base = Result("array", array.name)
            self.memory.arrays[array.name] = replace(array, role="out")
        if base.kind == "array" and window == whole_window(array.name, array.shape):
            return base
        key = basic_key(window, array.shape)
        if key is None:
            raise self.scope.fail(f"{name} is a view")
        return Result("view", value=(base, *key))

    def region(self) -> tuple[Region, tuple[str, ...]]:
        """Return the traced region, and for each of its inputs the name or expression of the value."""
        region, inputs = self._region()
        try:
            verify(region)
        except VerifyError as error:
            raise self.scope.fail(f"the region is not valid: {error}") from error
        return region, inputs

    def _region(self) -> tuple[Region, tuple[str, ...]]:
        body = tuple(self.memory.block)
        for first in filter(None, (self.memory.checks_passed, self.memory.draws)):
            body = (Compute(first, const(True, np.bool_), loc=self.memory.loc), *body)
        body = with_checked_temporaries(body, [*self.memory.arrays.values()], self.request.watched)
        read, written = [{w.array for stmt in body for w in of(stmt)} for of in (reads, writes)]
        if any(self.memory.changed & sources for sources in self.memory.joined.values()):
            reason = "an array changes that has another name, if a condition holds: take a copy for that name"
            raise self.scope.fail(reason)
        if written & self.memory.assumed_unwritten:
            raise self.scope.fail("an array is read at places that depend on data, and written")
        arrays, inputs, texts = [], [], self.memory.inputs
        taken = [texts[name] for name in self.memory.arrays if name in texts and name in read | written]
        for name, array in self.memory.arrays.items():
            unused = name not in read and name not in written and array.role != "out"
            if unused and not dead_input(texts.get(name, ""), taken):
                continue
            if name in texts:
                inputs.append(texts[name])
                array = replace(array, role="inout") if name in written else array
            arrays.append(array)
        guards, functions = tuple(self.scope.guards), self.used_functions(body)
        return Region(self.symbols, tuple(arrays), body, guards, functions), tuple(inputs)


def may_not_end(source: str, names: tuple[tuple[str, EntryValue], ...]) -> bool:
    """Whether there is a ``while``, in the source or in functions that it calls."""
    called = (value for _, value in names if isinstance(value, Function))
    return "while" in source or any(may_not_end(one.source, one.names) for one in called)
