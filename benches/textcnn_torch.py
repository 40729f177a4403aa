#!/usr/bin/env python3
"""PyTorch's TextCNN at the shapes of `cargo bench -p gpu-core --bench classify`, for comparison: token ids on the host to class
scores on the host. On a GPU in float16, otherwise in float32 on the threads that torch is given. Needs torch.

--cpu: not on a GPU. --onnx: also ONNX Runtime on the CPU; needs onnx and onnxruntime."""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

GPU = torch.cuda.is_available() and "--cpu" not in sys.argv
DEVICE, TYPE = ("cuda", torch.float16) if GPU else ("cpu", torch.float32)
SHAPES = {
    "Kim": (400_000, 300, 20, (3, 4, 5), 100, (2,)),
    "21,635 x 4,096": (21_635, 4096, 16, (3, 5, 7, 9), 1024, (2048, 1024, 512, 2)),
}


def values(*shape, size=0.02):
    return (torch.rand(*shape, device=DEVICE) * 2 * size - size).to(TYPE)


@torch.no_grad()
def rate(rows, dim, length, widths, channels, layers, batch):
    table = values(rows, dim, size=0.6)
    filters = [values(channels, dim, width) for width in widths]
    sizes = [channels * len(widths), *layers]
    dense = [values(outputs, inputs) for inputs, outputs in zip(sizes, sizes[1:])]
    tokens = torch.randint(rows, (batch, length))
    tokens = tokens.pin_memory() if GPU else tokens

    def scores():
        x = table[tokens.to(DEVICE, non_blocking=True)].transpose(1, 2)
        x = torch.cat([F.relu(F.conv1d(x, one)).amax(2) for one in filters], 1)
        for index, layer in enumerate(dense):
            x = F.linear(F.relu(x) if index else x, layer)
        return x.cpu()

    return measured(scores, batch)


def measured(scores, batch):
    """The median rate of some calls, in texts a second."""
    scores()
    times = []
    for _ in range(5 if GPU else 3):
        began = time.perf_counter()
        scores()
        times.append(time.perf_counter() - began)
    return batch / statistics.median(times)


def onnx_rate(rows, dim, length, widths, channels, layers, batch):
    """The same classifier with one dense layer by ONNX Runtime, on as many threads as torch has."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    def weights(name, *shape, size=0.02):
        return numpy_helper.from_array((torch.rand(*shape) * 2 * size - size).numpy(), name)

    parts = [weights("table", rows, dim, size=0.6), weights("dense", channels * len(widths), *layers)]
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["vectors"]),
        helper.make_node("Transpose", ["vectors"], ["x"], perm=[0, 2, 1]),
    ]
    for width in widths:
        parts.append(weights(f"filters{width}", channels, dim, width))
        nodes += [
            helper.make_node("Conv", ["x", f"filters{width}"], [f"map{width}"]),
            helper.make_node("GlobalMaxPool", [f"map{width}"], [f"most{width}"]),
        ]
    nodes += [
        helper.make_node("Concat", [f"most{width}" for width in widths], ["all"], axis=1),
        helper.make_node("Flatten", ["all"], ["flat"]),
        helper.make_node("Relu", ["flat"], ["features"]),
        helper.make_node("MatMul", ["features", "dense"], ["scores"]),
    ]
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["texts", length])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["texts", *layers])
    graph = helper.make_graph(nodes, "textcnn", [tokens], [scores], parts)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    texts = {"tokens": torch.randint(rows, (batch, length)).numpy()}
    return measured(lambda: session.run(None, texts), batch)


def best(rate, shape, batches):
    """The best rate, and its batch."""
    return max((rate(*shape, batch), batch) for batch in batches)


print(f"torch {torch.__version__} on {torch.cuda.get_device_name() if GPU else f'{torch.get_num_threads()} threads'}")
for name, shape in SHAPES.items():
    if not GPU and name != "Kim":
        continue
    found, batch = best(rate, shape, (1024, 4096, 16_384) if GPU else (32, 256, 1024))
    print(f"{name}: {found / 1e6:.4f} M texts/s in batches of {batch}", flush=True)
    if "--onnx" in sys.argv and name == "Kim":
        found, batch = best(onnx_rate, shape, (32, 256, 1024))
        print(f"{name}, ONNX Runtime: {found / 1e6:.4f} M texts/s in batches of {batch}", flush=True)
