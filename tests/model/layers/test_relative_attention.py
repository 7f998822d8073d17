import pytest
import torch
from torch import Tensor

from model.layers.relative_attention import (
    Related,
    Relations,
    RelationTables,
    RelativeAttention,
)

DIM, LENGTH, RELATIONS = 6, 5, 4


def drawn_tables() -> RelationTables:
    return RelationTables(*(torch.randn(count, DIM) for count in (RELATIONS, RELATIONS, 5, 5)))


def drawn_relations() -> Relations:
    of = torch.randint(RELATIONS, (2, LENGTH, LENGTH))
    return Relations(of, torch.ones(1, LENGTH, LENGTH, dtype=torch.bool).tril())


def by_definition(
    attention: RelativeAttention,
    queries: Tensor,
    states: Tensor,
    tables: RelationTables,
    relations: Relations,
    heads: int,
) -> tuple[Tensor, Tensor]:
    """With a vector per pair, in double precision."""
    layer = attention.double()
    tables = RelationTables(*(table.double() for table in tables))
    asked, keys, values = (
        part(given.double())
        for part, given in (
            (layer.query, queries),
            (layer.key, states),
            (layer.value, states),
        )
    )
    of_pairs = (keys + tables.place_keys).unsqueeze(1) + tables.relation_keys[relations.of]
    read = (values + tables.place_values).unsqueeze(1) + tables.relation_values[relations.of]
    answers, weights = [], []
    for head in torch.arange(DIM).chunk(heads):
        logits = (asked[..., head].unsqueeze(2) * of_pairs[..., head]).sum(-1) / len(head) ** 0.5
        shares = logits.masked_fill(~relations.visible, -torch.inf).softmax(-1)
        answers.append((shares.unsqueeze(-1) * read[..., head]).sum(2))
        weights.append(shares)
    return torch.cat(answers, -1), torch.stack(weights, 1)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_it_equals_a_vector_per_pair(heads: int) -> None:
    attention = RelativeAttention(dim=DIM, heads=heads, dropout=0.0)
    queries, states = torch.randn(2, LENGTH, DIM), torch.randn(2, LENGTH, DIM)
    tables, relations = drawn_tables(), drawn_relations()
    found: Related = attention(queries, states, tables, relations)
    answer, weights = by_definition(attention, queries, states, tables, relations, heads)
    torch.testing.assert_close(found.states.double(), answer, rtol=0, atol=1e-5)
    torch.testing.assert_close(found.weights.double(), weights, rtol=0, atol=1e-6)


def test_gradients_equal_those_of_a_vector_per_pair() -> None:
    attention = RelativeAttention(dim=DIM, heads=2, dropout=0.0).double()
    queries, states = (torch.randn(2, LENGTH, DIM, dtype=torch.float64) for _ in range(2))
    tables = RelationTables(*(table.double().requires_grad_() for table in drawn_tables()))
    relations, direction = drawn_relations(), torch.randn(2, LENGTH, DIM, dtype=torch.float64)
    found = attention(queries, states, tables, relations).states
    answer, _ = by_definition(attention, queries, states, tables, relations, 2)
    wanted = [*tables, *attention.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad((found * direction).sum(), wanted),
        torch.autograd.grad((answer * direction).sum(), wanted),
    )


def test_one_position_is_asked_as_among_all() -> None:
    attention = RelativeAttention(dim=DIM, heads=2, dropout=0.0)
    states, tables, relations = torch.randn(2, LENGTH, DIM), drawn_tables(), drawn_relations()
    positions = torch.tensor([3, 1])
    every = attention(states, states, tables, relations)
    asking = states[torch.arange(2), positions].unsqueeze(1)
    one = attention(asking, states, tables, relations.at(positions))
    for sample, place in enumerate(positions.tolist()):
        torch.testing.assert_close(one.states[sample, 0], every.states[sample, place])
        torch.testing.assert_close(one.weights[sample, :, 0], every.weights[sample, :, place])


def test_heads_that_do_not_divide_the_width_are_refused_by_value() -> None:
    with pytest.raises(ValueError, match="dim=6, heads=4"):
        RelativeAttention(dim=DIM, heads=4, dropout=0.0)
