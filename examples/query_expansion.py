"""Expands a search query by similar words: python3 query_expansion.py 'frog pond'"""
import json, os, sys, time, urllib.error, urllib.request

def ask(words, tries=3):
    """Kindred's answers for all words, in one request; retries if the service is busy and says when."""
    url = os.environ.get("WORDS_URL", "http://127.0.0.1:8080") + "/nearest"
    body = {"k": 2, "min_score": 0.6, "fold_case": True, "queries": [{"text": w} for w in words]}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=2) as answer:
            return json.load(answer)["results"]
    except urllib.error.HTTPError as error:  # 429 and 503 may say when to retry, in seconds
        wait = error.headers.get("Retry-After", "")
        if tries == 1 or wait not in ("0", "1", "2"): raise
        time.sleep(int(wait))
        return ask(words, tries - 1)

words = " ".join(sys.argv[1:]).split() or sys.exit(__doc__)
try:
    results = ask(words)
except (OSError, ValueError) as error:  # down, slow or busy: search as typed
    print("not expanded:", error, file=sys.stderr)
    results = [{} for _ in words]
for word, result in zip(words, results):
    for unknown in result.get("error", {}).get("unknown", []):
        print(word, "is unknown; did you mean", " or ".join(unknown["suggestions"]) or "another word", file=sys.stderr)
groups = [[word, *(n["word"] for n in result.get("neighbors", []))] for word, result in zip(words, results)]
plain = lambda w: w.isalnum() and w not in ("AND", "OR", "NOT")
quoted = [[w if plain(w) else json.dumps(w, ensure_ascii=False) for w in group] for group in groups]
print(" AND ".join(f"({' OR '.join(group)})" if len(group) > 1 else group[0] for group in quoted))
