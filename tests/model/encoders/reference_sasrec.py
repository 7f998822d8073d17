"""A reference SASRec: the papers' formulas in float64, one query and one event at a time.

It shares no code with the encoder.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.encoders.sasrec import SASRec
from tests.model.time_encodings.by_definition import features_by_definition

Weights = dict[str, Tensor]


class Reference(NamedTuple):
    """Per position of one history: user vectors, and the last block's weights and intensities."""

    users: Tensor
    attention: Tensor
    intensity: Tensor


def encode_reference(
    encoder: SASRec, batch: SequenceBatch, items: Tensor, sample: int, heads: int
) -> Reference:
    """Compute the outputs at every position of one history of a batch."""
    weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
    length = int(batch.lengths[sample])
    times, query_times = batch.times[sample].tolist(), batch.query_times[sample].tolist()
    given = batch.query_given[sample].tolist()
    if encoder.time_encoding.domain == "position":
        times = [float(position) for position in range(length)]
        query_times = [float(position + 1) for position in range(length)]
    states = [
        items[sample, position].double() * encoder.dim**0.5 + weights["positions.weight"][position]
        for position in range(length)
    ]
    ages = [
        [
            torch.tensor(
                features_by_definition(encoder.time_encoding, query_times[q] - times[i]),
                dtype=torch.float64,
            )
            for i in range(q + 1)
        ]
        for q in range(length)
    ]
    own = [ages[q][q] if given[q] else weights["withheld"] for q in range(length)]
    intervals = [
        float(batch.query_times[sample, q] - batch.times[sample, q]) if given[q] else None
        for q in range(length)
    ]
    membership = (
        weights["item_groups.membership"][batch.rows[sample, :length]]
        if "item_groups.membership" in weights
        else None
    )
    attention = intensity = torch.empty(0)
    for number in range(len(encoder.blocks)):
        below = {
            name.removeprefix(f"blocks.{number}."): tensor
            for name, tensor in weights.items()
            if name.startswith(f"blocks.{number}.")
        }
        states, attention, intensity = _block(
            below, heads, states, ages, own, intervals, membership
        )
    users = torch.stack([_norm(weights, "norm", state) for state in states])
    return Reference(users, attention, intensity)


def _block(
    weights: Weights,
    heads: int,
    states: list[Tensor],
    ages: list[list[Tensor]],
    own: list[Tensor],
    intervals: list[float | None],
    membership: Tensor | None,
) -> tuple[list[Tensor], Tensor, Tensor]:
    length, width = len(states), len(states[0]) // heads
    attention = torch.zeros(length, heads, length, dtype=torch.float64)
    intensity = torch.zeros(
        length, heads, 0 if membership is None else membership.shape[1]
    ).double()
    out = []
    for q in range(length):
        query = _norm(weights, "attention_norm", states[q])
        query = query + weights["interval_proj.weight"] @ own[q]
        projected = _linear(weights, "query_key.query_proj", query)
        output = torch.zeros_like(query)
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            logits = []
            for i in range(q + 1):
                key = _linear(weights, "query_key.key_proj", states[i])
                key = key + weights["query_key.time_key_proj.weight"] @ ages[q][i]
                logits.append(float(projected[part] @ key[part]) / math.sqrt(width))
            total = sum(math.exp(logit) for logit in logits)
            shares = [math.exp(logit) / total for logit in logits]
            if membership is not None:
                intensity[q, head] = _intensity(weights, part, states, shares, intervals[q])
                shares = [
                    share
                    * (float(membership[i] @ intensity[q, head]) if membership[i].any() else 1.0)
                    for i, share in enumerate(shares)
                ]
            for i, share in enumerate(shares):
                value = _linear(weights, "value_proj", states[i])
                value = value + weights["time_value_proj.weight"] @ ages[q][i]
                output[part] += share * value[part]
                attention[q, head, i] = share
        normed = _norm(weights, "feed_forward_norm", query + output)
        inner = _linear(weights, "linear1", normed).clamp(min=0)
        out.append(normed + _linear(weights, "linear2", inner))
    return out, attention, intensity


def _intensity(
    weights: Weights,
    head: slice,
    states: list[Tensor],
    shares: list[float],
    interval: float | None,
) -> Tensor:
    """phi_k softplus(w_k . sigmoid(W_k H + b_k log(1 + d) + c_k) / phi_k)."""
    context = sum(
        share * _linear(weights, "modulation.value_proj", states[i])[head]
        for i, share in enumerate(shares)
    )
    assert isinstance(context, Tensor)
    direction = weights["modulation.direction"]
    preactivation = _linear(weights, "modulation.endogenous", context).view(direction.shape)
    if interval is None:
        preactivation = preactivation + weights["modulation.withheld"]
    else:
        preactivation = preactivation + weights["modulation.exogenous"] * math.log1p(interval)
    drive = (direction / (1 + torch.exp(-preactivation))).sum(-1)
    scale = weights["modulation.log_scale"].exp()
    return scale * torch.log1p(torch.exp(drive / scale))


def _linear(weights: Weights, name: str, vector: Tensor) -> Tensor:
    return weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]


def _norm(weights: Weights, name: str, vector: Tensor) -> Tensor:
    centred = vector - vector.mean()
    scaled = centred / (centred.square().mean() + 1e-8).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
