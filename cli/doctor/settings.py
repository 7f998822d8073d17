"""Checks of settings that are valid alone, but not together or on this machine."""

import os

from app.settings import Settings
from cli.doctor.check import Checks, ok, warning

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_MAX_POLL_SECONDS = 30.0


def accepts_remote_connections(settings: Settings) -> bool:
    """Return whether other machines can connect to the service."""
    return settings.host not in _LOOPBACK


def check_settings(settings: Settings) -> Checks:
    """Yield a warning per problem, or one `ok`."""
    warnings = [*_find_problems(settings)]
    yield from warnings
    if not warnings:
        yield ok("settings", f"all valid; the service listens on {settings.host}:{settings.port}")


def _find_problems(settings: Settings) -> Checks:
    cores = os.cpu_count() or 1
    if settings.inference_threads > cores:
        yield warning(
            "settings.threads",
            f"{settings.inference_threads} inference threads share {cores} cores",
            f"set KAIROS_INFERENCE_THREADS to at most {cores}",
        )
    if settings.open_to_loopback and accepts_remote_connections(settings):
        yield warning(
            "settings.open_to_loopback",
            "every program of this user on this machine has access without a key",
            "unset KAIROS_OPEN_TO_LOOPBACK, and create keys for the programs on this machine",
        )
    if settings.poll_interval_seconds > _MAX_POLL_SECONDS:
        yield warning(
            "settings.poll_interval",
            f"a revoked key stays valid for up to {settings.poll_interval_seconds:g} seconds",
            f"set KAIROS_POLL_INTERVAL_SECONDS to at most {_MAX_POLL_SECONDS:g}",
        )
    if settings.log_level == "debug":
        yield warning(
            "settings.log_level",
            "at level debug the log may contain user ids and their events",
            "set KAIROS_LOG_LEVEL to info",
        )
