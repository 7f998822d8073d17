"""The map of items in two dimensions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.bundle.item_map_file import ItemMap
from model.inference.item_map import MOST_ITEMS, draw_map, measure_kept_neighbours


def map_of(vectors: torch.Tensor) -> ItemMap:
    return draw_map(vectors, np.arange(len(vectors), 0, -1))


def flat(items: int = 30, dim: int = 6, seed: int = 0) -> torch.Tensor:
    """Vectors whose directions differ within one plane only."""
    generator = torch.Generator().manual_seed(seed)
    angles = torch.rand(items, generator=generator, dtype=torch.float64) * 2 * torch.pi
    spread = torch.stack((2 * angles.cos(), angles.sin(), *[angles * 0] * (dim - 2)), dim=1)
    basis, _ = torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))
    return (spread / 10 + torch.eye(dim, dtype=torch.float64)[-1]) @ basis


def test_distances_of_vectors_in_a_plane_are_kept() -> None:
    vectors = flat()
    drawn = map_of(vectors)
    directions = torch.nn.functional.normalize(vectors, dim=-1)
    between = torch.cdist(directions, directions).numpy()
    points = torch.from_numpy(drawn.points)
    assert torch.cdist(points, points).numpy() == pytest.approx(between, abs=2e-2)
    assert drawn.explained is not None
    assert drawn.explained[0] > drawn.explained[1] > 0.1
    assert sum(drawn.explained) == pytest.approx(1, abs=1e-2)


def test_the_axes_equal_those_of_an_svd() -> None:
    vectors = torch.randn(50, 8, generator=torch.Generator().manual_seed(1))
    drawn = map_of(vectors)
    directions = torch.nn.functional.normalize(vectors.double(), dim=-1)
    centred = directions - directions.mean(0)
    left, values, _ = torch.linalg.svd(centred, full_matrices=False)
    expected = (left[:, :2] * values[:2]).numpy()
    assert np.abs(drawn.points) == pytest.approx(np.abs(expected), abs=1e-9)
    shares = (values.square() / values.square().sum())[:2].tolist()
    assert drawn.explained == pytest.approx(shares)


def test_the_length_of_a_vector_does_not_matter() -> None:
    vectors = flat()
    longer = vectors * torch.linspace(0.1, 30, len(vectors), dtype=torch.float64)[:, None]
    assert map_of(longer).points == pytest.approx(map_of(vectors).points, abs=1e-9)


def test_the_map_is_deterministic_up_to_the_order_of_items() -> None:
    vectors = flat()
    assert map_of(vectors.clone()).points.tolist() == map_of(vectors).points.tolist()
    shuffled = torch.randperm(len(vectors), generator=torch.Generator().manual_seed(0))
    assert map_of(vectors[shuffled]).points == pytest.approx(
        map_of(vectors).points[shuffled.numpy()], abs=1e-9
    )


def test_popular_items_come_first_and_ties_in_catalog_order() -> None:
    drawn = draw_map(flat(4), np.array([1, 5, 5, 2]))
    assert drawn.rows.tolist() == [2, 3, 4, 1]


def test_a_large_catalog_is_cut_to_its_most_popular_items() -> None:
    vectors = torch.randn(MOST_ITEMS + 5, 3, generator=torch.Generator().manual_seed(0))
    assert len(map_of(vectors).rows) == len(map_of(vectors).points) == MOST_ITEMS


@pytest.mark.parametrize(
    "vectors",
    [torch.ones(1, 4), torch.ones(5, 1), torch.zeros(5, 4), torch.ones(5, 4)],
    ids=["one item", "one dimension", "no vectors", "one point"],
)
def test_items_without_differences_lie_in_one_point(vectors: torch.Tensor) -> None:
    drawn = map_of(vectors)
    assert drawn.points == pytest.approx(np.zeros((len(vectors), 2)), abs=1e-9)
    assert drawn.explained == (0, 0)


def test_items_on_a_line_differ_along_x_only() -> None:
    drawn = map_of(torch.tensor([[2.0], [-1.0]]))
    assert drawn.points.tolist() == [[1, 0], [-1, 0]]
    assert drawn.explained == (1, 0)


@given(st.integers(11, 60), st.integers(0, 9))
def test_kept_neighbours_are_counted_as_by_definition(items: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    directions = torch.nn.functional.normalize(torch.randn(items, 5, generator=generator), dim=1)
    points = torch.randn(items, 2, generator=generator, dtype=torch.float64).numpy()
    cosines = (directions @ directions.T).numpy()
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    kept = []
    for item in range(items):
        others = np.delete(np.arange(items), item)
        near = others[np.argsort(-cosines[item, others])[:10]]
        near_on_map = others[np.argsort(distances[item, others])[:10]]
        kept.append(len({*near.tolist()} & {*near_on_map.tolist()}) / 10)
    assert measure_kept_neighbours(directions, points) == pytest.approx(np.mean(kept))


def test_ten_items_have_no_share_of_kept_neighbours() -> None:
    assert map_of(flat(10)).neighbours_kept is None
    assert map_of(flat(11)).neighbours_kept == 1
