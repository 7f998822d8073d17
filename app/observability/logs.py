"""One log for everything the process says: for people on a console, or a JSON object per line.

At `info` and above it holds no id of a user or an item, no key and no history: requests appear by
their route, statements without their parameters, tracebacks without the messages of exceptions.
"""

import logging
import sys
from typing import Literal

import structlog
from structlog.typing import ExcInfo, Processor

from app.observability.redaction import format_redacted

_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure_logs(log_format: Literal["console", "json"], log_level: str) -> None:
    """Send the logs of Kairos and of its libraries to standard error, in one format."""
    is_for_people = log_format == "console"
    # The renderer's own tracebacks would show local variables, and with them histories.
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    rendering: list[Processor] = [
        structlog.processors.format_exc_info
        if log_level == "debug"
        else structlog.processors.ExceptionRenderer(_withholding),
        console if is_for_people else structlog.processors.JSONRenderer(),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(log_level.upper())
    # Our own request log names routes; this one would name paths, and with them users.
    logging.getLogger("uvicorn.access").disabled = True
    # Alembic tells every start which database it found.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _withholding(exc_info: ExcInfo) -> str:
    return format_redacted(exc_info[1])
