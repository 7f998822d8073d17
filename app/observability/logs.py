"""The process's log, for a console or as one JSON object per line.

At `info` and above it holds no id of a user or an item, no key and no history: requests are logged
by their route, statements without parameters, tracebacks without the messages of exceptions.
"""

import asyncio
import logging
import sys
import threading
from typing import Any, Literal

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
    is_console = log_format == "console"
    # The renderer's own tracebacks would show local variables, and with them histories.
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    rendering: list[Processor] = [
        structlog.processors.format_exc_info
        if log_level == "debug"
        else structlog.processors.ExceptionRenderer(_format_exception),
        console if is_console else structlog.processors.JSONRenderer(),
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
    # `MetricsMiddleware` logs routes; this logger would log paths, and with them user ids.
    logging.getLogger("uvicorn.access").disabled = True
    # Alembic logs the kind of database at every start.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def configure_process_logs(log_format: Literal["console", "json"], log_level: str) -> None:
    """Configure the logs of a process, uncaught exceptions included.

    At the level `debug` Python prints these with their messages.
    """
    configure_logs(log_format, log_level)
    if log_level != "debug":
        log_uncaught_exceptions()


def log_uncaught_exceptions() -> None:
    """Log the exceptions that nothing handles, which Python would print with their messages."""

    def log_fatal(_: object, error: BaseException, __: object) -> None:
        logger.critical("uncaught_exception", exc_info=error)

    def log_of_thread(failure: threading.ExceptHookArgs) -> None:
        logger.error("uncaught_exception", exc_info=failure.exc_value)

    def log_unraisable(failure: "sys.UnraisableHookArgs") -> None:
        logger.error("uncaught_exception", exc_info=failure.exc_value)

    logger = structlog.get_logger()
    sys.excepthook = log_fatal
    threading.excepthook = log_of_thread
    sys.unraisablehook = log_unraisable


def log_loop_exception(_: asyncio.AbstractEventLoop, failure: dict[str, Any]) -> None:
    """Log an exception that an event loop caught; set it as the loop's exception handler.

    asyncio would log a task's representation, too, which holds the message of its exception.
    """
    logger = structlog.get_logger()
    logger.error("uncaught_exception", where=failure["message"], exc_info=failure.get("exception"))


def _format_exception(exc_info: ExcInfo) -> str:
    return format_redacted(exc_info[1])
