"""A reference self-attention encoder in float64, one pair of instants at a time.

It follows the papers' formulas (Xu et al. 2019, section 6; NTKA 2022; Chen et al. 2021; FuXi-Linear
2026; Wei et al. 2025) without a
Fourier basis or a rotation, and shares no code with the encoder.
"""

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.clock import MICROSECONDS_PER_DAY
from model.encoders.self_attention import SelfAttention
from model.history import Query
from model.interfaces import TimeEncoding, TimeKernel
from model.layers.time_aware_block import TimeAwareBlock
from model.time_encodings.rotary import Rotary
from tests.contracts.histories import collate_queries, draw_queries
from tests.contracts.sequence_encoder import vectors
from tests.model.time_encodings.by_definition import angles_by_definition, features_by_definition

Weights = dict[str, Tensor]


class Reference(NamedTuple):
    """Per position of one history: user vectors, last block's weights, repeat scores, and
    the intensities of every block per head (position, heads, groups)."""

    users: Tensor
    attention: Tensor
    repeat_scores: Tensor | None
    intensities: list[Tensor]


class QueryTime(NamedTuple):
    """The time inputs of a query: features and kernel per event, its own interval, groups.

    Attributes:
        ages: per event up to the query, phi(T_q - t_i); of no features where a kernel encodes time.
        event_interval: projected features of the interval since the query's own event.
        elapsed: per event up to the query, days (or events) since then.
        kernel: per event up to the query, K(T_q, t_i); zeros where features encode time.
        angles: per event up to the query, by how much the planes of each head turn, if they do.
        interval: days since the query's own event; None where it is withheld.
        membership: per event up to the query, the groups of its item.
    """

    ages: list[Tensor]
    event_interval: Tensor
    elapsed: list[float]
    kernel: Tensor
    angles: list[list[list[float]]]
    interval: float | None
    membership: Tensor


def encode_reference(
    encoder: SelfAttention, batch: SequenceBatch, items: Tensor, sample: int
) -> Reference:
    """Compute the outputs at every position of one history of a batch."""
    weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
    length = int(batch.lengths[sample])
    heads = cast("TimeAwareBlock", encoder.blocks[0]).attention.heads
    content = []
    for position in range(length):
        vector = items[sample, position].double()
        if encoder.actions is not None:
            vector = vector + weights["actions.weight"][batch.actions[sample, position]]
        if encoder.positions is not None:
            vector = vector + weights["positions.weight"][position]
        content.append(vector)
    inputs = [_query_time(encoder, weights, batch, sample, q) for q in range(length)]
    states = [vector + at.event_interval for vector, at in zip(content, inputs, strict=True)]
    attention = torch.zeros(length, heads, length, dtype=torch.float64)
    intensities = []
    for number in range(len(encoder.blocks)):
        below = {
            name.removeprefix(f"blocks.{number}."): tensor
            for name, tensor in weights.items()
            if name.startswith(f"blocks.{number}.")
        }
        states, attention, intensity = _block(below, heads, states, inputs)
        if len(intensity):
            intensities.append(intensity)
    users = [_layer_norm(weights, "norm", state) for state in states]
    repeat_scores = None
    if encoder.pointer is not None:
        repeat_scores = torch.full((length, length), float("-inf"), dtype=torch.float64)
        scale = weights.get("pointer.kernel_scale.scale", torch.zeros(1))
        for q, user in enumerate(users):
            projected = _linear(weights, "pointer.query_key.query_proj", user)
            for i in range(q + 1):
                key = _key(weights, "pointer.query_key", content[i], inputs[q], i)
                logit = (projected * key).sum() / encoder.dim**0.5
                repeat_scores[q, i] = logit + scale * inputs[q].kernel[i] + weights["pointer.bias"]
    return Reference(torch.stack(users), attention, repeat_scores, intensities)


def _query_time(
    encoder: SelfAttention, weights: Weights, batch: SequenceBatch, sample: int, q: int
) -> QueryTime:
    query_time, times = batch.query_times[sample, q], batch.times[sample]
    given = bool(batch.query_given[sample, q])
    encoding = encoder.time_encoding
    membership = weights.get("item_groups.membership", torch.zeros(100, 0))
    kernel = torch.zeros(q + 1, dtype=torch.float64)
    elapsed = [float(query_time - times[i]) for i in range(q + 1)]
    angles = []
    if isinstance(encoding, Rotary):
        ages = [torch.zeros(0, dtype=torch.float64)] * (q + 1)
        heads = cast("TimeAwareBlock", encoder.blocks[0]).attention.heads
        angles = [
            angles_by_definition(
                encoding, q - i, elapsed[i], heads=heads, planes=encoder.dim // heads // 2
            )
            for i in range(q + 1)
        ]
    elif isinstance(encoding, TimeKernel):
        ages = [torch.zeros(0, dtype=torch.float64)] * (q + 1)
        start = (batch.origins[sample] - encoding.origin) / MICROSECONDS_PER_DAY
        kernel = torch.stack(
            [encoding(start + query_time, start + times[i]).detach().double() for i in range(q + 1)]
        )
    else:
        assert isinstance(encoding, TimeEncoding)
        uses_positions = encoding.domain == "position"
        intervals = [q + 1 - i if uses_positions else query_time - times[i] for i in range(q + 1)]
        elapsed = [float(interval) for interval in intervals]
        ages = [
            torch.tensor(features_by_definition(encoding, float(interval)), dtype=torch.float64)
            for interval in intervals
        ]
    return QueryTime(
        ages=ages,
        event_interval=weights["interval_proj.weight"] @ ages[q] if given else weights["withheld"],
        elapsed=elapsed,
        kernel=kernel,
        angles=angles,
        interval=float(query_time - times[q]) if given else None,
        membership=membership[batch.rows[sample, : q + 1]].double(),
    )


def _block(
    weights: Weights, heads: int, states: list[Tensor], inputs: list[QueryTime]
) -> tuple[list[Tensor], Tensor, Tensor]:
    normed = [_layer_norm(weights, "attention_norm", state) for state in states]
    length, width = len(states), len(states[0]) // heads
    attention = torch.zeros(length, heads, length, dtype=torch.float64)
    out, intensities = [], []
    for q, at in enumerate(inputs):
        projected = _query(weights, normed[q], at.event_interval)
        logits = torch.zeros(q + 1, heads, dtype=torch.float64)
        for i in range(q + 1):
            key = _key(weights, "attention.query_key", normed[i], at, i)
            logits[i] = (projected * key).view(heads, width).sum(-1) / width**0.5
            if "kernel_scale.scale" in weights:
                logits[i] += weights["kernel_scale.scale"] * at.kernel[i]
            if "attention.damping.log_rates" in weights:
                logits[i] -= weights["attention.damping.log_rates"].exp() * at.elapsed[i]
        attention[q, :, : q + 1] = logits.softmax(0).T
        if "modulation.log_scale" in weights:
            intensity = _intensity(weights, heads, attention[q], normed[: q + 1], at.interval)
            intensities.append(intensity)
            for i, groups in enumerate(at.membership):
                if groups.any():
                    attention[q, :, i] *= intensity @ groups
        output = torch.zeros_like(states[0])
        for i in range(q + 1):
            value = _linear(weights, "attention.value_proj", normed[i])
            value = value + weights["attention.time_value_proj.weight"] @ at.ages[i]
            output = output + attention[q, :, i].repeat_interleave(width) * value
        state = states[q] + _linear(weights, "attention.out_proj", output)
        hidden = _layer_norm(weights, "feed_forward_norm", state)
        hidden = _linear(weights, "feed_forward.up_proj", hidden)
        hidden = 0.5 * hidden * (1 + torch.erf(hidden / 2**0.5))
        out.append(state + _linear(weights, "feed_forward.down_proj", hidden))
    return out, attention, torch.stack(intensities) if intensities else torch.zeros(0)


def _query(weights: Weights, state: Tensor, event_interval: Tensor) -> Tensor:
    """ReLU([Z, Z_T] W_0 + b_0) W_1 + b_1, or a linear map of the state alone."""
    if "attention.query_key.query_proj.weight" in weights:
        return _linear(weights, "attention.query_key.query_proj", state)
    inner = _linear(
        weights, "attention.query_key.query_proj.linear1", torch.cat((state, event_interval))
    )
    return _linear(weights, "attention.query_key.query_proj.linear2", inner.clamp(min=0))


def _key(weights: Weights, name: str, state: Tensor, at: QueryTime, i: int) -> Tensor:
    """W z_i + U phi(T_q - t_i), or the planes of W z_i turned back by its age."""
    key = _linear(weights, f"{name}.key_proj", state)
    key = key + weights[f"{name}.time_key_proj.weight"] @ at.ages[i]
    if not at.angles:
        return key
    turned = key.view(len(at.angles[i]), -1).clone()
    for head, angles in enumerate(at.angles[i]):
        for plane, angle in enumerate(angles):
            x, y = turned[head, 2 * plane].item(), turned[head, 2 * plane + 1].item()
            turned[head, 2 * plane] = x * math.cos(angle) + y * math.sin(angle)
            turned[head, 2 * plane + 1] = y * math.cos(angle) - x * math.sin(angle)
    return turned.flatten()


def _intensity(
    weights: Weights, heads: int, attention: Tensor, states: list[Tensor], interval: float | None
) -> Tensor:
    """lambda_k = phi_k log(1 + exp(w_k . sigmoid(W_k h + b_k log(1 + d) + c_k) / phi_k))."""
    values = [_linear(weights, "modulation.value_proj", state).view(heads, -1) for state in states]
    context = sum(attention[:, i, None] * value for i, value in enumerate(values))
    assert isinstance(context, Tensor)
    intensity = torch.zeros(heads, len(weights["modulation.log_scale"]), dtype=torch.float64)
    for head in range(heads):
        preactivation = _linear(weights, "modulation.endogenous", context[head])
        for k, group in enumerate(preactivation.view(intensity.shape[1], -1)):
            if interval is None:
                since = weights["modulation.withheld"][k]
            else:
                since = weights["modulation.exogenous"][k] * math.log1p(interval)
            dynamics = 1 / (1 + (-group - since).exp())
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


def largest_difference(encoder: SelfAttention, *queries: Query) -> float:
    """The largest difference from the reference, over histories of many lengths and intervals."""
    batch = collate_queries(*(queries or draw_queries(14, 1, 9, 3, seed=5)))
    positions = torch.arange(batch.rows.shape[1])
    batch = batch.withhold_query_times(positions.expand(len(batch.rows), -1) % 5 == 2)
    items, since = vectors(encoder, batch), batch.query_times - batch.times
    with torch.no_grad():
        states, encoded = encoder.encode_positions(batch, items), encoder(batch, items)
        intensities = [layer.evaluate(since).transpose(1, 2) for layer in states.intensities]
    assert encoded.attention is not None
    worst = 0.0
    for sample, length in enumerate(batch.lengths.tolist()):
        reference = encode_reference(encoder, batch, items, sample)
        pairs = [
            (states.users[sample, :length], reference.users),
            (encoded.user[sample], reference.users[-1]),
            (encoded.attention[sample, :, :length], reference.attention[-1]),
        ]
        if states.repeat_scores is not None and reference.repeat_scores is not None:
            visible = torch.ones(length, length, dtype=torch.bool).tril()
            pairs.append(
                (
                    states.repeat_scores[sample, :length, :length][visible],
                    reference.repeat_scores[visible],
                )
            )
        given = batch.query_given[sample, :length]
        for layer, expected in zip(intensities, reference.intensities, strict=True):
            pairs.append((layer[sample, :length][given], expected[given]))
        if encoded.intensity is not None:
            pairs.append((encoded.intensity[sample], reference.intensities[-1][-1].mean(0)))
        for found, expected in pairs:
            worst = max(worst, float((found.double() - expected).abs().max()))
    return worst
