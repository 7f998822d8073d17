"""Whether the service in this container is ready: exits with 0 if it is.

Run by the image's HEALTHCHECK, which has no other HTTP client at hand.
"""

import os
import sys
from urllib.error import URLError
from urllib.request import urlopen

_SECONDS = 3


def is_ready(port: str) -> bool:
    """Return whether the process on a port of this machine reports that it is ready."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=_SECONDS) as response:
            return bool(response.status == 200)
    except (URLError, TimeoutError, ConnectionError):
        return False


if __name__ == "__main__":
    sys.exit(0 if is_ready(os.environ.get("KAIROS_PORT", "8000")) else 1)
