"""The readers and writers of `soak-rows`. They hold each answer against what was acknowledged before it was asked for, and
what had begun when it came."""

import collections
import contextlib
import http.client
import json
import multiprocessing
import random
import sys
import threading
import time
import urllib.parse

import changing_rows as rows
from changing_rows import Wrong, insist


class Failed(Exception):
    """An answer with a status that it should not have."""


class Shared:
    """What all processes know. A change has begun before it is sent, and is acknowledged once it is answered."""

    def __init__(self, groups, writers):
        fork = multiprocessing.get_context("fork")
        self.begun, self.acknowledged = fork.RawArray("Q", groups), fork.RawArray("Q", groups)
        self.position = fork.Value("Q", 0)
        self.lives, self.down = fork.Value("Q", 0), fork.Value("b", 0)
        self.stop, self.pause = fork.Event(), fork.Event()
        self.at_rest = fork.RawArray("b", writers)
        self.counts, self.failures = collections.Counter(), []
        self.lock = threading.Lock()
        self.port = self.version = None
        self.keys = {}

    def count(self, text, number=1):
        with self.lock:
            self.counts[text] += number

    def fail(self, text):
        with self.lock:
            self.failures.append(text)
        print(f"failed: {text}"[:600], file=sys.stderr, flush=True)

    def seen(self, position):
        with self.position.get_lock():
            self.position.value = max(self.position.value, position)


class Cut(Exception):
    """A kill cut the connection."""


class Caller:
    """A connection with the key of readers, of writers or of the operator, which is made again after a kill."""

    def __init__(self, shared, key):
        self.shared, self.connection, self.life = shared, None, None
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {shared.keys[key]}"}

    def once(self, method, path, body=None, headers={}):
        """The status and the answer."""
        shared = self.shared
        while shared.down.value and not shared.stop.is_set():
            time.sleep(0.01)
        if self.life != shared.lives.value:
            self.connection = None
        if self.connection is None:
            self.life = shared.lives.value
            self.connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=60)
        try:
            sent = None if body is None else json.dumps(body)
            self.connection.request(method, path, sent, {**self.headers, **headers})
            response = self.connection.getresponse()
            status, text = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.connection = None
            if shared.down.value or self.life != shared.lives.value:
                shared.count("requests that a kill cut")
                raise Cut from error
            raise
        shared.count("requests")
        return status, json.loads(text)

    def ask(self, method, path, body=None, headers={}, but=()):
        """The answer to a question, which is repeated if a kill cuts it. It is at no earlier position than all that were
        seen before it was asked. An answer with a status of `but` is that status."""
        while True:
            least = self.shared.position.value
            try:
                status, answer = self.once(method, path, body, headers)
                break
            except Cut:
                continue
        if status in but:
            return status
        if status != 200:
            raise Failed(f"{method} {path}: {status} {answer}")
        if "position" in answer:
            insist(answer["version"] == self.shared.version, f"{path}: version {answer['version']}")
            insist(answer["position"] >= least, f"{path}: position {answer['position']} after {least}")
            self.shared.seen(answer["position"])
        return answer


class Writer:
    """Has groups of its own: nobody else changes their rows."""

    def __init__(self, shared, number, writers):
        self.shared, self.number, self.caller = shared, number, Caller(shared, "writer")
        self.own, self.sent, self.position = range(number, len(shared.begun), writers), 0, 0

    def turn(self):
        self.shared.at_rest[self.number] = self.shared.pause.is_set()
        if self.shared.pause.is_set():
            time.sleep(0.01)
            return
        first = random.choice(self.own)
        self.change([first] if random.random() < 0.9 else random.sample(self.own, min(32, len(self.own))))
        time.sleep(random.choice([0, 0, 0.01]))

    def change(self, groups):
        """The next change of the first group, together with the others that do the same next."""
        shared = self.shared
        # At rest, until now, begun changes are acknowledged.
        group = groups[0]
        live = rows.lives(shared.begun[group] + 1)
        before = rows.lives(shared.begun[group])
        groups = [one for one in groups if rows.lives(shared.begun[one] + 1) == live]
        groups = [one for one in groups if rows.lives(shared.begun[one]) == before]
        changes = {one: shared.begun[one] + 1 for one in groups}
        for one, change in changes.items():
            shared.begun[one] = change
        several = [(one, member, change) for one, change in changes.items() for member in range(rows.MEMBERS)]
        self.sent += 1
        headers = {"Idempotency-Key": f"{self.number}-{self.sent}"}
        by_filter = not live and len(groups) == 1 and random.random() < 0.5
        if live:
            path, body = "/models/t/rows", {"rows": [rows.row(*one) for one in several]}
        elif by_filter:
            # It has no key; when it is sent again, the rows may be deleted already.
            path, body, headers = "/models/t/rows/delete", {"filter": f"g = {group}"}, {}
        else:
            path, body = "/models/t/rows/delete", {"keys": [rows.key(one, member) for one, member, _ in several]}
        tries, status = 0, None
        while status is None:
            tries += 1
            least = shared.position.value if tries == 1 else least
            with contextlib.suppress(Cut):
                status, answer = self.caller.once("POST", path, body, headers)
        if status != 200:
            raise Failed(f"{path}: {status} {answer}")
        effect = tuple(answer[name] for name in ("inserted", "replaced", "deleted"))
        must = (0, 0, len(several)) if not live else (0, len(several), 0) if before else (len(several), 0, 0)
        again = by_filter and tries > 1 and effect == (0, 0, 0)
        insist(effect == must or again, f"{path} for {changes}: {effect} instead of {must}, try {tries}")
        # The rows of a change that was repeated may have been seen before.
        later = answer["position"] > (least if tries == 1 else self.position) or again
        insist(later, f"{path}: position {answer['position']} after {least} and {self.position}, try {tries}")
        insist(answer["durable"] and answer["version"] == shared.version, f"{path}: {answer}")
        self.position = answer["position"]
        shared.seen(self.position)
        for one, change in changes.items():
            shared.acknowledged[one] = change
        if answer["repeated"]:
            shared.count("changes that were done before a kill cut their answer")
        shared.count("changes")
        shared.count("rows put" if live else "rows deleted", len(several))


class Reader:
    def __init__(self, shared):
        self.shared, self.caller, self.frozen = shared, Caller(shared, "reader"), {}

    def turn(self):
        kinds = [self.near, self.whole, self.row, self.counted, self.of_frozen, self.pages]
        random.choices(kinds, [40, 25, 15, 8, 10, 1])[0]()

    def some(self):
        group = random.randrange(len(self.shared.begun))
        return group, random.randrange(rows.MEMBERS), list(self.shared.acknowledged)

    def near(self):
        group, member, least = self.some()
        query = rows.vector(group, member, max(least[group], 1))
        asked = {"vector": query, "k": random.choice([1, 10, 10, 50]), "with_attributes": True}
        neighbors = self.caller.ask("POST", "/models/t/nearest", asked)["neighbors"]
        most = list(self.shared.begun)
        rows.check_neighbors(neighbors, query, least, most)
        if least[group] == most[group] and rows.lives(least[group]):
            insist(neighbors[0]["word"] == rows.key(group, member), f"{group}-{member} is not nearest to itself")
            self.shared.count("rows that are nearest to themselves")
        self.shared.count("searches of all rows")

    def whole(self):
        """An answer that has the rows of one group, which are all known."""
        group, member, least = self.some()
        query = rows.vector(group, member, max(least[group], 1))
        asked = {"vector": query, "filter": f"g = {group}", "with_attributes": True}
        neighbors = self.caller.ask("POST", "/models/t/nearest", asked)["neighbors"]
        most = list(self.shared.begun)
        rows.check_neighbors(neighbors, query, least, most)
        deleted = any(not rows.lives(change) for change in range(least[group], most[group] + 1))
        insist(len(neighbors) == rows.MEMBERS or (not neighbors and deleted), f"{len(neighbors)} rows of {group}")
        self.shared.count("searches of one group")

    def row(self):
        group, member, least = self.some()
        headers = {}
        if random.random() < 0.5:
            headers["Min-Position"] = f"{self.shared.version}/{self.shared.position.value}"
        path = f"/models/t/rows?key={rows.key(group, member)}"
        found = self.caller.ask("GET", path, headers=headers, but=(404,))
        possible = range(least[group], self.shared.begun[group] + 1)
        if found == 404:
            insist(any(not rows.lives(change) for change in possible), f"{path} is missing: {possible}")
        else:
            change = found["attributes"]["n"]
            insist(change in possible and rows.lives(change), f"{path}: change {change}, of {possible}")
            # JSON has as many digits as tell a float32 from others.
            vector = rows.as_float32(found["vector"])
            insist(vector == rows.vector(group, member, change), f"{path}: another vector")
        self.shared.count("rows read by their key")

    def counted(self):
        group, _, least = self.some()
        counted = self.caller.ask("GET", "/models/t/count?filter=" + urllib.parse.quote(f"g = {group}"))["count"]
        possible = {rows.MEMBERS * rows.lives(n) for n in range(least[group], self.shared.begun[group] + 1)}
        insist(counted in possible, f"{counted} rows of group {group}, of {possible}")
        self.shared.count("counts")

    def of_frozen(self):
        """Of a model that is swapped: each version always has the same answer."""
        word = random.choice(self.shared.frozen_words)
        answer = self.caller.ask("GET", f"/models/frozen/nearest?word={urllib.parse.quote(word)}")
        now = (answer["version"], [(one["row"], one["score"]) for one in answer["neighbors"]])
        insist(now == self.frozen.setdefault((now[0], word), now), f"another answer for {word}")
        self.shared.count("searches of a model that is swapped")

    def pages(self):
        """All rows, at the position of the first page, which is gone once the table was folded."""
        least = list(self.shared.acknowledged)
        path = "/models/t/rows?with_vectors=false&limit=1000"
        page = self.caller.ask("GET", path)
        most, found, position = list(self.shared.begun), page["rows"], page["position"]
        while page.get("next"):
            try:
                status, page = self.caller.once("GET", f"{path}&after={urllib.parse.quote(page['next'])}")
            except Cut:
                return
            if status == 410:
                self.shared.count("pages of a position that was gone")
                return
            insist(status == 200 and page["position"] == position, f"a page: {status} {page.get('position')}")
            found += page["rows"]
        rows.check_pages(found, least, most)
        self.shared.count("tables read page by page")


def repeat(shared, work):
    while not shared.stop.is_set():
        try:
            work()
        except Cut:
            pass
        except Exception as error:  # noqa: BLE001: whatever it is, it is a failure
            kind = "wrong" if isinstance(error, Wrong) else "failed"
            shared.fail(f"{kind}: {getattr(work, '__qualname__', work)}: {error!r}")
            time.sleep(0.1)
