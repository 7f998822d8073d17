"""The command line.

The numeric libraries read these variables when they are first imported. A thread per core in each
of them would fight over every core; training raises torch's own number again. Threads that wait
must sleep: spinning, OpenMP's habit, made a step six times slower beside one busy process.
"""

import os

for _variable, _value in {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}.items():
    os.environ.setdefault(_variable, _value)
