"""Progress receivers for tests."""

from training.fitting.fit import EpochReport


class SilentProgress:
    """Ignores the progress of a run."""

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None: ...

    def finish_step(self, done: int, of: int, loss: float) -> None: ...

    def finish_epoch(self, report: EpochReport) -> None: ...


class RecordingProgress:
    """Records the progress of a run."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.steps = 0
        self.epochs: list[int] = []
        self.losses: list[float] = []

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:
        self.phases.append(name)

    def finish_step(self, done: int, of: int, loss: float) -> None:
        self.steps += 1

    def finish_epoch(self, report: EpochReport) -> None:
        self.epochs.append(report.epoch)
        self.losses.append(report.loss)
