"""The packages whose tests are known to run, with their requirements."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LARGE", "PACKAGES", "Package", "package_of"]


@dataclass(frozen=True)
class Package:
    """A package and its tests."""

    name: str  # its name on PyPI
    module: str = ""  # the name by which it is imported; empty: look it up once the package is installed
    tests: tuple[str, ...] = ()  # modules and packages whose tests run; if empty, all of the package's tests
    requirements: tuple[str, ...] = ()  # further packages that the tests need
    options: tuple[str, ...] = ()  # options of pytest


PACKAGES = (
    Package("PyWavelets", "pywt"),
    Package(
        "nibabel", "nibabel", requirements=("pytest-httpserver", "scipy", "h5py", "pydicom", "matplotlib")
    ),
    Package("colour-science", "colour"),
    # All of stats and tsa takes hours.
    Package(
        "statsmodels",
        "statsmodels",
        (
            *(
                f"statsmodels.stats.tests.test_{part}"
                for part in ("diagnostic", "multi", "proportion", "weightstats")
            ),
            "statsmodels.tsa.tests.test_arima_process",
            "statsmodels.tsa.filters",
        ),
    ),
    # Later ones come without their tests.
    Package("scikit-image", "skimage", requirements=("scikit-image<0.26", "matplotlib", "PyWavelets")),
    Package(
        "astropy",
        "astropy",
        ("astropy.stats", "astropy.modeling", "astropy.convolution"),
        ("pytest<9", "pytest-astropy", "scipy", "matplotlib"),
    ),
    Package("networkx", "networkx", ("networkx.linalg", "networkx.tests.test_convert_numpy"), ("scipy",)),
    Package("emcee", "emcee", ("emcee.tests.unit",), ("scipy", "h5py")),
    Package("pyamg", "pyamg"),
    Package("quantities", "quantities"),
    Package("bottleneck", "bottleneck"),
    Package("shapely", "shapely"),
)
LARGE = (
    Package("numpy", "numpy", requirements=("hypothesis",)),
    Package("scipy", "scipy", requirements=("hypothesis", "pooch"), options=("-m", "not slow")),
    Package("pandas", "pandas", requirements=("hypothesis",), options=("-m", "not slow and not network")),
)
"""Packages whose tests take hours: `conformance.packages.files` runs shares of them."""


def package_of(name: str) -> Package:
    """Return the package with a name on PyPI or of a module; a new entry with that name if it is unknown."""
    wanted = name.lower().replace("_", "-")
    for package in (*PACKAGES, *LARGE):
        if wanted in (package.name.lower(), package.module.replace("_", "-")):
            return package
    return Package(name)
