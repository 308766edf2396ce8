"""Writes seeds of the target `gguf`: models of the llama family that are taken and run, as small as their formats allow.

    python3 fuzz/make_seeds.py

Weights are bytes from a generator of fixed seed, with small finite scales.
"""

import random
import struct
from pathlib import Path

F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16 = 0, 1, 2, 3, 6, 7, 8, 12, 13, 14, 30
# Weights and bytes of a block, and where its binary16 scales are. Floats are blocks of one weight, whose high byte is set.
BLOCKS = {
    F32: (1, 4, []), F16: (1, 2, [0]), BF16: (1, 2, []),
    Q4_0: (32, 18, [0]), Q4_1: (32, 20, [0, 2]), Q5_0: (32, 22, [0]), Q5_1: (32, 24, [0, 2]), Q8_0: (32, 34, [0]),
    Q4_K: (256, 144, [0, 2]), Q5_K: (256, 176, [0, 2]), Q6_K: (256, 210, [208]),
}  # fmt: skip
ALIGNMENT = 32
U32, FLOAT, STRING = 4, 6, 8


def weights(source, kind, count):
    length, n_bytes, scales = BLOCKS[kind]
    blocks = []
    for _ in range(count // length):
        block = bytearray(source.randbytes(n_bytes))
        if kind in (F32, BF16):
            block[-2:] = struct.pack("<H", 0x3D00 | source.getrandbits(1) << 15 | source.getrandbits(7))
        for at in scales:
            block[at : at + 2] = struct.pack("<H", 0x2400 | source.getrandbits(10))
        blocks.append(bytes(block))
    return b"".join(blocks)


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def entry(key, value):
    if isinstance(value, str):
        return string(key) + struct.pack("<I", STRING) + string(value)
    if isinstance(value, float):
        return string(key) + struct.pack("<If", FLOAT, value)
    return string(key) + struct.pack("<II", U32, value)


def model(sizes, kinds, head, layers):
    """`sizes`: width, query heads, key heads, width of a head, feed-forward width, tokens. `kinds`: of embedding and matrices."""
    source = random.Random(1)
    d_model, n_heads, n_kv_heads, d_head, d_ff, n_vocab = sizes
    entries = [
        entry("general.architecture", "llama"),
        entry("llama.block_count", layers),
        entry("llama.embedding_length", d_model),
        entry("llama.feed_forward_length", d_ff),
        entry("llama.attention.head_count", n_heads),
        entry("llama.attention.head_count_kv", n_kv_heads),
        entry("llama.attention.key_length", d_head),
        entry("llama.context_length", 8),
        entry("llama.attention.layer_norm_rms_epsilon", 1e-5),
    ]
    tensors = [("token_embd", [d_model, n_vocab]), ("output_norm", [d_model])]
    tensors += [("output", [d_model, n_vocab])] if head else []
    for layer in range(layers):
        parts = [
            ("attn_norm", [d_model]), ("attn_q", [d_model, n_heads * d_head]), ("attn_k", [d_model, n_kv_heads * d_head]),
            ("attn_v", [d_model, n_kv_heads * d_head]), ("attn_output", [n_heads * d_head, d_model]), ("ffn_norm", [d_model]),
            ("ffn_gate", [d_model, d_ff]), ("ffn_up", [d_model, d_ff]), ("ffn_down", [d_ff, d_model]),
        ]  # fmt: skip
        tensors += [(f"blk.{layer}.{name}", dims) for name, dims in parts]
    infos, data, turn = [], b"", 0
    for name, dims in tensors:
        kind = F32
        if len(dims) == 2:
            kind, turn = kinds[turn % len(kinds)], turn + 1
        if dims[0] % BLOCKS[kind][0] != 0:
            kind = BF16
        data += bytes(-len(data) % ALIGNMENT)
        info = string(name + ".weight") + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        infos.append(info + struct.pack("<IQ", kind, len(data)))
        count = dims[0] * (dims[1] if len(dims) == 2 else 1)
        data += weights(source, kind, count)
    front = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(entries)) + b"".join(entries + infos)
    return front + bytes(-len(front) % ALIGNMENT) + data


def main():
    folder = Path(__file__).parent / "seeds" / "gguf"
    seeds = {
        "model_floats": model((4, 2, 1, 2, 6, 3), [F32, F16, BF16], head=True, layers=2),
        "model_blocks": model((32, 2, 2, 16, 32, 2), [Q4_0, Q4_1, Q5_0, Q5_1, Q8_0], head=False, layers=1),
        "model_super_blocks": model((256, 1, 1, 2, 2, 2), [Q6_K, Q4_K, Q5_K], head=True, layers=1),
    }
    for name, seed in seeds.items():
        (folder / f"{name}.gguf").write_bytes(seed)


if __name__ == "__main__":
    main()
