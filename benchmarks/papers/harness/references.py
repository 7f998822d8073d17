"""The references that every suite ranks beside its rows; `training.evaluation.report` has them."""

REFERENCES = {
    "popular_all_time": "popularity, all time",
    "popular_last_week": "popularity, last 7 days",
    "last_item_markov": "last-item Markov",
    "personal_frequency": "personal frequency",
    "repeat_last": "repeat the last item",
    "counting": "counting, frozen",
    "counting_live": "counting, live",
}
"""Their labels."""
