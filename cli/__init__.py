"""The command line.

The numeric libraries read these variables when they are first imported: a thread per core in each
of them would compete for the cores. Training sets torch's own number of threads again. Waiting
threads must sleep: with OpenMP's default, spinning, one step took six times as long while another
process was busy.
"""

import os

for _variable, _value in {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}.items():
    os.environ.setdefault(_variable, _value)
