"""Work of our own collects no garbage of the program's."""

import gc

import pytest

from dcarray.core import behind, open_door
from dcarray.core.uncollected import uncollected


def test_a_block_without_collections() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()  # the program does so by itself
    finally:
        gc.enable()


def test_what_is_behind_a_door_is_imported_without_collections(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    with open(f"{tmp_path}/behind_a_door.py", "w") as file:
        file.write("import gc\ncollects = gc.isenabled()\n")
    monkeypatch.setitem(behind, "test", "behind_a_door")
    assert open_door("test").collects is False and gc.isenabled()
    assert open_door("test") is open_door("test")
