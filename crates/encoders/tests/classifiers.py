"""Trains small classifiers with fastText, and prints what it says of some texts.

    python classifiers.py FOLDER

Writes models into the folder, and for each a line of JSON: its file, and for each text the labels
with their probabilities, as fastText gives them.
"""

import json
import random
import sys
from pathlib import Path

import fasttext

SUBJECTS = ["film", "plot", "actor", "música", "历史", "naïve", "день", "end"]
TEXTS = [
    "",
    "   \t ",
    "a film",
    "film film film",
    "film plot actor música 历史 naïve день end",
    "unknown words alone",
    "__label__3 film",
    "__label__nothing film",
    "film </s> actor",
    "film\u00a0plot plot\u3000film",
    "x" * 300,
    "a\x00b film",
    "the filmmaker's plotting actors",
]


def train(folder: Path, labels: int, **options: object) -> fasttext.FastText._FastText:
    """A classifier of texts of some subjects."""
    random.seed(7)
    lines = []
    for number in range(labels * 30):
        # Frequent and rare labels.
        label = min(random.randrange(labels), random.randrange(labels))
        words = [SUBJECTS[(label + random.randrange(3)) % len(SUBJECTS)] for _ in range(4)]
        lines.append(f"__label__{label} " + " ".join([*words, f"word{number % 97}"]))
    texts = folder / "texts"
    texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return fasttext.train_supervised(
        str(texts), dim=10, epoch=5, lr=0.5, thread=1, verbose=0, bucket=500, **options
    )


def main() -> None:
    """Trains and prints."""
    folder = Path(sys.argv[1])
    shapes = [
        {"wordNgrams": 1, "minn": 0, "maxn": 0},
        {"wordNgrams": 3, "minn": 0, "maxn": 0},
        {"wordNgrams": 2, "minn": 2, "maxn": 4},
        {"wordNgrams": 1, "minn": 1, "maxn": 3},
    ]
    for loss in ["hs", "ns", "softmax", "ova"]:
        for labels in [2, 40]:
            for at, shape in enumerate(shapes):
                model = train(folder, labels, loss=loss, **shape)
                report(folder / f"{loss}-{labels}-{at}.bin", model)
    quantised = [
        {"cutoff": 0},
        {"cutoff": 300, "qnorm": True},
        {"qnorm": True, "dsub": 3},
        {"cutoff": 400, "dsub": 4},
    ]
    for at, options in enumerate(quantised):
        # fastText quantises a matrix only if it has 256 rows.
        for loss, labels, qout in [("softmax", 300, True), ("hs", 40, False)]:
            model = train(folder, labels, loss=loss, **shapes[2])
            model.quantize(input=str(folder / "texts"), qout=qout, retrain=False, **options)
            report(folder / f"{loss}-{at}.ftz", model)


def report(path: Path, model: fasttext.FastText._FastText) -> None:
    """Saves a model, and prints what it says."""
    model.save_model(str(path))
    predictions = []
    for text in TEXTS:
        found = model.f.predict(text + "\n", -1, 0.0, "strict")
        predictions.append([text, [label for _, label in found], [p for p, _ in found]])
    print(json.dumps({"file": path.name, "predictions": predictions}))


main()
