"""Relative attention against one vector per pair."""

import pytest
import torch
from torch import Tensor

from model.layers.relative_attention import (
    Relations,
    RelationTables,
    RelativeAttention,
    RelativeOutput,
)

DIM, LENGTH, RELATIONS = 6, 5, 4


def random_tables() -> RelationTables:
    return RelationTables(*(torch.randn(count, DIM) for count in (RELATIONS, RELATIONS, 5, 5)))


def random_relations() -> Relations:
    indices = torch.randint(RELATIONS, (2, LENGTH, LENGTH))
    return Relations(indices, torch.ones(1, LENGTH, LENGTH, dtype=torch.bool).tril())


def by_definition(
    attention: RelativeAttention,
    queries: Tensor,
    states: Tensor,
    tables: RelationTables,
    relations: Relations,
    heads: int,
) -> tuple[Tensor, Tensor]:
    """Compute outputs and weights with one vector per pair, in float64."""
    layer = attention.double()
    tables = RelationTables(*(table.double() for table in tables))
    projected, keys, values = (
        layer_of(inputs.double())
        for layer_of, inputs in (
            (layer.query_proj, queries),
            (layer.key_proj, states),
            (layer.value_proj, states),
        )
    )
    pair_keys = (keys + tables.position_keys).unsqueeze(1) + tables.relation_keys[relations.indices]
    pair_values = (values + tables.position_values).unsqueeze(1) + tables.relation_values[
        relations.indices
    ]
    outputs, weights = [], []
    for head in torch.arange(DIM).chunk(heads):
        logits = (projected[..., head].unsqueeze(2) * pair_keys[..., head]).sum(-1) / len(
            head
        ) ** 0.5
        attended = logits.masked_fill(~relations.visible, -torch.inf).softmax(-1)
        outputs.append((attended.unsqueeze(-1) * pair_values[..., head]).sum(2))
        weights.append(attended)
    return torch.cat(outputs, -1), torch.stack(weights, 1)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_it_equals_attention_with_one_vector_per_pair(heads: int) -> None:
    attention = RelativeAttention(dim=DIM, heads=heads, dropout=0.0)
    queries, states = torch.randn(2, LENGTH, DIM), torch.randn(2, LENGTH, DIM)
    tables, relations = random_tables(), random_relations()
    found: RelativeOutput = attention(queries, states, tables, relations)
    expected, weights = by_definition(attention, queries, states, tables, relations, heads)
    torch.testing.assert_close(found.states.double(), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(found.weights.double(), weights, rtol=0, atol=1e-6)


def test_gradients_equal_those_with_one_vector_per_pair() -> None:
    attention = RelativeAttention(dim=DIM, heads=2, dropout=0.0).double()
    queries, states = (torch.randn(2, LENGTH, DIM, dtype=torch.float64) for _ in range(2))
    tables = RelationTables(*(table.double().requires_grad_() for table in random_tables()))
    relations, direction = random_relations(), torch.randn(2, LENGTH, DIM, dtype=torch.float64)
    found = attention(queries, states, tables, relations).states
    expected, _ = by_definition(attention, queries, states, tables, relations, 2)
    inputs = [*tables, *attention.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad((found * direction).sum(), inputs),
        torch.autograd.grad((expected * direction).sum(), inputs),
    )


def test_one_query_position_equals_the_same_among_all() -> None:
    attention = RelativeAttention(dim=DIM, heads=2, dropout=0.0)
    states, tables, relations = torch.randn(2, LENGTH, DIM), random_tables(), random_relations()
    positions = torch.tensor([3, 1])
    every = attention(states, states, tables, relations)
    query = states[torch.arange(2), positions].unsqueeze(1)
    one = attention(query, states, tables, relations.select(positions))
    for sample, position in enumerate(positions.tolist()):
        torch.testing.assert_close(one.states[sample, 0], every.states[sample, position])
        torch.testing.assert_close(one.weights[sample, :, 0], every.weights[sample, :, position])


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match="dim=6, heads=4"):
        RelativeAttention(dim=DIM, heads=4, dropout=0.0)
