"""Published models, and which of them answers.

A change that may have been made is not asked for again: look at `list_changes`, then decide.
"""

from kairos_client.answers.models import (
    ChangeList,
    CurrentVersion,
    ModelDetail,
    ModelList,
    ModelMap,
    ModelTraffic,
)
from kairos_client.calls import Again, Call, ask, fetch
from kairos_client.wire import address, given, query


def list_models() -> Call[ModelList]:
    """Every published version: what it was trained on, how well it did, what it answers."""
    return fetch("list_models", "/v1/models", ModelList)


def describe_model(version: str) -> Call[ModelDetail]:
    """A version's manifest, what it makes of time, and what came of its answers."""
    return fetch("describe_model", address("/v1/models/{}", version), ModelDetail)


def read_map(version: str, *, items: int | None = None) -> Call[ModelMap]:
    """A version's most popular items in two dimensions: those that are alike lie together."""
    path = address("/v1/models/{}/map", version)
    return fetch("read_map", path + query({"items": items}), ModelMap)


def activate_model(version: str, *, reason: str | None = None) -> Call[CurrentVersion]:
    """Open and check a version, and only then have every process answer with it."""
    path = address("/v1/models/{}/activate", version)
    fields = given({"reason": reason})
    return ask("activate_model", path, fields, CurrentVersion, again=Again.UNTOUCHED)


def roll_back(*, reason: str | None = None) -> Call[CurrentVersion]:
    """Make the version that was current before this one current again."""
    fields = given({"reason": reason})
    return ask("roll_back", "/v1/models/rollback", fields, CurrentVersion, again=Again.UNTOUCHED)


def read_traffic() -> Call[ModelTraffic]:
    """The challenger and its share of the users, and the shadow."""
    return fetch("read_traffic", "/v1/models/traffic", ModelTraffic)


def put_traffic(
    *,
    challenger: str | None = None,
    share: float | None = None,
    shadow: str | None = None,
    reason: str | None = None,
) -> Call[ModelTraffic]:
    """Give a challenger a share of the users, ask a shadow, too, or (with neither) end both."""
    fields = given({"challenger": challenger, "share": share, "shadow": shadow, "reason": reason})
    return ask(
        "put_traffic",
        "/v1/models/traffic",
        fields,
        ModelTraffic,
        method="PUT",
        again=Again.UNTOUCHED,
    )


def list_changes(*, limit: int | None = None) -> Call[ChangeList]:
    """Who changed what is served, newest first."""
    return fetch("list_changes", "/v1/models/changes" + query({"limit": limit}), ChangeList)
