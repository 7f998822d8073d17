"""Settings that fit each by itself, but not each other or this machine."""

import os

from app.settings import Settings
from cli.doctor_checks.check import Checks, doubtful, well

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_LONG_POLL_SECONDS = 30.0


def listens_to_others(settings: Settings) -> bool:
    """Whether other machines can reach the service."""
    return settings.host not in _LOOPBACK


def checks_of_settings(settings: Settings) -> Checks:
    """What is doubtful about the settings; one line if nothing is."""
    found = [*_doubts(settings)]
    yield from found
    if not found:
        yield well("settings", f"every value fits; listening on {settings.host}:{settings.port}")


def _doubts(settings: Settings) -> Checks:
    cores = os.cpu_count() or 1
    if settings.inference_threads > cores:
        yield doubtful(
            "settings.threads",
            f"{settings.inference_threads} inference threads share {cores} cores",
            f"set KAIROS_INFERENCE_THREADS to at most {cores}",
        )
    if settings.open_to_loopback and listens_to_others(settings):
        yield doubtful(
            "settings.open_to_loopback",
            "whatever runs on this machine is let in without a key, a proxy among it that does "
            "not say for whom it asks",
            "unset KAIROS_OPEN_TO_LOOPBACK, and give what runs here keys of its own",
        )
    if settings.poll_interval_seconds > _LONG_POLL_SECONDS:
        yield doubtful(
            "settings.poll_interval",
            f"a revoked key opens doors for {settings.poll_interval_seconds:g} seconds more",
            f"set KAIROS_POLL_INTERVAL_SECONDS to at most {_LONG_POLL_SECONDS:g}",
        )
    if settings.log_level == "debug":
        yield doubtful(
            "settings.log_level",
            "at level debug the log may name users and what they did",
            "set KAIROS_LOG_LEVEL to info",
        )
