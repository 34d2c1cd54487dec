"""The comparison of kernels' texts."""

from conformance import kernel_texts


def test_differences_name_what_is_gone_and_what_is_new():
    before = {"a": ["one\ntwo", "same"], "b": ["same"], "c": ["gone"]}
    after = {"a": ["same", "one\nthree"], "b": ["same", "same"], "c": []}
    lines = list(kernel_texts.differences(before, after, 3))
    assert lines[0] == "a: 1 of 2 kernels are gone, 1 are new"
    assert "-two" in lines and "+three" in lines
    assert lines[-1] == "c: 1 of 1 kernels are gone, 0 are new"
    assert not any(line.startswith("b:") for line in lines)
    assert len(list(kernel_texts.differences(before, after, 0))) == 2


def test_the_same_package_has_the_same_texts_twice():
    first, again = (kernel_texts.collect("sweeps 7") for _ in range(2))
    assert set(first) == {f"sweeps 7, {name}" for name in ("cpu", "c", "cuda", "opencl")}
    assert first == again and all(first.values())
