"""The walls of the house: who may import whom, and what an import may cost."""

import ast
import graphlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fresh import python

ROOT = Path(__file__).resolve().parents[1]
LAYERS = {"ir": "dcarray.ir", "lowering": "dcarray.lowering", "comm": "dcarray.comm", "dcarray": "dcarray"}
LONGEST = 420


def _modules() -> dict[str, Path]:
    """Dotted name -> file, of every module of the four layers."""
    found = {}
    for folder, package in LAYERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if folder == "dcarray" and parts[0] in LAYERS:
                continue  # reached through a symlink: counted once, under its own folder
            name = ".".join((package, *parts))
            found[name.removesuffix(".__init__")] = path
    return found


MODULES = _modules()
TREES = {name: ast.parse(path.read_text(), str(path)) for name, path in MODULES.items()}


def _layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else "dcarray"


def _targets(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The absolute names of the modules that an import statement loads."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        package = module.split(".")
        if MODULES[module].name != "__init__.py":
            package = package[:-1]
        package = package[: len(package) - node.level + 1]
        base = ".".join([*package, base] if base else package)
    for alias in node.names:
        full = f"{base}.{alias.name}"
        yield full if full in MODULES else base


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported: not the bodies of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Lambda) or _is_type_checking(child):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in (*child.decorator_list, *child.args.defaults, *child.args.kw_defaults):
                if part is not None:
                    yield part
                    yield from _at_import(part)
            continue
        yield child
        yield from _at_import(child)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that may run at some time: not what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if not _is_type_checking(child):
            yield child
            yield from _running(child)


def _texts(tree: ast.AST) -> Iterator[str]:
    """The texts in a module, without its docstrings."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and type(child.value) is str and type(node) is not ast.Expr:
                yield child.value


def _named(text: str) -> str | None:
    """The module that a text names, as an import path does: whole, from the main package on, or with a name
    in it after a colon."""
    path = text.partition(":")[0].rstrip(".")
    found = next((name for name in (path, f"dcarray.{path}") if name in MODULES), None)
    return found if "." in path and found not in ADDRESSES else None


# In texts these are where the public finds things, as pickles and messages say it.
ADDRESSES = {"dcarray.emath", "dcarray.fft", "dcarray.types"}


def _imports(module: str, nodes: Iterator[ast.AST]) -> set[str]:
    return {
        target
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for target in _targets(module, node)
    }


def _known(module: str, nodes: Iterator[ast.AST]) -> set[str]:
    """The modules that one imports, at any time, or names in a text."""
    named = {found for text in _texts(TREES[module]) if (found := _named(text))}
    return _imports(module, nodes) | named


# The packages of each layer, and modules beside them: each imports only those that stand before it, also
# within functions.
PACKAGES = {
    "dcarray": (
        "_native", "core", "tiering", "recording", "plans", "execution", "api", "char",
        "emath", "fft", "linalg", "random", "strings", "offload", "jit", "types", "distributed", "hdf5",
        "inspect", "fpga", "names", "array_api", "dcarray", "demo", "__main__",
    ),
    "dcarray.jit.loops": ("syntax", "entry", "operations", "tracing", "sites"),
    "dcarray.ir": ("analysis", "passes"),
    "dcarray.ir.passes": ("portable", "cpu"),
    "dcarray.lowering": (
        "errors", "kernel", "nest", "runtime", "libraries", "program", "target", "c_family", "cpu", "gpu",
        "hls", "targets", "compilation", "aot",
    ),
    "dcarray.lowering.cpu": ("caches", "kernel_passes", "schedules", "c", "llvm", "machine_fingerprint"),
    "dcarray.lowering.cpu.llvm": (
        "types", "passes", "object_code", "launches", "text", "math", "ops", "emitter", "routines",
        "libraries", "target",
    ),
    "dcarray.lowering.hls": ("network", "kernels", "simulation", "model", "verilog", "project"),
    "dcarray.comm": (
        "transport", "layout", "exchange", "algorithms", "planning",
        "cart", "messages", "scatter_gather", "matmul", "pmap",
    ),
    "dcarray.comm.planning": (
        "performance_model", "analysis", "rank_program", "placement", "passes", "localise", "overlap",
        "planner", "counting",
    ),
}  # fmt: skip


def test_layers_know_only_what_is_below_them() -> None:
    below = {"ir": {"ir"}, "lowering": {"lowering", "ir"}, "comm": {"comm", "ir"}, "dcarray": set(LAYERS)}
    for module, tree in TREES.items():
        for target in _known(module, ast.walk(tree)):
            if target.split(".")[0] == "dcarray":
                assert _layer(target) in below[_layer(module)], f"{module} imports {target}"


def _package(module: str, layer: str) -> str | None:
    """The package of a layer that a module is of; None for what is outside of all."""
    if module == layer == "dcarray":
        return layer
    inside = module.startswith(layer + ".")
    name = module[len(layer) + 1 :].split(".")[0] if inside else ""
    return name if name in PACKAGES[layer] else None


@pytest.mark.parametrize("layer", PACKAGES)
def test_packages_import_only_what_stands_before_them(layer: str) -> None:
    order = PACKAGES[layer]
    wrong = []
    for module, tree in TREES.items():
        here = _package(module, layer)
        for target in _known(module, ast.walk(tree)) if here else ():
            there = _package(target, layer)
            if there and order.index(there) > order.index(here):
                wrong.append(f"{module} imports {target}")
    assert not wrong, "\n".join(wrong)


def test_only_the_wing_for_fpgas_knows_of_circuits() -> None:
    wing = "dcarray.fpga", "dcarray.lowering.hls"
    wrong = [
        f"{module} imports {target}"
        for module, tree in TREES.items()
        for target in _imports(module, ast.walk(tree))
        if target.startswith("dcarray.lowering.hls") and not module.startswith(wing)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_folder_is_a_package_with_a_place_in_the_order() -> None:
    for layer, order in PACKAGES.items():
        folder = MODULES[layer].parent
        found = {p.parent.name for p in folder.glob("*/__init__.py") if not p.parent.is_symlink()}
        assert found <= set(order), layer


def test_a_single_process_never_loads_the_distributed_packages() -> None:
    code = (
        "import sys, numpy as np, dcarray as dc\n"
        "x = dc.asarray(np.arange(1e6))\n"
        "print(float((x * x).sum()), dc.linspace(0, 1, 9)[1], np.cumsum(x)[3])\n"
        "print(*sorted(m for m in sys.modules if m.startswith(('dcarray.comm', 'dcarray.distributed.'))))"
    )
    done = python("-c", code, cwd=ROOT)
    assert done.stdout.splitlines()[1:] == [""], done.stdout


def test_dir_shows_public_names_alone() -> None:
    code = (
        "import numpy as np, dcarray as dc\n"
        "dc.explain, dc.accelerate, dc.comm, dc.pmap, dc.array_api  # which import their packages\n"
        "named = {n for n in dir(dc) if not n.startswith('__')} - {'map'}  # Python's is kept\n"
        "print(*sorted(named - set(dc.__all__) - {n for n in dir(np) if not n.startswith('_')}))"
    )
    done = python("-c", code, cwd=ROOT)
    assert done.stdout.strip() == ""


def test_ir_imports_only_numpy_and_the_standard_library() -> None:
    allowed = {"numpy", "dcarray"} | sys.stdlib_module_names
    for module, tree in TREES.items():
        if _layer(module) == "ir":
            for target in _imports(module, ast.walk(tree)):
                assert target.split(".")[0] in allowed, f"{module} imports {target}"


def test_only_the_mpi_transport_imports_mpi4py() -> None:
    for module, tree in TREES.items():
        if not module.startswith("dcarray.comm.transport.mpi"):
            roots = {target.split(".")[0] for target in _imports(module, ast.walk(tree))}
            assert "mpi4py" not in roots, module


def test_modules_import_each_other_without_cycles() -> None:
    """Neither when they are imported nor later: also imports in functions, and modules named in texts."""
    graph = {
        module: {t for t in _known(module, _running(tree)) if t in MODULES} - {module}
        for module, tree in TREES.items()
    }
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail("import cycle: " + " -> ".join(error.args[1]))


@pytest.mark.parametrize("folder", ["benchmarks", "conformance", "examples"])
def test_outsiders_use_the_public_face(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        if path == ROOT / "conformance" / "fpga" / "circuits.py":
            continue  # emulators and Verilator run kernels and networks, which have no public face
        if path.name in ("ablation.py", "branches.py") and folder == "benchmarks":
            continue  # they measure passes, and kernels of regions
        if path.name == "together.py":
            continue  # it has sites ask at random times
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                assert not name.startswith("dcarray."), f"{path.relative_to(ROOT)} imports {name}"


def test_nothing_reads_the_environment_at_import() -> None:
    for module, tree in TREES.items():
        for node in _at_import(tree):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
            assert name not in ("environ", "environb", "getenv"), f"{module}:{getattr(node, 'lineno', '?')}"


def test_files_have_one_purpose() -> None:
    own = [*MODULES.values(), *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    long = {str(p.relative_to(ROOT)): n for p in own if (n := len(p.read_text().splitlines())) > LONGEST}
    assert not long, f"longer than {LONGEST} lines: {long}"


def test_import_is_light() -> None:
    code = (
        "import sys, dcarray\n"
        "heavy = {'llvmlite', 'sympy', 'scipy', 'matplotlib', 'jax', 'numba'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = python("-c", code, cwd=ROOT)
    assert done.stdout.strip() == ""


def test_nothing_of_devices_is_loaded_before_one_is_asked_for() -> None:
    code = (
        "import sys, numpy as np, dcarray as dc\n"
        "x = dc.asarray(np.arange(1e6))\n"
        "with dc.options(device='cpu', jit='eager'):\n"
        "    print(float((x * x).sum()))\n"
        "gpu = 'dcarray.lowering.gpu'\n"
        "roots = ('pyopencl', 'cupy', 'cuda', 'dcarray.offload', f'{gpu}.opencl', f'{gpu}.cuda')\n"
        "print(*sorted(m for m in sys.modules if m.startswith(roots)))"
    )
    done = python("-c", code, cwd=ROOT)
    assert done.stdout.splitlines()[1:] == [""], done.stdout


def test_only_devices_import_their_vendors_packages() -> None:
    for module, tree in TREES.items():
        roots = {target.split(".")[0] for target in _imports(module, ast.walk(tree))}
        for vendor, package in (("pyopencl", "opencl"), ("cupy", "cuda"), ("cuda", "cuda")):
            if not module.startswith(f"dcarray.lowering.gpu.{package}."):
                assert vendor not in roots, module


@pytest.mark.parametrize("layer", ["ir", "lowering", "comm"])
def test_a_layer_refuses_its_bare_name(layer: str) -> None:
    code = f"import sys; sys.path.insert(0, '.'); import {layer}"
    done = python("-c", code, status=None, cwd=ROOT)
    assert done.returncode != 0
    assert f"dcarray.{layer}" in done.stderr


@pytest.mark.parametrize("folder", ["api", "core", "execution", "jit", "plans", "recording", "tiering"])
def test_clocks_and_open_are_not_those_that_a_program_may_have_replaced(folder: str) -> None:
    own = {"core/unpatched.py", "plans/server.py"}  # the planning process runs no program
    used = re.compile(r"from time import|\btime\.(monotonic|perf_counter|process_time|sleep)\b|[^.\w]open\(")
    for path in (ROOT / "dcarray" / folder).rglob("*.py"):
        if path.relative_to(ROOT / "dcarray").as_posix() not in own:
            assert not used.search(path.read_text()), path
