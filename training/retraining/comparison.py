"""Challenger, champion and references on the same questions, among the same items."""

from collections.abc import Iterable, Iterator

from model.config import Measurements
from model.errors import TrainingError
from model.inference.predictor import Predictor
from model.recommender import Recommender
from model.wide import EventCounts
from training.config import GateMetric, RunConfig
from training.data.dataset import Dataset
from training.data.split import Questions, build_questions, build_questions_after
from training.evaluation.counting import COUNTING_LIVE, fit_counting
from training.evaluation.evaluate import rank_targets
from training.evaluation.live_counts import count_live, use_counts
from training.evaluation.metrics import Lead, paired_bootstrap
from training.evaluation.references import fit_references, score_reference
from training.evaluation.scoring import ScoreBlock, score_questions
from training.run import Fitted

CHALLENGER = "challenger"
CHAMPION = "champion"
POPULARITY = ("popular_all_time", "popular_last_week")
REFERENCES = (*POPULARITY, "last_item_markov", COUNTING_LIVE)


class Comparison(Measurements):
    """The metrics of every ranker on the same questions.

    Every item of the log is a candidate for every ranker. An item that a model does not hold is
    ranked behind all others, and as a target counts as a miss.

    Attributes:
        metric: the metric of `leads`.
        questions: number of questions.
        first_at: query time of the first question, epoch microseconds; `last_at` of the last.
        candidates: number of ranked items.
        known_to_champion: questions whose targets the champion may have learned from, because it
            was trained on events as late. Zero, unless there are too few later questions.
        rows: metrics by ranker; `_withheld` marks a model without the query time.
        leads: the challenger's lead over every other ranker.
    """

    metric: GateMetric
    questions: int
    first_at: int
    last_at: int
    candidates: int
    known_to_champion: int
    rows: dict[str, dict[str, float]]
    leads: dict[str, Lead]


def compare(
    fitted: Fitted, config: RunConfig, champion: Predictor | None, *, is_warm: bool = False
) -> tuple[Comparison, Questions]:
    """Rank the same questions by challenger, champion, popularity, Markov and counting.

    The questions are those of the split's test. If the champion was trained on some of their
    targets, the questions are each user's first event after the champion's data instead, provided
    that there are as many as the gate requires: no model has then learned from a target.

    Args:
        is_warm: whether the challenger began from the champion's weights, and with them from the
            champion's data; then only later questions are fair.

    Returns:
        The comparison, and its questions in terms of the whole data set.

    Raises:
        DivergedError: if a score is NaN.
        TrainingError: if there is no question.
    """
    whole, predict = fitted.whole, config.data.predict
    questions = build_questions(whole, fitted.split.test.ends, predict)
    learned_until = None if champion is None else champion.bundle.manifest.data_window.last_at
    if learned_until is not None and (questions.query_times <= learned_until).any():
        later = build_questions_after(whole, learned_until, predict)
        questions = later if is_warm or len(later) >= config.gate.questions else questions
    if not len(questions):
        raise TrainingError(
            "a comparison needs at least one test question, but there is none"
            + (
                " later than the champion's training events, as a warm start requires"
                if is_warm
                else ""
            )
            + "; train on more recent events"
        )
    ranks_of = {
        name: rank_targets(blocks, whole, questions, exclude_seen=config.data.exclude_seen)
        for name, blocks in _score_rankers(fitted, config, champion, questions)
    }
    own = ranks_of[CHALLENGER].per_question(config.gate.metric)
    comparison = Comparison(
        metric=config.gate.metric,
        questions=len(questions),
        first_at=int(questions.query_times.min()),
        last_at=int(questions.query_times.max()),
        candidates=len(whole.catalog),
        known_to_champion=(
            0 if learned_until is None else int((questions.query_times <= learned_until).sum())
        ),
        rows={name: ranks.summarise() for name, ranks in ranks_of.items()},
        leads={
            name: paired_bootstrap(
                own, ranks.per_question(config.gate.metric), users=questions.users
            )
            for name, ranks in ranks_of.items()
            if name != CHALLENGER
        },
    )
    return comparison, questions


def _score_rankers(
    fitted: Fitted, config: RunConfig, champion: Predictor | None, questions: Questions
) -> Iterator[tuple[str, Iterable[ScoreBlock]]]:
    """Yield the name and the scores of every ranker, in terms of the whole catalog."""
    whole, split = fitted.whole, fitted.split
    challenger = fitted.model.recommender
    models = [
        (CHALLENGER, split.dataset, challenger, fitted.live, config.encoder.max_history),
    ]
    if champion is not None:
        described = champion.bundle.manifest.recommender
        known = whole.reindex(champion.catalog, described.actions)
        recommender = champion.bundle.recommender
        live = count_live(recommender, known)
        models.append((CHAMPION, known, recommender, live, champion.bundle.manifest.max_history))
    for name, dataset, recommender, live, max_history in models:
        for ending, withheld in (("", False), ("_withheld", True)):
            blocks = score_questions(
                recommender, dataset, questions, max_history=max_history, withheld=withheld
            )
            # As they would be served: both count the popularity of items up to each question.
            blocks = _read_counts(blocks, recommender, live)
            yield name + ending, _to_whole_catalog(blocks, whole, dataset)
    counted = split.dataset, split.is_known_before_test
    references = fit_references(*counted) | fit_counting(*counted, fitted.counting)
    for name in REFERENCES:
        blocks = score_reference(references[name], questions, len(split.dataset.catalog))
        yield name, _to_whole_catalog(blocks, whole, split.dataset)


def _read_counts(
    blocks: Iterable[ScoreBlock], recommender: Recommender, counts: EventCounts | None
) -> Iterator[ScoreBlock]:
    """Score with other counts of events."""
    with use_counts(recommender, counts):
        yield from blocks


def _to_whole_catalog(
    blocks: Iterable[ScoreBlock], whole: Dataset, own: Dataset
) -> Iterator[ScoreBlock]:
    """Map scores from a model's own catalog to the whole one; -inf where it has no row."""
    own_rows = whole.map_rows(own.catalog)
    for block in blocks:
        scores = block.scores[:, own_rows]
        scores[:, own_rows == 0] = float("-inf")
        yield ScoreBlock(block.questions, scores)
