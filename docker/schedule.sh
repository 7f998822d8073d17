#!/bin/sh
# Runs a command repeatedly: on-schedule SECONDS JITTER COMMAND...
#
# Waits SECONDS between the end of one run and the start of the next, and up to JITTER more at random,
# so that several machines do not start at once. A failed run is logged, and repeated at the next turn.
# The first run starts after the jitter alone. SIGTERM reaches the run and ends the schedule.
set -u

seconds=$1
jitter=$2
shift 2

log_event() {
    printf '{"event":"%s","timestamp":"%s","%s":%s}\n' "$1" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$2" "$3"
}

child=
stop() {
    trap '' TERM INT
    if [ -n "$child" ]; then
        # Twice, because a child that is forked just now may lose the first signal.
        kill -TERM "$child" 2>/dev/null
        (sleep 1 && kill -TERM "$child") >/dev/null 2>&1 &
        wait "$child" 2>/dev/null
    fi
    log_event schedule_ended status 0
    exit 0
}
trap stop TERM INT

# In the background, because a shell handles no signal while a foreground command runs.
run() {
    "$@" &
    child=$!
    wait "$child"
    status=$?
    child=
    return "$status"
}

random_jitter() {
    if [ "$jitter" -gt 0 ]; then
        echo "$(($(od -An -N2 -tu2 /dev/urandom) % (jitter + 1)))"
    else
        echo 0
    fi
}

pause=$(random_jitter)
while true; do
    log_event next_run_in seconds "$pause"
    run sleep "$pause"
    run "$@"
    log_event run_ended status "$?"
    pause=$((seconds + $(random_jitter)))
done
