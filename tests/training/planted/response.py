"""How a recommender's probabilities respond to the query time, and the period of the response."""

import numpy as np
import torch
from jaxtyping import Float, Int64

from model.batch import SequenceBatch
from training.data.batches import Windows, collate
from training.run import Fitted

Days = Float[np.ndarray, " query_times"]
Responses = Float[np.ndarray, "responses query_times"]

_BLOCK = 1_000


@torch.no_grad()
def sweep_items(
    fitted: Fitted, user: int, items: Int64[np.ndarray, " responses"], days: Days
) -> Responses:
    """Compute the probabilities of some items at many query times after a user's last event.

    Args:
        user: index of the user in the data set.
        items: numbers of planted items.
        days: days since the last event.
    """
    recommender, dataset = fitted.model.recommender, fitted.split.dataset.known
    rows = [dataset.catalog.row(f"i{item}") for item in items]
    end = dataset.offsets[user + 1]
    start = max(dataset.offsets[user], end - recommender.encoder.max_history)
    bounds = (start, end, dataset.times[end - 1])
    history = collate(dataset, Windows(*(np.array([bound]) for bound in bounds)))
    probabilities = []
    for query_times in (history.times[0, -1] + torch.from_numpy(days)).split(_BLOCK):
        count = len(query_times)
        batch = SequenceBatch(*(part.expand(count, *part.shape[1:]) for part in history))
        of_positions = torch.cat((batch.query_times[:, :-1], query_times.unsqueeze(-1)), dim=-1)
        scores = recommender.score_catalog(batch._replace(query_times=of_positions))
        scores[:, 0] = float("-inf")
        probabilities.append(scores.double().softmax(-1)[:, rows])
    return torch.cat(probabilities).T.numpy()


def measure_swing(days: Days, responses: Responses, *, period: float) -> float:
    """Measure the mean amplitude of responses at a period, in days."""
    waves = np.exp(-2j * np.pi * days / period)
    return float(2 * np.abs((responses * waves).mean(-1)).mean())


def estimate_period(days: Days, responses: Responses, *, near: float) -> float:
    """Estimate the common period of responses, in days: the peak of their summed periodograms.

    Args:
        days: query times at equal distances; the estimate is the finer, the longer they go on.
        near: the peak is sought within 5 % of this period.
    """
    # Tapered, so that the ends and slow changes do not move the peak.
    taper = np.hanning(len(days))
    means = (responses * taper).sum(-1, keepdims=True) / taper.sum()
    tapered = (responses - means) * taper
    frequency, width = 1 / near, 0.05 / near
    while width * near > 1e-8:
        frequencies = np.linspace(frequency - width, frequency + width, 201)
        waves = np.exp(-2j * np.pi * frequencies[:, None] * days)
        power = (np.abs(waves @ tapered.T) ** 2).sum(-1)
        frequency, width = float(frequencies[power.argmax()]), width / 20
    return 1 / frequency
