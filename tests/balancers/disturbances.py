"""What happens to the replicas and to the balancer while requests are asked. Each says what must be so besides that no
request fails and none is answered wrongly."""

import asyncio
import math
import signal
import time

from balancers import HOSTS
from load import Load
from replicas import MAX_LAG, Filler

# How long a balancer may take to notice that a replica is ready again: its checks are a second apart.
NOTICED = 2
# How long a replica stands still, and within what time its requests are asked of another, in seconds: two checks in a row must
# have failed.
FROZEN, SAVED = 10, 7


async def undisturbed(stage, load):
    await asyncio.sleep(stage.seconds(2))


async def roll(stage, load=None):
    """All replicas to the other version of the model, one after another."""
    stage.serving = 1 - stage.serving
    await restart(stage)
    if load is not None:
        rolled = time.perf_counter()
        await asyncio.sleep(stage.seconds(0.5))
        assert len(load.versions) == 2, f"both versions should have answered: {load.versions}"
        late = {version for due, version in load.history if due > rolled}
        assert len(late) == 1, f"versions after the last replica was rolled: {late}"


async def restart(stage, load=None):
    """All replicas, one after another."""
    for replica in stage.replicas:
        await asyncio.to_thread(replica.stop)
        replica.start(stage.folder)
        await asyncio.to_thread(replica.wait_ready)
        await asyncio.sleep(NOTICED)


async def follower_kill(stage, load):
    """The follower of a replica is killed, and started again two seconds later."""
    victim = stage.followers[0]
    await asyncio.sleep(stage.seconds(0.5))
    victim.kill()
    await asyncio.sleep(2)
    victim.start()
    await asyncio.sleep(NOTICED)


async def follower_freeze(stage, load):
    """A follower stands still for so long that its replica leaves the balancer."""
    victim, replica = stage.followers[1], stage.replicas[1]
    victim.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(MAX_LAG + NOTICED)
        assert await asyncio.to_thread(replica.is_ready) is False, "a replica that is far behind is not ready"
        before = await answered(replica)
        await asyncio.sleep(stage.seconds(1))
        assert await answered(replica) == before, "and gets no requests"
    finally:
        victim.signal(signal.SIGCONT)
    await asyncio.to_thread(replica.wait_ready)
    await asyncio.sleep(NOTICED)


async def kill(stage, load):
    """SIGKILL, and a new process two seconds later."""
    victim = stage.replicas[1]
    await asyncio.sleep(stage.seconds(0.5))
    victim.kill()
    await asyncio.sleep(2)
    victim.start(stage.folder)
    await asyncio.to_thread(victim.wait_ready)
    await asyncio.sleep(NOTICED)
    before = await answered(victim)
    await asyncio.sleep(stage.seconds(0.5))
    assert await answered(victim) > before, "the replica that was started again gets requests"


async def freeze(stage, load):
    """SIGSTOP: connections are accepted, and nothing is answered."""
    victim, before = stage.replicas[2], stage.balancer.asked_again()
    await asyncio.sleep(stage.seconds(0.5))
    victim.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(FROZEN)
        still = load.waiting(SAVED)
    finally:
        victim.signal(signal.SIGCONT)
    await asyncio.sleep(NOTICED)
    if not stage.options.no_retries:
        assert stage.balancer.asked_again() > before, "requests of the replica that stood still are asked of another"
        assert not still, f"{still} requests that are older than {SAVED} s wait for the replica that stands still"


async def slow(stage, load):
    """Stopped for nine tenths of the time."""
    victim = stage.replicas[0]
    for _ in range(math.ceil(stage.seconds(3))):
        victim.signal(signal.SIGSTOP)
        await asyncio.sleep(0.9)
        victim.signal(signal.SIGCONT)
        await asyncio.sleep(0.1)
    await asyncio.sleep(NOTICED / 2)


async def full(stage, load):
    """The queue of one replica: another is asked. That it always is, headers.py checks: here few requests meet a full queue."""
    victim = stage.replicas[1]
    filler = Filler(victim.address, stage.words)
    await asyncio.sleep(stage.seconds(3))
    await asyncio.to_thread(filler.stop)
    assert filler.statuses.get(429, 0) > 0, f"its queue was full: {filler.statuses}"


async def full_all(stage, load):
    """The queues of all: 429 is an answer, and says when to come again. That it arrives, headers.py checks."""
    load.may_be_full = True
    fillers = [Filler(replica.address, stage.words) for replica in stage.replicas]
    await asyncio.sleep(stage.seconds(3))
    for filler in fillers:
        filler.stopping.set()
    for filler in fillers:
        await asyncio.to_thread(filler.stop)
    for filler in fillers:
        assert filler.statuses.get(429, 0) > 0, f"all queues were full: {filler.statuses}"


async def reload(stage, load):
    """A replica is taken out of the configuration, and put in again; then the whole configuration is read again."""
    out = stage.replicas[2]
    await asyncio.sleep(stage.seconds(0.5))
    await asyncio.to_thread(stage.balancer.reload, HOSTS[:2])
    # An old process answers what it has.
    await asyncio.sleep(1)
    before = await answered(out)
    await asyncio.sleep(stage.seconds(0.5))
    assert await answered(out) == before, "a replica that was taken out gets no requests"
    await asyncio.to_thread(stage.balancer.reload, HOSTS)
    await asyncio.to_thread(stage.balancer.reload_whole)
    # Replicas that are busy with another balancer's requests take longer.
    for _ in range(20):
        await asyncio.sleep(NOTICED)
        if await answered(out) > before:
            return
    raise AssertionError("a replica that was put in again gets requests")


async def answered(replica):
    return await asyncio.to_thread(replica.answered)


ALL = {one.__name__: one for one in (undisturbed, roll, kill, freeze, slow, full, full_all, reload)}
# With rows that change.
WRITERS = (undisturbed, restart, kill, freeze, slow, full, full_all, reload, follower_kill, follower_freeze)
WRITERS = {one.__name__: one for one in WRITERS}
HEAD = "{:<16} {:>8} {:>7} {:>6} {:>12} {:>8} {:>8} {:>8}"


async def run(stage, large, say):
    """What failed, in words."""
    known = WRITERS if stage.followers else ALL
    chosen = stage.options.only.split(",") if stage.options.only else list(known)
    say(
        f"\n{stage.balancer.name}, {stage.options.rate:g} requests/s"
        + ", without retries" * stage.options.no_retries
        + ", each replica follows a table of PostgreSQL" * bool(stage.followers)
    )
    say(HEAD.format("", "requests", "failed", "wrong", "asked again", "p50 ms", "p99 ms", "max ms"))
    broken = []
    for name in chosen:
        load = Load(stage.balancer.address, stage.questions, stage.options.rate)
        broken += await under(stage, load, name, known[name], say)
    if stage.options.large:
        for size, asked in large.items():
            load = Load(stage.balancer.address, asked, stage.options.rate / 4)
            await under(stage, load, f"kill, {size >> 10}K", kill, say)
    return broken


async def under(stage, load, name, disturbance, say):
    """Runs one disturbance under load, and prints its line."""
    where, broken = f"{stage.balancer.name}, {name}", []
    again = stage.balancer.asked_again()
    load.start()
    try:
        await disturbance(stage, load)
    except AssertionError as error:
        broken.append(f"{where}: {error}")
    await load.stop()
    # A new process of the balancer counts from 0.
    again = stage.balancer.asked_again() - again if name != "reload" else "-"
    latencies = [f"{load.percentile(share):.1f}" for share in (0.5, 0.99, 1)]
    line = HEAD.format(name, load.asked, len(load.failures), len(load.wrong), again, *latencies)
    line += f"  ({load.cut} of them after a part of the answer)" if load.cut else ""
    line += f"  ({load.statuses[429]} times 429)" if load.statuses[429] else ""
    say(line)
    for what, these in (("failed", load.failures), ("wrong", load.wrong)):
        if these:
            broken.append(f"{where}: {len(these)} requests {what}, such as: {these[0]}")
    return broken
