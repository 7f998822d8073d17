"""What probes are told."""

from kairos_client.answers.answer import Answer


class Liveness(Answer):
    """The process runs."""

    status: str = "live"


class Readiness(Answer):
    """Whether a process can do all of its work, part by part."""

    status: str
    """`ready` or `not_ready`."""
    model: str
    """`ok`, or what is wrong."""
    database: str
    """`ok`, or what is wrong."""
    process: str
    """`ok`, or that it is about to stop."""
