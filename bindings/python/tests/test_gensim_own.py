"""gensim's own tests of `KeyedVectors`, unmodified, with Kindred's in its place."""

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
        pytest.skip(f"gensim's 33 tests of KeyedVectors are skipped: gensim {VERSION} is neither installed nor downloaded: {why}")
    [wheel] = into.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into, [name for name in archive.namelist() if name.startswith("gensim/test/")])
    return into / "gensim" / "test"


@pytest.fixture(scope="module")
def results(folder):
    file = folder / "test_keyedvectors.py"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == SHA256, f"{file} is not the file of gensim {VERSION}"
    run = Path(__file__).with_name("own_gensim.py")
    done = subprocess.run([sys.executable, run, file, folder / "test_data"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_table_has_every_test(results):
    assert sorted(results) == sorted([*PASSES, *FAILS]) and len(results) == 33


@pytest.mark.parametrize("name", PASSES)
def test_it_passes(results, name):
    assert results[name] is None


@pytest.mark.parametrize("name", FAILS)
def test_it_fails_as_the_table_says(results, name):
    assert results[name] is not None, "it passes: move it to PASSES"
    assert re.match(FAILS[name], results[name])
