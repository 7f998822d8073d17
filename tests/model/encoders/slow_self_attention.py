"""The self-attention encoder the slow way: every pair of instants by itself, in float64.

Written from the papers' formulas (Xu et al. 2019, section 6; NTKA 2022; Chen et al. 2021) and
shares no code with the encoder: there is no basis and no rotation here, and nothing is done for two
events at once.
"""

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.encoders.self_attention import SelfAttention
from model.interfaces import TimeKernel
from model.layers.time_aware_block import TimeAwareBlock
from tests.contracts.histories import draw_queries, laid_out
from tests.contracts.sequence_encoder import vectors
from tests.model.time_encodings.by_definition import features_by_definition

Weights = dict[str, Tensor]


class Slow(NamedTuple):
    """Per position of one history: user vectors, last block's weights, log-mass of repeats, and
    the intensities of every block per head (position, heads, groups)."""

    users: Tensor
    attention: Tensor
    repeats: Tensor | None
    intensities: list[Tensor]


class Known(NamedTuple):
    """What a query knows of time: features and kernel per event, its own interval, its groups.

    Attributes:
        ages: per event up to the query, phi(T_q - t_i); of no features where a kernel tells time.
        told: what stands for the interval since the query's own event.
        kernel: per event up to the query, K(T_q, t_i); zeros where features tell time.
        interval: days since the query's own event; None where it is withheld.
        marks: per event up to the query, the groups of its item.
    """

    ages: list[Tensor]
    told: Tensor
    kernel: Tensor
    interval: float | None
    marks: Tensor


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
    known = [_known(encoder, weights, batch, sample, q) for q in range(length)]
    states = [vector + at.told for vector, at in zip(content, known, strict=True)]
    attention = torch.zeros(length, heads, length, dtype=torch.float64)
    intensities = []
    for number in range(len(encoder.blocks)):
        below = {
            name.removeprefix(f"blocks.{number}."): tensor
            for name, tensor in weights.items()
            if name.startswith(f"blocks.{number}.")
        }
        states, attention, seen = _block(below, heads, states, known)
        if len(seen):
            intensities.append(seen)
    users = [_layer_norm(weights, "norm", state) for state in states]
    repeats = None
    if encoder.pointer is not None:
        repeats = torch.full((length, length), float("-inf"), dtype=torch.float64)
        scale = weights.get("pointer.kernel_scale.scale", torch.zeros(1))
        for q, user in enumerate(users):
            looked_for = _linear(weights, "pointer.match.query", user)
            for i in range(q + 1):
                key = _key(weights, "pointer.match", content[i], known[q].ages[i])
                match = (looked_for * key).sum() / encoder.dim**0.5
                repeats[q, i] = match + scale * known[q].kernel[i] + weights["pointer.bias"]
    return Slow(torch.stack(users), attention, repeats, intensities)


def _known(
    encoder: SelfAttention, weights: Weights, batch: SequenceBatch, sample: int, q: int
) -> Known:
    asked, times = batch.query_times[sample, q], batch.times[sample]
    given = bool(batch.query_given[sample, q])
    encoding = encoder.time_encoding
    marks = weights.get("item_groups.marks", torch.zeros(100, 0))
    kernel = torch.zeros(q + 1, dtype=torch.float64)
    if isinstance(encoding, TimeKernel):
        ages = [torch.zeros(0, dtype=torch.float64)] * (q + 1)
        kernel = torch.stack([encoding(asked, times[i]).detach().double() for i in range(q + 1)])
    else:
        reads_position = encoding.reads == "position"
        intervals = [q + 1 - i if reads_position else asked - times[i] for i in range(q + 1)]
        ages = [
            torch.tensor(features_by_definition(encoding, float(interval)), dtype=torch.float64)
            for interval in intervals
        ]
    return Known(
        ages=ages,
        told=weights["since_last.weight"] @ ages[q] if given else weights["withheld"],
        kernel=kernel,
        interval=float(asked - times[q]) if given else None,
        marks=marks[batch.rows[sample, : q + 1]].double(),
    )


def _block(
    weights: Weights, heads: int, states: list[Tensor], known: list[Known]
) -> tuple[list[Tensor], Tensor, Tensor]:
    normed = [_layer_norm(weights, "attention_norm", state) for state in states]
    length, width = len(states), len(states[0]) // heads
    attention = torch.zeros(length, heads, length, dtype=torch.float64)
    out, intensities = [], []
    for q, at in enumerate(known):
        looked_for = _query(weights, normed[q], at.told)
        logits = torch.zeros(q + 1, heads, dtype=torch.float64)
        for i in range(q + 1):
            key = _key(weights, "attention.match", normed[i], at.ages[i])
            logits[i] = (looked_for * key).view(heads, width).sum(-1) / width**0.5
            if "kernel_scale.scale" in weights:
                logits[i] += weights["kernel_scale.scale"] * at.kernel[i]
        attention[q, :, : q + 1] = (logits.exp() / logits.exp().sum(0)).T
        if "modulation.log_scale" in weights:
            intensity = _intensity(weights, heads, attention[q], normed[: q + 1], at.interval)
            intensities.append(intensity)
            for i, groups in enumerate(at.marks):
                if groups.any():
                    attention[q, :, i] *= intensity @ groups
        answer = torch.zeros_like(states[0])
        for i in range(q + 1):
            value = _linear(weights, "attention.value", normed[i])
            value = value + weights["attention.time_value.weight"] @ at.ages[i]
            answer = answer + attention[q, :, i].repeat_interleave(width) * value
        state = states[q] + _linear(weights, "attention.output", answer)
        hidden = _layer_norm(weights, "feed_forward_norm", state)
        hidden = _linear(weights, "feed_forward.rise", hidden)
        hidden = 0.5 * hidden * (1 + torch.erf(hidden / 2**0.5))
        out.append(state + _linear(weights, "feed_forward.fall", hidden))
    return out, attention, torch.stack(intensities) if intensities else torch.zeros(0)


def _query(weights: Weights, state: Tensor, told: Tensor) -> Tensor:
    """ReLU([Z, Z_T] W_0 + b_0) W_1 + b_1, or a linear map of the state alone."""
    if "attention.match.query.weight" in weights:
        return _linear(weights, "attention.match.query", state)
    inner = _linear(weights, "attention.match.query.inner", torch.cat((state, told)))
    return _linear(weights, "attention.match.query.outer", inner.clamp(min=0))


def _key(weights: Weights, name: str, state: Tensor, age: Tensor) -> Tensor:
    """W z_i + U phi(T_q - t_i)."""
    return _linear(weights, f"{name}.key", state) + weights[f"{name}.time_key.weight"] @ age


def _intensity(
    weights: Weights, heads: int, attention: Tensor, states: list[Tensor], interval: float | None
) -> Tensor:
    """lambda_k = phi_k log(1 + exp(w_k . sigmoid(W_k h + b_k log(1 + d) + c_k) / phi_k))."""
    values = [_linear(weights, "modulation.value", state).view(heads, -1) for state in states]
    history = sum(attention[:, i, None] * value for i, value in enumerate(values))
    assert isinstance(history, Tensor)
    intensity = torch.zeros(heads, len(weights["modulation.log_scale"]), dtype=torch.float64)
    for head in range(heads):
        within = _linear(weights, "modulation.endogenous", history[head])
        for k, of_group in enumerate(within.view(intensity.shape[1], -1)):
            if interval is None:
                since = weights["modulation.withheld"][k]
            else:
                since = weights["modulation.exogenous"][k] * math.log1p(interval)
            dynamics = 1 / (1 + (-of_group - since).exp())
            scale = weights["modulation.log_scale"][k].exp()
            drive = dynamics @ weights["modulation.direction"][k] / scale
            intensity[head, k] = scale * (1 + drive.exp()).log()
    return intensity


def _linear(weights: Weights, name: str, vector: Tensor) -> Tensor:
    return weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]


def _layer_norm(weights: Weights, name: str, vector: Tensor) -> Tensor:
    centred = vector - vector.mean()
    scaled = centred / (centred.square().mean() + 1e-5).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def furthest_from_slow(encoder: SelfAttention) -> float:
    """The largest difference in anything said, over histories of many lengths and intervals."""
    batch = laid_out(*draw_queries(14, 1, 9, 3, seed=5))
    batch = batch.withhold(torch.arange(14).expand(4, -1) % 5 == 2)
    items, since = vectors(encoder, batch), batch.query_times - batch.times
    with torch.no_grad():
        states, encoded = encoder.states(batch, items), encoder(batch, items)
        intensities = [layer.at(since).transpose(1, 2) for layer in states.intensities]
    assert encoded.attention is not None
    worst = 0.0
    for sample, length in enumerate(batch.lengths.tolist()):
        slow = encode_slowly(encoder, batch, items, sample)
        pairs = [
            (states.users[sample, :length], slow.users),
            (encoded.user[sample], slow.users[-1]),
            (encoded.attention[sample, :, :length], slow.attention[-1]),
        ]
        if states.repeats is not None and slow.repeats is not None:
            seen = torch.ones(length, length, dtype=torch.bool).tril()
            pairs.append((states.repeats[sample, :length, :length][seen], slow.repeats[seen]))
        told = batch.query_given[sample, :length]
        for layer, expected in zip(intensities, slow.intensities, strict=True):
            pairs.append((layer[sample, :length][told], expected[told]))
        if encoded.intensity is not None:
            pairs.append((encoded.intensity[sample], slow.intensities[-1][-1].mean(0)))
        for fast, expected in pairs:
            worst = max(worst, float((fast.double() - expected).abs().max()))
    return worst
