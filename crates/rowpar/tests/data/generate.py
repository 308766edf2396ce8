"""Writes blocks.txt: blocks of every quantized format, and the weights that the Python package `gguf` makes of them.

    pip install gguf numpy
    python3 generate.py > blocks.txt

The bytes come from a generator of fixed seed. Floats of scales are finite; they include subnormals, zeros and negative ones.
"""

import random
from importlib.metadata import version

import gguf
import numpy

# Where the binary16 scales of a block are.
SCALES = {"Q8_0": [0], "Q5_0": [0], "Q5_1": [0, 2], "Q4_0": [0], "Q4_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
# The exponent of a scale, and what its mantissa is taken from, for the blocks of a format.
KINDS = [(15, 0x3FF), (13, 0x3FF), (0, 0x3FF), (0, 0), (30, 0x3FF), (1, 0x3FF)]


def block(source, name, n_bytes, kind):
    """Random bytes; of the last two blocks all set and all cleared; with scales of a kind."""
    filler = {4: b"\xff", 5: b"\x00"}.get(kind)
    data = bytearray(filler * n_bytes if filler else source.randbytes(n_bytes))
    exponent, mantissa = KINDS[kind]
    for at in SCALES[name]:
        half = source.getrandbits(1) << 15 | exponent << 10 | source.getrandbits(10) & mantissa
        data[at : at + 2] = half.to_bytes(2, "little")
    return bytes(data)


def main():
    source = random.Random(1)
    print(f"# Made by generate.py with gguf {version('gguf')}: a format, the bytes of a block, the bits of its weights as binary32.")
    for name in SCALES:
        kind = gguf.GGMLQuantizationType[name]
        _, n_bytes = gguf.GGML_QUANT_SIZES[kind]
        for number in range(len(KINDS)):
            data = block(source, name, n_bytes, number)
            weights = gguf.quants.dequantize(numpy.frombuffer(data, dtype=numpy.uint8), kind)
            bits = weights.astype("<f4").view("<u4")
            print(name, data.hex(), "".join(f"{word:08x}" for word in bits))


main()
