"""The code cache: what it trusts, what it survives, and that it saves compilations."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from callers import together

from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Buffer, Elem, Kernel, Op, Phase, Store, Term, affine
from dcarray.lowering.program import code_cache

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX files")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(code_cache, "stored_digest", lambda disk, *folders: "this version")
    loaded = dict(code_cache._LOADED)
    code_cache.forget()
    yield
    code_cache._LOADED.update(loaded)


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "code")


def kernel(op="add"):
    double, at = np.dtype(float), affine(0, Term(1, None, "i"))
    value = Op(op, (Elem("p0", at, double), Elem("p0", at, double)), double)
    buffers = (Buffer("p0", double, "r"), Buffer("p1", double, "w"))
    phase = Phase("i", affine(0, Term(1, "n0")), "vector", (Store("p1", at, value),))
    return Kernel(buffers, ("n0",), (phase,))


class Fake:
    """A compiler that counts."""

    key = "fake"

    def __init__(self, refuse=False):
        self.compiled = self.loaded = 0
        self.refuse = refuse

    def fingerprint(self):
        return "this machine"

    def emit(self, kernel):
        return f"source of {len(kernel.phases)}"

    def compile(self, source):
        self.compiled += 1
        if self.refuse:
            raise Unsupported("no compiler")
        return source.encode() * 10

    def load(self, kernel, code):
        self.loaded += 1
        return code


def test_each_kernel_is_compiled_once(folder):
    target, code = Fake(), code_cache.CodeCache(folder)
    first = code.loaded(target, kernel())
    assert code.loaded(target, kernel()) is first
    code.loaded(target, kernel("multiply"))
    assert target.compiled == 2
    assert code.stats() == {"hits": 1, "disk_hits": 0, "compiled": 2}
    assert len(os.listdir(folder)) == 2
    assert os.stat(folder).st_mode & 0o777 == 0o700


def test_another_process_compiles_nothing(folder):
    code_cache.CodeCache(folder).loaded(Fake(), kernel())
    code_cache.forget()
    target, code = Fake(), code_cache.CodeCache(folder)
    assert code.loaded(target, kernel()) == b"source of 1" * 10
    assert target.compiled == 0
    assert code.stats()["disk_hits"] == 1


def test_another_machine_or_version_compiles_anew(folder, monkeypatch):
    code_cache.CodeCache(folder).loaded(Fake(), kernel())
    for name, value in (("fingerprint", lambda self: "another machine"), (None, None)):
        if name:
            monkeypatch.setattr(Fake, name, value)
        else:
            monkeypatch.setattr(code_cache, "stored_digest", lambda disk, *folders: "another version")
        code_cache.forget()
        target = Fake()
        code_cache.CodeCache(folder).loaded(target, kernel())
        assert target.compiled == 1


def test_without_a_folder_nothing_is_written(tmp_path):
    for name in (None, ""):
        code_cache.forget()
        code = code_cache.CodeCache(name)
        code.loaded(Fake(), kernel())
        assert code.disk is None
    assert not list(tmp_path.iterdir())
    assert code_cache.of("") is code_cache.of(None)
    assert code_cache.of("x") is code_cache.of("x") is not code_cache.of("")


def _damage(path, how):
    with open(path, "rb") as file:
        content = file.read()
    changed = {
        "empty": b"",
        "cut": content[:-5],
        "head": b"x" + content[1:],
        "bit": content[:-1] + bytes([content[-1] ^ 1]),
        "longer": content + b"x",
    }[how]
    with open(path, "wb") as file:
        file.write(changed)


@pytest.mark.parametrize("how", ["empty", "cut", "head", "bit", "longer"])
def test_damaged_files_cost_time_only(folder, how):
    code_cache.CodeCache(folder).loaded(Fake(), kernel())
    (name,) = os.listdir(folder)
    path = os.path.join(folder, name)
    _damage(path, how)
    code_cache.forget()
    target = Fake()
    assert code_cache.CodeCache(folder).loaded(target, kernel()) == b"source of 1" * 10
    assert target.compiled == 1
    code_cache.forget()
    code_cache.CodeCache(folder).loaded(target, kernel())
    assert target.compiled == 1  # it was written anew


def test_code_under_another_name_is_not_taken(folder):
    disk = code_cache.DiskCache(folder)
    disk.write("a" * 64, b"code of a")
    os.rename(os.path.join(folder, "a" * 64 + ".dcarray"), os.path.join(folder, "b" * 64 + ".dcarray"))
    assert disk.read("b" * 64) is None


def test_foreign_files_and_links_are_not_taken(folder):
    disk = code_cache.DiskCache(folder)
    key = "a" * 64
    disk.write(key, b"code")
    path = os.path.join(folder, key + ".dcarray")
    for mode in (0o620, 0o602):
        os.chmod(path, mode)
        assert disk.read(key) is None
    os.chmod(path, 0o600)
    assert disk.read(key) == b"code"
    os.rename(path, path + "x")
    os.symlink(path + "x", path)
    assert disk.read(key) is None
    os.unlink(path)
    os.mkdir(path)
    assert disk.read(key) is None


def test_a_folder_that_others_may_write_is_not_used(folder):
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    code = code_cache.CodeCache(folder)
    with pytest.warns(RuntimeWarning, match="another user owns it or may write to it"):
        code.loaded(Fake(), kernel())
    assert not os.listdir(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one warning is enough
        code.loaded(Fake(), kernel("multiply"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another user's file")
def test_another_users_files_are_not_taken(folder):
    disk = code_cache.DiskCache(folder)
    disk.write("a" * 64, b"code")
    os.chown(os.path.join(folder, "a" * 64 + ".dcarray"), 12345, -1)
    assert disk.read("a" * 64) is None
    os.chown(folder, 12345, -1)
    with pytest.warns(RuntimeWarning, match="another user owns it"):
        disk.write("b" * 64, b"code")


def test_a_folder_that_cannot_be_made_costs_time_only(tmp_path):
    (tmp_path / "file").write_text("")
    code = code_cache.CodeCache(str(tmp_path / "file" / "code"))
    with pytest.warns(RuntimeWarning, match="compiled code is not kept in"):
        assert code.loaded(Fake(), kernel()) == b"source of 1" * 10


def test_the_folder_is_bounded_and_the_oldest_go(folder):
    disk = code_cache.DiskCache(folder, limit=10_000)
    disk.write("a" * 64, b"code")
    theirs = os.path.join(folder, "the only copy")
    with open(theirs, "wb") as file:
        file.write(bytes(20_000))
    os.utime(theirs, (0, 0))
    for number in range(30):
        disk.write(f"{number:064}", bytes(1000))
        os.utime(os.path.join(folder, f"{number:064}.dcarray"), (number, number))
    assert os.stat(theirs).st_size == 20_000  # what else is there counts for nothing and stays
    os.unlink(theirs)
    left = sorted(os.listdir(folder))
    assert sum(os.stat(os.path.join(folder, name)).st_size for name in left) <= 10_000
    assert f"{29:064}.dcarray" in left
    assert f"{0:064}.dcarray" not in left


def test_refusals_are_remembered():
    target, code = Fake(refuse=True), code_cache.CodeCache()
    for _ in range(2):
        with pytest.raises(Unsupported, match="no compiler"):
            code.loaded(target, kernel())
    assert target.compiled == 1


def test_many_threads_compile_once(folder):
    target, code, found = Fake(), code_cache.CodeCache(folder), []
    together(8, lambda _: found.append(code.loaded(target, kernel())))
    assert target.compiled == 1
    assert found == [found[0]] * 8


def test_many_processes_share_a_folder(folder):
    program = (
        "import sys\nfrom dcarray.lowering.program.code_cache import DiskCache\n"
        "disk = DiskCache(sys.argv[1], limit=200_000)\n"
        "for n in range(200):\n"
        "    key = f'{n % 20:064}'\n"
        "    code = disk.read(key)\n"
        "    assert code in (None, key.encode() * 100), len(code)\n"
        "    disk.write(key, key.encode() * 100)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, folder]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert not [name for name in os.listdir(folder) if name.startswith("tmp-")]
