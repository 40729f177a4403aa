"""gensim's own tests of `KeyedVectors` and `FastTextKeyedVectors`, unmodified, with Kindred's in their place."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

VERSION = "4.4.0"
# Of gensim/test/test_keyedvectors.py in that version.
SHA256 = "1efee0c093debd69902c9f6ded0975390b79b24b6fc879102f586a0dde62781b"

PASSES = """
LoadWord2VecFormatTest.test_load_word2vec_format_basic
LoadWord2VecFormatTest.test_load_word2vec_format_limit
LoadWord2VecFormatTest.test_load_word2vec_format_space_stripping
TestKeyedVectors.test_add_multiple
TestKeyedVectors.test_add_single
TestKeyedVectors.test_add_type
TestKeyedVectors.test_closer_than
TestKeyedVectors.test_distance
TestKeyedVectors.test_get_mean_vector
TestKeyedVectors.test_load_model_and_vocab_file_ignore
TestKeyedVectors.test_load_model_and_vocab_file_replace
TestKeyedVectors.test_load_model_and_vocab_file_strict
TestKeyedVectors.test_most_similar
TestKeyedVectors.test_most_similar_cosmul_parameter_types
TestKeyedVectors.test_most_similar_parameter_types
TestKeyedVectors.test_most_similar_raises_keyerror
TestKeyedVectors.test_most_similar_restrict_vocab
TestKeyedVectors.test_most_similar_to_given
TestKeyedVectors.test_most_similar_topn
TestKeyedVectors.test_most_similar_vector
TestKeyedVectors.test_most_similar_with_vector_input
TestKeyedVectors.test_no_header
TestKeyedVectors.test_rank
TestKeyedVectors.test_relative_cosine_similarity
TestKeyedVectors.test_save_reload
TestKeyedVectors.test_set_item
TestKeyedVectors.test_similar_by_vector
TestKeyedVectors.test_similar_by_word
TestKeyedVectors.test_similarity
TestKeyedVectors.test_vectors_for_all_list
TestKeyedVectors.test_vectors_for_all_with_copy_vecattrs
TestKeyedVectors.test_vectors_for_all_without_copy_vecattrs
""".split()

# Those that can't pass, and how they fail: the reason is in the message.
FAILS = {
    # It opens a pickle of gensim's own objects.
    "Gensim320Test.test": "UnsupportedError: .*old_keyedvectors_320.dat is a file, and `load` opens model folders.",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """gensim's ``test`` folder: of the installed gensim, or from the wheel of a package index."""
    spec = importlib.util.find_spec("gensim")
    if spec is not None and spec.origin and importlib.metadata.version("gensim") == VERSION:
        return Path(spec.origin).parent / "test"
    into = tmp_path_factory.mktemp("gensim")
    # A wheel for one platform: only its test files are read. The source archive would want to be built.
    platform = ["--python-version=3.11", "--implementation=cp", "--platform=manylinux_2_24_x86_64"]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", *platform, f"--dest={into}"]
    try:
        done = subprocess.run([*command, f"gensim=={VERSION}"], capture_output=True, text=True, timeout=45)
        why = done.stderr.strip().rpartition("\n")[2] if done.returncode else None
    except subprocess.TimeoutExpired:
        why = "the package index does not answer"
    if why is not None:
        pytest.skip(f"gensim's own tests are skipped: gensim {VERSION} is neither installed nor downloaded: {why}")
    [wheel] = into.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into, [name for name in archive.namelist() if name.startswith("gensim/test/")])
    return into / "gensim" / "test"


# Of gensim/test/test_fasttext.py in that version.
FASTTEXT_SHA256 = "2de09943479f70e548ecd74fdcba3ba4c6ad62b82a99cbafe7934edd84be6960"

FASTTEXT_PASSES = """
FTHashResultsTest.test_ascii
FTHashResultsTest.test_out_of_vocab
FTHashResultsTest.test_unicode
HashCompatibilityTest.test_hash_native
NativeTrainingContinuationTest.test_load_native_vectors
TestFastTextModel.test_contains
TestFastTextModel.test_lookup
TestFastTextModel.test_most_similar
TestFastTextModel.test_most_similar_cosmul
TestFastTextModel.test_n_similarity
TestFastTextModel.test_oov_similarity
TestFastTextModel.test_similarity
TestFastTextModel.test_vectors_for_all_with_inference
TestFastTextModel.test_vectors_for_all_without_inference
""".split()

# They read, compare vectors, and end at something of training. All others train, or call gensim's own helpers.
OF_TRAINING = "UnsupportedError: `vectors_vocab` has the words' own rows, which only training needs"
FASTTEXT_FAILS = {
    "NativeTrainingContinuationTest.test_in_vocab": OF_TRAINING,
    "NativeTrainingContinuationTest.test_load_native_pretrained": OF_TRAINING,
    "NativeTrainingContinuationTest.test_no_ngrams": OF_TRAINING,
    "NativeTrainingContinuationTest.test_out_of_vocab": OF_TRAINING,
    "TestFastTextModel.test_load_fasttext_new_format": "AttributeError: .* has no attribute 'min_count'",
    # Of a classifier, which `kindred import-head` takes; gensim has NotImplementedError.
    "TestFastTextModel.test_load_model_supervised": "ModelError: .*it is a classifier of fastText",
    # Words in another encoding, as fastText writes none; and a file without a signature, of a form before version 11.
    "TestFastTextModel.test_load_model_non_utf8_encoding": "UnsupportedError: `encoding` is utf-8",
    "TestFastTextModel.test_load_model_with_non_ascii_vocab": "ModelError: .*non_ascii_fasttext.bin: its format can't be detected",
}


def results_of(folder, file, sha256, *tests):
    file = folder / file
    assert hashlib.sha256(file.read_bytes()).hexdigest() == sha256, f"{file} is not the file of gensim {VERSION}"
    run = Path(__file__).with_name("own_gensim.py")
    command = [sys.executable, run, file, folder / "test_data", *tests]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def of_keyed_vectors(folder):
    return results_of(folder, "test_keyedvectors.py", SHA256)


@pytest.fixture(scope="module")
def results(folder, of_keyed_vectors):
    of_fasttext = results_of(folder, "test_fasttext.py", FASTTEXT_SHA256, *FASTTEXT_PASSES, *FASTTEXT_FAILS)
    return {**of_keyed_vectors, **of_fasttext}


def test_the_table_has_every_test(of_keyed_vectors):
    assert sorted(of_keyed_vectors) == sorted([*PASSES, *FAILS]) and len(of_keyed_vectors) == 33


@pytest.mark.parametrize("name", [*PASSES, *FASTTEXT_PASSES])
def test_it_passes(results, name):
    assert results[name] is None


@pytest.mark.parametrize(("name", "expected"), {**FAILS, **FASTTEXT_FAILS}.items())
def test_it_fails_as_the_table_says(results, name, expected):
    assert results[name] is not None, "it passes: move it to those that pass"
    assert re.match(expected, results[name])
