"""Trains small tokenisers of each kind with Hugging Face's tokenizers, on a text made here.

Writes them to the folder that is named, and prints the names of the files. The packages
sentencepiece and protobuf make tables of characters (Precompiled).
"""

import json
import pathlib
import random
import sys
from base64 import b64encode
from io import BytesIO

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers
from tokenizers import pre_tokenizers, trainers

folder = pathlib.Path(sys.argv[1])
random.seed(20)
SYLLABLES = ["ka", "to", "mi", "ré", "ßa", "über", "lo", "ни", "да", "漢", "字", "ｱ", "й", "12", "x"]
WORDS = ["".join(random.choices(SYLLABLES, k=random.randint(1, 4))) for _ in range(400)]
ENDS = [" ", " ", " ", ", ", ". ", "  ", "-", "'s ", "!\n", "\u3000", " ﬁ", "e\u0301 "]
LINES = [
    "".join(random.choice(WORDS) + random.choice(ENDS) for _ in range(random.randint(2, 12)))
    for _ in range(1500)
]
SPECIAL = ["<unk>", "<s>", "<pad>"]
N, P = normalizers, pre_tokenizers


def meta(scheme="always", split=True):
    return P.Metaspace(prepend_scheme=scheme, split=split)


def save(name, tokenizer, change=None):
    """Writes a tokeniser, once `change` has changed what the file says."""
    content = json.loads(tokenizer.to_str())
    if change:
        change(content)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    # It must be one that the package reads.
    Tokenizer.from_file(str(path))
    print(path.name)


def trained(model, trainer, normalizer=None, pre_tokenizer=None, lines=LINES):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def unigram(normalizer, pre_tokenizer, size=400):
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    return trained(models.Unigram(), trainer, normalizer, pre_tokenizer)


def bytes_added(content, count=256):
    """Tokens for bytes, and with them byte_fallback."""
    model = content["model"]
    model["byte_fallback"] = True
    names = [f"<0x{byte:02X}>" for byte in range(256 - count, 256)]
    if model["type"] == "Unigram":
        model["vocab"] += [[name, -20.5] for name in names]
    else:
        for name in names:
            model["vocab"].setdefault(name, len(model["vocab"]))


def set_to(**settings):
    return lambda content: content["model"].update(settings)


def both(*changes):
    return lambda content: [change(content) for change in changes]


def with_part(part, value):
    return lambda content: content.update({part: value})


# Unigram: as XLM-RoBERTa and T5 have it, and with each of the other parts.
plain = unigram(None, meta())
save("unigram-always", plain)
save("unigram-bytes", plain, bytes_added)
save("unigram-some-bytes", plain, lambda content: bytes_added(content, 100))
save("unigram-twice", plain, lambda c: c["model"]["vocab"].extend([["to", -3.25], ["▁ka", -4.5]]))
save("unigram-never", unigram(None, meta("never")))
save("unigram-first", unigram(N.Sequence([N.Strip(), N.NFKC()]), meta("first")))
save("unigram-whole", unigram(N.NFKC(), meta("always", False)), bytes_added)
save("unigram-no-cut", unigram(N.Lowercase(), None, 300))
save("unigram-bert", unigram(N.BertNormalizer(), P.BertPreTokenizer()))
nmt = N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(" {2,}"), " "), N.Lowercase()])
save("unigram-nmt", unigram(nmt, P.Sequence([P.WhitespaceSplit(), meta()])))
accents = N.Sequence([N.NFD(), N.StripAccents(), N.Replace("to", "tā"), N.Strip(False, True)])
save("unigram-accents", unigram(accents, P.Sequence([P.Whitespace(), meta("first")])))
first = [
    ("nfd", [N.NFD()], P.Punctuation()),
    ("nfkd", [N.NFKD(), N.StripAccents()], P.Digits(True)),
    ("nmt", [N.Nmt(), N.NFC(), N.Lowercase()], P.Punctuation("merged_with_next")),
    ("prepend", [N.Prepend("▁x "), N.Replace(" ", "▁")], P.Punctuation("removed")),
    ("replace", [N.Replace(Regex(" +"), "-!"), N.NFKC()], P.Digits(False)),
    ("bytes", [N.ByteLevel()], P.Punctuation("contiguous")),
]
for name, steps, cut in first:
    save(f"unigram-first-{name}", unigram(N.Sequence(steps), P.Sequence([cut, meta("first")])))
split = P.Sequence([P.Split("ka", "merged_with_previous"), P.Split(Regex("a+"), "removed", True)])
save("unigram-split", unigram(None, split))

# Tokens that are found by rules.
for tokens in [
    [AddedToken("<mask>", lstrip=True, special=True), AddedToken("Ka", normalized=True)],
    [AddedToken("to", single_word=True, normalized=False), AddedToken("ﬁ", rstrip=True)],
    [AddedToken("[UNK]", lstrip=True, rstrip=True), AddedToken("aa"), AddedToken("a b")],
]:
    for scheme in ["always", "first"]:
        added = unigram(N.Sequence([N.NFKC(), N.Lowercase()]), meta(scheme))
        added.add_tokens(tokens)
        save(f"added-{scheme}-{tokens[0].content.strip('<>[]')}", added)

# BPE: over bytes as GPT-2 and RoBERTa have it, over characters as SentencePiece and CLIP do.
for prefix in [False, True]:
    for regex in [False, True]:
        cut = P.ByteLevel(add_prefix_space=prefix, use_regex=regex)
        trainer = trainers.BpeTrainer(
            vocab_size=600, initial_alphabet=P.ByteLevel.alphabet(), show_progress=False
        )
        tokenizer = trained(models.BPE(), trainer, None, cut)
        name = f"bpe-bytes-{'space' if prefix else 'none'}-{'words' if regex else 'whole'}"
        save(name, tokenizer)
        if regex:
            save(f"{name}-ignore", tokenizer, set_to(ignore_merges=True))


def as_lines(content):
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]


def bpe(normalizer, pre_tokenizer, **settings):
    trainer_settings = {
        key: value for key, value in settings.items() if key.endswith(("prefix", "suffix"))
    }
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIAL, limit_alphabet=40, show_progress=False,
        **trainer_settings,
    )
    return trained(models.BPE(**settings), trainer, normalizer, pre_tokenizer)


suffix = bpe(N.Lowercase(), P.Whitespace(), unk_token="<unk>", end_of_word_suffix="</w>")
save("bpe-suffix", suffix, as_lines)
save("bpe-suffix-bytes", suffix, bytes_added)
prefix = bpe(N.NFC(), P.WhitespaceSplit(), unk_token="<unk>", continuing_subword_prefix="##")
save("bpe-prefix", prefix)
save("bpe-prefix-bytes", prefix, lambda content: bytes_added(content, 90))
metaspace = bpe(None, meta("first", False), unk_token="<unk>", fuse_unk=True)
save("bpe-fused", metaspace)
save("bpe-fused-bytes", metaspace, lambda content: bytes_added(content, 120))
save("bpe-apart", metaspace, set_to(fuse_unk=False))
save("bpe-apart-bytes", metaspace, both(bytes_added, set_to(fuse_unk=False, ignore_merges=True)))
save("bpe-dropped", metaspace, set_to(unk_token=None))
llama = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
save("bpe-llama", bpe(llama, None, unk_token="<unk>", fuse_unk=True), bytes_added)

# WordPiece with other parts than BERT's.
for name, normalizer, cut in [
    ("nfkc", N.Sequence([N.NFKC(), N.Lowercase()]), P.Whitespace()),
    (
        "accents",
        N.Sequence([N.NFKD(), N.StripAccents()]),
        P.Sequence([P.Digits(True), P.Punctuation()]),
    ),
    ("none", None, P.WhitespaceSplit()),
]:
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[UNK]", "[PAD]"], show_progress=False
    )
    model = models.WordPiece(unk_token="[UNK]")
    save(f"wordpiece-{name}", trained(model, trainer, normalizer, cut))

# Unigram with the tables of characters that SentencePiece's models have.
for rule in ["nmt_nfkc", "nmt_nfkc_cf", "nfkc"]:
    written = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=written, vocab_size=200,
        normalization_rule_name=rule, minloglevel=2,
    )
    proto = sentencepiece_model_pb2.ModelProto.FromString(written.getvalue())
    table = {
        "type": "Precompiled",
        "precompiled_charsmap": b64encode(proto.normalizer_spec.precompiled_charsmap).decode(),
    }
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    pieces = [[piece.piece, piece.score] for piece in proto.pieces]
    for name, scheme, steps in [("", "always", [table, spaces]), ("-first", "first", [table])]:
        content = json.loads(unigram(None, meta(scheme)).to_str())
        content["model"].update(vocab=pieces, unk_id=0)
        content["added_tokens"] = []
        content["normalizer"] = {"type": "Sequence", "normalizers": steps}
        path = folder / f"precompiled-{rule}{name}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        Tokenizer.from_file(str(path))
        print(path.name)
