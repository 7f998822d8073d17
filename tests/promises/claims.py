"""What each promise of docs/promises.md claims."""

CLAIMS = {
    "R1": "100 activations and rollbacks under load, two processes: no request fails, each answer "
    "is one version's; p99 ≤ 3 times the steady one; memory ≤ 1.15 times",
    "R2": "a broken bundle is refused with 409, and the old version stays active",
    "R3": "kill -9 during ingest, and a database stopped at once: no acknowledged event is lost, "
    "none is there twice after a replay",
    "R4": "SIGTERM under load: not ready first, nothing in flight fails, gone within 10 s with 0",
    "R5": "hostile and random requests to every operation: no 5xx, no undocumented answer",
    "R6": "a body of 1 GiB is 413 within 50 MB, a gzip bomb is refused, slow connections behind "
    "the proxy delay no other client; without it, idle and slow ones exhaust no process",
    "R7": "without a database: inline histories are answered, the rest is 503, "
    "recovery within 5 s; disk full and pool exhausted are 503, too",
    "R8": "at three times its capacity: the excess is shed, p99 of the rest ≤ 3 times "
    "(median of five rounds)",
    "R9": "100,000 requests: memory grows < 1 % in 10,000; no file or thread is left behind",
    "R10": "the same version, counted events and request: the same ids, scores within 1e-5, in "
    "every process",
    "R11": "neither order of arrival, nor that within an instant, nor later events, nor duplicates "
    "matter; attention sums to 1",
    "R12": "every operation authorizes every kind of caller as declared",
    "R13": "migrations go up, down and up; the release before runs on the newest schema",
    "R14": "an erased user is in no table, no training set and no output",
    "R15": "retraining killed before it activates leaves the champion alone, and killed later the "
    "challenger; of two at once, one runs",
    "R16": "the gate refuses shuffled labels, NaN and models below popularity, with the reason",
    "R17": "no class of requests starves another: beside ten times the sweeps that fit, "
    "recommendations and ingestion keep p99 ≤ 3 times and fail 0 times",
    "R18": "PostgreSQL becomes read-only and back, or a standby takes over: writes are 503, no "
    "acknowledged event and no impression is lost, recovery within 5 s without a restart",
    "R19": "the clock of one replica an hour off changes no answer: default query times, "
    "availability, deletions, events, keys, erasures, popularity and versions",
    "R20": "behind nginx, Caddy and HAProxy with their defaults, a service without keys admits "
    "nobody from outside",
    "R21": "a week of everything at once (events, answers, swaps, erasures, restarts, backups, "
    "retraining): every acknowledged event once, no erased user, memory and files flat",
}
"""By promise, one line each."""
