import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from training.fitting.losses import softmax
from training.fitting.losses.repeats import RepeatScores
from training.fitting.losses.softmax import SoftmaxNormaliser, full_softmax, sampled_softmax

USERS, ROWS, WIDTH, LENGTH = 7, 31, 5, 6
TARGETS = torch.tensor([3, 1, 30, 7, 7, 12, 5, 9, 2, 30])
USER_OF = torch.tensor([0, 0, 1, 2, 3, 4, 4, 4, 5, 6])
WEIGHTS = torch.tensor([0.5, 0.5, 1, 1, 1, 0.2, 0.3, 0.5, 1, 1])


def drawn(*shape: int) -> Tensor:
    return (1.5 * torch.randn(*shape, dtype=torch.float64)).requires_grad_()


def weighted(loss_per_target: Tensor) -> Tensor:
    return (loss_per_target * WEIGHTS).sum() / WEIGHTS.sum()


def assert_same_gradients(one: Tensor, other: Tensor, *inputs: Tensor) -> None:
    pairs = zip(torch.autograd.grad(one, inputs), torch.autograd.grad(other, inputs), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found, expected)


# The whole catalog


@pytest.mark.parametrize("chunk", [1, 30, 31, 60, 2_000_000])
def test_the_full_softmax_is_cross_entropy_whatever_the_chunks(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(softmax, "CHUNK_ELEMENTS", chunk)
    monkeypatch.setattr(softmax, "MIN_CHUNK_USERS", 1)
    users, vectors = drawn(USERS, WIDTH), drawn(ROWS, WIDTH)
    loss = full_softmax(users, vectors, TARGETS, USER_OF, WEIGHTS.double())
    logits = users[USER_OF] @ vectors[1:].T
    expected = weighted(F.cross_entropy(logits, TARGETS - 1, reduction="none"))
    torch.testing.assert_close(loss, expected)
    assert_same_gradients(loss, expected, users, vectors)


def test_one_target_per_user_is_plain_cross_entropy() -> None:
    users, vectors = drawn(4, WIDTH), drawn(ROWS, WIDTH)
    targets = torch.tensor([4, 1, 30, 2])
    loss = full_softmax(users, vectors, targets, torch.arange(4), torch.ones(4))
    expected = F.cross_entropy(users @ vectors[1:].T, targets - 1)
    torch.testing.assert_close(loss, expected)


def test_the_padding_row_is_no_candidate() -> None:
    users, vectors = drawn(USERS, WIDTH), drawn(ROWS, WIDTH)
    loss = full_softmax(users, vectors, TARGETS, USER_OF, WEIGHTS)
    (gradient,) = torch.autograd.grad(loss, vectors)
    assert (gradient[0] == 0).all()


@pytest.mark.parametrize("popularity", [False, True])
@pytest.mark.parametrize("repeats", [False, True])
def test_the_normaliser_agrees_with_its_own_gradient(repeats: bool, popularity: bool) -> None:
    weights = torch.rand(4, dtype=torch.float64)
    inputs: list[Tensor | None] = [drawn(4, 3), drawn(9, 3), weights]
    inputs.append(drawn(4) if repeats else None)
    if popularity:
        inputs += [drawn(4, 2), torch.randn(2, 2, 9, dtype=torch.float64)]
        inputs.append(torch.tensor([0, 0, 1, 1]))
    assert torch.autograd.gradcheck(SoftmaxNormaliser.apply, inputs)


def test_the_normaliser_of_a_batch_without_users_is_zero() -> None:
    weights = torch.zeros(0)
    assert SoftmaxNormaliser.apply(torch.zeros(0, 3), torch.zeros(9, 3), weights) == 0  # type: ignore[no-untyped-call]


def test_a_logit_that_overflows_exp_leaves_a_finite_loss() -> None:
    users, vectors = torch.tensor([[300.0], [-300.0]]), torch.tensor([[0.0], [1.0], [-1.0]])
    loss = full_softmax(users, vectors, torch.tensor([2, 2]), torch.arange(2), torch.ones(2))
    assert loss.item() == pytest.approx(300)


class Work(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts multiplications of matrices, and elements that went through an exponential."""

    multiplications = exponentials = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        match func.overloadpacket.__name__:
            case "mm" | "addmm_":
                *_, left, right = args
                self.multiplications += left.shape[0] * left.shape[1] * right.shape[1]
            case "softmax" | "_softmax" | "exp" | "exp_" | "logsumexp":
                self.exponentials += args[0].numel()
        return func(*args, **(kwargs or {}))


def test_a_step_takes_three_products_and_one_exponential() -> None:
    users, vectors = torch.randn(500, 8).requires_grad_(), torch.randn(1001, 8).requires_grad_()
    targets = torch.randint(1, 1001, (500,))
    with Work() as work:  # type: ignore[no-untyped-call]
        loss = full_softmax(users, vectors, targets, torch.arange(500), torch.ones(500))
        loss.backward()  # type: ignore[no-untyped-call]
    assert work.multiplications == 3 * 500 * 1000 * 8
    assert work.exponentials == 500 * 1000


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers the size of the largest tensor that any operation makes."""

    elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.numel())
        return made


@pytest.mark.parametrize(
    ("chunk", "least", "most"), [(20_000, 1, 20_000), (100_000, 64, 100_000), (1, 64, 64_000)]
)
def test_no_more_than_a_chunk_of_logits_is_ever_held(
    chunk: int, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(softmax, "CHUNK_ELEMENTS", chunk)
    monkeypatch.setattr(softmax, "MIN_CHUNK_USERS", least)
    users, vectors = torch.randn(500, 4).requires_grad_(), torch.randn(1001, 4).requires_grad_()
    targets = torch.randint(1, 1001, (500,))
    with LargestTensor() as largest:  # type: ignore[no-untyped-call]
        loss = full_softmax(users, vectors, targets, torch.arange(500), torch.ones(500))
        loss.backward()  # type: ignore[no-untyped-call]
    assert largest.elements <= most
    with LargestTensor() as largest:  # type: ignore[no-untyped-call]
        F.cross_entropy(users @ vectors[1:].T, targets - 1)
    assert largest.elements == 500_000


# With repeats


def repeats() -> RepeatScores:
    """Histories in which some targets occur once, twice or only where they must not count."""
    rows = torch.randint(1, ROWS, (USERS, LENGTH))
    rows[0, :2], rows[0, 2], rows[2, 4], rows[4, 5] = 3, 1, 7, 12
    log_mass = 1.5 * torch.randn(USERS, LENGTH, dtype=torch.float64)
    log_mass[1, 2:] = log_mass[4, 5] = -math.inf
    return RepeatScores(log_mass.requires_grad_(), rows)


def test_repeats_join_the_softmax_as_a_dense_one_would_have_it() -> None:
    users, vectors, added = drawn(USERS, WIDTH), drawn(ROWS, WIDTH), repeats()
    loss = full_softmax(users, vectors, TARGETS, USER_OF, WEIGHTS.double(), repeats=added)
    mass = (users @ vectors.T).exp()
    for user in range(USERS):
        for position in range(LENGTH):
            row = torch.zeros_like(mass)
            row[user, added.rows[user, position]] = 1.0
            mass = mass + row * added.log_scores[user, position].exp()
    share = mass[:, 1:] / mass[:, 1:].sum(-1, keepdim=True)
    expected = weighted(-share[USER_OF, TARGETS - 1].log())
    torch.testing.assert_close(loss, expected)
    assert_same_gradients(loss, expected, users, vectors, added.log_scores)


def test_histories_without_any_target_leave_finite_gradients() -> None:
    users, vectors = drawn(USERS, WIDTH), drawn(ROWS, WIDTH)
    added = RepeatScores(drawn(USERS, LENGTH), torch.full((USERS, LENGTH), 29))
    loss = full_softmax(users, vectors, TARGETS, USER_OF, WEIGHTS, repeats=added)
    for gradient in torch.autograd.grad(loss, (users, vectors, added.log_scores)):
        assert gradient.isfinite().all()


# Sampled


def test_drawing_every_item_once_is_the_full_softmax() -> None:
    users, vectors = drawn(USERS, WIDTH), drawn(ROWS, WIDTH)
    everything, certain = torch.arange(1, ROWS), torch.zeros(ROWS - 1)
    loss = sampled_softmax(users, vectors, TARGETS, USER_OF, WEIGHTS, everything, certain)
    expected = full_softmax(users, vectors, TARGETS, USER_OF, WEIGHTS.double())
    torch.testing.assert_close(loss, expected)
    assert_same_gradients(loss, expected, users, vectors)


def test_drawing_every_item_is_the_full_softmax_with_repeats() -> None:
    users, vectors, added = drawn(USERS, WIDTH), drawn(ROWS, WIDTH), repeats()
    judged = (users, vectors, TARGETS, USER_OF, WEIGHTS.double())
    loss = sampled_softmax(*judged, torch.arange(1, ROWS), torch.zeros(ROWS - 1), repeats=added)
    expected = full_softmax(*judged, repeats=added)
    torch.testing.assert_close(loss, expected)
    assert_same_gradients(loss, expected, users, vectors, added.log_scores)


def test_the_sampled_normaliser_is_unbiased_for_any_proposal() -> None:
    rng = np.random.default_rng(0)
    probability = rng.dirichlet(np.ones(ROWS - 1))
    probability = 0.5 * probability + 0.5 / (ROWS - 1)
    user, vectors = torch.randn(1, WIDTH), torch.randn(ROWS, WIDTH)
    target, draws = torch.tensor([4]), 40
    estimates = []
    for _ in range(1500):
        rows = rng.choice(ROWS - 1, size=draws, p=probability) + 1
        loss = sampled_softmax(
            user,
            vectors,
            target,
            torch.tensor([0]),
            torch.ones(1),
            torch.from_numpy(rows),
            torch.from_numpy(np.log(draws * probability[rows - 1])).float(),
        )
        estimates.append(math.exp(loss.item()))
    full = full_softmax(user, vectors, target, torch.tensor([0]), torch.ones(1))
    error = np.std(estimates) / math.sqrt(len(estimates))
    assert abs(np.mean(estimates) - math.exp(full.item())) < 4 * error
    assert error < 0.02 * np.mean(estimates)


def test_a_negative_that_is_the_target_does_not_count_against_it() -> None:
    users, vectors = torch.randn(1, WIDTH), torch.randn(ROWS, WIDTH)
    loss = sampled_softmax(
        users,
        vectors,
        torch.tensor([4]),
        torch.tensor([0]),
        torch.ones(1),
        torch.tensor([4, 4]),
        torch.zeros(2),
    )
    assert loss.item() == pytest.approx(0, abs=1e-6)
