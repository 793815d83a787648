"""BERT (Devlin et al. 2019) as ONNX, written from its weights: it takes a second and needs no torch.

For encoders in the form of sentence-transformers that take the mean of their tokens, or the vector of [CLS].
"""

from pathlib import Path
from typing import Any

import numpy as np

from citerec.files.resume import read_json
from citerec.models.encoder import WEIGHTS, Reading, modules_of

_POOLED = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_MODULES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_LIKE_BERT = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
_OPSET, _FORMAT = 20, 9


def bert_config(folder: Path) -> dict[str, Any] | None:
    """The configuration of a BERT, with its `pooling` ("mean" or "cls"); None if a folder is of another encoder."""
    from safetensors import SafetensorError, safe_open

    config = {"position_embedding_type": "absolute"} | (read_json(folder / "config.json") or {})
    pooling = read_json(folder / "1_Pooling" / "config.json") or {}
    try:
        with safe_open(folder / WEIGHTS, "numpy") as file:  # old files have other names
            are_named = any(name.endswith("embeddings.LayerNorm.weight") for name in file.keys())  # noqa: SIM118
    except (OSError, SafetensorError):
        return None
    # One mode by its name, or a flag for each.
    flags = [_POOLED.get(name) for name, value in pooling.items() if name.startswith("pooling_mode_") and value]
    modes = [pooling["pooling_mode"]] if "pooling_mode" in pooling else flags
    is_bert = config.items() >= _LIKE_BERT.items() and modules_of(folder) in _MODULES and modes in (["mean"], ["cls"])
    is_whole = are_named and (folder / "tokenizer.json").is_file()
    return config | {"pooling": modes[0]} if is_bert and is_whole else None


def reading_of_bert(folder: Path, config: dict[str, Any]) -> Reading:
    """How it reads texts: as sentence-transformers does."""
    own, ours = (read_json(folder / name) or {} for name in ("tokenizer_config.json", "sentence_bert_config.json"))
    limit = int(config["max_position_embeddings"])
    return Reading(
        dimension=config["hidden_size"],
        max_tokens=int(ours.get("max_seq_length") or min(limit, own.get("model_max_length") or limit)),
        limit=limit,
        truncation_side=own.get("truncation_side", "right"),
        tokenizer=(folder / "tokenizer.json").read_text(encoding="utf-8"),
    )


def write_bert(folder: Path, config: dict[str, Any], path: Path) -> None:
    """Writes the graph from `input_ids` and `attention_mask`, each (rows, length), to vectors of length one."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from safetensors.numpy import load_file

    weights = {name.removeprefix("bert."): array for name, array in load_file(folder / WEIGHTS).items()}
    heads, size = config["num_attention_heads"], config["hidden_size"]
    nodes, arrays = list[Any](), list[Any]()

    def add(kind: str, *inputs: Any, **attributes: Any) -> str:
        """The name of the output of a new step, whose inputs are names, numbers and arrays."""
        names = []
        for one in inputs:
            if not isinstance(one, str):
                array = np.array(one, np.int64 if np.asarray(one).dtype.kind == "i" else np.float32, order="C")
                arrays.append(numpy_helper.from_array(array, f"array{len(arrays)}"))
                one = arrays[-1].name
            names.append(one)
        nodes.append(helper.make_node(kind, names, [f"step{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    def dense(x: str, *names: str) -> str:
        matrix, bias = (np.concatenate([weights[f"{name}.{part}"] for name in names]) for part in ("weight", "bias"))
        return add("Add", add("MatMul", x, matrix.T), bias)

    def norm(x: str, name: str) -> str:
        parts = (weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return add("LayerNormalization", x, *parts, epsilon=config["layer_norm_eps"])

    length = add("Gather", add("Shape", "input_ids"), [1])
    places = add("Slice", weights["embeddings.position_embeddings.weight"], [0], length, [0])
    words = add("Gather", weights["embeddings.word_embeddings.weight"], "input_ids")
    kind = weights["embeddings.token_type_embeddings.weight"][0]
    x = norm(add("Add", add("Add", words, kind), places), "embeddings.LayerNorm")
    absent = add("Cast", add("Equal", "attention_mask", [0]), to=TensorProto.FLOAT)
    masked = add("Unsqueeze", add("Mul", absent, np.finfo(np.float32).min), [1, 2])
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        own = dense(x, *(f"{layer}.attention.self.{one}" for one in ("query", "key", "value")))
        by_head = add("Transpose", add("Reshape", own, [0, 0, 3, heads, size // heads]), perm=(2, 0, 3, 1, 4))
        query, key, value = (add("Gather", by_head, place, axis=0) for place in range(3))
        near = add("MatMul", query, add("Transpose", key, perm=(0, 1, 3, 2)))
        shares = add("Softmax", add("Add", add("Mul", near, (size // heads) ** -0.5), masked))
        mixed = add("Reshape", add("Transpose", add("MatMul", shares, value), perm=(0, 2, 1, 3)), [0, 0, size])
        x = norm(add("Add", dense(mixed, f"{layer}.attention.output.dense"), x), f"{layer}.attention.output.LayerNorm")
        wide = add("Gelu", dense(x, f"{layer}.intermediate.dense"))
        x = norm(add("Add", dense(wide, f"{layer}.output.dense"), x), f"{layer}.output.LayerNorm")
    if config["pooling"] == "cls":
        pooled = add("Gather", x, 0, axis=1)
    else:  # the sum has the direction of the mean
        present = add("Unsqueeze", add("Cast", "attention_mask", to=TensorProto.FLOAT), [2])
        pooled = add("ReduceSum", add("Mul", x, present), [1], keepdims=0)
    output = add("LpNormalization", pooled, axis=1, p=2)
    inputs, shape = ("input_ids", "attention_mask"), ["rows", "length"]
    read = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in inputs]
    written = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["rows", size])]
    graph = helper.make_graph(nodes, "bert", read, written, initializer=arrays)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_FORMAT)
    onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data", convert_attribute=False)
