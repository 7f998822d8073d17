"""The rows of the files that cards take away, from the responses to their requests."""

from collections.abc import Callable
from typing import Any

from tests.browser.take_away_view import Row


def pick(row: Row, *names: str) -> Row:
    return {name: row[name] for name in names}


def join_categories(item: Row) -> Row:
    return item | {"categories": "; ".join(item["categories"])}


def find_metrics(metrics: dict[str, float], name: str) -> list[Row]:
    """The rows of one test metric: the model's own, then those of the references in their order."""
    rankings = {
        "": "model",
        "_live": "model, live popularity",
        "_withheld": "model, ignoring elapsed time",
    }
    own = [
        {"metric": name, "ranking": ranking, "value": metrics[name + suffix]}
        for suffix, ranking in rankings.items()
        if name + suffix in metrics
    ]
    others = [
        {"metric": name, "ranking": REFERENCES[key.removesuffix(f"_{name}")], "value": value}
        for key, value in metrics.items()
        if key.endswith(f"_{name}")
    ]
    return own + others


REFERENCES = {
    "popular_all_time": "Popular, all time",
    "popular_last_week": "Popular, last week",
    "last_item_markov": "Markov, last item",
    "personal_frequency": "Own most frequent",
    "repeat_last": "Repeats of the last",
    "counting": "Counting, frozen",
    "counting_live": "Counting, live",
}


def expect_recipients(answers: list[Any]) -> list[Row]:
    return [
        {
            "query_time": instant["query_time"],
            "sampled_users": instant["sampled_users"],
            "listed_users": instant["listed"],
            "share_of_top_10": instant["share_of_top_10"],
            "rank": recipient["rank"],
            "user_id": recipient["user_id"],
        }
        for instant in answers[0]["instants"]
        for recipient in instant["recipients"] or [{"rank": None, "user_id": None}]
    ]


def expect_popularity(answers: list[Any]) -> list[Row]:
    counted = answers[0]
    return [
        bucket | {f"events_{name}": of[index] for name, of in counted["actions"].items()}
        for index, bucket in enumerate(counted["counts"])
    ]


def expect_curves(view: str) -> Callable[[list[Any]], list[Row]]:
    def expect(answers: list[Any]) -> list[Row]:
        # That of all histories comes first, as on the page; every other one is of the same action.
        points = [
            point
            for point in answers[0]["attention_profile"]
            if point["view"] == view and point["by"] in {"all", "action"}
        ]
        names = sorted({point["name"] for point in points})
        return [
            {
                "version": answers[0]["version"],
                "curve": name or "all histories",
                "days_since_last_event": point["interval_days"],
                "mean_weight": point["mean"],
                "sd": point["sd"],
                "standard_error": point["standard_error"],
                "histories": point["count"],
            }
            for name in names
            for point in points
            if point["name"] == name and point["mean"] is not None
        ]

    return expect


def expect_psi(answers: list[Any]) -> list[Row]:
    kernel = answers[0]["kernels"][0]
    columns = ("interval_days", "psi", "initial_psi")
    return [
        dict(zip(columns, values, strict=True))
        for values in zip(*(kernel[name] for name in columns), strict=True)
    ]


def expect_rhythms(answers: list[Any]) -> list[Row]:
    kernel = answers[0]["kernels"][0]
    return [
        {"trained": is_trained} | pick(rhythm, "period_days", "power", "share")
        for is_trained, name in ((True, "spectrum"), (False, "initial_spectrum"))
        for rhythm in kernel[name]
    ]


def expect_intensities(answers: list[Any]) -> list[Row]:
    return [
        {"query_time": f"{instant['query_time'].removesuffix('Z')}.000Z"}
        | {
            f"{group}, per day": intensity
            for group, intensity in zip(answers[0]["groups"], instant["intensities"], strict=True)
        }
        for instant in answers[0]["instants"]
    ]


def expect_compared(answers: list[Any]) -> list[Row]:
    """The items of both sides: those recommended after the edits, then those that left."""
    tops = [one["instants"][0]["items"] for one in answers[:2]]
    ranks = [{item["item_id"]: item["rank"] for item in top} for top in tops]
    scores = [{item["item_id"]: item["score"] for item in one["items"]} for one in answers[2:]]
    items = {item["item_id"]: item["title"] for top in reversed(tops) for item in top}
    return [
        {
            "item_id": item,
            "title": title,
            "score_before": scores[0][item],
            "score_after": scores[1][item],
            "score_difference": scores[1][item] - scores[0][item],
            "rank_before": ranks[0].get(item),
            "rank_after": ranks[1].get(item),
        }
        for item, title in items.items()
    ]


def expect_weights(answers: list[Any]) -> list[Row]:
    """The events that the model reads on either side, of which one is removed."""
    before, after = (
        {
            (event["item_id"], event["timestamp"]): weight
            for event, weight in zip(sweep["events"], sweep["instants"][0]["weights"], strict=True)
        }
        for sweep in answers
    )
    titles = {event["item_id"]: event["title"] for one in answers for event in one["events"]}
    return [
        {
            "item_id": item,
            "title": titles[item],
            "timestamp_before": at,
            "timestamp_after": at if (item, at) in after else None,
            "action_before": "purchase",
            "action_after": "purchase" if (item, at) in after else None,
            "weight_before": before.get((item, at)),
            "weight_after": after.get((item, at)),
        }
        for item, at in dict.fromkeys([*before, *after])
    ]


def expect_roles(answers: list[Any]) -> list[Row]:
    models, _traffic, changes = answers
    (current,) = [one["version"] for one in models["models"] if one["is_current"]]
    return [
        {"role": "current", "version": current, "share_of_users": 1},
        {"role": "serving here", "version": current, "share_of_users": None},
        {"role": "rollback", "version": changes["rollback_version"], "share_of_users": None},
    ]


def expect_versions(answers: list[Any]) -> list[Row]:
    described = {one["version"]: one["manifest"]["metrics"] for one in answers[2:]}
    return [
        {
            "version": model["version"],
            "roles": "current" if model["is_current"] else None,
            "trained_at": model["trained_at"],
            "first_event_at": model["data_window"]["first_at"],
            "last_event_at": model["data_window"]["last_at"],
            "questions": described[model["version"]].get("questions"),
        }
        | {
            f"ndcg@10, {row['ranking']}": row["value"]
            for row in find_metrics(described[model["version"]], "ndcg@10")
        }
        for model in answers[0]["models"]
    ]


def expect_metrics(answers: list[Any]) -> list[Row]:
    metrics = answers[0]["manifest"]["metrics"]
    names = [name for name in metrics if f"{name}_withheld" in metrics and name != "questions"]
    return [row for name in names for row in find_metrics(metrics, name)]


def expect_epochs(answers: list[Any]) -> list[Row]:
    return [
        pick(epoch, "epoch", "loss")
        | {f"validation_{name}": value for name, value in epoch["validation"].items()}
        | pick(epoch, "seconds")
        for epoch in answers[0]["epochs"]
    ]


def expect_windows(answers: list[Any]) -> list[Row]:
    return [
        {
            "version": model["version"],
            "first_event_at": model["data_window"]["first_at"],
            "last_event_at": model["data_window"]["last_at"],
        }
        for model in answers[0]["models"]
    ]


def compare_in_run(runs: list[Row], one: str, other: str) -> list[Row]:
    """The metrics of two versions in the run that measured both."""
    (run,) = [
        run
        for run in runs
        if {run["champion"], run["candidate"]} == {one, other} and "champion" in run["metrics"]
    ]
    roles = ("challenger", "champion") if run["candidate"] == one else ("champion", "challenger")
    return [
        to_pair(
            (f"run {run['run_id']}", metric, ranking),
            {
                version: run["metrics"][role + suffix][metric]
                for version, role in zip((one, other), roles, strict=True)
            },
        )
        for suffix, ranking in (("", "model"), ("_withheld", "model, ignoring elapsed time"))
        for metric in run["metrics"][roles[0] + suffix]
        if metric != "questions"
    ]


def to_pair(of: tuple[str, str, str], values: dict[str, float]) -> Row:
    mine, theirs = values.values()
    return (
        dict(zip(("test", "metric", "ranking"), of, strict=True))
        | values
        | {"difference": mine - theirs}
    )


def expect_challenger(answers: list[Any]) -> list[Row]:
    runs = answers[-1]["runs"]
    latest = next(run for run in runs if "champion" in (run["metrics"] or {}))
    return compare_in_run(runs, latest["candidate"], latest["champion"])


def expect_comparison(answers: list[Any]) -> list[Row]:
    one, other = (answer["version"] for answer in answers[:2])
    mine, theirs = (
        {(row["metric"], row["ranking"]): row["value"] for row in expect_metrics([answer])}
        for answer in answers[:2]
    )
    own = [
        to_pair(("own test", *key), {one: mine[key], other: theirs[key]})
        for key in mine
        if key in theirs
    ]
    return compare_in_run(answers[2]["runs"], one, other) + own


def expect_changes(answers: list[Any]) -> list[Row]:
    names = ("at", "actor", "change", "version", "previous_version", "reason")
    return [pick(change, *names) for change in answers[0]["changes"]]
