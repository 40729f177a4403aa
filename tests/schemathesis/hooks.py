"""Requests may say how long they may take, and are answered 504 if that is too short. That is right, but looks to
schemathesis like a server's fault; so here all of them have time enough."""

import schemathesis

LONG_ENOUGH_MS = 10_000


@schemathesis.hook
def before_call(context, case, kwargs):
    for fields, name in ((case.query, "timeout_ms"), (case.headers, "Request-Timeout-Ms"), (case.body, "timeout_ms")):
        if hasattr(fields, "items") and is_short(fields.get(name)):
            fields[name] = LONG_ENOUGH_MS if fields is case.body else str(LONG_ENOUGH_MS)


def is_short(value):
    try:
        return 0 < int(value) < LONG_ENOUGH_MS
    except (TypeError, ValueError):
        return False
