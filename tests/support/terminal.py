#!/usr/bin/env python3
"""Types into a program on a pseudo-terminal and prints, as JSON, what it wrote and its exit code.

usage: terminal.py PROGRAM [ARGUMENT...]    with steps as a JSON list on standard input:
  {"wait": "text"}    until the program has written this, since the last wait
  {"type": "keys"}    typed at once
  {"kill": 123}       this process, with SIGKILL
A step that takes longer than 60 seconds ends it all, with what was written so far.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 60
ROWS, COLUMNS = 40, 120


def run(command, steps, environment=None):
    """The bytes that the program wrote, as text, and its exit code; None if it had to be killed."""
    process, terminal = pty.fork()
    if process == 0:
        try:
            os.execvpe(command[0], command, environment or os.environ)
        finally:
            os._exit(127)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written, seen = b"", 0

    def read(until):
        nonlocal written
        ready, _, _ = select.select([terminal], [], [], max(0, until - time.monotonic()))
        try:
            more = os.read(terminal, 65536) if ready else b""
        except OSError:
            # So Linux says that nobody has the other end open.
            more = b""
        written += more
        return bool(more)

    failed = False
    for step in steps:
        if "type" in step:
            os.write(terminal, step["type"].encode())
            continue
        if "kill" in step:
            os.kill(step["kill"], signal.SIGKILL)
            continue
        wanted, until = step["wait"].encode(), time.monotonic() + PATIENCE
        while wanted not in written[seen:] and read(until):
            pass
        if wanted not in written[seen:]:
            failed = True
            break
        seen = written.index(wanted, seen) + len(wanted)
    until = time.monotonic() + (0 if failed else PATIENCE)
    while read(until):
        pass
    finished, status = os.waitpid(process, os.WNOHANG)
    while finished == 0 and time.monotonic() < until:
        time.sleep(0.02)
        finished, status = os.waitpid(process, os.WNOHANG)
    if finished == 0:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return written.decode(errors="replace"), None
    return written.decode(errors="replace"), os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    said, code = run(sys.argv[1:], json.load(sys.stdin))
    json.dump({"said": said, "code": code}, sys.stdout)
