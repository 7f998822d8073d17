from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.bundle.index import ItemIndex
from model.encoders import EncoderConfig
from model.encoders.transrec import TransRecConfig
from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from tests import tiny
from training.data.dataset import Dataset
from training.data.split import Questions, build_questions_after
from training.evaluation.latency import measure_latency

DATASET = Dataset.of(tiny.gap_world(users=30, length=8))


def questions() -> Questions:
    return build_questions_after(DATASET, int(np.median(DATASET.times)), "next_event")


@pytest.mark.parametrize("encoder", [tiny.ENCODER, TransRecConfig(dim=8)], ids=["dot", "l2"])
def test_an_exact_index_finds_the_best(tmp_path: Path, encoder: EncoderConfig) -> None:
    predictor = open_predictor(tiny.write_bundle(tmp_path, config=tiny.recommender_config(encoder)))
    trial = measure_latency(predictor, DATASET, questions())
    assert trial.index_recall == 1.0
    assert 0 < trial.p95_seconds < 60


def test_an_index_without_its_best_items_has_low_recall(tmp_path: Path) -> None:
    predictor = open_predictor(tiny.write_bundle(tmp_path))
    vectors = predictor.bundle.recommender.index_vectors().numpy()[1:].copy()
    vectors[::2] = -100 * np.sign(vectors.mean())
    broken = Predictor(replace(predictor.bundle, index=ItemIndex.build(vectors, "dot")))
    assert measure_latency(broken, DATASET, questions()).index_recall < 0.99


def test_questions_after_an_instant_are_first_later_events() -> None:
    instant = int(np.median(DATASET.times))
    found = questions()
    assert len(found) > 0
    assert (found.query_times > instant).all()
    assert (DATASET.times[found.ends - 1] <= instant).all()
    assert len(np.unique(found.users)) == len(found)
