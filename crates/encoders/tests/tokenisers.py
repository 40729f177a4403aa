"""Prints the ids that Hugging Face's tokenizers gives each text: one JSON list for each JSON text."""

import json
import sys

from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.no_truncation()
tokenizer.no_padding()
for line in sys.stdin:
    print(json.dumps(tokenizer.encode(json.loads(line), add_special_tokens=False).ids))
