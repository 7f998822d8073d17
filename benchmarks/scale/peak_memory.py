"""The peak of a process's memory."""

from pathlib import Path


def read_peak(process: int | None = None) -> int:
    """Read the largest resident memory of a process so far, in bytes; of this one by default.

    Unlike that of `getrusage`, it is that of the program alone, without the process it began as.
    """
    status = Path(f"/proc/{process or 'self'}/status").read_text()
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak) * 1024
