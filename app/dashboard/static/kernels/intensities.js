/** How likely a self-modulating model finds each group of items, as a user's time goes by. */

import { call, readHistory } from "../shell/api.js";
import { DAY, SECOND } from "../shell/format.js";

const LONGEST_HISTORY = 1000;
const EVEN_INSTANTS = 280;
const MOST_EVENTS = 100;
const LEAST_AFTER = 30 * DAY;

/** Whether a version tells intensities: those that modulate their attention do. */
export const hasIntensities = (description) =>
  Boolean(description?.manifest.recommender.encoder.modulation);

/**
 * The intensities of a user by a version: `{groups, instants: [{at, intensities}], events: [at]}`,
 * from the first event on and somewhat past the last; `groups` is null where the model has none, and
 * there are no instants without events. Throws what `call` does.
 */
export async function readIntensities(user, version, signal) {
  const history = await readHistory(user, LONGEST_HISTORY, signal);
  const events = [...new Set(history.map((event) => Date.parse(event.timestamp)))];
  if (events.length === 0) return { groups: null, instants: [], events };
  const body = {
    user_id: user,
    model_version: version,
    query_times: instantsFor(events).map((at) => new Date(at).toISOString()),
  };
  const answer = await call("v1/attention", { body, signal });
  const instants = answer.instants.map(({ query_time: at, intensities }) => ({
    at: Date.parse(at),
    intensities,
  }));
  return { groups: answer.groups, instants, events };
}

/**
 * When to ask: evenly from the first event to some time after the last, and right before and after
 * the newest events, where intensities jump. `events` are distinct instants, oldest first.
 */
export function instantsFor(events) {
  const [first, last] = [events[0], events.at(-1)];
  const end = last + Math.max((last - first) / 4, LEAST_AFTER);
  const even = Array.from(
    { length: EVEN_INSTANTS },
    (_, number) => first + Math.round(((end - first) * (number + 1)) / EVEN_INSTANTS / SECOND) * SECOND,
  );
  const jumps = events.slice(-MOST_EVENTS).flatMap((at) => [at - SECOND, at + SECOND]);
  return [...new Set([...even, ...jumps])]
    .filter((at) => at > first)
    .sort((one, other) => one - other);
}
