"""The command line.

The numeric libraries read these variables when they are first imported: a thread per core in each
of them would compete for the cores. Training sets torch's own number of threads again. Waiting
threads spin for some microseconds and then sleep: with OpenMP's default, which spins on, one step
took six times as long while another process was busy; with none, two threads were no faster than
one (docs/decisions/0011).
"""

import os

for _variable, _value in {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "3000",
}.items():
    os.environ.setdefault(_variable, _value)
