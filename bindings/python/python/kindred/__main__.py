"""Runs the program `kindred`, which is beside this module."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program, with the same arguments."""
    program = Path(__file__).parent / "bin" / "kindred"
    if not program.is_file():
        sys.exit(
            "this package was built without the program kindred; build it by `maturin build --release`, or the program alone by "
            "`cargo build --release` in the root of the repository"
        )
    if not os.access(program, os.X_OK):
        program.chmod(0o755)
    os.execv(program, ["kindred", *sys.argv[1:]])


if __name__ == "__main__":
    main()
