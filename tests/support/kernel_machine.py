"""A slow executor of kernels that also watches for races, and NumPy's loops as it knows them."""

import itertools

import numpy as np

from dcarray.ir import dims, ops
from dcarray.lowering.kernel import nodes as K


class Machine:
    """Runs a kernel element by element.  ``arrays`` maps names to (flat memory, first element)."""

    def __init__(self, kernel, binding, arrays, symbols):
        self.buffers = {}
        for buffer, pointer in zip(kernel.buffers, binding.pointers, strict=True):
            if isinstance(pointer, K.Scratch):
                size = dims.evaluate(pointer.size, symbols)
                self.buffers[buffer.name] = (np.full(size, 77).astype(buffer.dtype), 0, buffer)
            else:
                flat, first = arrays[pointer.array]
                assert flat.dtype == buffer.dtype
                self.buffers[buffer.name] = (flat, first + dims.evaluate(pointer.offset, symbols), buffer)
        self.env = dict(zip(kernel.ints, (dims.evaluate(n, symbols) for n in binding.ints), strict=True))
        self.watch, self.kept = [], []
        self.thread = None  # the number of the thread of a block
        for phase, extent in zip(kernel.phases, binding.extents, strict=True):
            self.threads = phase.threads
            launched = dims.evaluate(extent, symbols)
            assert launched in (0, self.at(phase.extent))
            if launched:
                for let in phase.pre:
                    assert isinstance(let, K.Let)
                    self.run(let)
                self.iterate(phase.var, reversed(range(launched)), phase.body, True)
        if binding.then is not None:
            Machine(kernel, binding.then, arrays, symbols)

    def iterate(self, var, values, body, check, threads=False):
        assert var not in self.env
        seen = {}
        for number, value in enumerate(values):
            self.env[var] = value
            if threads:
                self.thread = value
            saved, buffers = dict(self.env), dict(self.buffers)
            if check:
                self.watch.append((set(), set()))
            for stmt in body:
                self.run(stmt)
            if check:
                reads, writes = self.watch.pop()
                for place in reads | writes:
                    others = seen.setdefault(place, [set(), set()])
                    others[place in writes].add(number)
                if self.watch:
                    self.watch[-1][0].update(reads)
                    self.watch[-1][1].update(writes)
            self.env = {name: self.env[name] for name in saved}
            self.buffers = buffers
        for place, (reads, writes) in seen.items():
            assert len(writes) < 2 and (not writes or reads <= writes), f"a race at {place}"
        self.env.pop(var, None)
        if threads:
            self.thread = None

    def at(self, affine):
        value = affine.const
        for term in affine.terms:
            value += (
                term.coef * (self.env[term.arg] if term.arg else 1) * (self.env[term.var] if term.var else 1)
            )
        return value

    def element(self, name, at, mode):
        flat, first, buffer = self.buffers[name]
        if isinstance(flat, list):
            assert self.thread is not None
            flat = flat[self.thread]
        assert mode in buffer.access
        place = first + at
        assert 0 <= place < flat.size, "out of bounds"
        if self.watch:
            self.watch[-1][mode == "w"].add((id(flat), place))
        return flat, place

    def value(self, expr):
        match expr:
            case K.Lit(bits, dtype):
                return np.frombuffer(bits, dtype)[0]
            case K.Index(at):
                return np.int64(self.at(at))
            case K.Local(name, dtype):
                assert self.env[name].dtype == dtype
                return self.env[name]
            case K.Elem(name, at, dtype, more):
                index = self.at(at) + sum(int(self.value(e)) * self.at(s) for e, s in more)
                flat, place = self.element(name, index, "r")
                assert flat.dtype == dtype
                return flat[place]
            case K.NumpyOp(name, args, dtype, loop):
                self.known(loop, name, tuple(a.dtype for a in args), dtype)
                return self.value(K.Op(name, args, dtype))
            case K.Op(name, args, dtype):
                values = [self.value(arg) for arg in args]
                if name == "cast":
                    return np.asarray(values[0]).astype(dtype)[()]
                if name == "complex":
                    made = np.empty((), dtype)
                    made.real, made.imag = values
                    return made[()]
                result = ops.OPS[name].reference(*values)
                assert result.dtype == dtype
                return dtype.type(result)

    def run(self, stmt):
        match stmt:
            case K.Let(name, value) | K.Declare(name, value):
                assert name not in self.env
                self.env[name] = self.value(value)
            case K.Update(name, op, value):
                self.env[name] = self.value(
                    K.Op(op, (K.Local(name, self.env[name].dtype), value), value.dtype)
                )
            case K.Assign(name, value):
                assert self.env[name].dtype == value.dtype
                self.env[name] = self.value(value)
            case K.Store(name, at, value):
                made = self.value(value)
                flat, place = self.element(name, self.at(at), "w")
                assert flat.dtype == made.dtype
                flat[place] = made
            case K.For(var, lower, upper, step, kind, body, _, floors):
                start, stop = max(map(self.at, (lower, *floors))), min(map(self.at, upper))
                self.iterate(var, range(start, stop, step), body, kind == "vector")
            case K.Repeat(head, cond, body):
                self.repeat(head, cond, body)
            case K.If(cond, then, orelse):
                for inner in then if self.value(cond) else orelse:
                    self.run(inner)
            case K.Stack(name, dtype, size, per_thread):
                made = [np.full(size, 77).astype(dtype) for _ in range(self.threads if per_thread else 1)]
                self.kept += made  # so that their ids stay their own
                self.buffers[name] = (made if per_thread else made[0], 0, K.Buffer(name, dtype, "rw"))
            case K.Threads(var, count, body):
                assert self.thread is None
                self.iterate(var, reversed(range(count)), body, True, True)
            case K.NumpyCall():
                self.call(stmt)
            case K.TransposeTile(write, to, across, read, at, along, rows, cols):
                count, width = min(map(self.at, rows)), min(map(self.at, cols))
                assert count > 0 and width > 0
                for r, c in itertools.product(range(count), range(width)):
                    source, first = self.element(read, self.at(at) + r * self.at(along) + c, "r")
                    target, place = self.element(write, self.at(to) + c * self.at(across) + r, "w")
                    assert source is not target
                    target[place] = source[first]

    def repeat(self, head, cond, body):
        while True:
            saved, buffers = dict(self.env), dict(self.buffers)
            for stmt in head:
                self.run(stmt)
            more = self.value(cond)
            for stmt in body if more else ():
                self.run(stmt)
            self.env, self.buffers = {name: self.env[name] for name in saved}, buffers
            if not more:
                return

    def known(self, loop, name, types, result):
        assert (self.env[loop.code], self.env[loop.data], loop.clears) == loop_of(name, types, result)

    def call(self, stmt):
        """NumPy's loop; an element that is written may be read for itself only."""
        types = tuple(row.dtype for row in stmt.reads)
        self.known(stmt.loop, stmt.name, types, stmt.write.dtype)
        count = min(map(self.at, stmt.count))
        assert count > 0
        reads = []
        for row in stmt.reads:
            flat, place = self.element(row.buffer, self.at(row.at), "r")
            for k in range(count):
                self.element(row.buffer, self.at(row.at) + k * row.step, "r")
            reads.append((flat, place, row.step))
            assert flat.dtype == row.dtype
        for k in range(count):
            flat, place = self.element(stmt.write.buffer, self.at(stmt.write.at) + k * stmt.write.step, "w")
            for other, first, step in reads:
                near = place - first
                assert other is not flat or near < 0 or near == k * step or near > (count - 1) * step
            values = [other[first + k * step] for other, first, step in reads]
            flat[place] = ops.OPS[stmt.name].reference(*values)


def loop_of(name, types, result):
    """Addresses that tell loops apart."""
    return abs(hash((name, types, result))), len(name), False
