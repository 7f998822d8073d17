"""What became of retraining."""

from kairos_client.answers.training_runs import TrainingRunList
from kairos_client.calls import Call, fetch
from kairos_client.wire import query


def list_training_runs(*, limit: int | None = None) -> Call[TrainingRunList]:
    """Runs of the retraining job, newest first: results, decisions, and the numbers behind them."""
    path = "/v1/training-runs" + query({"limit": limit})
    return fetch("list_training_runs", path, TrainingRunList)
