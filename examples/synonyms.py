"""Writes an expander's terms as a synonyms file for Solr and Elasticsearch, a rule for each word:

    kindred expand --json --top 3 --max-ratio 0.35 < words.txt | python3 synonyms.py > synonyms.txt
"""
import json, re, sys

def escaped(term):
    """A term as the format has it: commas, arrows, backslashes and a first # are escaped."""
    return re.sub(r"[\\,]|=(?=>)|^#", r"\\\g<0>", term)

for line in sys.stdin:
    answer = json.loads(line)
    word, found = " ".join(answer["text"].split()), [term["term"] for term in answer.get("terms", [])]
    parts = re.findall(r"\w+", word.lower())
    if len(parts) > 1:  # The words of a phrase are no synonyms of it.
        found = [term for term in found if term not in parts]
    # An analyser leaves nothing of a sign, and refuses a rule with it.
    terms = [term for term in dict.fromkeys([word, *found]) if any(map(str.isalnum, term))]
    if word in terms and len(terms) > 1:
        print(escaped(word), "=>", ", ".join(map(escaped, terms)))
