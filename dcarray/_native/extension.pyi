from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

REVISION: int
OBSERVED: int
CANDIDATE: int
ACTIVE: int
DEOPTIMISED: int
STRIKES: int
MOST_AT_ONCE: int
BLOCKED_HITS: int

# The constants of constants.h.
ANSWERED: tuple[str, ...]
SHAPED: int
FILLED: int
RANGED: int
SQUARE: int
LISTED: int
UNWRITTEN: int
ITSELF: int
ROWWISE: int
DRAWN: int
DRAWN_IN_PARTS: int
PLAIN_ARRAY: int
C_ORDER: int
WRAPPED_ARRAY: int
IDENTITY: int
OF_TYPE: int
EQUAL_INT: int
FUNCTION: int
TUPLE: int

def install(
    cls: type,
    ndarray: type[np.ndarray[Any, Any]],
    wrap: Callable[[Any], Any],
    limit: int,
    scalars: tuple[type, ...],
    store: type,
    recording: type,
    current: Callable[[], Any],
    dtypes: tuple[np.dtype[Any], ...],
    axes: object,
    config: dict[str, Any],
    locate: Callable[[Any], None],
    gather: Callable[..., Any],
) -> bool: ...
def record(name: str, inputs: tuple[Any, ...], out: Any = None) -> Any: ...
def enter(rec: Any, store: Any) -> int: ...
def commit(rec: Any, entry: tuple[Any, ...], warned_as: str | None = None) -> None: ...
def set_recorder(names: dict[str, Any], /) -> None: ...
def adopt_device_class(cls: type, /) -> None: ...
def index_window(shape: tuple[int, ...], index: Any, key: Any) -> Any: ...
def promote(code: CodeType, instruction: int, elements: int, always: bool) -> None: ...
def demote(code: CodeType, instruction: int, block: bool) -> None: ...
def begin_eager_period(seconds: float) -> bool: ...
def end_eager_period() -> None: ...
def expire_eager_period() -> None: ...
def in_eager_period() -> bool: ...
def make_triangles(function: Callable[..., Any], lower: bool) -> Callable[..., Any]: ...
def suspend(change: int) -> None: ...
def make_block_program(steps: tuple[tuple[Any, ...], ...], letters: str, parts: str, zero: float) -> Any: ...
def accumulate(ufunc: np.ufunc, x: Any, axis: int, out: Any, threads: int, /) -> bool: ...
def run_block_program(
    program: Any, shape: tuple[int, ...], arrays: tuple[Any, ...], threads: int
) -> tuple[int, ...] | None: ...
def make_evaluate_route(evaluate: Callable[..., Any]) -> Callable[..., Any]: ...
def make_short_run(
    given: int, others: tuple[str, ...], names: dict[str, Any],
    builtins: dict[str, Any], checks: tuple[tuple[Any, ...], ...], driver: Callable[..., int],
    serves: Callable[[tuple[int, ...]], tuple[Any, ...] | None],
    parameters: tuple[tuple[str, int, Any, Any], ...],
    results: tuple[tuple[str, int, Any, Any], ...], sizes: tuple[tuple[int, int, int, int], ...],
    firsts: tuple[int, ...], lock: Any, empty: Callable[..., Any], undo: bool,
    temporary: int, launches: tuple[tuple[int, int, bool, tuple[int, ...]], ...],
    failed: Callable[[Exception], tuple[()]], /,
) -> Any: ...  # fmt: skip
def make_object_run(
    python: Callable[..., Any], run: Any, names: dict[str, Any], count: int, others: tuple[int, ...],
    guards: tuple[Any, ...], owners: tuple[tuple[str, int, Any, Any], ...],
    functions: tuple[tuple[str, int, Any, Any], ...], reads: tuple[tuple[str, int, Any, Any], ...],
    written: tuple[tuple[str, int, Any, Any], ...], /,
) -> Any: ...  # fmt: skip
def end_rest() -> None: ...
def have_done(work: Callable[[], object], /) -> None: ...
def listen() -> object: ...
def rest(seconds: float, /) -> None: ...
def slice_window(shape: tuple[int, ...], index: Any, key: tuple[Any, ...]) -> Any: ...
def split(log: tuple[tuple[Any, ...], ...]) -> tuple[tuple[tuple[Any, ...], ...], tuple[int, ...]]: ...
def run_as_first(code: CodeType, names: dict[str, Any]) -> Any: ...
def call_loops(api: Any, ufuncs: dict[str, np.ufunc]) -> bool: ...
def set_routes(
    functions: dict[Any, Callable[..., Any]],
    methods: tuple[str, ...],
    questions: frozenset[Any],
    views: dict[Any, bool | None],
    answered: tuple[Any, ...],
    rest: Callable[..., Any],
) -> bool: ...
def make_route(function: Callable[..., Any], slow: Callable[..., Any]) -> Callable[..., Any]: ...
def make_creation_route(
    function: Callable[..., Any], slow: Callable[..., Any], kind: int
) -> Callable[..., Any]: ...
def route_instances(cls: type, name: str, method: str = ...) -> None: ...
def checks_hold(
    checks: tuple[tuple[Any, ...], ...], values: tuple[Any, ...], /
) -> tuple[int, ...] | None: ...
def read_numbers(
    rows: list[list[Any]], kind: type | None, width: int, array: np.ndarray[Any, Any], /
) -> bool: ...
def write_numbers(
    rows: list[list[Any]], kind: type | None, width: int, array: np.ndarray[Any, Any],
    before: np.ndarray[Any, Any], /,
) -> None: ...  # fmt: skip
def dict_fingerprint(names: dict[str, Any]) -> int: ...
def wrap(value: Any) -> Any: ...
def set_families(
    families: dict[int, Any], forget: Callable[[], int], adopt: Callable[[Any], Any]
) -> bool: ...
