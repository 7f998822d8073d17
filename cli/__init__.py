"""The command line.

The numeric libraries read these variables when they are first imported, and a thread per core in
each of them would fight over every core. Training raises torch's number again by itself.
"""

import os

for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
