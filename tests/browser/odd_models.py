"""Versions unlike the demo's: hostile names, few histories, and kernels of every form or none."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import polars as pl

from model.bundle.attention_profile import SCHEMA
from model.bundle.kernels import KernelCurve, compute_kernel_curves
from model.bundle.provenance import INITIAL_KERNELS
from model.encoders import EncoderConfig
from model.encoders.personal_frequency import PersonalFrequencyConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.layers.self_modulation import ModulationConfig
from model.recommender import RecommenderConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from tests.app import tiny_bundle
from tests.processes import LOCAL_TOKEN

HOSTILE = "<img src=x onerror=\"document.body.dataset.hacked='yes'\">"
ACTIONS = ("view", HOSTILE)
CATEGORIES = (HOSTILE, *(f"category {letter}" for letter in "abcdefghijk"))
GROUPS = (HOSTILE, "bags", "candles")
USER, DAYS_OF_USER = "customer", (1, 3, 3, 9, 30, 60)
NEWCOMER = "newcomer"
"""Has one event."""
SPAN_DAYS = (tiny_bundle.LAST_AT - tiny_bundle.FIRST_AT) / (24 * tiny_bundle.HOUR)

MERCER = MercerConfig(periods=3, degree=2)
FIRST_MERCER = MercerConfig(periods=3, degree=2, shortest_period=1 / 12, longest_period=500)
ATTENDING = SelfAttentionConfig(dim=8, heads=2, layers=1, feed_forward=8, max_history=50)


@dataclass(frozen=True)
class OddVersions:
    """The names of the published versions.

    Attributes:
        moved: stationary, with periods that moved in training, and a profile of shares; current.
        modulated: with hostile group names, the same profile (its weights are no shares), and no
            kernels from before training.
        nonstationary: with a kernel in each of two layers, and no profile.
        counting: without attention and without time.
    """

    moved: str
    modulated: str
    nonstationary: str
    counting: str


def publish(root: Path) -> OddVersions:
    """Publish all of them, untrained."""
    moved = ATTENDING.model_copy(update={"time_encoding": MERCER})
    modulation = ModulationConfig(groups=len(GROUPS))
    encoders: dict[str, EncoderConfig] = {
        "modulated": moved.model_copy(update={"modulation": modulation}),
        "nonstationary": ATTENDING.model_copy(
            update={"layers": 2, "time_encoding": NonstationaryConfig()}
        ),
        "counting": PersonalFrequencyConfig(),
    }
    names = {
        name: tiny_bundle.publish(
            root,
            seed,
            activate=False,
            encoder=encoder,
            groups=GROUPS if name == "modulated" else (),
            profile=profile() if name == "modulated" else None,
        )
        for seed, (name, encoder) in enumerate(encoders.items())
    }
    before = INITIAL_KERNELS.write(_first_kernels())
    current = tiny_bundle.publish(root, 9, encoder=moved, profile=profile(), provenance=before)
    return OddVersions(moved=current, **names)


def fill(service: str) -> None:
    """Send the events of the users to a running service."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    events = [
        {
            "user_id": USER,
            "item_id": tiny_bundle.ITEM_IDS[index],
            "action": "purchase",
            "timestamp": (start + timedelta(days=days)).isoformat(),
        }
        for index, days in enumerate(DAYS_OF_USER)
    ]
    events.append(events[1] | {"user_id": NEWCOMER})
    answer = httpx.post(f"{service}/v1/events", json={"events": events}, auth=LOCAL_TOKEN).json()
    assert answer["accepted"] == len(events), answer


def profile() -> pl.DataFrame:
    """Curves; some have few histories, some have bands beyond 0 to 1."""
    curves = [("all", "")]
    curves += [("action", name) for name in ACTIONS]
    curves += [("category", name) for name in CATEGORIES]
    lines = []
    for number, (by, name) in enumerate(curves):
        for index, days in enumerate((0.01, 1.0, 30.0, 300.0)):
            mean = (0.9, 0.5, 0.05, 0.02)[index] / (1 + number / 20)
            # 40 histories for the first curve, 39 for the second, ...; 4 at the last interval.
            count = 4 if index == 3 else 40 - number
            lines += [("observed", by, name, days, mean, 0.6, count)]
            lines += [("predicted", by, name, days / 2, mean / 2, 0.3, 124 - 3 * number)]
    return pl.DataFrame(lines, schema=list(SCHEMA), orient="row").cast(SCHEMA)  # type: ignore[arg-type]


def _first_kernels() -> tuple[KernelCurve, ...]:
    encoder = ATTENDING.model_copy(update={"time_encoding": FIRST_MERCER})
    config = RecommenderConfig(items=len(tiny_bundle.ITEM_IDS), encoder=encoder)
    return compute_kernel_curves(config.build(), SPAN_DAYS)
