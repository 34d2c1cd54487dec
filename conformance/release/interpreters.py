"""Interpreters of several versions of Python: of this system, pyenv, or a Debian installed in a folder.

Only the standard library is used, so that any Python from 3.11 on runs these commands.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "pythons"
SUITE = "sid"
"""The suite of Debian that has most versions at once."""
WITHOUT = ("no-compiler", "no-proc")
"""What an interpreter can be run without."""

# Runs a command where a folder is the whole system, or in this one ("/"), and takes from it a C compiler or
# /proc.  The mounts are this command's alone, and end with it.
_ENTER = r"""
root=${1%/} work=$2 without=$3; shift 3
if [ -n "$root" ]; then
  mkdir -p "$root$work" "$root/etc/ssl"
  mount --bind "$work" "$root$work"
  mount --rbind /dev "$root/dev"
  mount -o bind,ro /etc/ssl "$root/etc/ssl"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  [ "$without" = no-proc ] || mount -t proc proc "$root/proc"
elif [ "$without" = no-proc ]; then
  mount -t tmpfs none /proc
fi
if [ "$without" = no-compiler ]; then
  for file in "$root"/usr/bin/cc "$root"/usr/bin/*gcc "$root"/usr/bin/*gcc-[0-9]* "$root"/usr/bin/clang*; do
    [ ! -f "$file" ] || mount --bind /dev/null "$(readlink -f "$file")"
  done
fi
[ -z "$root" ] || exec chroot "$root" env -C "$work" "$@"
exec "$@"
"""


class Missing(Exception):
    """Raised if an interpreter is not available and cannot be installed; the message says why."""


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter, and the system folder in which it runs."""

    wanted: str  # "3.13", or "3.13/no-compiler"
    program: str  # the path of the interpreter, as its system sees it
    system: str = "/"  # the folder that is its whole system
    without: str = ""  # one of `WITHOUT`

    def enter(self, *command: str | Path) -> list[str]:
        """Return a command that runs another one in this interpreter's system, with this repository's
        files."""
        words = [str(word) for word in command]
        if self.system == "/" and not self.without:
            return words
        inside = ["unshare", "--mount", "sh", "-e", "-c", _ENTER, "sh", self.system, str(ROOT), self.without]
        return [*inside, *words]

    def venv(self, folder: Path, keep: bool = False) -> Path:
        """Create a virtual environment, or ``keep`` an existing one, and return its interpreter."""
        if not keep or not (folder / "pyvenv.cfg").exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(self.enter(self.program, "-m", "venv", folder), cwd=ROOT, check=True)
        python = folder / "bin" / "python"
        subprocess.run(self.enter(python, "-m", "pip", "install", "-qq", "-U", "pip"), cwd=ROOT, check=True)
        return python

    def output(self, *command: str | Path) -> str:
        """Run a command in this interpreter's system, and return what it prints."""
        done = subprocess.run(self.enter(*command), cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.strip()


def find(wanted: str) -> Interpreter:
    """Return the interpreter of a version such as ``3.13``, or of a path.

    A suffix such as ``/no-compiler`` says what the interpreter's system lacks.

    Raises
    ------
    Missing
        If the interpreter is not available.
    """
    version, _, without = wanted.rpartition("/") if wanted.endswith(WITHOUT) else (wanted, "", "")
    if without and (os.geteuid() or not shutil.which("unshare")):
        raise Missing("only the superuser can hide a compiler or /proc, by unshare")
    if "/" in version:
        if not os.access(version, os.X_OK):
            raise Missing(f"there is no {version}")
        return Interpreter(wanted, version, without=without)
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    own = sorted(pyenv.glob(f"{version}.*/bin/{name}"))
    for program in [shutil.which(name), *map(str, own[-1:])]:
        if program and _has_venv(program):
            return Interpreter(wanted, program, without=without)
    return Interpreter(wanted, f"/usr/bin/{name}", _debian(name), without)


def _has_venv(program: str) -> bool:
    done = subprocess.run([program, "-c", "import ensurepip, venv"], capture_output=True, check=False)
    return done.returncode == 0


def _debian(name: str) -> str:
    """Return the folder of a Debian system with an interpreter, after installing what is missing."""
    system = OUT / f"debian-{SUITE}"
    if os.geteuid() or not shutil.which("debootstrap"):
        raise Missing(f"neither {name} nor pyenv's is here, and Debian's needs debootstrap, as superuser")
    if not (system / "usr" / "bin" / "gcc").exists():
        print(f"== Debian {SUITE}, into {system.relative_to(ROOT)} (some minutes)", flush=True)
        shutil.rmtree(system, ignore_errors=True)
        system.parent.mkdir(parents=True, exist_ok=True)
        needed = "--include=gcc,libc6-dev"
        _quietly(["debootstrap", "--variant=minbase", needed, SUITE, str(system)], "debootstrap fails")
    if not all((system / "usr" / "bin" / file).exists() for file in (name, f"{name}-config")):
        print(f"== {name}, from Debian {SUITE}", flush=True)
        packages = [f"{name}-venv", f"{name}-dev"]
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        there = Interpreter(name, name, str(system))
        # Its own folder of certificates, into which packages write: not this system's.
        quiet = ["sh", "-c", 'umount /etc/ssl && DEBIAN_FRONTEND=noninteractive exec "$@"', "sh"]
        _quietly(there.enter(*quiet, *install), f"Debian {SUITE} has no {name}")
    return str(system)


def _quietly(command: Sequence[str], failure: str) -> None:
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise Missing(f"{failure}: {done.stdout.strip().splitlines()[-1:]}")


def copy_of_the_sources(folder: Path) -> Path:
    """Copy the files that git tracks or does not ignore to a new folder, and return the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, to = ROOT / name, folder / name
        if os.path.lexists(source):
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to, follow_symlinks=False)
    return folder
