"""The SPLADE head for PyTorch, against PyTorch's own operations."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

# PyTorch says so once, of all sparse tensors, and of their products.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state"),
]

import kindred  # noqa: E402
import kindred.torch as ours  # noqa: E402
from kindred import _kindred  # noqa: E402
from kindred.torch import SpladeHead, splade, token_rows  # noqa: E402

from service import Service, program  # noqa: E402

GPU = pytest.param(
    "cuda",
    marks=pytest.mark.skipif(not (torch.cuda.is_available() and _kindred.has_cuda), reason="needs a GPU and a module with CUDA"),
)
devices = pytest.mark.parametrize("device", ["cpu", GPU])


def reference(x, weight, bias=None, mask=None):
    """The dense activations, by all logits in float64."""
    logits = x.double() @ weight.double().T
    if bias is not None:
        logits = logits + bias.double()
    if mask is not None:
        logits = logits.masked_fill(~mask[:, :, None].bool(), -torch.inf)
    # Of `max`, autograd takes the first position of several, as the head does.
    return torch.relu(logits.max(dim=1).values)


def random(device, shape=(5, 7, 20), terms=600, bias=-3.0, dtype=torch.float32, seed=0):
    """Texts, terms and biases such that texts touch some terms."""
    numbers = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=numbers)
    weight = torch.randn(terms, shape[-1], generator=numbers)
    biases = torch.randn(terms, generator=numbers) + bias
    mask = torch.rand(shape[:2], generator=numbers) < 0.7
    mask[1:2] = False
    leaves = [one.to(device, dtype).requires_grad_() for one in (x, weight, biases)]
    return *leaves, mask.to(device)


def gradients(activations, leaves, seed=1):
    """The derivatives of a random combination of activations."""
    dense = activations.to_dense() if activations.is_sparse else activations
    factors = torch.randn(dense.shape, generator=torch.Generator().manual_seed(seed)).to(dense)
    return torch.autograd.grad((dense * factors).sum(), leaves)


@devices
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("bias", [-9.0, -3.0, 5.0], ids=["few", "some", "all"])
def test_values_and_gradients_are_those_of_all_logits(device, dtype, with_bias, masked, bias):
    x, weight, biases, mask = random(device, bias=bias, dtype=dtype)
    biases, mask = biases if with_bias else None, mask if masked else None
    found = splade(x, weight, biases, mask=mask)
    expected = reference(x, weight, biases, mask)
    assert found.is_coalesced() and found.shape == expected.shape and (found.values() > 0).all()
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype == torch.float64 else {"rtol": 1e-6, "atol": 1e-6}
    torch.testing.assert_close(found.to_dense().double(), expected, **close)
    leaves = [one for one in (x, weight, biases) if one is not None]
    close = close if dtype in (torch.float64, torch.float32) else {"rtol": 1e-2, "atol": 1e-2}
    for mine, theirs, leaf in zip(gradients(found, leaves), gradients(expected, leaves), leaves):
        assert mine.dtype == leaf.dtype and mine.shape == leaf.shape
        torch.testing.assert_close(mine.double(), theirs.double(), **close)


@devices
def test_a_value_is_the_exact_one_rounded_once(device):
    x, weight, biases, _ = random(device)
    found = splade(x, weight, biases)
    expected = reference(x, weight, biases)[tuple(found.indices())]
    # Sums in float64 in another order may round to the other neighbour.
    assert (found.values() == expected.float()).float().mean() > 0.999


@devices
@pytest.mark.filterwarnings("ignore:Input #. requires gradient and is not a double")
def test_gradcheck(device):
    # On a grid, and far from where another position or no position has the maximum, differences are exact in float32.
    numbers = torch.Generator().manual_seed(5)
    x = (torch.randint(-8, 8, (2, 3, 4), generator=numbers) / 4).to(device)
    weight = (torch.randint(-8, 8, (6, 4), generator=numbers) / 4).to(device)
    bias = (torch.arange(6) / 16 - 0.3).to(torch.float16).to(device)
    for dtype in (torch.float32, torch.float64):
        leaves = [one.to(dtype).requires_grad_() for one in (x, weight, bias)]
        assert torch.autograd.gradcheck(
            lambda *leaves: splade(*leaves).to_dense(), leaves, eps=2**-8, atol=1e-4, check_undefined_grad=False, nondet_tol=0.0
        )


def test_gradcheck_in_float64():
    x, weight, biases, mask = random("cpu", shape=(3, 4, 5), terms=12, bias=0.1, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda *leaves: splade(*leaves, mask=mask).to_dense(), (x, weight, biases))


@devices
def test_a_sparse_gradient_has_the_rows_of_touched_terms(device):
    x, weight, biases, _ = random(device)
    dense = gradients(splade(x, weight, biases), [weight])[0]
    found = splade(x, weight, biases, sparse_grad=True)
    sparse = gradients(found, [weight])[0]
    assert sparse.is_sparse and sparse.is_coalesced()
    assert torch.equal(sparse.indices()[0], found.indices()[1].unique())
    assert torch.equal(sparse.to_dense(), dense)


@devices
def test_of_equal_tokens_the_first_gets_the_gradient(device):
    x = torch.ones(1, 3, 2, device=device, requires_grad=True)
    weight = torch.tensor([[1.0, 0.5]], device=device)
    (of_x,) = gradients(splade(x, weight), [x])
    assert (of_x[0, 0] != 0).all() and (of_x[0, 1:] == 0).all()


@devices
@pytest.mark.parametrize("sparse_grad, dtype", [(False, torch.float32), (True, torch.float32), (False, torch.bfloat16)])
def test_training_takes_the_same_steps(device, sparse_grad, dtype):
    x, weight, biases, mask = random(device, shape=(8, 6, 16), dtype=dtype)
    head = SpladeHead(600, 16, sparse_grad=sparse_grad, device=device, dtype=dtype)
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(biases)
    weight, biases = weight.detach().clone().requires_grad_(), biases.detach().clone().requires_grad_()
    ours_by = torch.optim.SGD(head.parameters(), lr=0.05)
    theirs_by = torch.optim.SGD([weight, biases], lr=0.05)
    close = {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 0.1, "atol": 0.1}
    for step in range(12):
        found, expected = head(x, mask).to_dense(), torch.log1p(reference(x, weight, biases, mask))
        torch.testing.assert_close(found.double(), expected, **close)
        for activations, optimiser in ((found, ours_by), (expected, theirs_by)):
            optimiser.zero_grad()
            # At first down, then up until terms are much longer than at first.
            ((1 if step < 3 else -8) * activations.sum()).backward()
            optimiser.step()
    torch.testing.assert_close(head.weight, weight, **close)
    torch.testing.assert_close(head.bias, biases, **close)


@devices
def test_what_changes_the_parameters_is_noticed(device):
    x, weight, biases, _ = random(device)
    head = SpladeHead(600, 20, log1p=False, device=device)

    def check():
        torch.testing.assert_close(head(x).to_dense().double(), reference(x, head.weight, head.bias), rtol=1e-6, atol=1e-6)

    check()
    with torch.no_grad():
        head.weight.copy_(weight)
    check()
    with torch.no_grad():
        head.bias.copy_(biases)
        head.weight[3] *= 1000
    check()
    head.weight = torch.nn.Parameter(weight.detach() / 1000)
    check()
    head.weight.data[7] = 100
    head.changed()
    check()
    head.to(torch.float16)
    x = x.half()
    check()


@devices
def test_more_texts_than_a_pass_takes(device):
    x, weight, biases, _ = random(device, shape=(2100, 2, 8), terms=50)
    torch.testing.assert_close(splade(x, weight, biases).to_dense().double(), reference(x, weight, biases), rtol=1e-6, atol=1e-6)


@devices
def test_texts_with_many_terms_among_others(device):
    x, weight, biases, _ = random(device, shape=(6, 4, 8), terms=4000, bias=-6.0)
    with torch.no_grad():
        x[2] *= 30
        x[4] *= 40
    found, expected = splade(x, weight, biases), reference(x, weight, biases)
    counts = (expected > 0).sum(dim=1)
    assert counts[2] > 2048 and counts[0] < 500
    torch.testing.assert_close(found.to_dense().double(), expected, rtol=1e-6, atol=1e-6)
    for mine, theirs in zip(gradients(found, [x, weight]), gradients(expected, [x, weight])):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@devices
def test_without_texts_tokens_or_hits(device):
    _, weight, biases, _ = random(device)
    for shape in ((0, 3, 20), (2, 0, 20), (0, 0, 20)):
        x = torch.zeros(shape, device=device, requires_grad=True)
        found = splade(x, weight, biases)
        assert found.shape == (shape[0], 600) and found._nnz() == 0
        found.to_dense().sum().backward()
    masked = splade(torch.ones(2, 3, 20, device=device), weight, biases, mask=torch.zeros(2, 3, device=device))
    assert masked._nnz() == 0
    nothing = SpladeHead(600, 20, device=device)
    nothing.reset_parameters()
    torch.nn.init.zeros_(nothing.weight)
    nothing(torch.ones(2, 3, 20, device=device)).to_dense().sum().backward()
    assert (nothing.weight.grad == 0).all()


@devices
def test_under_autocast(device):
    x, weight, biases, _ = random(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        found = splade(x.to(torch.bfloat16), weight, biases)
    expected = reference(x.to(torch.bfloat16), weight, biases)
    torch.testing.assert_close(found.to_dense().double(), expected, rtol=1e-6, atol=1e-6)


@devices
def test_what_is_not_finite_is_an_error(device):
    for index, value in ((0, torch.nan), (1, torch.inf)):
        x, weight, biases, _ = random(device)
        with torch.no_grad():
            x[0, 0, index] = value
        with pytest.raises(kindred.NotFiniteError, match="tokens' vectors"):
            splade(x, weight, biases)
    for at in (1, 2):
        leaves = list(random(device)[:3])
        with torch.no_grad():
            leaves[at][5] = torch.nan
        with pytest.raises(kindred.NotFiniteError, match="weight or the bias"):
            splade(*leaves)


def test_shapes_that_do_not_fit_are_errors():
    x, weight, biases, mask = random("cpu")
    for wrong, message in (
        ((x[0], weight), r"\[7, 20\]"),
        ((x, weight[:, :3]), r"\[600, 3\]"),
        ((x, weight, biases[:9]), r"bias must be \[600\]"),
    ):
        with pytest.raises(ValueError, match=message):
            splade(*wrong)
    with pytest.raises(ValueError, match=r"mask must be \[5, 7\]"):
        splade(x, weight, mask=mask[:, :2])
    with pytest.raises(ValueError, match="one device"):
        splade(x, weight.to("meta"))


def test_a_head_is_copied_saved_and_loaded():
    head = SpladeHead(30, 4)
    x = torch.randn(2, 3, 4)
    expected = head(x).to_dense()
    for other in (copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
        assert torch.equal(other(x).to_dense(), expected)
        assert other.weight is not head.weight
    other = SpladeHead(30, 4)
    other.load_state_dict(head.state_dict())
    assert torch.equal(other(x).to_dense(), expected)
    assert set(head.state_dict()) == {"weight", "bias"}
    assert "terms=30" in repr(head)


def test_a_linear_layer_shares_its_parameters():
    for bias in (True, False):
        linear = torch.nn.Linear(4, 30, bias=bias)
        head = SpladeHead.from_linear(linear, log1p=False)
        x = torch.randn(2, 3, 4)
        torch.testing.assert_close(head(x).to_dense(), torch.relu(linear(x).max(dim=1).values))
        assert len(list(head.parameters())) == 1 + bias


@devices
def test_a_change_between_the_passes_is_an_error(device):
    x, weight, biases, _ = random(device)
    found = splade(x, weight, biases).to_dense().sum()
    with torch.no_grad():
        weight += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.backward()


@devices
def test_threads_and_streams(device):
    x, weight, biases, _ = random(device, shape=(8, 6, 20))
    expected = [splade(x, weight, biases).to_dense(), *gradients(splade(x, weight, biases), [x, weight, biases])]
    if device == "cuda":
        torch.cuda.synchronize()
    different = []

    def ask():
        stream = torch.cuda.Stream() if device == "cuda" else None
        with torch.cuda.stream(stream):
            for _ in range(10):
                # New memory each time, filled in this stream just before.
                again = [one.detach().clone().requires_grad_() for one in (x, weight, biases)]
                found = splade(*again)
                mine = [found.to_dense(), *gradients(found, again)]
                if stream is not None:
                    stream.synchronize()
                different.extend(name for name, a, b in zip("fxwb", mine, expected) if not torch.equal(a, b))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert different == []


@pytest.mark.parametrize("device", [GPU])
def test_a_gpu_searches(device):
    x, weight, biases, _ = random(device)
    head = SpladeHead(600, 20, device=device)
    head(x)
    assert head._terms.is_on_device
    large = SpladeHead(200_000, 64, sparse_grad=True, device=device)
    torch.nn.init.normal_(large.weight, std=64**-0.5)
    torch.nn.init.constant_(large.bias, -3.8)
    texts = torch.randn(256, 32, 64, device=device)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = large(texts)
    assert 20 < found._nnz() / len(texts) < 1000
    found.values().sum().backward()
    # All logits would be 6.5 GB.
    assert torch.cuda.max_memory_allocated() - before < 100e6


@pytest.mark.parametrize("device", [GPU])
def test_texts_with_many_terms_are_not_searched_each_time(device):
    x, weight, biases, _ = random(device, shape=(6, 4, 8), terms=6000, bias=5.0)
    head = SpladeHead(6000, 8, log1p=False, device=device)
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(biases)
    for step in range(20):
        expected = reference(x, head.weight, head.bias)
        torch.testing.assert_close(head(x).to_dense().double(), expected, rtol=1e-6, atol=1e-6)
        with torch.no_grad():
            # From now on there are few, which is noticed.
            head.bias -= 20 if step == 8 else 0.01
    assert head._terms._by_products == 0


@pytest.mark.skipif(not torch.cuda.is_available() or _kindred.has_cuda, reason="needs a GPU and a module without CUDA")
def test_a_module_without_cuda_warns():
    x, weight, biases, _ = random("cuda")
    with pytest.warns(UserWarning, match="built without CUDA"):
        splade(x, weight, biases)


def test_exported_names():
    assert set(ours.__all__) == {"Splade", "SpladeHead", "Terms", "splade", "token_rows"}


def dot(a, b):
    """The contract's product: 32 lanes, component i in lane i mod 32, folded by 16, 8, 4, 2, 1, in float64."""
    products = np.zeros(-(-len(a) // 32) * 32)
    products[: len(a)] = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    lanes = np.zeros(32)
    for part in products.reshape(-1, 32):
        lanes = lanes + part
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


def formula(model, rows, weight, bias, projection):
    """The terms above zero of a text, by the contract's formula: each with its value."""
    tokens = [model.vectors[row] for row in rows.tolist()]
    if projection is not None:
        tokens = [np.array([dot(line, token) for line in projection], np.float32) for token in tokens]
    values = [max(dot(token, term) + np.float64(b) for token in tokens) for term, b in zip(weight, bias)]
    return {term: value for term, value in enumerate(values) if value > 0}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A head that learnt from pairs, with its model and its folder."""
    folder = tmp_path_factory.mktemp("trained")
    numbers = np.random.default_rng(5)
    words = [f"ask{n}" for n in range(24)] + [f"say{n}" for n in range(24)]
    model = kindred.from_array(numbers.standard_normal((48, 20), dtype=np.float32), words, device="cpu")
    torch.manual_seed(1)
    head, turn = SpladeHead(48, 20, log1p=False), torch.nn.Linear(20, 20, bias=False)
    vectors = torch.from_numpy(model.vectors.copy())
    with torch.no_grad():
        head.weight.copy_(torch.nn.functional.normalize(vectors))
        head.bias.fill_(-0.5)
        turn.weight.copy_(torch.eye(20))
    queries = token_rows(model, [f"ask{n}" for n in range(24)])
    texts = token_rows(model, [f"Say{n}!" for n in range(24)])
    optimiser = torch.optim.Adam([*head.parameters(), *turn.parameters()], lr=0.02)
    for _ in range(150):
        asked, found = (head(turn(vectors[torch.stack(side)])) for side in (queries, texts))
        scores = torch.sparse.mm(asked, found.T).to_dense()
        loss = torch.nn.functional.cross_entropy(scores, torch.arange(24))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (scores.argmax(dim=1) == torch.arange(24)).float().mean() > 0.9
    head.save(folder / "head", model, projection=turn, description={"pairs": 24})
    return model, head, turn, folder


@pytest.mark.parametrize("text", ["ask3", "say7 ask1", "Ask2, say20; unknown ask23"])
def test_a_saved_head_has_the_terms_of_the_formula_to_the_bit(trained, text):
    model, head, turn, folder = trained
    weight, bias, projection = (one.detach().numpy() for one in (head.weight, head.bias, turn.weight))
    [rows] = token_rows(model, [text])
    expected = formula(model, rows, weight, bias, projection)
    assert expected
    found = model.expand(text, head=folder / "head", top=100)
    assert {model.words.index(term.word): term.weight for term in found.terms} == expected
    # PyTorch's own products are in float32.
    ours = head(turn(torch.from_numpy(model.vectors.copy())[rows])[None]).to_dense()[0]
    for term, value in expected.items():
        assert abs(ours[term].item() - value) < 1e-4


def test_a_saved_head_is_served_with_the_same_bits(trained, tmp_path):
    model, head, turn, folder = trained
    lines = (" ".join([word, *map(repr, map(float, row))]) for word, row in zip(model.words, model.vectors))
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")
    kindred.prepare(tmp_path / "vectors.txt", tmp_path / "model")
    same = kindred.open(tmp_path / "model", device="cpu")
    head.save(tmp_path / "head", same, projection=turn)
    text = "ask3 say9"
    expected = [(term.word, term.weight) for term in same.expand(text, head=tmp_path / "head").terms]
    service = Service("--model", str(tmp_path / "model"), "--head", str(tmp_path / "head"), "--device", "cpu")
    try:
        with kindred.Client(service.url) as client:
            found = client.expand(text)
        assert [(term.word, term.weight) for term in found.terms] == expected
    finally:
        service.stop()
    # The same by the state dict.
    state = {"head.weight": head.weight, "head.bias": head.bias, "turn.weight": turn.weight}
    (tmp_path / "state.safetensors").write_bytes(safetensors(state))
    command = [program(), "import-head", "--expander", "--linear", "--weights", "state.safetensors", "--model", "model", "--out", "imported"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KINDRED_")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [(term.word, term.weight) for term in same.expand(text, head=tmp_path / "imported").terms] == expected


def safetensors(tensors):
    """A file of float32 tensors: the length of a header, the header, the numbers."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        numbers = tensor.detach().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    header = json.dumps(header).encode()
    return len(header).to_bytes(8, "little") + header + data


def test_terms_may_be_some_words_in_any_order(trained, tmp_path):
    model, *_ = trained
    head = SpladeHead(3, 20)
    words = ["say5", "ask0", "say1"]
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(model.vectors[[model.words.index(word) for word in words]]))
    head.save(tmp_path / "head", model, terms=words)
    assert model.expand("say1", head=tmp_path / "head", top=1).terms[0].word == "say1"
    for terms, error, message in [
        (["say5", "ask0"], kindred.ModelError, "2 words and 3 terms"),
        (["say5", "ask0", "say5"], kindred.ModelError, "twice"),
        (["say5", "ask0", "other"], kindred.ModelError, '"other"'),
    ]:
        with pytest.raises(error, match=message):
            head.save(tmp_path / "other", model, terms=terms)
    with pytest.raises(kindred.ModelError, match="replace"):
        head.save(tmp_path / "head", model, terms=words)
    with torch.no_grad():
        head.weight.mul_(2)
    before = model.expand("say1", head=tmp_path / "head", top=1).terms[0].weight
    head.save(tmp_path / "head", model, terms=words, replace=True)
    assert model.expand("say1", head=tmp_path / "head", top=1).terms[0].weight > before
    assert not (tmp_path / "other").exists()


def test_what_can_not_be_saved_is_refused(trained, tmp_path):
    model, head, *_ = trained
    with pytest.raises(kindred.InvalidValueError, match="no biases"):
        head.save(tmp_path / "x", model, projection=torch.nn.Linear(20, 20))
    with pytest.raises(kindred.InvalidValueError, match="must be a matrix"):
        head.save(tmp_path / "x", model, projection=torch.zeros(20))
    with pytest.raises(kindred.InvalidValueError, match="components"):
        SpladeHead(48, 21).save(tmp_path / "x", model)
    with pytest.raises(kindred.InvalidValueError, match="projection"):
        head.save(tmp_path / "x", model, projection=torch.eye(19))
    with pytest.raises(kindred.ModelError, match="give the words of the terms"):
        SpladeHead(49, 20).save(tmp_path / "x", model)
    with pytest.raises(kindred.InvalidValueError, match="cut"):
        head.save(tmp_path / "x", model, cut="middle")
    with pytest.raises(kindred.InvalidValueError, match="limit"):
        head.save(tmp_path / "x", model, limit=0)
    broken = SpladeHead(48, 20)
    with torch.no_grad():
        broken.weight[3, 3] = torch.nan
    with pytest.raises(kindred.ModelError, match="not finite"):
        broken.save(tmp_path / "x", model)
    assert not (tmp_path / "x").exists()
