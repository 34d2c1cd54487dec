"""Producers go into their consumers through any window, unless that would change the answer or cost more."""

from dcarray.ir.passes.portable.fuse import FUSE


def test_golden(golden):
    golden(FUSE)


def test_size_is_bounded(check):
    lines = ["t0[i] = add(x[i], c[0]) for i<8"]
    lines += [f"t{k}[i] = add(t{k - 1}[i], c[{k}]) for i<8" for k in range(1, 99)]
    temps = "\n".join(f"temp t{k}: f64[8]" for k in range(99))
    text = f"region() {{\nin x: f64[8]\nin c: f64[99]\nout y: f64[8]\n{temps}\n" + "\n".join(lines)
    text += "\ny[i] = sqrt(t98[i]) for i<8\n}"
    from dcarray.ir.passes import Log
    from dcarray.ir.text import parse

    log = Log()
    after = FUSE.fn(parse(text), log)
    assert len(after.body) == 2
    assert "would load from" in str(log)
