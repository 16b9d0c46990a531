"""multilingual-e5-small from one file of 4-bit weights: the reader, and the files that are made of it once.

The file (magic `E5S1`, little endian): the shape of the model, a Unigram vocabulary with scores, a directory of tensors, then the tensors.
Matrices are stored as blocks of 32 weights: a half-precision scale, then 16 bytes with weights i and i + 16 in the low and the high half,
each minus 8.

Made of it, in a process of its own (`python -m fabula.models._e5 WEIGHTS FOLDER`) so that the memory this takes is given back:
  - `graph.onnx`, from token embeddings to the last hidden state. The weights stay 4-bit; all computing is in 32-bit floats.
  - `pieces.model`, the vocabulary for SentencePiece, which needs a fifth of the memory that other tokenizers need for it.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_BLOCK = 32
_BLOCK_BYTES = 18


class E5File:
    """The weight file, mapped into memory; only what is asked for is read."""

    def __init__(self, path: Path) -> None:
        import numpy as np

        self._bytes = np.memmap(path, np.uint8, "r")
        self._at = 8
        if bytes(self._bytes[:4]) != b"E5S1":
            raise ValueError(f"{path} is not a file of E5 weights")
        self.hidden, self.layers, self.heads, self.inner, self.words, self.positions, _ = self._read("7i")
        (self.epsilon,) = self._read("f")
        self._read("i")
        self.pieces, self.bos, self.eos, self.pad, self.unk = self._read("5i")
        (blob,) = self._read("Q")
        self._vocabulary_at, self._blob = self._at, blob
        self._at += 4 * (self.pieces + 1) + 4 * self.pieces + blob
        self._read("i")
        (names,) = self._read("I")
        self._at += names
        (count,) = self._read("i")
        self._tensors = dict(self._entry() for _ in range(count))

    def _read(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._bytes.data, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def _entry(self) -> tuple[str, tuple[int, int]]:
        (length,) = self._read("H")
        name = bytes(self._bytes[self._at : self._at + length]).decode()
        self._at += length
        self._read("B")
        self._read("I")
        offset, size = self._read("QQ")
        return name, (offset, size)

    def vocabulary(self) -> list[tuple[str, float]]:
        """Pieces and their scores, by token id."""
        import numpy as np

        at = self._vocabulary_at
        ends = np.frombuffer(self._bytes, "<u4", self.pieces + 1, at)
        scores = np.frombuffer(self._bytes, "<f4", self.pieces, at + ends.nbytes)
        start = at + ends.nbytes + scores.nbytes
        blob = bytes(self._bytes[start : start + self._blob])
        return [(blob[ends[i] : ends[i + 1]].decode("utf-8", "replace"), float(scores[i])) for i in range(self.pieces)]

    def floats(self, name: str) -> Floats:
        """A tensor that is stored in 32-bit floats, flat."""
        import numpy as np

        offset, size = self._tensors[name]
        return np.frombuffer(self._bytes, "<f4", size // 4, offset).astype(np.float32)

    def packed(self, name: str, rows: int, columns: int, chosen: NDArray[np.int64] | None = None) -> tuple[NDArray[np.uint8], Floats]:
        """Weights 0 … 15 of a matrix as (rows, blocks, 32) and the blocks' scales as (rows, blocks); of the chosen rows only, if given."""
        import numpy as np

        offset, blocks = self._tensors[name][0], columns // _BLOCK
        stored = self._bytes[offset : offset + rows * blocks * _BLOCK_BYTES].reshape(rows, blocks, _BLOCK_BYTES)
        stored = np.ascontiguousarray(stored if chosen is None else stored[chosen])
        scales = stored[:, :, :2].copy().view("<f2")[:, :, 0].astype(np.float32)
        low_high = stored[:, :, 2:]
        return np.concatenate([low_high & 15, low_high >> 4], 2), scales

    def rows(self, name: str, rows: int, columns: int, chosen: NDArray[np.int64]) -> Floats:
        """The chosen rows of a matrix as floats, (len(chosen), columns)."""
        import numpy as np

        weights, scales = self.packed(name, rows, columns, chosen)
        return ((weights.astype(np.float32) - 8) * scales[:, :, None]).reshape(len(chosen), columns)


class _Graph:
    """Collects the nodes of the ONNX graph. Inputs `emb` (B, L, hidden) and `bias` (B, 1, 1, L); output: the last hidden state."""

    def __init__(self, file: E5File) -> None:
        from onnx import helper

        self.file, self.nodes, self.constants = file, [], []  # type: ignore[var-annotated]
        self._make = helper.make_node

    def constant(self, name: str, value: Any) -> str:
        import numpy as np
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self._make(operator, inputs, [output], **attributes))
        return output

    def normalise(self, x: str, name: str, output: str) -> str:
        weights = self.constant(output + ".w", self.file.floats(name + ".w")), self.constant(output + ".b", self.file.floats(name + ".b"))
        return self.node("LayerNormalization", [x, *weights], output, epsilon=float(self.file.epsilon), axis=-1)

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        weights, scales = self.file.packed(name + ".w", rows, columns)
        pairs = weights[:, :, 0::2] | (weights[:, :, 1::2] << 4)
        matrix = self.constant(name + ".w", pairs), self.constant(name + ".s", scales.reshape(-1))
        # accuracy_level 1: computed in 32-bit floats. 8-bit activations (level 4) lose across languages.
        shape = {"K": columns, "N": rows, "bits": 4, "block_size": _BLOCK, "accuracy_level": 1}
        product = self.node("MatMulNBits", [x, *matrix], name + ".m", domain="com.microsoft", **shape)
        return self.node("Add", [product, self.constant(name + ".b", self.file.floats(name + ".b"))], name)

    def head(self, x: str, name: str, order: list[int]) -> str:
        flat = self.linear(x, name, self.file.hidden, self.file.hidden)
        return self.node("Transpose", [self.node("Reshape", [flat, "to_heads"], name + ".r")], name + ".t", perm=order)

    def layer(self, x: str, number: int) -> str:
        hidden, inner, p = self.file.hidden, self.file.inner, f"l{number}."
        queries, keys = self.head(x, p + "q", [0, 2, 1, 3]), self.head(x, p + "k", [0, 2, 3, 1])
        values = self.head(x, p + "v", [0, 2, 1, 3])
        scores = self.node("Mul", [self.node("MatMul", [queries, keys], p + "qk"), "scale"], p + "scaled")
        shares = self.node("Softmax", [self.node("Add", [scores, "bias"], p + "biased")], p + "shares", axis=-1)
        mixed = self.node("Transpose", [self.node("MatMul", [shares, values], p + "mix")], p + "mixed", perm=[0, 2, 1, 3])
        joined = self.node("Reshape", [mixed, "to_hidden"], p + "joined")
        y = self.node("Add", [x, self.linear(joined, p + "ao", hidden, hidden)], p + "attended")
        y = self.normalise(y, p + "aln", p + "attended.n")
        f = self.linear(y, p + "fi", inner, hidden)
        error = self.node("Erf", [self.node("Mul", [f, "root_half"], p + "g1")], p + "g2")
        gelu = self.node("Mul", [self.node("Mul", [f, self.node("Add", [error, "one"], p + "g3")], p + "g4"), "half"], p + "gelu")
        z = self.node("Add", [y, self.linear(gelu, p + "fo", hidden, inner)], p + "fed")
        return self.normalise(z, p + "oln", p + "fed.n")


def write_graph(file: E5File, path: Path) -> None:
    """Write the ONNX graph (13.5 MB)."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    graph, size = _Graph(file), file.hidden // file.heads
    graph.constant("to_heads", np.array([0, 0, file.heads, size], np.int64))
    graph.constant("to_hidden", np.array([0, 0, file.hidden], np.int64))
    for name, value in (("scale", size**-0.5), ("root_half", 2**-0.5), ("one", 1.0), ("half", 0.5)):
        graph.constant(name, np.float32(value))
    x = graph.normalise("emb", "emb.ln", "emb.n")
    for number in range(file.layers):
        x = graph.layer(x, number)
    inputs = [
        helper.make_tensor_value_info("emb", TensorProto.FLOAT, ["B", "L", file.hidden]),
        helper.make_tensor_value_info("bias", TensorProto.FLOAT, ["B", 1, 1, "L"]),
    ]
    output = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["B", "L", file.hidden])
    body = helper.make_graph(graph.nodes, "e5", inputs, [output], graph.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(body, opset_imports=opsets, ir_version=9), str(path))


def write_pieces(file: E5File, path: Path) -> None:
    """Write the vocabulary as a SentencePiece model. Texts are to be normalised (NFKC, single spaces) before it."""
    from sentencepiece import sentencepiece_model_pb2

    protocol: Any = sentencepiece_model_pb2  # made at run time by protobuf

    model, kinds = protocol.ModelProto(), protocol.ModelProto.SentencePiece
    control = {file.bos, file.eos, file.pad}
    for number, (piece, score) in enumerate(file.vocabulary()):
        kind = kinds.UNKNOWN if number == file.unk else kinds.CONTROL if number in control or piece == "<mask>" else kinds.NORMAL
        model.pieces.add(piece=piece, score=score, type=kind)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type, trainer.vocab_size = protocol.TrainerSpec.UNIGRAM, file.pieces
    trainer.unk_id, trainer.bos_id, trainer.eos_id, trainer.pad_id = file.unk, file.bos, file.eos, file.pad
    normalizer.name, normalizer.add_dummy_prefix = "identity", True
    normalizer.remove_extra_whitespaces, normalizer.escape_whitespaces = True, True
    path.write_bytes(model.SerializeToString())


def main(weights: str, folder: str) -> None:
    """Write both files; each appears whole or not at all."""
    file, target = E5File(Path(weights)), Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, write in (("pieces.model", write_pieces), ("graph.onnx", write_graph)):
        temporary = target / f"{name}.{os.getpid()}"
        write(file, temporary)
        temporary.replace(target / name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
