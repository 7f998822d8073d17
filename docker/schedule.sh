#!/bin/sh
# Runs a command again and again: on-schedule SECONDS JITTER COMMAND...
#
# Waits SECONDS, and up to JITTER more by chance so that several machines do not begin as one, between
# the end of one run and the start of the next; a run that fails is said, and tried again at the next
# turn. The first begins after the jitter alone. SIGTERM reaches the run and ends the schedule.
set -u

seconds=$1
jitter=$2
shift 2

say() {
    printf '{"event":"%s","timestamp":"%s","%s":%s}\n' "$1" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$2" "$3"
}

child=
leave() {
    trap '' TERM INT
    if [ -n "$child" ]; then
        kill -TERM "$child" 2>/dev/null
        wait "$child" 2>/dev/null
    fi
    say schedule_ended status 0
    exit 0
}
trap leave TERM INT

# In the background, because a shell minds no signal while a command runs before it.
run() {
    "$@" &
    child=$!
    wait "$child"
    status=$?
    child=
    return "$status"
}

chance() {
    if [ "$jitter" -gt 0 ]; then
        echo "$(($(od -An -N2 -tu2 /dev/urandom) % (jitter + 1)))"
    else
        echo 0
    fi
}

pause=$(chance)
while true; do
    say next_run_in seconds "$pause"
    run sleep "$pause"
    run "$@"
    say run_ended status "$?"
    pause=$((seconds + $(chance)))
done
