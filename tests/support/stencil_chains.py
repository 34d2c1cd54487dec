"""Random chains of stencils and element-wise statements over arrays of one rank, for streaming circuits."""

import random
from dataclasses import replace

import numpy as np

from dcarray.ir.nodes import Apply, Array, Compute, Index, Load, Region, Window
from dcarray.ir.windows import identity

I8 = np.dtype("i8")
BINARY = ["add", "subtract", "multiply", "maximum", "bitwise_xor"]


def stencil_chain(seed, scale=1, width=1, dtype=I8):
    """A region of statements over the interior of an array, which load elements of others up to one away
    along each axis; some only load elements at the same place, or make a smaller array.  The last axis is a
    multiple of ``width``."""
    rng = random.Random(seed)
    rank = rng.choice([1, 2, 2, 3])
    shape = tuple(rng.randint(5, 8) * (3 if rank == 1 else 1) * scale for _ in range(rank))
    shape = (*shape[:-1], shape[-1] * width)
    arrays = {
        name: Array(name, dtype, shape, role) for name, role in (("A", "inout"), ("B", "inout"), ("C", "in"))
    }
    body = []
    for number in range(rng.randint(1, 5)):
        kind = rng.choice(["stencil", "stencil", "pointwise", "smaller"])
        written = rng.choice("AB")
        same = [a.name for a in arrays.values() if a.shape == shape and a.name != written]
        reach = 0 if kind == "pointwise" else 1
        domain = tuple(n - 2 * reach for n in shape)

        def load(reach=reach, domain=domain, written=written, same=same):
            if rng.random() < 0.2:
                some = rng.choice(list(arrays.values()))
                if some.shape == domain and some.name != written:
                    return Load(identity(some), dtype)
            offsets = [rng.randint(0, 2 * reach) for _ in shape]
            index = tuple(Index(at, 1, axis) for axis, at in enumerate(offsets))
            return Load(Window(rng.choice(same), domain, index), dtype)

        value = load()
        for _ in range(rng.randint(1, 3)):
            value = Apply(rng.choice(BINARY), (value, load()), dtype)
        if kind == "smaller":
            made = Array(f"t{number}", dtype, domain, rng.choice(["temp", "out"]))
            arrays[made.name] = made
            target = identity(made)
        else:
            target = Window(written, domain, tuple(Index(reach, 1, k) for k in range(rank)))
        body.append(Compute(target, value))
    return Region((), tuple(arrays.values()), tuple(body))


def memory_of(region):
    """Values for the arrays that a region is given, with fractions where there can be."""
    rng = np.random.default_rng(1)
    return {
        a.name: (rng.integers(-9, 10, a.shape) * (0.37 if a.dtype.kind == "f" else 1)).astype(a.dtype)
        for a in region.arrays
        if a.role in ("in", "inout")
    }


def with_depth(network, name, depth):
    """A network of one stage with another depth of a FIFO."""
    (stage,) = network.stages
    fifos = tuple(replace(fifo, depth=depth) if fifo.name == name else fifo for fifo in stage.fifos)
    return replace(network, stages=(replace(stage, fifos=fifos),))


def with_one_fifo_too_small(network):
    """A network of one stage with depth 1 of its deepest FIFO, and the name of that."""
    (stage,) = network.stages
    deep = max(stage.fifos, key=lambda fifo: fifo.depth)
    return with_depth(network, deep.name, 1), deep.name
