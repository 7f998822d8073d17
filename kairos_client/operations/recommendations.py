"""Questions to a model about one history."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from kairos_client.answers.recommendations import (
    AttentionAnswer,
    RankingAnswer,
    RecommendationAnswer,
)
from kairos_client.calls import Call, ask
from kairos_client.told import PastEvent, fields_of
from kairos_client.wire import given


def recommend(
    user_id: str | None = None,
    *,
    history: Iterable[PastEvent] | None = None,
    merge: bool | None = None,
    query_time: datetime | None = None,
    query_time_withheld: bool | None = None,
    n: int | None = None,
    exclude_seen: bool | None = None,
    exclude_item_ids: Iterable[str] | None = None,
    include_item_ids: Iterable[str] | None = None,
    any_categories: Iterable[str] | None = None,
    no_categories: Iterable[str] | None = None,
    available_only: bool | None = None,
    diversity: float | None = None,
    strict: bool | None = None,
    shown: bool | None = None,
    explain: Literal["none", "attention", "heads", "occlusion"] | None = None,
    explain_item_id: str | None = None,
    model_version: str | None = None,
) -> Call[RecommendationAnswer]:
    """What should this user see at this instant, and which past events made the model say so?

    The history comes from the store (`user_id`), from the call (`history`), or from both (`merge`).
    What is left out is as the service has it by default: `n` 10, seen and unavailable items left
    out, no explanation, now.
    """
    categories = given({"any": any_categories, "none": no_categories})
    fields = {
        "user_id": user_id,
        "history": fields_of(history),
        "merge": merge,
        "query_time": query_time,
        "query_time_withheld": query_time_withheld,
        "n": n,
        "exclude_seen": exclude_seen,
        "exclude_item_ids": exclude_item_ids,
        "include_item_ids": include_item_ids,
        "categories": categories or None,
        "available_only": available_only,
        "diversity": diversity,
        "strict": strict,
        "shown": shown,
        "explain": explain,
        "explain_item_id": explain_item_id,
        "model_version": model_version,
    }
    return ask("recommend", "/v1/recommendations", given(fields), RecommendationAnswer)


def rank(
    item_ids: Iterable[str],
    user_id: str | None = None,
    *,
    history: Iterable[PastEvent] | None = None,
    merge: bool | None = None,
    query_time: datetime | None = None,
    query_time_withheld: bool | None = None,
    model_version: str | None = None,
) -> Call[RankingAnswer]:
    """In which order should this user see these items at this instant?

    For at most 500 candidates that come from elsewhere: a search, a shelf, a mailing.
    """
    fields = {
        "item_ids": item_ids,
        "user_id": user_id,
        "history": fields_of(history),
        "merge": merge,
        "query_time": query_time,
        "query_time_withheld": query_time_withheld,
        "model_version": model_version,
    }
    return ask("rank", "/v1/rankings", given(fields), RankingAnswer)


def sweep(
    query_times: Iterable[datetime],
    user_id: str | None = None,
    *,
    history: Iterable[PastEvent] | None = None,
    merge: bool | None = None,
    n: int | None = None,
    exclude_seen: bool | None = None,
    model_version: str | None = None,
) -> Call[AttentionAnswer]:
    """How do attention and the answer move over one history while the clock runs?

    At most 500 instants; `n` items at each, by default none but the weights alone.
    """
    fields = {
        "query_times": query_times,
        "user_id": user_id,
        "history": fields_of(history),
        "merge": merge,
        "n": n,
        "exclude_seen": exclude_seen,
        "model_version": model_version,
    }
    return ask("sweep", "/v1/attention", given(fields), AttentionAnswer)
