"""Runs the program `kindred`, which is beside this module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program, with the same arguments; on Windows, where a process can't, starts it and waits. ``follow`` is part of this
    package instead."""
    if sys.argv[1:2] == ["follow"]:
        from .follow._cli import main as follow

        follow(sys.argv[2:])
    program = Path(__file__).parent / "bin" / "kindred"
    if not program.is_file():
        sys.exit(
            "this package was built without the program kindred; build it by `maturin build --release`, or the program alone by "
            "`cargo build --release` in the root of the repository"
        )
    if not os.access(program, os.X_OK):
        program.chmod(0o755)
    arguments = ["kindred", *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(_wait_for(program, arguments))
    os.execv(program, arguments)


def _wait_for(program: Path, arguments: list[str]) -> int:
    """Starts a program, and returns its exit code. Ctrl-C is the program's."""
    with subprocess.Popen(arguments, executable=program) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                pass


if __name__ == "__main__":
    main()
