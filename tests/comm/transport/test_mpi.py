"""Programs of real processes under MPI, where it is installed."""

import pytest
from fresh import python
from launching import ROOT, launch, needs_mpi

import dcarray as dc
from dcarray.comm.transport import world


@needs_mpi
@pytest.mark.parametrize("ranks", [4])
def test_programs(ranks: int) -> None:
    done = launch(ranks, "-m", "comm_public_programs", str(ranks))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") >= 15


@needs_mpi
@pytest.mark.parametrize("name", ["cached", "changing", "unpacked"])
def test_types(name: str) -> None:
    done = launch(2, "-m", "mpi_checks", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == 2


@needs_mpi
@pytest.mark.parametrize("name", ["repeated", "shared"])
@pytest.mark.parametrize("watch", ["1", "0"])
def test_what_recordings_do_often(name: str, watch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DCARRAY_WATCH", watch)
    done = launch(3, "-m", "mpi_checks", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == 3


@needs_mpi
@pytest.mark.parametrize(("name", "ranks", "said"), [
    ("shorter", 2, "rank 0 sends 16 bytes where 24 bytes of float64 are received"),
    ("longer", 2, "longer than what is to receive it (24 bytes of float64 from rank 0)"),
    ("aborted", 2, ""),
    ("finalised", 2, "MPI is not initialised"),
])  # fmt: skip
def test_what_fails_on_one_rank_ends_all(name: str, ranks: int, said: str) -> None:
    done = launch(ranks, "-m", "mpi_checks", name)
    assert done.returncode != 0, done.stdout + done.stderr
    assert said in done.stderr
    assert "ended" not in done.stdout or name in ("shorter", "longer")


@needs_mpi
@pytest.mark.parametrize(("command", "said"), [
    ("examples/heat_messages.py --n 60 --steps 20", "equal to one process's result"),
    ("examples/jacobi_messages.py --n 40 --steps 10", "equal to one process's result"),
    ("examples/summa.py 30 20 25", "as NumPy has it"),
])  # fmt: skip
def test_examples(command: str, said: str) -> None:
    done = launch(4, *command.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout


# ---- without MPI -------------------------------------------------------------------------------------
@pytest.mark.parametrize("ranks", [1, 6])
@pytest.mark.parametrize(
    "command",
    ["heat_messages.py --n 60 --steps 20", "jacobi_messages.py --n 40 --steps 10", "summa.py 30 20 25"],
)
def test_examples_simulated(command: str, ranks: int) -> None:
    done = python(*f"examples/{command} --ranks {ranks}".split(), cwd=ROOT)
    assert "NumPy has it" in done.stdout or "one process's result" in done.stdout


def test_this_process_alone_where_there_is_no_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_mpi_world", lambda: None)
    for name in world._LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    alone = dc.comm.world()
    assert (alone.rank, alone.size) == (0, 1)
    assert dc.comm.world() is alone
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.raises(dc.comm.CommError, match=r"\(PMI_SIZE is set\), but mpi4py is not installed"):
        dc.comm.world()
