"""The command line: ``python -m conformance NAME`` runs the command ``conformance.NAME``."""

from __future__ import annotations

import pkgutil
import runpy
import sys

import conformance

if __name__ == "__main__":
    names = [
        module.name for module in pkgutil.iter_modules(conformance.__path__) if module.name != "__main__"
    ]
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit("usage: python -m conformance NAME [arguments]; NAME is one of " + ", ".join(names))
    del sys.argv[0]
    runpy.run_module(f"conformance.{sys.argv[0]}", run_name="__main__", alter_sys=True)
