"""Which calls the tracer may understand, judged by names in the source alone, before anything is imported.

A loop or a run of statements that calls something else, `print` say, is not worth a site; the parts beside
that call are.  The lists hold what the tracer has methods for (a test compares them).
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence

from .appends import every_growing_call
from .syntax_facts import NONE, Names, facts, walk

__all__ = [
    "BUILTINS", "CMATH", "DRAWS", "MATH", "METHODS", "NUMPY", "RANDOM", "KnownCalls", "imported_modules",
]  # fmt: skip

BUILTINS = frozenset((
    "abs", "all", "any", "bool", "complex", "divmod", "enumerate", "float", "int", "len", "list", "max",
    "min", "pow", "range", "reversed", "round", "slice", "sum", "zip",
))  # fmt: skip
METHODS = frozenset((
    "accumulate", "all", "any", "argmax", "argmin", "astype", "at", "clip", "conjugate", "copy",
    "cumprod", "cumsum", "diagonal", "dot", "fill", "flatten", "get", "item", "items", "keys", "max",
    "mean", "min", "outer", "prod", "ravel", "reduce", "reshape", "round", "squeeze", "std", "sum",
    "swapaxes", "trace", "transpose", "values", "var",
))  # fmt: skip
DRAWS = frozenset((
    "beta", "binomial", "chisquare", "choice", "exponential", "gamma", "geometric", "gumbel", "integers",
    "laplace", "logistic", "lognormal", "normal", "pareto", "poisson", "power", "rand", "randint", "randn",
    "random", "random_sample", "ranf", "rayleigh", "sample", "standard_cauchy", "standard_exponential",
    "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald",
    "weibull",
))  # fmt: skip
RANDOM = frozenset((
    "betavariate", "choice", "expovariate", "gammavariate", "gauss", "getrandbits", "lognormvariate",
    "normalvariate", "paretovariate", "randint", "random", "randrange", "triangular", "uniform",
    "vonmisesvariate", "weibullvariate",
))  # fmt: skip
MATH = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh",
    "degrees", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fmod", "isfinite", "isinf", "isnan",
    "log", "log10", "log1p", "log2", "pow", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
))  # fmt: skip
CMATH = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "isfinite", "isinf", "isnan",
    "log", "log10", "phase", "polar", "rect", "sin", "sinh", "sqrt", "tan", "tanh",
))  # fmt: skip
_UFUNCS = frozenset((
    "abs", "absolute", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "cbrt", "ceil", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees",
    "divide", "equal", "exp", "exp2", "expm1", "fabs", "float_power", "floor", "floor_divide", "fmax",
    "fmin", "fmod", "gcd", "greater", "greater_equal", "heaviside", "hypot", "invert", "isfinite", "isinf",
    "isnan", "lcm", "ldexp", "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2",
    "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
    "minimum", "mod", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "power",
    "rad2deg", "radians", "reciprocal", "remainder", "right_shift", "rint", "sign", "signbit", "sin",
    "sinh", "spacing", "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc",
))  # fmt: skip
_SCALARS = frozenset((
    "bool", "bool_", "byte", "cdouble", "complex128", "complex64", "csingle", "double", "float16",
    "float32", "float64", "half", "int16", "int32", "int64", "int8", "int_", "intc", "intp", "long",
    "short", "single", "ubyte", "uint", "uint16", "uint32", "uint64", "uint8", "uintc", "uintp",
    "ulong", "ushort",
))  # fmt: skip
_FUNCTIONS = frozenset((
    "all", "amax", "amin", "angle", "any", "arange", "argmax", "argmin", "around", "array", "asarray",
    "ascontiguousarray", "average", "bincount", "clip", "column_stack", "concatenate", "copy",
    "count_nonzero", "cross", "cumprod", "cumsum", "diag", "diagonal", "diff", "dot", "empty",
    "empty_like", "expand_dims", "eye", "flip", "full", "full_like", "hstack", "imag", "inner",
    "linalg.cholesky", "linalg.det", "linalg.inv", "linalg.norm", "linalg.solve", "linspace", "matmul",
    "max", "mean", "meshgrid", "min", "ndarray", "ndindex", "ones",
    "ones_like", "outer", "pad", "prod", "ravel", "real", "reshape", "roll", "round", "squeeze", "stack",
    "std", "sum", "swapaxes", "trace", "transpose", "trapezoid", "tril", "triu", "var", "vstack", "where",
    "zeros", "zeros_like",
))  # fmt: skip
NUMPY = _FUNCTIONS | _UFUNCS | _SCALARS
_NOT_INLINED = frozenset((
    ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.TryStar, ast.With,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom,
))  # fmt: skip
_BY_MODULE = {
    "numpy": NUMPY, "numpy.random": DRAWS, "math": MATH, "cmath": CMATH, "random": RANDOM,
    "functools": frozenset({"reduce"}),
}  # fmt: skip
_OF_VALUES = METHODS | DRAWS | RANDOM
_MAKERS = frozenset(("argsort", "choice", "flatten", "nonzero", "permutation", "permuted", "ravel", "tolist"))
_ITERATORS = frozenset(("load", "memmap", "ndenumerate", "ndindex", "nditer"))


class KnownCalls:
    """The calls that the tracer may understand in code with certain global names.

    Parameters
    ----------
    modules : mapping of str to str
        The names of modules, by the global names that are bound to them.
    functions : mapping of str to ast.FunctionDef
        The program's functions, by their global names.
    methods : mapping of str to sequence of ast.FunctionDef, optional
        The methods of the program's classes, by name.
    unknown : frozenset of str, optional
        Global names whose calls are not understood, such as classes: compiled code cannot make objects.
    """

    def __init__(
        self, modules: Mapping[str, str], functions: Mapping[str, ast.FunctionDef],
        methods: Mapping[str, Sequence[ast.FunctionDef]] | None = None, unknown: Names = NONE,
    ) -> None:  # fmt: skip
        self._modules, self._functions, self._methods = modules, functions, methods or {}
        self._unknown = unknown
        self._known: dict[str, bool] = {}
        self._known_methods: dict[str, bool] = {}

    def look(self) -> None:
        """Look at all functions now, before their trees change."""
        for name in self._functions:
            self._is_known_name(name)
        for name in self._methods:
            self.is_method(name)

    def all_known(self, *nodes: ast.AST, without: Sequence[ast.AST] = ()) -> bool:
        """Whether all calls in these nodes may be understood.  Not looked at are the nodes ``without``, calls
        that make exceptions, and handlers of exceptions."""
        calls: list[ast.Call] = []
        excluded: list[ast.AST] = []
        for root in nodes:
            for node in walk(root):
                if isinstance(node, ast.Call):
                    calls.append(node)
                elif isinstance(node, ast.Raise | ast.ExceptHandler):
                    excluded.append(node)
                elif isinstance(node, ast.Assert) and node.msg is not None:
                    excluded.append(node.msg)
        apart = {id(node) for root in excluded for node in walk(root)} | {id(node) for node in without}
        return all(self._is_known(call.func) for call in calls if id(call) not in apart)

    def makes_items(self, expression: ast.expr) -> bool:
        """Whether an expression makes an array or a list by calls that are not compiled, or a part of one."""
        match expression:
            case ast.Subscript(value) | ast.Attribute(value, "T"):
                return self.makes_items(value)
            case ast.Call(ast.Name("sorted" | "list" as name)):
                return name not in self._functions
            case ast.Call(ast.Attribute(owner, name)):
                root = owner
                while isinstance(root, ast.Attribute):
                    root = root.value
                module = self._modules.get(root.id) if isinstance(root, ast.Name) else None
                if module is not None:
                    return module.partition(".")[0] == "numpy" and name not in _ITERATORS
                return name in _MAKERS or (name in METHODS and self.makes_items(owner))
        return False

    def is_numpys(self, node: ast.Attribute) -> bool:
        """Whether an attribute is one of the module numpy, such as ``np.sin``."""
        return isinstance(node.value, ast.Name) and self._modules.get(node.value.id) == "numpy"

    def _is_known(self, callee: ast.expr) -> bool:
        if isinstance(callee, ast.Name):
            return self._is_known_name(callee.id)
        if isinstance(callee, ast.Subscript):  # of functions in a tuple, say
            return True
        if not isinstance(callee, ast.Attribute):
            return False
        path = [callee.attr]
        owner = callee.value
        while isinstance(owner, ast.Attribute):
            path.append(owner.attr)
            owner = owner.value
        module = self._modules.get(owner.id) if isinstance(owner, ast.Name) else None
        if module is None:
            return callee.attr in _OF_VALUES or self.is_method(callee.attr)
        known = _BY_MODULE.get(module, frozenset())
        if ".".join(reversed(path)) in known or (
            module == "numpy" and path[1:] == ["random"] and path[0] in DRAWS
        ):
            return True
        return (
            len(path) == 2 and path[1] in known and path[0] in ("accumulate", "at", "outer", "reduce")
        )  # of a ufunc

    def _is_known_name(self, name: str) -> bool:
        if name in self._unknown:
            return False
        if name not in self._functions:  # else it may be a parameter, or imported
            return name in BUILTINS or not hasattr(builtins, name)
        if name not in self._known:
            self._known[name] = True  # by itself
            self._known[name] = self._may_inline(self._functions[name])
        return self._known[name]

    def is_method(self, name: str) -> bool:
        """Whether a class of the program has a method of this name that may be inlined."""
        if name in _OF_VALUES or name not in self._methods:
            return False
        if name not in self._known_methods:
            self._known_methods[name] = False
            self._known_methods[name] = any(map(self._may_inline, self._methods[name]))
        return self._known_methods[name]

    def _may_inline(self, function: ast.FunctionDef) -> bool:
        given = function.args
        return (
            all(_is_plain(decorator) for decorator in function.decorator_list)
            and not (given.vararg or given.kwarg)
            and all(facts(stmt).kinds.isdisjoint(_NOT_INLINED) for stmt in function.body)
            and self.all_known(*function.body, without=every_growing_call(function.body))
        )


def _is_plain(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id == "staticmethod"


def imported_modules(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """Return the names of the modules that ``import`` statements bind, by the names in the program."""
    modules: dict[str, str] = {}
    for node in nodes:
        for one in node.names if isinstance(node, ast.Import) else ():
            first = one.name.partition(".")[0]
            modules[one.asname or first] = one.name if one.asname else first
    return modules
