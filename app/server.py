"""Running the service as a process: `kairos serve`, or `python -m app.server`."""

import os
import signal
import sys
from types import FrameType

from app.settings import Settings

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run(settings: Settings) -> None:
    """Serve until told to stop; answers what is in flight before it goes."""
    # Read when the numeric libraries are first imported. One answer is cheapest on one thread, and
    # two OpenMP runtimes with a thread per core each would fight over every core.
    for variable in _THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")

    import torch  # noqa: PLC0415 - after the variables above
    import uvicorn  # noqa: PLC0415

    from app.logs import configure_logs  # noqa: PLC0415
    from app.main import create_app  # noqa: PLC0415

    # Uvicorn raises the signal that stopped it again once everything is answered; to have been
    # told to stop is no failure.
    signal.signal(signal.SIGTERM, _leave)
    torch.set_num_threads(1)
    configure_logs(settings.log_format, settings.log_level)
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=8,
    )


def _leave(_: int, __: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    run(Settings())
