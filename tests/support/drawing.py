"""Programs that draw random numbers, compiled and in Python, and their generators' states afterwards."""

import random
import textwrap
from typing import Any

import numpy as np
from written import written

import dcarray as dc

KINDS: dict[str, Any] = {
    "PCG64": np.random.default_rng,
    "PCG64DXSM": lambda seed: np.random.Generator(np.random.PCG64DXSM(seed)),
    "SFC64": lambda seed: np.random.Generator(np.random.SFC64(seed)),
    "MT19937": lambda seed: np.random.Generator(np.random.MT19937(seed)),
    "RandomState": np.random.RandomState,
}
LEGACY = np.random.mtrand._rand  # type: ignore[attr-defined]
PYTHONS = random._inst  # type: ignore[attr-defined]


def state_of(generator: Any) -> str:
    if isinstance(generator, random.Random):
        return repr(generator.getstate())
    if isinstance(generator, np.random.RandomState):
        return repr(sorted((k, repr(v)) for k, v in generator.get_state(legacy=False).items())) + repr(
            generator.get_state()[1].tolist()
        )
    return repr(generator.bit_generator.state)


def as_bits(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value).__name__, [as_bits(v) for v in value]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value).__name__, np.asarray(value).tobytes()


def outcome(f: Any, args: tuple[Any, ...], seeded: int) -> Any:
    """Results, arguments and states after a call, whose generators begin anew."""
    np.random.seed(seeded)
    random.seed(seeded)
    given = [a(seeded) if callable(a) else a.copy() if isinstance(a, np.ndarray) else a for a in args]
    try:
        with np.errstate(all="ignore"):
            result = as_bits(f(*given))
    except Exception as error:
        result = repr(error)
    kinds = np.random.Generator | np.random.RandomState | random.Random
    states = [state_of(a) for a in given if isinstance(a, kinds)]
    states.append(state_of(PYTHONS))
    left = [as_bits(a) for a in given if isinstance(a, np.ndarray)]
    return result, left, states, state_of(LEGACY), np.random.random(), np.random.standard_normal()


def agree(text: str, *args: Any, seeds: int = 3, served: bool | None = True, **names: Any) -> None:
    """Check that a program of a function ``f`` does compiled what it does in Python."""
    f = written(
        "import random\nimport numpy as np\nfrom numpy.random import rand, randint\n" + textwrap.dedent(text),
        **names,
    )
    g = dc.accelerate(f)
    for seed in range(seeds):
        before = dc.report().loops + dc.report().runs
        assert outcome(g, args, seed) == outcome(f, args, seed), seed
        assert served in (None, dc.report().loops + dc.report().runs > before), dc.report()


# Bodies of loops in which it depends on numbers whether ``rng.random()`` is called.
DRAWING = [
    "x = 1.0 if rng.random() > 0.5 and y < 0.5 else 0.0",
    "x = max(rng.random(), rng.random())",
    "x = rng.random() - rng.random() * rng.random()",
    "x = rng.random()\n    if x < 0.3:\n        continue\n    x = x + rng.random()",
    "x = rng.random()\n    if x > 0.99:\n        break",
    "x = 0.0\n    while rng.random() < y:\n        x = x + rng.random()",
    "x = 0.0\n    while x < 2.0 and rng.random() < y:\n        x = x + 0.5",
    "x = y\n    x += rng.random() * (x if rng.random() < 0.5 else -x)",
]


def drawing_loop(body: str) -> str:
    """The text of a function with a loop that has this body, which binds ``x``."""
    indented = body.replace("\n    ", "\n        ")
    head = "def f(rng, ys, out):\n    x = 0.0\n    for i in range(60):\n        y = ys[i]\n"
    return f"{head}        {indented}\n        out[i] = x\n    return x\n"
