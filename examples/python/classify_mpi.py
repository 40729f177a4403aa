"""Classifies the lines of a file by MPI: mpirun -n 4 python classify_mpi.py texts.txt labels.tsv

Each process answers a contiguous part of the lines, and one file is written by all. A label is the same from any number of processes.
"""

import os
import sys

from mpi4py import MPI

import kindred

world = MPI.COMM_WORLD
with open(sys.argv[1], encoding="utf-8") as file:
    texts = file.read().splitlines()
first, end = (len(texts) * part // world.size for part in (world.rank, world.rank + 1))
model = kindred.demo(device="cpu", threads=max(1, len(os.sched_getaffinity(0)) // world.size))
answers = model.classify(texts[first:end])
best = ["\t".join([a.labels[0].name, repr(a.labels[0].probability)]) if a.labels else "\t" for a in answers]
lines = "".join(f"{line}\n" for line in best).encode()
out = MPI.File.Open(world, sys.argv[2], MPI.MODE_CREATE | MPI.MODE_WRONLY)
out.Set_size(0)
out.Write_at_all(world.exscan(len(lines)) or 0, lines)
out.Close()
if world.rank == 0:
    print(f"{len(texts)} lines by {world.size} processes")
