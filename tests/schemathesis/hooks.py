"""What a schema can't know, and what came of it.

Requests may say how long they may take, and are answered 504 if that is too short. That is right, but looks to
schemathesis like a server's fault; so here all of them have time enough.

Random names are no heads and no labels, random letters no words, and random vectors have another length than the built-in
model's, so that hardly any request for a head would succeed. About three quarters of them get some that there are.

A long list of attributes makes a URL that no server reads, which is answered 414 without a body; so in URLs it is cut.

Arrays are NumPy files, most of them of the model's dimension. Parameters go with them, and are left out with JSON.

At the end, the statuses of the answers of each operation are appended to the file that STATUSES names."""

import atexit
import os
import struct
import zlib
from collections import Counter, defaultdict

import schemathesis
from hypothesis import strategies as st

LONG_ENOUGH_MS = 10_000
DIM = 100
LABEL = "positive"
HEADS = {"/classify": "sentiment", "/expand": "nearby"}
TEXTS = ["a moving and funny film", "cheap flights to the coast", "frog", "the king of spain, and of the world", "3"]
ARRAY = "application/x-npy"
TAKE_ARRAYS = ["/nearest", "/expand"]
statuses = defaultdict(Counter)


@st.composite
def arrays(draw):
    """A NumPy file: zeros, small numbers and NaN; sometimes of another type or shape, or cut off."""
    lengths = draw(st.lists(st.integers(0, 3), max_size=2)) + [draw(st.sampled_from([DIM, DIM, DIM, 3]))]
    kind, form = draw(st.sampled_from([("<f4", "<f"), ("<f4", "<f"), ("<f8", "<d"), ("<f2", "<e"), (">f4", ">f")]))
    number = draw(st.sampled_from([0.5, 0.5, -1.0, 0.0, float("nan")]))
    count = 1
    for length in lengths:
        count *= length
    head = repr({"descr": kind, "fortran_order": False, "shape": tuple(lengths)}).encode() + b"\n"
    file = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(form, number) * count
    return file[: draw(st.sampled_from([None, None, None, -1, 9]))]


schemathesis.openapi.media_type(ARRAY, arrays())


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.method == "POST" and case.path in TAKE_ARRAYS and case.media_type != ARRAY:
        kwargs.pop("params", None)
        case.query = {}
    for fields, name in ((case.query, "timeout_ms"), (case.headers, "Request-Timeout-Ms"), (case.body, "timeout_ms")):
        if hasattr(fields, "items") and is_short(fields.get(name)):
            fields[name] = LONG_ENOUGH_MS if fields is case.body else str(LONG_ENOUGH_MS)
    attributes = case.query.get("with_attributes") if case.query else None
    if isinstance(attributes, list):
        case.query["with_attributes"] = attributes[:10]
    for fields in (case.body, case.query):
        if case.path in HEADS and isinstance(fields, dict):
            known(fields, HEADS[case.path])
    if case.path.startswith("/rows") and isinstance(case.body, dict):
        fitting(case)


@schemathesis.hook
def after_call(context, case, response):
    statuses[f"{case.method} {case.path}"][response.status_code] += 1


@atexit.register
def write_statuses():
    with open(os.environ["STATUSES"], "a", encoding="utf-8") as file:
        for operation, counts in sorted(statuses.items()):
            if set(counts) == {405}:
                continue
            counted = ", ".join(f"{count} x {status}" for status, count in sorted(counts.items()))
            print(f"{operation}: {counted}", file=file)


def is_short(value):
    try:
        return 0 < int(value) < LONG_ENOUGH_MS
    except (TypeError, ValueError):
        return False


def known(body, head):
    """Puts what there is in the place of most of what there is not. What has the wrong type stays as it is."""
    for field, name in (("head", head), ("explain_label", LABEL)):
        if isinstance(body.get(field), str) and chosen(body[field]):
            body[field] = name
    for field, change in (("text", known_text), ("vectors", known_vectors)):
        if field in body:
            body[field] = change(body[field])
    if isinstance(body.get("texts"), list):
        body["texts"] = [known_text(text) for text in body["texts"]]


def fitting(case):
    """Changes of rows that fit a table with rows of one component and the attribute `n`, in the place of most."""
    rows = case.body.get("rows")
    if is_list_of(dict, rows) and chosen(str(rows)):
        case.query = {}
        case.body["rows"] = [
            {**row, "key": f"k{index}", "vector": [index / 4], "attributes": {"n": index}} for index, row in enumerate(rows)
        ]
        for row in case.body["rows"]:
            row.pop("bias", None)
    if isinstance(case.body.get("filter"), str) and chosen(case.body["filter"]):
        case.body["filter"] = "n > 1"
        case.body.pop("keys", None)


def known_text(text):
    if isinstance(text, str) and chosen(text):
        return TEXTS[number(text) % len(TEXTS)]
    if is_list_of(str, text) and chosen(" ".join(text)):
        return TEXTS[len(text) % len(TEXTS)].split()
    if isinstance(text, dict) and "vectors" in text:
        return {**text, "vectors": known_vectors(text["vectors"])}
    return text


def known_vectors(vectors):
    if is_list_of(list, vectors) and all(is_list_of((int, float), vector) for vector in vectors) and chosen(str(vectors)):
        return [[*vector, *[0.5] * DIM][:DIM] for vector in vectors]
    return vectors


def is_list_of(kind, value):
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


def chosen(text):
    return number(text) % 4 != 1


def number(text):
    """The same for the same text in every run."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
