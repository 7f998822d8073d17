from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from model.batch import SequenceBatch, collate, look_up_history
from model.history import Event, Query
from model.recommender import Recommender, add_repeat_scores
from tests import tiny
from tests.tiny import DAY, FIRST_AT, event_log
from training.data.dataset import Dataset
from training.data.split import Questions
from training.evaluation import scoring
from training.evaluation.scoring import score_questions

MAX_HISTORY = tiny.ENCODER.max_history
ENCODERS = {
    "plain": tiny.ENCODER,
    "repeats": tiny.ENCODER.model_copy(update={"repeats": True}),
}


def dataset() -> Dataset:
    """Eight users of one to twelve events, ties and unknown items among them."""
    rng = np.random.default_rng(3)
    log = [(f"u{0}", f"i{n}", FIRST_AT) for n in range(tiny.ITEMS)]
    for user, length in enumerate((1, 2, 3, 4, 6, 8, 12, 12), start=1):
        days = np.cumsum(rng.choice([0.0, 0.01, 1.5, 30.0], size=length))
        items = rng.integers(tiny.ITEMS, size=length)
        log += [
            (f"u{user}", f"i{item}", FIRST_AT + int(day * DAY))
            for item, day in zip(items, days, strict=True)
        ]
    whole = Dataset.of(event_log(log))
    is_known = rng.random(len(whole)) < 0.85
    is_known[: tiny.ITEMS] = True
    return replace(whole, rows=(whole.rows * is_known).astype(np.int32))


def questions_of(data: Dataset, events: list[int], waited: int = 0) -> Questions:
    chosen = np.array(events)
    return Questions(
        users=data.user_of[chosen],
        ends=chosen,
        query_times=data.times[chosen] + waited,
        target_offsets=np.arange(len(chosen) + 1),
        target_rows=data.rows[chosen],
    )


def every_event_but_the_first(data: Dataset) -> list[int]:
    return [event for event in range(tiny.ITEMS, len(data)) if event not in data.offsets]


def answer(recommender: Recommender, data: Dataset, questions: Questions, **how: bool) -> Tensor:
    """Scores by question, each question exactly once."""
    found = torch.full((len(questions), len(data.catalog) + 1), torch.nan)
    for block in score_questions(recommender, data, questions, max_history=MAX_HISTORY, **how):
        assert found[block.questions].isnan().all()
        found[block.questions] = block.scores
    return found


def as_the_service_would(
    recommender: Recommender, data: Dataset, questions: Questions, *, withheld: bool = False
) -> Tensor:
    """The same question by question, through the path that serving takes."""
    lines = []
    for user, end, at in zip(questions.users, questions.ends, questions.query_times, strict=True):
        events = tuple(
            Event(data.catalog.item_id(int(data.rows[event])), int(data.times[event]))
            for event in range(data.offsets[user], end)
            if data.rows[event]
        )
        history = look_up_history(Query(events, int(at)), data.catalog, {}, max_history=MAX_HISTORY)
        if not history.events:
            lines.append(torch.full((len(data.catalog) + 1,), torch.nan))
            continue
        with torch.no_grad():
            encoded = recommender(collate([history], [int(at)], [withheld]))
            scores = encoded.user @ recommender.item_vectors().T
            if encoded.repeat_scores is not None:
                scores = add_repeat_scores(
                    scores, encoded.repeat_scores, torch.from_numpy(history.rows)[None]
                )
        lines.append(scores[0])
    return torch.stack(lines)


@pytest.fixture(params=ENCODERS)
def recommender(request: pytest.FixtureRequest) -> Recommender:
    return tiny.recommender(tiny.recommender_config(ENCODERS[request.param]))


@pytest.mark.parametrize("withheld", [False, True])
@pytest.mark.parametrize("waited", [0, 5 * DAY])
def test_evaluation_scores_as_the_service_would(
    recommender: Recommender, withheld: bool, waited: int
) -> None:
    data = dataset()
    questions = questions_of(data, every_event_but_the_first(data), waited)
    expected = as_the_service_would(recommender, data, questions, withheld=withheld)
    found = answer(recommender, data, questions, withheld=withheld)
    answered = ~expected[:, 0].isnan()
    assert answered.sum() > 20
    torch.testing.assert_close(found[answered, 1:], expected[answered, 1:], rtol=0, atol=1e-4)


def test_a_shared_pass_gives_what_a_window_per_question_gives(
    recommender: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dataset()
    questions = questions_of(data, every_event_but_the_first(data))
    shared = answer(recommender, data, questions)
    monkeypatch.setattr(scoring, "_can_share", lambda *_: np.zeros(len(questions), dtype=np.bool_))
    alone = answer(recommender, data, questions)
    torch.testing.assert_close(shared[:, 1:], alone[:, 1:], rtol=0, atol=1e-4)


def test_users_with_several_questions_share_a_pass(
    recommender: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dataset()
    alone: list[int] = []
    whole = scoring._score_last

    def counted(
        recommender: Recommender, vectors: Tensor, batch: SequenceBatch, withheld: bool
    ) -> Tensor:
        alone.append(len(batch.rows))
        return whole(recommender, vectors, batch, withheld)

    monkeypatch.setattr(scoring, "_score_last", counted)
    answer(recommender, data, questions_of(data, every_event_but_the_first(data)))
    some = sum(alone)
    alone.clear()
    answer(recommender, data, questions_of(data, every_event_but_the_first(data)), withheld=True)
    assert 0 < some < sum(alone)


def test_without_a_known_event_popularity_ranks() -> None:
    data = dataset()
    rows = data.rows.copy()
    first = int(data.offsets[2])
    rows[first] = 0
    data = replace(data, rows=rows)
    recommender = tiny.recommender(tiny.recommender_config())
    scores = answer(recommender, data, questions_of(data, [first + 1]))[0]
    order = (torch.argsort(-scores[1:], stable=True) + 1).tolist()
    assert order == data.catalog.rows_by_popularity.tolist()


@pytest.mark.parametrize("tokens", [1, 7, 100])
def test_the_size_of_a_forward_pass_changes_nothing(
    recommender: Recommender, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dataset()
    questions = questions_of(data, every_event_but_the_first(data))
    whole = answer(recommender, data, questions)
    monkeypatch.setattr(scoring, "TOKENS", tokens)
    torch.testing.assert_close(answer(recommender, data, questions), whole, rtol=0, atol=1e-4)
