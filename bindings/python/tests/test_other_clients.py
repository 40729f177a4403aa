"""Clients of other services, against this one: their own, as their users have them."""

from __future__ import annotations

import numpy as np
import pytest
from service import Service

import kindred

TEXTS = ["a small boat", "The king, of Spain!", "frog"]


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.stop()


def test_openai(service):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0)
    expected = kindred.demo(device="cpu").encode(TEXTS)
    # Without a format, the client asks for base64, and reads it.
    found = client.embeddings.create(model="text-embedding-3-small", input=TEXTS)
    assert found.model == "demo" and found.usage.prompt_tokens >= 7
    assert np.array_equal(np.array([one.embedding for one in found.data], np.float32), expected)
    found = client.embeddings.create(model="demo", input=TEXTS[0], encoding_format="float")
    assert np.array_equal(np.array(found.data[0].embedding, np.float32), expected[0])
    with pytest.raises(openai.BadRequestError, match="does not have `qqqzzz`") as raised:
        client.embeddings.create(model="demo", input=["frog", "qqqzzz"])
    assert (raised.value.param, raised.value.code) == ("input[1]", "unknown_word")
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length=False"):
        client.embeddings.create(model="demo", input=[[1, 2, 3]])
    with pytest.raises(openai.BadRequestError, match="100, the model's"):
        client.embeddings.create(model="demo", input="frog", dimensions=10)


def test_text_embeddings_inference(service):
    hub = pytest.importorskip("huggingface_hub")
    client = hub.InferenceClient(model=service.url)
    expected = kindred.demo(device="cpu").encode(TEXTS)
    assert np.array_equal(client.feature_extraction(TEXTS, normalize=True, truncate=True).astype(np.float32), expected)
    assert np.array_equal(client.feature_extraction(TEXTS[0]).astype(np.float32), expected[:1])
    mean = client.feature_extraction(TEXTS[0], normalize=False)
    assert np.linalg.norm(mean) < 0.99
    with pytest.raises(hub.errors.HfHubHTTPError, match="cannot be empty"):
        client.feature_extraction(["frog", ""])
