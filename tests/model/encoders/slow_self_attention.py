"""The self-attention encoder the slow way: features of every pairwise interval, in float64.

Written from the paper's formula (Xu et al. 2019, section 6) and shares no code with the encoder:
there is no basis and no rotation here, and nothing is done for two events at once.
"""

from typing import NamedTuple, cast

import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.encoders.self_attention import SelfAttention
from model.layers.time_aware_block import TimeAwareBlock
from tests.model.time_encodings.by_definition import features_by_definition

Weights = dict[str, Tensor]


class Slow(NamedTuple):
    """Per position of one history: user vectors, last block's weights, log-mass of repeats."""

    users: Tensor
    attention: Tensor
    repeats: Tensor | None


def encode_slowly(encoder: SelfAttention, batch: SequenceBatch, items: Tensor, sample: int) -> Slow:
    """What the encoder must say at every position of one history of a batch."""
    weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
    length = int(batch.lengths[sample])
    heads = cast("TimeAwareBlock", encoder.blocks[0]).attention.heads
    content = []
    for place in range(length):
        vector = items[sample, place].double()
        if encoder.actions is not None:
            vector = vector + weights["actions.weight"][batch.actions[sample, place]]
        if encoder.positions is not None:
            vector = vector + weights["positions.weight"][place]
        content.append(vector)
    ages = [[_age(encoder, batch, sample, q, i) for i in range(q + 1)] for q in range(length)]
    states = []
    for place, vector in enumerate(content):
        if batch.query_given[sample, place]:
            told = weights["since_last.weight"] @ ages[place][place]
        else:
            told = weights["withheld"]
        states.append(vector + told)
    attention = torch.zeros(length, heads, length, dtype=torch.float64)
    for number in range(len(encoder.blocks)):
        below = {
            name.removeprefix(f"blocks.{number}."): tensor
            for name, tensor in weights.items()
            if name.startswith(f"blocks.{number}.")
        }
        states, attention = _block(below, heads, states, ages)
    users = [_layer_norm(weights, "norm", state) for state in states]
    repeats = None
    if encoder.pointer is not None:
        repeats = torch.full((length, length), float("-inf"), dtype=torch.float64)
        for q, user in enumerate(users):
            for i in range(q + 1):
                match = _match(weights, "pointer.match", user, content[i], ages[q][i])
                repeats[q, i] = match.sum() / encoder.dim**0.5 + weights["pointer.bias"]
    return Slow(torch.stack(users), attention, repeats)


def _age(encoder: SelfAttention, batch: SequenceBatch, sample: int, q: int, i: int) -> Tensor:
    """phi(T_q - t_i)."""
    if encoder.time_encoding.reads == "position":
        interval = float(q + 1 - i)
    else:
        interval = float(batch.query_times[sample, q] - batch.times[sample, i])
    features = features_by_definition(encoder.time_encoding, interval)
    return torch.tensor(features, dtype=torch.float64)


def _block(
    weights: Weights, heads: int, states: list[Tensor], ages: list[list[Tensor]]
) -> tuple[list[Tensor], Tensor]:
    normed = [_layer_norm(weights, "attention_norm", state) for state in states]
    length, width = len(states), len(states[0]) // heads
    attention = torch.zeros(length, heads, length, dtype=torch.float64)
    out = []
    for q in range(length):
        answer = torch.zeros_like(states[0])
        logits = torch.stack(
            [
                _match(weights, "attention.match", normed[q], normed[i], ages[q][i])
                .view(heads, width)
                .sum(-1)
                / width**0.5
                for i in range(q + 1)
            ]
        )
        attention[q, :, : q + 1] = (logits.exp() / logits.exp().sum(0)).T
        for i in range(q + 1):
            value = _linear(weights, "attention.value", normed[i])
            value = value + weights["attention.time_value.weight"] @ ages[q][i]
            answer = answer + attention[q, :, i].repeat_interleave(width) * value
        state = states[q] + _linear(weights, "attention.output", answer)
        hidden = _layer_norm(weights, "feed_forward_norm", state)
        hidden = _linear(weights, "feed_forward.rise", hidden)
        hidden = 0.5 * hidden * (1 + torch.erf(hidden / 2**0.5))
        out.append(state + _linear(weights, "feed_forward.fall", hidden))
    return out, attention


def _match(weights: Weights, name: str, query: Tensor, key: Tensor, age: Tensor) -> Tensor:
    """q * (W z_i + U phi(T_q - t_i)), coordinate by coordinate, before scaling."""
    keys = _linear(weights, f"{name}.key", key) + weights[f"{name}.time_key.weight"] @ age
    return _linear(weights, f"{name}.query", query) * keys


def _linear(weights: Weights, name: str, vector: Tensor) -> Tensor:
    return weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]


def _layer_norm(weights: Weights, name: str, vector: Tensor) -> Tensor:
    centred = vector - vector.mean()
    scaled = centred / (centred.square().mean() + 1e-5).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
