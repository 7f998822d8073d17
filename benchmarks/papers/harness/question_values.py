"""A metric of every question as a short text, for records: rounded to float16 and compressed."""

import base64
import zlib

import numpy as np
from jaxtyping import Float64


def encode_values(values: Float64[np.ndarray, " questions"]) -> str:
    """Encode the values of a metric, which are from 0 to 1; the rounding error is below 3e-4."""
    return base64.b64encode(zlib.compress(values.astype("<f2").tobytes(), 9)).decode("ascii")


def decode_values(text: str) -> Float64[np.ndarray, " questions"]:
    """Decode what `encode_values` returned."""
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f2")
    return values.astype(np.float64)
