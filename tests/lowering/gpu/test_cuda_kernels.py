"""CUDA C++: kernels compiled by NVRTC for a GPU, and run by the processor."""

import sys

import cuda_compiled
import cuda_on_host
import numpy as np
import pytest
from devices import needs_nvrtc
from fake_cupy import FakeCupy

from dcarray.ir.ops import OPS, loop_dtype
from dcarray.lowering.c_family.device_kernels import emit
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.gpu.cuda import nvrtc
from dcarray.lowering.gpu.cuda.device import CudaDevice
from dcarray.lowering.gpu.cuda.dialect import CUDA
from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.affine import Term, affine
from dcarray.lowering.kernel.verify import check

F8, F4, F2, I8, TRUTH = (np.dtype(name) for name in ("f8", "f4", "f2", "i8", "?"))
THREADS = 64
needs_gxx = pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="no C++ compiler")


def var(name: str, coef: int = 1) -> k.Term:
    return Term(coef, None, name)


def literal(value: object, dtype: np.dtype) -> k.Lit:
    return k.Lit(np.asarray(value, dtype).tobytes(), dtype)


def less(left: k.Affine, right: k.Affine) -> k.Op:
    return k.Op("less", (k.Index(left), k.Index(right)), TRUTH)


def sums() -> k.Kernel:
    """The sum of each block's elements, as a tree in shared memory, times a scalar."""
    at, size = affine(0, var("b", THREADS), var("t")), affine(0, Term(1, "n0"))
    body: list[k.Stmt] = [
        k.Stack("s", F8, THREADS),
        k.Threads("t", THREADS, (
            k.Declare("x", literal(0, F8)),
            k.If(less(at, size), (k.Assign("x", k.Elem("p0", at, F8)),)),
            k.Store("s", affine(0, var("t")), k.Local("x", F8)),
        )),
    ]  # fmt: skip
    half = THREADS // 2
    while half:
        own, other = affine(0, var(f"t{half}")), affine(half, var(f"t{half}"))
        total = k.Op("add", (k.Elem("s", own, F8), k.Elem("s", other, F8)), F8)
        body.append(
            k.Threads(f"t{half}", THREADS, (k.If(less(own, affine(half)), (k.Store("s", own, total),)),))
        )
        half //= 2
    result = k.Op("multiply", (k.Elem("s", affine(0), F8), k.Elem("p2", affine(0), F8)), F8)
    first = less(affine(0, var("u")), affine(1))
    body.append(
        k.Threads("u", THREADS, (k.If(first, (k.Store("p1", affine(0, var("b")), result),)),))
    )  # fmt: skip
    phase = k.Phase("b", affine(0, Term(1, "n1")), "blocks", tuple(body), (), THREADS)
    buffers = k.Buffer("p0", F8, "r"), k.Buffer("p1", F8, "w"), k.Buffer("p2", F8, "r", True, True)
    kernel = k.Kernel(buffers, ("n0", "n1"), (phase,))
    check(kernel)
    return kernel


def each(source: np.dtype, target: np.dtype, op: str) -> k.Kernel:
    """An operation, or a cast, of every element."""
    at = affine(0, var("b", THREADS), var("t"))
    value = k.Op(op, (k.Elem("p0", at, source),), target)
    stored = k.If(less(at, affine(0, Term(1, "n0"))), (k.Store("p1", at, value),))
    phase = k.Phase(
        "b", affine(0, Term(1, "n1")), "blocks", (k.Threads("t", THREADS, (stored,)),), (), THREADS
    )
    kernel = k.Kernel((k.Buffer("p0", source, "r"), k.Buffer("p1", target, "w")), ("n0", "n1"), (phase,))
    check(kernel)
    return kernel


def loaded(kernel: k.Kernel) -> DeviceKernel:
    sizes = tuple(0 if buffer.by_value else buffer.dtype.itemsize for buffer in kernel.buffers)
    return DeviceKernel(emit(kernel, CUDA), (THREADS,), sizes)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    made = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", made)
    monkeypatch.setitem(sys.modules, "cuda.core", None)  # without it CuPy compiles and launches
    return made


def run(device: CudaDevice, kernel: k.Kernel, x: np.ndarray, out: np.ndarray, *more: object) -> np.ndarray:
    blocks = -(-x.size // THREADS)
    source, target = device.allocate(x.nbytes), device.allocate(out.nbytes)
    device.upload(x, source)
    loaded(kernel)(device, (blocks,), ((source, 0), (target, 0), *more), (x.size, blocks))
    device.download(target, out)
    return out


@needs_gxx
def test_a_tree_in_shared_memory(cupy: FakeCupy) -> None:
    x = np.random.default_rng(1).random(1000)
    out = run(CudaDevice(0), sums(), x, np.empty(16), np.float64(3))
    want = np.pad(x, (0, 24)).reshape(16, THREADS)
    while want.shape[1] > 1:
        want = want[:, : want.shape[1] // 2] + want[:, want.shape[1] // 2 :]
    np.testing.assert_array_equal(out, want[:, 0] * 3)
    assert cupy.built == 1 and cupy.log == ["phase0"]


@needs_gxx
def test_a_missing_barrier_is_seen(cupy: FakeCupy) -> None:
    text = emit(sums(), CUDA).replace("__syncthreads();", "", 3)
    device, x = CudaDevice(0), np.random.default_rng(1).random(1000)
    source, target = device.allocate(x.nbytes), device.allocate(128)
    device.upload(x, source)
    kernel = DeviceKernel(text, (THREADS,), (8, 8, 0))
    kernel(device, (16,), ((source, 0), (target, 0), np.float64(1)), (1000, 16))
    out = np.empty(16)
    device.download(target, out)
    assert not np.allclose(out, np.pad(x, (0, 24)).reshape(16, THREADS).sum(axis=1))


@needs_gxx
@pytest.mark.parametrize(
    "source, target", [(F2, F4), (F4, F2), (F8, F2), (F2, F8), (F4, I8), (F8, I8), (I8, F4)]
)
def test_conversions(cupy: FakeCupy, source: np.dtype, target: np.dtype) -> None:
    x = np.array(
        [0, -0.0, 1.5, 65504, 65519.99, 65520, -70000, 6e-8, 2.9e-8, 3e-8, 1 + 2**-11, 1 + 3 * 2**-11, 2e9]
    )
    with np.errstate(all="ignore"):
        x = np.concatenate([x, np.random.default_rng(2).normal(0, 100, 200)]).astype(source)
        if target.kind == "i":
            x = x[np.isfinite(x)]
        out = run(CudaDevice(0), each(source, target, "cast"), x, np.empty(x.size, target))
        np.testing.assert_array_equal(
            out.view(f"u{target.itemsize}"), x.astype(target).view(f"u{target.itemsize}")
        )


@needs_gxx
def test_indices_have_64_bits_where_they_have_to(cupy: FakeCupy) -> None:
    seen: list[tuple[str, ...]] = []
    made = cupy.RawModule
    cupy.RawModule = lambda *, code, options: seen.append(options) or made(code=code, options=options)  # type: ignore[method-assign]
    device, x = CudaDevice(0), np.arange(64.0)
    kernel = loaded(each(F8, F8, "negative"))
    source, target = device.allocate(512), device.allocate(512)
    device.upload(x, source)
    for size in (64, 1 << 40):
        kernel(device, (1,), ((source, 0), (target, 0)), (size, 1))
    assert ["-DINDEX=int" in options for options in seen] == [True, False]
    out = np.empty(64)
    device.download(target, out)
    np.testing.assert_array_equal(out, -x)
    assert all("--fmad=false" in options for options in seen)


def test_too_much_memory_is_a_memory_error(cupy: FakeCupy) -> None:
    device = CudaDevice(0)
    kept = device.allocate(1000)
    with pytest.raises(MemoryError, match="cuda:0"):
        device.allocate(1 << 40)
    assert cupy.in_use == 1024 and kept.size == 1000
    del kept
    assert cupy.in_use == 0


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("narrow", [True, False])
def test_nvrtc_compiles_a_kernel_and_says_what_it_takes(architecture: str, narrow: bool) -> None:
    code = nvrtc.compile_source(emit(sums(), CUDA), architecture, narrow)
    assert code.cubin.startswith(b"\x7fELF")
    (used,) = code.functions.values()
    assert list(code.functions) == ["phase0"]
    assert 8 <= used.registers <= 40 and used.shared == 8 * THREADS
    assert not used.spills and used.stack == 0


@needs_nvrtc
def test_products_and_sums_are_kept_apart() -> None:
    text = 'extern "C" __global__ void f(float *a) { a[0] = a[1] * a[2] + a[3]; }'
    cubin = nvrtc.compile_source(text, "sm_90").cubin
    contracted = nvrtc.compile_source(
        text.replace("a[1] * a[2] + a[3]", "fmaf(a[1], a[2], a[3])"), "sm_90"
    ).cubin
    assert cubin != contracted


@needs_nvrtc
def test_spills_are_seen() -> None:
    body = "".join(f"x[{n}] = a[threadIdx.x * 256 + {n}];" for n in range(256))
    body += "__syncthreads();" + "".join(
        f"a[{n} * 1024 + threadIdx.x] = x[{n}] * x[{255 - n}];" for n in range(256)
    )
    text = f'extern "C" __global__ __launch_bounds__(1024) void phase0(double *a) {{ double x[256]; {body} }}'
    assert nvrtc.compile_source(text, "sm_90").functions["phase0"].spills


@needs_nvrtc
def test_what_nvrtc_refuses_is_unsupported_with_its_words() -> None:
    with pytest.raises(Unsupported, match=r"(?s)NVRTC refuses.*nothing"):
        nvrtc.compile_source('extern "C" __global__ void f() { nothing(); }', "sm_90")


def test_the_log_of_the_assembler_is_read() -> None:
    log = """ptxas info    : Compiling entry function 'phase0' for 'sm_90'
ptxas info    : Function properties for phase0
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 512 bytes smem
ptxas info    : Compiling entry function 'phase1' for 'sm_90'
ptxas info    : Used 8 registers"""
    first, second = nvrtc.resources(log).values()
    assert first == nvrtc.Resources(255, 16, 8, 12, 512) and first.spills
    assert second == nvrtc.Resources(8, 0, 0, 0, 0) and not second.spills


@needs_nvrtc
def test_kernels_of_tests_are_compiled_and_spills_of_simple_ones_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = each(F8, F4, "cast")
    with cuda_compiled.noted() as found:
        emit(kernel, CUDA)
    assert found == [kernel] and cuda_compiled.is_simple(kernel.phases[0])
    monkeypatch.setattr(cuda_compiled, "_compiled", set())
    monkeypatch.setattr(nvrtc, "resources", lambda log: {"phase0": nvrtc.Resources(255, 8, 4, 4, 0)})
    with pytest.raises(AssertionError, match="8 bytes spilled"):
        cuda_compiled.compiled(found)
    assert "255 registers" in cuda_compiled.summary([(255, 8, 0), (10, 0, 0)])


def every_operation(source: np.dtype) -> k.Kernel:
    """All operations on elements of a dtype that CUDA C++ has, a phase for each."""
    at, size = affine(0, var("b", THREADS), var("t")), affine(0, Term(1, "n0"))
    operands = [k.Elem("p0", at, source), k.Elem("p1", at, source)]
    where = k.Elem("p2", at, TRUTH)
    made = [k.Op("where", (where, *operands), source), k.Op("checked", (where, operands[0]), source)]
    made += [k.Op("cast", (operands[0],), np.dtype(char)) for char in "?bBhHiIlLefdFD"]
    for name, op in OPS.items():
        result = loop_dtype(name, (source,) * op.nin)
        if name not in ("where", "checked") and result is not None and result.char in "?bBhHiIlLefdFD":
            made.append(k.Op(name, tuple(operands[: op.nin]), result))
    results = sorted({op.dtype for op in made}, key=str)
    buffers = [k.Buffer("p0", source, "r"), k.Buffer("p1", source, "r"), k.Buffer("p2", TRUTH, "r")]
    buffers += [k.Buffer(f"p{number + 3}", dtype, "w") for number, dtype in enumerate(results)]
    phases = []
    for op in made:
        store = k.If(less(at, size), (k.Store(f"p{results.index(op.dtype) + 3}", at, op),))
        phase = k.Phase(
            "b", affine(0, Term(1, "n1")), "blocks", (k.Threads("t", THREADS, (store,)),), (), THREADS
        )
        try:
            emit(k.Kernel(tuple(buffers), ("n0", "n1"), (phase,)), CUDA)
        except Unsupported:
            continue
        phases.append(phase)
    return k.Kernel(tuple(buffers), ("n0", "n1"), tuple(phases))


@needs_nvrtc
@pytest.mark.parametrize("char", "?bBhHiIlLefdFD")
def test_nvrtc_compiles_every_operation(char: str) -> None:
    kernel = every_operation(np.dtype(char))
    code = nvrtc.compile_source(emit(kernel, CUDA), "sm_90", narrow=False)
    assert len(code.functions) == len(kernel.phases) > 20
    assert not any(used.spills for used in code.functions.values())
