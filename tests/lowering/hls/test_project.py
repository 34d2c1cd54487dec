"""Projects for the tools of FPGA vendors: C simulation, host programs, errors."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dcarray as dc
from dcarray.__main__ import main
from dcarray.ir.parse import parse
from dcarray.lowering.cpu.c.target import compiler
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.nodes import Buffer
from dcarray.lowering.hls.project.boards import BOARDS, board_of
from dcarray.lowering.hls.project.placement import placed

ROOT = Path(__file__).resolve().parents[3]
VENDORS = ROOT / "tests" / "support" / "vendor_headers"
SYSTEM = len(compiler()) == 1
CXX = [*compiler(), *(["-x", "c++"] if SYSTEM else ["-xc++"])]
LDLIBS = ["-lstdc++", "-lm"] if SYSTEM else ["-lc++"]


def smooth(x, y, weight, count=3):
    y[1:-1] = weight * (x[:-2] + x[2:]) + y[1:-1]
    return np.sum(y, axis=1), (count * x[2:]).astype(np.int32)


def example():
    rng = np.random.default_rng(3)
    return rng.random((8, 5)), rng.random((8, 5)), np.float64(0.25)


@pytest.fixture(scope="module", params=["vitis", "intel"])
def written(request, tmp_path_factory):
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    folder = tmp_path_factory.mktemp(request.param) / "project"
    return dc.export(smooth, *example(), target=request.param, path=folder)


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def csim(folder):
    return run(["make", "-C", str(folder), "csim", f"CXX={' '.join(CXX)}", f"LDLIBS={' '.join(LDLIBS)}"])


def test_c_simulation_gives_what_the_function_does(written):
    x, y, weight = example()
    means, whole = smooth(x, y, weight)
    expected = {path.stem: np.load(path) for path in (written.path / "data" / "expected").iterdir()}
    assert len(expected) == 3
    np.testing.assert_array_equal(expected["y"], y)
    for result in (means, whole):
        assert any(found.shape == result.shape and (found == result).all() for found in expected.values())
    done = csim(written.path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": right") == 3 and "passed" in done.stdout


def test_c_simulation_finds_a_wrong_kernel(written, tmp_path):
    folder = tmp_path / "wrong"
    shutil.copytree(written.path, folder, ignore=shutil.ignore_patterns("build"))
    (kernel,) = (path for path in (folder / "kernel").iterdir() if path.suffix in (".cpp", ".cl"))
    text = kernel.read_text()
    assert " * " in text
    kernel.write_text(text.replace("(v0 * ", "(v0 + "))
    done = csim(folder)
    assert done.returncode and "WRONG" in done.stdout and "FAILED" in done.stdout


def test_missing_data_is_named(written, tmp_path):
    folder = tmp_path / "empty"
    shutil.copytree(written.path, folder, ignore=shutil.ignore_patterns("build"))
    (folder / "data" / "x.npy").write_bytes((folder / "data" / "x.npy").read_bytes()[:-8])
    done = csim(folder)
    assert done.returncode and "data/x.npy is no array of 320 bytes" in done.stderr


def test_host_programs(written):
    """XRT's runs with a stand-in for the board, OpenCL's compiles with the specification's declarations."""
    folder, host = written.path, written.path / "host" / "host.cpp"
    flags = [
        "-std=c++17", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused", f"-I{VENDORS}",
        f"-I{folder / 'test'}",
    ]  # fmt: skip
    if written.target == "intel":
        done = run([*CXX, *flags, "-fsyntax-only", str(host)])
        assert done.returncode == 0, done.stderr
        return
    flags += [f"-I{folder / 'kernel'}", f"-I{folder / 'test' / 'csim'}", "-include", "smooth.h"]
    sources = [str(host), str(folder / "test" / "csim" / "processes.cpp")]
    program = [
        *CXX, *flags, "-DPROCESSES=smooth_processes", *sources, "-o", str(folder / "host_program"),
        *LDLIBS,
    ]  # fmt: skip
    done = run(program)
    assert done.returncode == 0, done.stderr
    done = run([str(folder / "host_program"), "circuit.xclbin", str(folder)])
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


def test_texts_are_the_same_each_time(written):
    again = dc.export(smooth, *example(), target=written.target)
    assert again.files == written.files and again.path is None
    kernel = next(text for name, text in again.files.items() if name.startswith("kernel/smooth.c"))
    line = smooth.__code__.co_firstlineno + 1
    assert f"// test_project.py:{line}: y[i+1,j] = " in kernel
    assert not any(" \n" in text for text in again.files.values() if isinstance(text, str))


def test_ports_and_banks():
    """Each port has a bank, and the largest buffers lie in different ones."""
    made = dc.export(smooth, *example(), target="vitis", board="u280", clock=250)
    lines = made.files["connectivity.cfg"].splitlines()
    ports = [line.split(".")[1].split(":")[0] for line in lines if line.startswith("sp=")]
    assert [f"*{port}" in made.files["kernel/smooth.cpp"] for port in ports] == [True] * len(ports)
    assert len({line.split(":")[1] for line in lines if line.startswith("sp=")}) == len(ports)
    assert "kernel_frequency=250" in made.files["kernel.cfg"] and "-period 4.000" in made.files["hls.tcl"]
    assert "xilinx_u280" in made.files["Makefile"]


def row(x, y, a):
    return a * x[:, 1:-1] + y[:, 2:], np.sum(x)


@pytest.mark.parametrize("target", ["vitis", "intel"])
def test_streams_are_as_wide_as_ports(target, tmp_path):
    """Sixteen float32 at a time, eight float64, and as many as asked for."""
    rng = np.random.default_rng(1)
    for dtype, most, width in ((np.float32, None, 16), (np.float64, None, 8), (np.float64, 2, 2)):
        x, y = rng.random((6, 32)).astype(dtype), rng.random((6, 32)).astype(dtype)
        folder = tmp_path / f"{dtype.__name__}_{width}"
        made = dc.export(copied, x, y, dtype(0.5), target=target, width=most, path=folder)
        assert f"{np.dtype(dtype).name}x{width}" in made.files[f"kernel/copied.{SUFFIX[target]}"]
        assert f"carry 1 or {width} elements at a time" in made.files["README.md"]
        done = csim(folder)
        assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
    narrow = dc.export(row, np.ones((3, 30)), np.ones((3, 30)), np.float64(2.0), target=target)
    assert "rows of" in narrow.files["README.md"] and "no multiple of 4" in narrow.files["README.md"]


SUFFIX = {"vitis": "cpp", "intel": "cl"}


def copied(x, y, a):
    z = y.copy()
    z[1:-1, 1:-1] = a * x[1:-1, 2:] + x[1:-1, :-2] + z[2:, 1:-1]
    return z, np.sum(z), np.max(x, axis=1)


def test_numbers_are_in_registers():
    """What is one element, and only read, is passed by value: by s_axilite, or as an argument of a kernel."""
    made = dc.export(smooth, *example(), target="vitis")
    kernel, host = made.files["kernel/smooth.cpp"], made.files["host/host.cpp"]
    assert "const double weight_0," in kernel and "s_axilite port=weight_0" in kernel
    assert "m_axi port=weight_0" not in kernel and "weight_0" not in made.files["connectivity.cfg"]
    assert "weight_0[0]," in host and "weight_0_bo" not in host
    made = dc.export(smooth, *example(), target="intel")
    assert "const double weight_0" in made.files["kernel/smooth.cl"]
    assert "argument(weight_0[0])" in made.files["host/host.cpp"]


def test_more_memory_than_the_board_has():
    region = parse(
        "region() { in A: f64[60000, 60000];  out B: f64[60000, 60000]\n"
        " B[i,j] = negative(A[i,j]) for i<60000, j<60000 }"
    )
    with pytest.raises(
        Exception, match=r"(?s)AMD Alveo U250 has 4 banks of 16 GiB: the largest is .* with 26.82 GiB"
    ):
        placed(compose(region), BOARDS["u250"])
    small = parse(
        "region() { in A: f64[60, 60];  out B: f64[60, 60]\n B[i,j] = negative(A[i,j]) for i<60, j<60 }"
    )
    assert placed(compose(small), BOARDS["u250"]) == {Buffer("A", 0): 0, Buffer("B", 1): 1}


def test_a_region_is_exported_with_its_arrays_by_name():
    region = parse("region() { in A: i32[6];  out B: i32[6]\n B[i] = negative(A[i]) for i<6 }")
    made = dc.export(region, A=np.arange(6, dtype=np.int32), target="vitis")
    assert "kernel/kernel.cpp" in made.files
    with pytest.raises(TypeError, match="the region is given A, not none"):
        dc.export(region, target="vitis")
    with pytest.raises(ValueError, match="A is int32 of shape"):
        dc.export(region, A=np.arange(6), target="vitis")


def complex_numbers(x):
    return x * 1j


def half(x):
    return x.astype(np.float16)


@pytest.mark.parametrize(("call", "error", "text"), [
    (
        lambda: dc.export(complex_numbers, np.ones(4), target="vitis"),
        dc.ProgramError,
        "complex128: use float",
    ),
    (lambda: dc.export(half, np.ones(4), target="intel"), dc.ProgramError, "float16: use float32"),
    (lambda: dc.export(half, np.ones(4), target="quartus"), ValueError, "target is 'vitis' or 'intel'"),
    (
        lambda: dc.export(half, np.ones(4), target="intel", board="u250"),
        ValueError,
        "'520n', 'a10', not 'u250'",
    ),
    (lambda: dc.export(half, np.ones(4), target="intel", clock=0), ValueError, "in MHz from 1 to 1000"),
    (lambda: dc.export(half, np.ones(4), target="intel", width=3), ValueError, "a power of 2 from 1"),
    (lambda: dc.export(half, np.ones(4), target="intel", name="a b"), ValueError, "identifier of C"),
    (lambda: dc.export(len, np.ones(4), target="intel"), TypeError, "Python function is expected"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("target", ["vitis", "intel"])
def test_the_command_and_the_example(target, tmp_path, capsys):
    place = f"{ROOT / 'examples' / 'jacobi.py'}:step"
    assert main(["export", place, "--target", target, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert f"{target} project" in printed and "csim" in printed
    done = csim(tmp_path / "out")
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("arguments", "text"), [
    (["nothing.py:step"], "there is no file nothing.py"),
    (["examples/jacobi.py:sweep"], "has no function sweep; it has step"),
    (["examples/jacobi.py:step", "--set", "n=x"], "--set NAME=NUMBER is expected"),
    (["examples/jacobi.py:step", "--board", "a10"], "boards of the target 'vitis'"),
])  # fmt: skip
def test_errors_of_the_command(arguments, text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["export", *arguments, "--target", "vitis", "--out", str(tmp_path / "out")]) == 2
    assert text in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_the_circuit_of_a_function_of_plain_arrays_is_explained():
    shown = str(dc.explain(smooth, *example(), target="intel"))
    assert "circuit for intel: " in shown and "fifo s_read_x_0" in shown and "__kernel void" in shown
    with pytest.raises(dc.ProgramError, match="svd is not understood"):
        dc.explain(factors, np.ones((3, 3)), target="vitis")


def factors(x):
    return np.linalg.svd(x)


def test_boards():
    assert board_of("vitis", None).name == "u250" and board_of("intel", "a10").native_accumulation
    assert board_of("intel", None).name == "520n" and not board_of("vitis", None).native_accumulation
