"""``python -m kindred.follow``: the same as ``kindred follow``."""

from ._cli import main

main()
