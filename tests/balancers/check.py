"""Three replicas of Kindred behind HAProxy and Envoy, under an open loop, while things happen to them: no request may fail,
and none may be answered wrongly. scripts/check-balancers runs this."""

import argparse
import asyncio
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True

import disturbances
import headers
import questions
from balancers import BALANCERS, HOSTS, free_port
from replicas import Replica, synthetic


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/check-balancers", description=__doc__)
    parser.add_argument("--kindred", required=True, metavar="PROGRAM")
    for name in BALANCERS:
        parser.add_argument(f"--{name}", required=True, metavar="PROGRAM")
    both = ",".join(BALANCERS)
    parser.add_argument("--balancers", default=both, metavar="NAMES", help="[%(default)s]")
    parser.add_argument("--rate", type=float, default=60, metavar="N", help="requests a second [%(default)g]")
    parser.add_argument("--scale", type=float, default=1, metavar="X", help="how long everything takes [%(default)g]")
    every = ", ".join(disturbances.ALL | disturbances.WRITERS)
    parser.add_argument("--only", metavar="NAMES", help=f"some of {every}; comma-separated")
    parser.add_argument("--writers", action="store_true", help="each replica follows PostgreSQL, while a writer commits")
    parser.add_argument("--one-by-one", action="store_true", help="not both balancers at the same time, for figures")
    parser.add_argument("--large", action="store_true", help="also bodies over 64 KB, which may fail, while a replica is killed")
    parser.add_argument("--no-retries", action="store_true", help="shows what fails if the balancers ask only once")
    parser.add_argument("--keep", metavar="DIR", help="a folder for logs and configurations [a temporary one]")
    return parser.parse_args()


class Stage:
    """Replicas, a balancer before them, and what to ask."""

    def __init__(self, balancer, replicas, folders, asked, words, options):
        self.balancer, self.replicas, self.folders = balancer, replicas, folders
        self.questions, self.words, self.options = asked, words, options
        # Of each replica whose rows change.
        self.followers = []
        # The index of the version that is served.
        self.serving = 0

    def seconds(self, usual):
        return usual * self.options.scale

    @property
    def folder(self):
        return self.folders[self.serving]


async def check(name, options, folders, scratch, say):
    """With one balancer and its replicas: what failed, in words."""
    kind, program, port = BALANCERS[name], getattr(options, name), free_port(*HOSTS)
    words = (folders[0] / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
    asked, large = questions.usual(words, dimensions=64), questions.large(dimensions=64)
    broken = await headers.check(kind, program, scratch / "headers")
    replicas = [Replica(options.kindred, (host, port), scratch) for host in HOSTS]
    balancer = kind(program, scratch, port)
    try:
        # What each version answers, asked of a replica alone.
        for folder in reversed(folders):
            replicas[0].kill()
            replicas[0].start(folder)
            await asyncio.to_thread(replicas[0].wait_ready)
            for question in asked + sum(large.values(), []):
                await asyncio.to_thread(question.ask, replicas[0].address)
        for replica in replicas[1:]:
            replica.start(folders[0])
        for replica in replicas[1:]:
            await asyncio.to_thread(replica.wait_ready)
        balancer.configure(retries=not options.no_retries)
        balancer.start()
        await asyncio.to_thread(balancer.wait_answers)
        await asyncio.sleep(disturbances.NOTICED)
        stage = Stage(balancer, replicas, folders, asked, words, options)
        return broken + await disturbances.run(stage, large, say)
    finally:
        await asyncio.to_thread(balancer.stop)
        for replica in replicas:
            replica.kill()


async def check_writers(name, options, _, scratch, say):
    """The same with replicas whose rows change: what failed, in words."""
    import writers
    from postgres import Postgres

    kind, program, port = BALANCERS[name], getattr(options, name), free_port(*HOSTS)
    replicas = [writers.TableReplica(options.kindred, (host, port), scratch) for host in HOSTS]
    balancer, followers, server = kind(program, scratch, port), [], Postgres(max_wal_senders=10)
    try:
        writer = writers.Writer(server)
        for replica in replicas:
            replica.start(None)
            await asyncio.to_thread(replica.wait_ready)
            followers.append(writers.Follower(server, replica.address, scratch))
        await asyncio.to_thread(writers.wait_for_rows, replicas, followers)
        asked = writers.Questions(writer)
        for question in asked.static:
            question.ask(replicas[0].address)
        writer.thread.start()
        balancer.configure(retries=not options.no_retries)
        balancer.start()
        await asyncio.to_thread(balancer.wait_answers)
        await asyncio.sleep(disturbances.NOTICED)
        stage = Stage(balancer, replicas, [None], asked, [f"s{row}" for row in range(writers.ROWS)], options)
        stage.followers = followers
        broken = await disturbances.run(stage, {}, say)
        await asyncio.to_thread(writer.stop)
        say(f"{writer.commits:,} transactions of two rows meanwhile")
        return broken + [f"{name}: a follower ended: {one.said()}" for one in followers if one.process.poll() is not None]
    finally:
        await asyncio.to_thread(balancer.stop)
        for one in followers + replicas:
            one.kill()
        server.close()


async def run(options, scratch):
    folders = [] if options.writers else [synthetic(options.kindred, scratch, seed) for seed in (1, 2)]
    broken = []

    async def one(name):
        lines = []
        say = print if options.one_by_one else lines.append
        (scratch / name).mkdir(exist_ok=True)
        of_name = check_writers if options.writers else check
        broken.extend(await of_name(name, options, folders, scratch / name, say))
        for line in lines:
            print(line)

    names = options.balancers.split(",")
    if options.one_by_one:
        for name in names:
            await one(name)
    else:
        await asyncio.gather(*map(one, names))
    return broken


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(options.keep or temporary).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        broken = asyncio.run(run(options, scratch))
    for one in broken:
        print(f"FAILED: {one}")
    sys.exit(1 if broken else 0)


main()
