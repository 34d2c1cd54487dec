"""The command ``python -m dcarray cache``: exports compiled code and plans of the cache folder to a file, and
back.

Nothing in such a file is run or unpickled: entries are compared with their checksums, and copied.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from dcarray.core import config
from dcarray.lowering.cpu.machine_fingerprint import machine_fingerprint
from dcarray.lowering.runtime.disk import MAX_BYTES, DiskCache, checked, digest, is_private, sha256
from dcarray.plans.disk_store import source_folders
from dcarray.plans.plan_folder import shared_folder

__all__ = ["main"]

_PARTS = ("", "plans")  # folders in the cache folder: kernels, and plans; code for devices stays
_SUFFIX = ".dcarray"
_MEMBER = re.compile(r"([0-9a-f]{16})/(?:about\.json|(plans/)?([0-9a-f]{64}))")
_DIGEST = re.compile(rb"[0-9a-f]{64}")

Found = dict[str, tuple[dict[str, str], dict[tuple[str, str], bytes]]]
"""By section: for which machine and versions it is, and its entries by part and key."""


class _Refused(Exception):
    """Raised when a file or folder is not a valid export or cache."""


def _about() -> dict[str, str]:
    """Return the properties of machine and versions for which this process's compiled code is valid."""
    import platform

    import llvmlite

    return {
        "machine": machine_fingerprint(), "processor": _model() or platform.machine(), "Python": sys.version,
        "NumPy": np.__version__, "llvmlite": llvmlite.__version__, "dcarray": digest(*source_folders()),
    }  # fmt: skip


def _model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return model[1] if model else ""


def _own_folder() -> Path:
    folder = config.current().cache_dir
    if folder is None:
        raise _Refused("there is no cache folder: DCARRAY_CACHE_DIR is empty")
    return Path(folder)


def _files(folder: Path) -> list[Path]:
    return sorted(path for part in _PARTS for path in (folder / part).glob(f"*{_SUFFIX}"))


def _entries(folder: Path) -> dict[tuple[str, str], bytes]:
    """Return the entries of a cache folder, without damaged ones and those about files of this machine."""
    entries = {}
    for part in _PARTS:
        store = DiskCache(str(folder / part))
        for path in (folder / part).glob(f"*{_SUFFIX}"):
            code = store.read_own(path.stem)
            if code is not None and not _DIGEST.fullmatch(code):
                entries[part, path.stem] = path.read_bytes()
    return entries


def _read(path: Path) -> Found:
    """Return all sections of an exported file, with the entries whose checksums are right."""
    try:
        with path.open("rb") as file:
            if not is_private(os.fstat(file.fileno()), stat.S_ISREG, (os.geteuid(), 0)):
                raise _Refused(
                    f"{path}: you or root must own it, and no other user may write to it (chmod go-w)"
                )
            with zipfile.ZipFile(file) as archive:
                return _sections(path, archive)
    except OSError as error:
        raise _Refused(f"{path}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        raise _Refused(f"{path}: damaged, or no export of dcarray ({error})") from None


def _sections(path: Path, archive: zipfile.ZipFile) -> Found:
    """Return the sections of an export, after all checks but those of the machine and versions."""
    sections: Found = {}
    if sum(member.file_size for member in archive.infolist()) > 8 * MAX_BYTES:
        raise _Refused(f"{path}: larger than any export of dcarray")
    for member in archive.infolist():
        parts = _MEMBER.fullmatch(member.filename)
        if not parts:
            raise _Refused(f"{path}: no export of dcarray: it has {member.filename!r}")
        about, entries = sections.setdefault(parts[1], ({}, {}))
        content = archive.read(member)
        if parts[3] is None:
            about.update(json.loads(content))
        elif checked(parts[3], content) is None:
            raise _Refused(f"{path}: damaged: {member.filename}")
        else:
            entries[(parts[2] or "").rstrip("/"), parts[3]] = content
    for name, (about, _) in sections.items():
        if about.keys() != _about().keys() or _section_name(about) != name:
            raise _Refused(f"{path}: damaged: section {name} does not say what it is for")
    return sections


def _section_name(about: dict[str, str]) -> str:
    return sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def _export(path: Path, add: bool) -> str:
    entries = _entries(_own_folder())
    if not entries:
        raise _Refused(f"{_own_folder()}: nothing to export")
    if path.exists() and not add:
        raise _Refused(f"{path}: exists; --add adds this machine's code to it")
    sections = _read(path) if path.exists() else {}
    sections[_section_name(_about())] = (_about(), entries)
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.fchmod(descriptor, 0o644)  # with other masks, others could write to it, and it would be refused
        with open(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, (about, held) in sections.items():
                archive.writestr(f"{name}/about.json", json.dumps(about, sort_keys=True))
                for (part, key), content in held.items():
                    archive.writestr("/".join(filter(None, (name, part, key))), content)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    kinds = f"for {len(sections)} {'kind' if len(sections) == 1 else 'kinds'} of machine and versions"
    return f"{path}: {len(entries)} entries of {_own_folder()}, {kinds}"


def _import(path: Path, into: Path | None) -> str:
    """Add the entries of an export to the cache folder, or to the folder ``into``; return a report."""
    sections, here = _read(path), _about()
    if into is None:
        taken = {name: section for name, section in sections.items() if section[0] == here}
    else:
        taken = sections
    if not taken:
        lines = [f"{path}: nothing in it is for this machine and these versions"]
        for about, _ in sections.values():
            differ = [
                f"{name} {about[name]!r}, here {here[name]!r}" for name in here if about[name] != here[name]
            ]
            lines.append("  it has: " + "; ".join(differ))
        raise _Refused("\n".join(lines))
    folder = into or _own_folder()
    new, count = not folder.exists(), 0
    for _, entries in taken.values():
        for (part, key), content in entries.items():
            code = checked(key, content)
            assert code is not None  # as `_sections` has seen
            store = DiskCache(str(folder / part), limit=MAX_BYTES if into is None else sys.maxsize)
            store.write(key, code)
            if store.read_own(key) != code:
                raise _Refused(f"{folder / part}: cannot be written, or others may write to it")
            count += 1
    if into is not None:  # others are to read it
        for file in _files(folder):
            file.chmod(0o644)
        for place in ({folder} if new else set()) | {folder / part for part in _PARTS if part}:
            if place.is_dir():
                place.chmod(0o755)
    return f"{folder}: {count} entries of {path}"


def _info(path: Path | None) -> str:
    if path is not None:
        lines = [f"{path}:"]
        for about, entries in _read(path).values():
            match = "" if about == _about() else " (not for this machine or these versions)"
            size = sum(map(len, entries.values()))
            lines += [f"  {len(entries)} entries, {size:,} bytes{match}"]
            lines += [f"    {name:<10} {text}" for name, text in about.items()]
        return "\n".join(lines)
    folders: dict[str, Any] = {
        "cache folder": config.current().cache_dir,
        "shared, only read": shared_folder(),
    }
    lines = []
    for what, folder in folders.items():
        files = _files(Path(folder)) if folder else []
        size = sum(file.stat().st_size for file in files)
        lines.append(
            f"{what:<18} {folder or 'none'}" + (f": {len(files)} entries, {size:,} bytes" if folder else "")
        )
    return "\n".join(lines)


def _clear() -> str:
    files = _files(_own_folder())
    for file in files:
        file.unlink(missing_ok=True)
    return f"{_own_folder()}: {len(files)} entries removed"


def main(argv: list[str]) -> int:
    """Run the command with its arguments and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m dcarray cache", description="Compiled code that travels."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="write the cache folder into a file")
    export.add_argument("file", type=Path)
    export.add_argument("--add", action="store_true", help="to a file of other machines or versions")
    taking = commands.add_parser("import", help="put what is for this machine into the cache folder")
    taking.add_argument("file", type=Path)
    taking.add_argument("--into", type=Path, help="put all into this folder, for DCARRAY_CACHE_SHARED")
    info = commands.add_parser("info", help="what the cache folders hold, or a file")
    info.add_argument("file", type=Path, nargs="?")
    commands.add_parser("clear", help="empty the cache folder of kernels and plans")
    given = parser.parse_args(argv)
    try:
        if given.command == "export":
            print(_export(given.file, given.add))
        elif given.command == "import":
            print(_import(given.file, given.into))
        else:
            print(_info(given.file) if given.command == "info" else _clear())
    except _Refused as error:
        print(error, file=sys.stderr)
        return 1
    return 0
