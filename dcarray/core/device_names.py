"""Names of devices: the class of names, the list of devices, and the resolution of a given name."""

from __future__ import annotations

from typing import Any, Self

from .processes import communicator, rank_on_node
from .unpatched import open_file

__all__ = ["AUTO", "Device", "cpu_name", "devices", "resolve"]

AUTO = "auto"
"""The name of the processor and a device together, of which each recording takes one."""


class Device(str):
    """The name of a device, as a string that knows the device's kind and description.

    Attributes
    ----------
    name : str
        As ``device=`` takes it: ``"cpu"``, ``"opencl:0"``.
    kind : str
        The name without its number.
    description : str
        The maker's name for it, and its size.
    """

    __slots__ = ("description",)
    description: str

    def __new__(cls, name: str, description: str = "") -> Self:
        """Return a name, which is equal to the plain string."""
        self = super().__new__(cls, name)
        self.description = description
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.description)

    @property
    def name(self) -> str:
        """The name as a plain string."""
        return str(self)

    @property
    def kind(self) -> str:
        """The name without its number."""
        return self.partition(":")[0]


def cpu_name() -> str:
    """Return the name that the maker gave the processor."""
    try:
        with open_file("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    import platform

    return platform.processor() or platform.machine()


def devices() -> tuple[Device, ...]:
    """Return the devices on which arrays can be: the processor first, then those of each kind.

    Returns
    -------
    tuple of str
        Their names; each has attributes ``name``, ``kind`` and ``description``, too.

    See Also
    --------
    info : also says of each kind without a device what is missing.

    Examples
    --------
    >>> import dcarray as dc
    >>> dc.devices()[0]
    'cpu'
    """
    from dcarray.lowering.gpu import devices  # only who asks for devices has their vendors' packages loaded

    return (Device("cpu", cpu_name()), *(Device(one.name, one.description) for one in devices.find()))


def resolve(name: Any) -> str:
    """Return the full name of a device: ``"opencl"`` is the first one of its kind, or, where several ranks
    run the program, this rank's; ``"auto"`` is the choice.

    Raises
    ------
    ValueError
        If there is no such device; the message lists those there are, and says why a kind is missing.
    """
    if isinstance(name, str) and name in ("cpu", AUTO):
        return str(name)
    from dcarray.lowering.gpu import devices

    if name in devices.KINDS and communicator() is not None:
        there = [one for one in devices.find() if one.name.startswith(f"{name}:")]
        if there:
            return there[rank_on_node() % len(there)].name
    return devices.get(name).name
