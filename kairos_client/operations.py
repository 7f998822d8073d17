"""The operations of the service, described once; both clients inherit them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from kairos_client.calls import (
    Call,
    Idempotency,
    get,
    operation,
    parse_as,
    parse_nothing,
    parse_text,
    send_json,
)
from kairos_client.encoding import encode_query, format_path, to_json_fields
from kairos_client.models import ItemDescription, PastEvent, to_json_objects
from kairos_client.responses.audit import AuditPage
from kairos_client.responses.health import Caller, Liveness, ProcessMetrics, Readiness
from kairos_client.responses.items import Item, ItemPage, ItemPopularity, SimilarItems, StoredItems
from kairos_client.responses.models import (
    ChangeList,
    CurrentVersion,
    ModelDetail,
    ModelList,
    ModelMap,
    ModelTraffic,
    TrainingRunList,
)
from kairos_client.responses.overview import ChangedUsers, ExampleUsers, ItemRecipients
from kairos_client.responses.recommendations import (
    AttentionAnswer,
    RankingAnswer,
    RecommendationAnswer,
)
from kairos_client.responses.users import ErasedUser, NextTimeAnswer, UserHistory, UserList


class Operations:
    """One method per operation, named by its `operationId`; parameters left at None are not sent.

    Each body returns a `Call`; `@operation` makes it a method that performs the call.
    """

    @operation
    def recommend(
        self,
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
        explain: Literal["none", "attention", "heads", "occlusion", "reasons"] | None = None,
        explain_item_id: str | None = None,
        occlusion_unit: Literal["event", "basket"] | None = None,
        model_version: str | None = None,
    ) -> Call[RecommendationAnswer]:
        """Recommend items for a history at a query time, with the attention on past events.

        The history is the stored one (`user_id`), the given one (`history`), or both (`merge`).
        The service's defaults: 10 items, the current time as query time, no explanation, and no
        items that are seen or unavailable.
        """
        categories = to_json_fields({"any": any_categories, "none": no_categories})
        fields = {
            "user_id": user_id,
            "history": to_json_objects(history),
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
            "occlusion_unit": occlusion_unit,
            "model_version": model_version,
        }
        return send_json(
            "recommend", "/v1/recommendations", to_json_fields(fields), RecommendationAnswer
        )

    @operation
    def rank(
        self,
        item_ids: Iterable[str],
        user_id: str | None = None,
        *,
        history: Iterable[PastEvent] | None = None,
        merge: bool | None = None,
        query_time: datetime | None = None,
        query_time_withheld: bool | None = None,
        model_version: str | None = None,
    ) -> Call[RankingAnswer]:
        """Rank up to 500 given items for a history at a query time.

        The candidates come from another system, such as a search engine.
        """
        fields = {
            "item_ids": item_ids,
            "user_id": user_id,
            "history": to_json_objects(history),
            "merge": merge,
            "query_time": query_time,
            "query_time_withheld": query_time_withheld,
            "model_version": model_version,
        }
        return send_json("rank", "/v1/rankings", to_json_fields(fields), RankingAnswer)

    @operation
    def sweep(
        self,
        query_times: Iterable[datetime],
        user_id: str | None = None,
        *,
        history: Iterable[PastEvent] | None = None,
        merge: bool | None = None,
        n: int | None = None,
        exclude_seen: bool | None = None,
        query_time_withheld: bool | None = None,
        head: int | None = None,
        weights_of: Literal["all", "read"] | None = None,
        model_version: str | None = None,
    ) -> Call[AttentionAnswer]:
        """Compute attention and recommendations of one history at up to 500 query times.

        `n` is the number of items at each query time; by default 0, which returns the weights only.
        `head`, from 1, requests the weights of one attention head instead of their mean.
        """
        fields = {
            "query_times": query_times,
            "user_id": user_id,
            "history": to_json_objects(history),
            "merge": merge,
            "n": n,
            "exclude_seen": exclude_seen,
            "query_time_withheld": query_time_withheld,
            "head": head,
            "weights_of": weights_of,
            "model_version": model_version,
        }
        return send_json("sweep", "/v1/attention", to_json_fields(fields), AttentionAnswer)

    @operation
    def put_items(self, items: Iterable[ItemDescription]) -> Call[StoredItems]:
        """Create or replaces up to 1,000 items."""
        fields = {"items": to_json_objects(items)}
        return send_json("put_items", "/v1/items", fields, StoredItems, method="PUT")

    @operation
    def list_items(
        self, q: str | None = None, *, cursor: str | None = None, limit: int | None = None
    ) -> Call[ItemPage]:
        """List one page of the items, ordered by id.

        `q` selects items whose title contains it, ignoring case.
        """
        query = encode_query({"q": q, "cursor": cursor, "limit": limit})
        return get("list_items", "/v1/items" + query, ItemPage)

    @operation
    def read_item(self, item_id: str) -> Call[Item]:
        """Read one stored item."""
        return get("read_item", format_path("/v1/items/{}", item_id), Item)

    @operation
    def delete_item(self, item_id: str) -> Call[None]:
        """Delete one item; it is no longer recommended."""
        return Call(
            "delete_item",
            "DELETE",
            format_path("/v1/items/{}", item_id),
            parse_nothing,
            Idempotency.IDEMPOTENT,
            is_done_if_missing=True,
        )

    @operation
    def list_similar(
        self, item_id: str, *, n: int | None = None, model_version: str | None = None
    ) -> Call[SimilarItems]:
        """List the items whose vectors are most similar to this item's."""
        path = format_path("/v1/items/{}/similar", item_id)
        query = encode_query({"n": n, "model_version": model_version})
        return get("list_similar", path + query, SimilarItems)

    @operation
    def read_popularity(
        self,
        item_id: str,
        *,
        step: Literal["day", "week", "month"] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Call[ItemPopularity]:
        """Count an item's events per day, week or month."""
        path = format_path("/v1/items/{}/popularity", item_id)
        query = encode_query({"step": step, "since": since, "until": until})
        return get("read_popularity", path + query, ItemPopularity)

    @operation
    def list_recipients(
        self,
        item_id: str,
        *,
        at: datetime | None = None,
        instants: int | None = None,
        step_days: int | None = None,
        users: int | None = None,
        n: int | None = None,
        model_version: str | None = None,
    ) -> Call[ItemRecipients]:
        """List which of the lately active users would be recommended an item, at a few instants."""
        path = format_path("/v1/items/{}/recipients", item_id)
        query = encode_query(
            {
                "at": at,
                "instants": instants,
                "step_days": step_days,
                "users": users,
                "n": n,
                "model_version": model_version,
            }
        )
        return get("list_recipients", path + query, ItemRecipients)

    @operation
    def list_changed_users(
        self,
        *,
        at: datetime | None = None,
        until: datetime | None = None,
        users: int | None = None,
        n: int | None = None,
        model_version: str | None = None,
    ) -> Call[ChangedUsers]:
        """List the lately active users whose ten best items change the most over time."""
        query = encode_query(
            {"at": at, "until": until, "users": users, "n": n, "model_version": model_version}
        )
        return get("list_changed_users", "/v1/overview/changes" + query, ChangedUsers)

    @operation
    def list_example_users(
        self,
        *,
        max_seconds: float | None = None,
        min_seconds: float | None = None,
        at: datetime | None = None,
        action: str | None = None,
        category: str | None = None,
        n: int | None = None,
        model_version: str | None = None,
    ) -> Call[ExampleUsers]:
        """List users, each with a query time at which the last event is so many seconds old."""
        query = encode_query(
            {
                "max_seconds": max_seconds,
                "min_seconds": min_seconds,
                "at": at,
                "action": action,
                "category": category,
                "n": n,
                "model_version": model_version,
            }
        )
        return get("list_example_users", "/v1/overview/examples" + query, ExampleUsers)

    @operation
    def list_users(self, prefix: str | None = None, *, limit: int | None = None) -> Call[UserList]:
        """List users with stored events, ordered by id."""
        query = encode_query({"prefix": prefix, "limit": limit})
        return get("list_users", "/v1/users" + query, UserList)

    @operation
    def read_user(self, user_id: str, *, limit: int | None = None) -> Call[UserHistory]:
        """Read the newest stored events of a user; an unknown user has none."""
        path = format_path("/v1/users/{}", user_id)
        return get("read_user", path + encode_query({"limit": limit}), UserHistory)

    @operation
    def erase_user(self, user_id: str) -> Call[ErasedUser]:
        """Erase all events and recommendation records of a user.

        A repetition is safe. After a lost response the call is retried, and the counts are those
        of the retry.
        """
        path = format_path("/v1/users/{}", user_id)
        return Call("erase_user", "DELETE", path, parse_as(ErasedUser), Idempotency.IDEMPOTENT)

    @operation
    def read_next_time(self, user_id: str, *, at: datetime | None = None) -> Call[NextTimeAnswer]:
        """Predict when a user's next event comes, given that none came until `at` (now)."""
        path = format_path("/v1/users/{}/next-time", user_id)
        return get("read_next_time", path + encode_query({"at": at}), NextTimeAnswer)

    @operation
    def recommend_to_user(
        self, user_id: str, *, n: int | None = None, at: datetime | None = None
    ) -> Call[RecommendationAnswer]:
        """Recommend items for the stored history of a user; `recommend` without its options."""
        path = format_path("/v1/users/{}/recommendations", user_id)
        query = encode_query({"n": n, "at": at})
        return get("recommend_to_user", path + query, RecommendationAnswer)

    @operation
    def list_models(self) -> Call[ModelList]:
        """List the published versions with their training data, metrics and traffic."""
        return get("list_models", "/v1/models", ModelList)

    @operation
    def describe_model(self, version: str) -> Call[ModelDetail]:
        """Read a version's manifest, time kernels, attention profile and clicks."""
        return get("describe_model", format_path("/v1/models/{}", version), ModelDetail)

    @operation
    def read_map(self, version: str, *, items: int | None = None) -> Call[ModelMap]:
        """Read a two-dimensional map of a version's most popular items."""
        path = format_path("/v1/models/{}/map", version)
        return get("read_map", path + encode_query({"items": items}), ModelMap)

    @operation
    def activate_model(self, version: str, *, reason: str | None = None) -> Call[CurrentVersion]:
        """Verify a version and make it the current one in every process.

        Not idempotent: after a NoResponseError check `list_changes` before a repetition.
        """
        return send_json(
            "activate_model",
            format_path("/v1/models/{}/activate", version),
            to_json_fields({"reason": reason}),
            CurrentVersion,
            idempotency=Idempotency.NOT_IDEMPOTENT,
        )

    @operation
    def roll_back(self, *, reason: str | None = None) -> Call[CurrentVersion]:
        """Make the previously current version current again.

        Not idempotent: after a NoResponseError check `list_changes` before a repetition.
        """
        return send_json(
            "roll_back",
            "/v1/models/rollback",
            to_json_fields({"reason": reason}),
            CurrentVersion,
            idempotency=Idempotency.NOT_IDEMPOTENT,
        )

    @operation
    def read_traffic(self) -> Call[ModelTraffic]:
        """Read the challenger with its share of the users, and the shadow."""
        return get("read_traffic", "/v1/models/traffic", ModelTraffic)

    @operation
    def put_traffic(
        self,
        *,
        challenger: str | None = None,
        share: float | None = None,
        shadow: str | None = None,
        reason: str | None = None,
    ) -> Call[ModelTraffic]:
        """Set the challenger with its share of the users, and the shadow; None removes either.

        Not idempotent: after a NoResponseError check `list_changes` before a repetition.
        """
        fields = {"challenger": challenger, "share": share, "shadow": shadow, "reason": reason}
        return send_json(
            "put_traffic",
            "/v1/models/traffic",
            to_json_fields(fields),
            ModelTraffic,
            method="PUT",
            idempotency=Idempotency.NOT_IDEMPOTENT,
        )

    @operation
    def list_changes(self, *, limit: int | None = None) -> Call[ChangeList]:
        """List activations, rollbacks and traffic changes, newest first."""
        return get(
            "list_changes", "/v1/models/changes" + encode_query({"limit": limit}), ChangeList
        )

    @operation
    def list_training_runs(self, *, limit: int | None = None) -> Call[TrainingRunList]:
        """List runs of the retraining job with their results and gate decisions, newest first."""
        path = "/v1/training-runs" + encode_query({"limit": limit})
        return get("list_training_runs", path, TrainingRunList)

    @operation
    def read_audit(self, *, cursor: str | None = None, limit: int | None = None) -> Call[AuditPage]:
        """Read who erased, exported, listed, imported or changed what, newest first."""
        path = "/v1/audit" + encode_query({"cursor": cursor, "limit": limit})
        return get("read_audit", path, AuditPage)

    @operation
    def live(self) -> Call[Liveness]:
        """Probe liveness: succeed if the process runs. Never retried."""
        return Call("live", "GET", "/health/live", parse_as(Liveness), Idempotency.PROBE)

    @operation
    def ready(self) -> Call[Readiness]:
        """Probe readiness: return the state of each component, also on 503. Never retried."""
        return Call(
            "ready",
            "GET",
            "/health/ready",
            parse_as(Readiness),
            Idempotency.PROBE,
            result_statuses=frozenset({503}),
        )

    @operation
    def metrics(self) -> Call[str]:
        """Read the metrics of one process in Prometheus's text format. Never retried."""
        return Call("metrics", "GET", "/metrics", parse_text, Idempotency.PROBE)

    @operation
    def read_metrics(self) -> Call[ProcessMetrics]:
        """Read the metrics of one process as values. Never retried.

        Works through a proxy that does not expose `/metrics`.
        """
        return Call(
            "read_metrics", "GET", "/v1/metrics", parse_as(ProcessMetrics), Idempotency.PROBE
        )

    @operation
    def read_caller(self) -> Call[Caller]:
        """Read the name and role that the service assigns to this client's key."""
        return get("read_caller", "/v1/caller", Caller)
