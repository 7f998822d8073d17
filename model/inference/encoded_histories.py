"""What the model computed for the earlier events of a history, kept for the next query."""

import threading
from collections import OrderedDict
from typing import final

import numpy as np

from model.batch import SequenceBatch
from model.interfaces import EncoderOutput
from model.layers.earlier_events import EarlierEvents
from model.recommender import Recommender

_MOST_NEW_EVENTS = 4
"""Events after a kept history up to which they are added to it one by one."""
_EVENT_BYTES = 24
"""Of a key: row, action and time of an event."""


@final
class EncodedHistories:
    """Encodes histories, and keeps what no query time changes: all but their last event.

    The next query of the same history, or of one with a few more events, continues from there, and
    gets the same result as without. Histories are recognised by their events. Once `most_bytes` are
    kept, the histories that were not used for the longest time are dropped.

    Safe to share between threads. Serves one recommender, whose parameters must not change.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[bytes, EarlierEvents] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def encode(self, recommender: Recommender, batch: SequenceBatch) -> EncoderOutput:
        """Encode the histories of a batch as `recommender` does; a single one is kept."""
        earlier: EarlierEvents | None = None
        if recommender.keeps_earlier_events and len(batch.rows) == 1:
            earlier = self._encode_earlier(recommender, batch)
        encoded: EncoderOutput = recommender(batch, earlier=earlier)
        return encoded

    def _encode_earlier(self, recommender: Recommender, batch: SequenceBatch) -> EarlierEvents:
        """Encode all events but the last, from the longest history that is kept."""
        key, length = _build_key(batch), batch.rows.shape[1]
        for new in range(min(length, _MOST_NEW_EVENTS + 1)):
            earlier = self._find(key[: len(key) - new * _EVENT_BYTES])
            if earlier is None:
                continue
            for count in range(length - new + 1, length + 1):
                earlier = recommender.encode_earlier(batch.take_first(count), before=earlier)
            break
        else:
            earlier = recommender.encode_earlier(batch)
        self._keep(key, earlier)
        return earlier

    def forget(self) -> None:
        """Forget every history."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _find(self, key: bytes) -> EarlierEvents | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: bytes, earlier: EarlierEvents) -> None:
        with self._lock:
            previous = self._kept.pop(key, None)
            self._kept[key] = earlier
            self._bytes += earlier.size - (0 if previous is None else previous.size)
            while self._bytes > self._most_bytes:
                self._bytes -= self._kept.popitem(last=False)[1].size


def _build_key(batch: SequenceBatch) -> bytes:
    """Join rows, actions and times event by event: a longer history begins with a shorter one."""
    times = batch.times[0].numpy().view(np.int64)
    return np.stack((batch.rows[0].numpy(), batch.actions[0].numpy(), times), axis=1).tobytes()
