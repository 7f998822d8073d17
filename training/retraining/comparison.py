"""Challenger, champion and references on the same questions, among the same items."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.config import Config
from model.errors import TrainingError
from model.inference.predictor import Predictor
from training.config import GateMetric, RunConfig
from training.data.dataset import Dataset
from training.data.split import Questions, ask, ask_after
from training.evaluation.evaluate import rank
from training.evaluation.metrics import Ranks, paired_bootstrap
from training.evaluation.references import fit_references, score_by
from training.evaluation.report import Difference
from training.evaluation.scoring import ScoreBlock, score
from training.run import Fitted

CHALLENGER = "challenger"
CHAMPION = "champion"
POPULARITY = ("popular_all_time", "popular_last_week")
REFERENCES = (*POPULARITY, "last_item_markov")


class Comparison(Config):
    """What everybody reached.

    Every item of the log is a candidate for everybody. An item that a model does not know is ranked
    by it behind all others, and as an answer counts as a miss.

    Attributes:
        metric: what `leads` are in.
        questions: how many.
        first_at: instant of the first question, epoch microseconds; `last_at` of the last.
        candidates: items that were ranked.
        known_to_champion: questions whose answers the champion may have learned from, because it
            was trained on events as late. None are, unless there are too few later ones.
        rows: metrics by ranker; a model asked without the query time ends in `_withheld`.
        leads: how far the challenger is ahead of each other ranker.
    """

    metric: GateMetric
    questions: int
    first_at: int
    last_at: int
    candidates: int
    known_to_champion: int
    rows: dict[str, dict[str, float]]
    leads: dict[str, Difference]


class Compared(NamedTuple):
    """A comparison, and the questions it was made on, in terms of the whole data set."""

    comparison: Comparison
    questions: Questions


def compare(
    fitted: Fitted, config: RunConfig, champion: Predictor | None, *, is_warm: bool = False
) -> Compared:
    """Ask challenger, champion, popularity and Markov what came next.

    The questions are those of the split's test. Where the champion has learned from some of their
    answers, each user's first event after the champion's data is asked instead, if the gate's
    number of questions can be had so: none of those asked has then been learned from by anybody.

    Args:
        is_warm: whether the challenger began from the champion's weights: what the champion has
            learned, it knows, and is not asked.

    Raises:
        DivergedError: if a model's scores are not numbers.
        TrainingError: if there is nothing to ask.
    """
    whole, predict = fitted.whole, config.data.predict
    questions = ask(whole, fitted.split.test.ends, predict)
    learned_until = None if champion is None else champion.bundle.manifest.data_window.last_at
    if learned_until is not None and (questions.query_times <= learned_until).any():
        later = ask_after(whole, learned_until, predict)
        questions = later if is_warm or len(later) >= config.gate.questions else questions
    if not len(questions):
        raise TrainingError(
            "a challenger is asked what came next, but no event is left to ask for"
            + (" that is later than the weights it began from" if is_warm else "")
            + "; bring more events"
        )
    found = {
        name: rank(blocks, whole, questions, exclude_seen=config.data.exclude_seen)
        for name, blocks in _rankers(fitted, config, champion, questions)
    }
    own = _per_question(found[CHALLENGER], config.gate.metric)
    comparison = Comparison(
        metric=config.gate.metric,
        questions=len(questions),
        first_at=int(questions.query_times.min()),
        last_at=int(questions.query_times.max()),
        candidates=len(whole.catalog),
        known_to_champion=(
            0 if learned_until is None else int((questions.query_times <= learned_until).sum())
        ),
        rows={name: ranks.summarise() for name, ranks in found.items()},
        leads={
            name: Difference(*paired_bootstrap(own, _per_question(ranks, config.gate.metric)))
            for name, ranks in found.items()
            if name != CHALLENGER
        },
    )
    return Compared(comparison, questions)


def _rankers(
    fitted: Fitted, config: RunConfig, champion: Predictor | None, questions: Questions
) -> Iterator[tuple[str, Iterable[ScoreBlock]]]:
    """Everybody's scores in terms of the whole catalogue, by name."""
    whole, split = fitted.whole, fitted.split
    models = [(CHALLENGER, split.dataset, fitted.recommender, config.encoder.max_history)]
    if champion is not None:
        described = champion.bundle.manifest.recommender
        known = whole.in_terms_of(champion.catalog, described.actions)
        models.append(
            (CHAMPION, known, champion.bundle.recommender, champion.bundle.manifest.max_history)
        )
    for name, dataset, recommender, max_history in models:
        for ending, withheld in (("", False), ("_withheld", True)):
            blocks = score(
                recommender, dataset, questions, max_history=max_history, withheld=withheld
            )
            yield name + ending, _in_terms_of_the_whole(blocks, whole, dataset)
    references = fit_references(split.dataset, split.is_known_before_test)
    for name in REFERENCES:
        blocks = score_by(references[name], questions, len(split.dataset.catalog))
        yield name, _in_terms_of_the_whole(blocks, whole, split.dataset)


def _in_terms_of_the_whole(
    blocks: Iterable[ScoreBlock], whole: Dataset, own: Dataset
) -> Iterator[ScoreBlock]:
    """Scores of a catalogue as scores of the whole one; what the former lacks is left out."""
    own_rows = whole.rows_in(own.catalog)
    for block in blocks:
        scores = block.scores[:, own_rows]
        scores[:, own_rows == 0] = float("-inf")
        yield ScoreBlock(block.questions, scores)


def _per_question(ranks: Ranks, metric: GateMetric) -> NDArray[np.float64]:
    match metric:
        case "ndcg@10":
            return ranks.ndcg(10)
        case "hit_rate@10":
            return ranks.hit_rate(10)
        case "mrr":
            return ranks.reciprocal_rank()
        case "accuracy":
            return ranks.accuracy()
