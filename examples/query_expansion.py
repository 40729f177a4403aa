"""Expands a search query by weighted terms: python3 query_expansion.py 'a frog in the pond'"""
import json, os, re, sys, time, urllib.error, urllib.request

STOP = """a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
was will with""".split()  # Lucene's

def ask(words, tries=3):
    """Kindred's terms for all words, in one request; retries if the service is busy and says when."""
    url = os.environ.get("WORDS_URL", "http://127.0.0.1:8080").rstrip("/") + "/expand"
    body = {"top": 3, "max_ratio": 0.35, "texts": words}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=2) as answer: return json.load(answer)["results"]
    except urllib.error.HTTPError as error:  # 429 and 503 may say when to retry, in seconds
        wait = error.headers.get("Retry-After", "")
        if tries == 1 or wait not in ("0", "1", "2"): raise
        time.sleep(int(wait))
        return ask(words, tries - 1)

typed = " ".join(sys.argv[1:]).split() or sys.exit(__doc__)
words = [word for word in typed if word.lower() not in STOP] or typed
try: results = ask(words)
except (OSError, ValueError) as error:  # down, slow or busy: search as typed
    print("not expanded:", error, file=sys.stderr)
    results = [{} for _ in words]
for word, result in zip(words, results):
    for unknown in result.get("error", {}).get("unknown", []):
        print(word, "is unknown; did you mean", " or ".join(unknown["suggestions"]) or "another word", file=sys.stderr)
quoted = lambda w: w if w.isalnum() and w not in ("AND", "OR", "NOT") else json.dumps(w, ensure_ascii=False)
def group(word, terms):  # a typed word counts 1, a term its part of the largest weight
    own = (word, word.lower(), *re.findall(r"\w+", word.lower()), *STOP)  # also the parts of "children's"
    added = [t for t in terms if t["term"] not in own and any(map(str.isalnum, t["term"]))]
    return [quoted(word)] + [f"{quoted(t['term'])}^{t['weight'] / terms[0]['weight']:.2f}" for t in added]
groups = [group(word, result.get("terms", [])) for word, result in zip(words, results)]
print(" AND ".join(f"({' OR '.join(group)})" if len(group) > 1 else group[0] for group in groups))
