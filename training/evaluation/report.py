"""The report of a run: the metrics of model and references on the same questions."""

import json
from pathlib import Path

import numpy as np
from jaxtyping import Int64
from pydantic import Field

from model.config import Measurements
from model.recommender import Recommender
from model.wide import EventCounts
from training.config import DataConfig
from training.data.negatives import SeenItems, sample_candidates
from training.data.split import Split
from training.evaluation.counting import COUNTING_LIVE, CountingSettings, fit_counting
from training.evaluation.evaluate import evaluate, rank_targets, select_after_gap
from training.evaluation.live_counts import use_counts
from training.evaluation.metrics import SAMPLED, Lead, Ranks, paired_bootstrap
from training.evaluation.references import fit_references, score_reference

MODEL = "model"
WITHHELD = "model_withheld"
LIVE = "model_live"


class Report(Measurements):
    """The metrics on the test questions.

    Attributes:
        rows: metrics per ranker; `model_withheld` is the model without the query time, and
            `model_live`, of a model with a wide part, counts the popularity of items up to each
            query time, where `model` counts the training events only. `counting` and
            `counting_live` differ in the same way. Names that end in `_sampled100` are of ranks
            among a hundred random items.
        after_a_gap: the same on questions later than the last event of their history.
        ahead: the model's lead over every other ranker, by paired bootstrap over the users of the
            questions. Over `counting_live` it is the lead of `model_live`, if there is one.
        counting: the settings of the counting reference; None in reports without it.
        cold_targets: share of the targets that the catalog does not hold; every ranker misses
            them.
    """

    rows: dict[str, dict[str, float]]
    after_a_gap: dict[str, dict[str, float]] = Field(default_factory=dict)
    ahead: dict[str, Lead] = Field(default_factory=dict)
    counting: CountingSettings | None = None
    cold_targets: float = 0.0

    def write(self, file: Path) -> None:
        """Write as JSON."""
        file.write_text(json.dumps(self.model_dump(), indent=2) + "\n", "utf-8")

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of model and references as flat names, for the manifest."""
        given = self.rows[MODEL]
        withheld = {f"{name}_withheld": value for name, value in self.rows[WITHHELD].items()}
        references = {
            f"{name}_ndcg@10": row["ndcg@10"]
            for name, row in self.rows.items()
            if name not in {MODEL, WITHHELD, LIVE}
        }
        live = {f"{name}_live": value for name, value in self.rows.get(LIVE, {}).items()}
        return given | withheld | live | references


def build_report(
    recommender: Recommender,
    split: Split,
    data: DataConfig,
    *,
    max_history: int,
    live: EventCounts | None,
    counting: CountingSettings,
) -> Report:
    """Rank the test questions by the model, with and without query time, and by every reference.

    Args:
        live: from `training.evaluation.live_counts.count_live`.
        counting: from `training.evaluation.counting.tune_counting`.
    """
    ranks_of = rank_test_questions(
        recommender, split, data, max_history=max_history, live=live, counting=counting
    )
    return summarise_ranks(ranks_of, split, counting)


def rank_test_questions(
    recommender: Recommender,
    split: Split,
    data: DataConfig,
    *,
    max_history: int,
    live: EventCounts | None,
    counting: CountingSettings,
) -> dict[str, Ranks]:
    """Rank the test questions as `build_report` does; the keys are the rows of the report."""
    dataset, questions = split.dataset, split.test
    candidates = draw_candidates(split, data)
    ranks_of: dict[str, Ranks] = {
        name: evaluate(
            recommender,
            dataset,
            questions,
            max_history=max_history,
            exclude_seen=data.exclude_seen,
            withheld=withheld,
            candidates=candidates,
        )
        for name, withheld in ((MODEL, False), (WITHHELD, True))
    }
    if live is not None:
        with use_counts(recommender, live):
            ranks_of[LIVE] = evaluate(
                recommender,
                dataset,
                questions,
                max_history=max_history,
                exclude_seen=data.exclude_seen,
                candidates=candidates,
            )
    return ranks_of | rank_references(split, data, counting)


def rank_references(split: Split, data: DataConfig, counting: CountingSettings) -> dict[str, Ranks]:
    """Rank the test questions by every reference; the keys are the rows of a report."""
    dataset, questions, known = split.dataset, split.test, split.is_known_before_test
    candidates = draw_candidates(split, data)
    references = fit_references(dataset, known) | fit_counting(dataset, known, counting)
    return {
        name: rank_targets(
            score_reference(reference, questions, len(dataset.catalog)),
            dataset,
            questions,
            exclude_seen=data.exclude_seen,
            candidates=candidates,
        )
        for name, reference in references.items()
    }


def draw_candidates(
    split: Split, data: DataConfig
) -> Int64[np.ndarray, "questions candidates"] | None:
    """Draw the items that sampled metrics rank the test targets among; None without such metrics.

    Rows of a suite are comparable in them because all draw the same.
    """
    if not data.sampled_metrics:
        return None
    return sample_candidates(SeenItems(split.dataset, split.train_ends), split.test, count=SAMPLED)


def summarise_ranks(ranks_of: dict[str, Ranks], split: Split, counting: CountingSettings) -> Report:
    """Summarise the ranks of the test questions.

    Args:
        ranks_of: from `rank_test_questions`.
        counting: the settings of the counting reference.
    """
    own = ranks_of[MODEL].ndcg(10)
    own_live = ranks_of.get(LIVE, ranks_of[MODEL]).ndcg(10)
    later = select_after_gap(split.dataset, split.test)
    return Report(
        rows={name: ranks.summarise() for name, ranks in ranks_of.items()},
        after_a_gap={name: _summarise_subset(ranks, later) for name, ranks in ranks_of.items()},
        ahead={
            name: paired_bootstrap(
                own_live if name == COUNTING_LIVE else own,
                ranks.ndcg(10),
                users=split.test.users,
            )
            for name, ranks in ranks_of.items()
            if name != MODEL
        },
        counting=counting,
        cold_targets=float(np.mean(split.test.target_rows == 0)),
    )


def _summarise_subset(ranks: Ranks, questions: np.ndarray) -> dict[str, float]:
    """Average the main metrics over a subset of the questions."""
    if not len(questions):
        return {"questions": 0.0}
    return {
        "hit_rate@10": float(ranks.hit_rate(10)[questions].mean()),
        "ndcg@10": float(ranks.ndcg(10)[questions].mean()),
        "mrr": float(ranks.reciprocal_rank()[questions].mean()),
        "accuracy": float(ranks.accuracy()[questions].mean()),
        "questions": float(len(questions)),
    }
