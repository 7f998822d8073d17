/** Instants and durations in words. Inside the page both are milliseconds; times are UTC. */

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const UNITS = [
  [365 * DAY, "y"],
  [DAY, "d"],
  [HOUR, "h"],
  [MINUTE, "min"],
  [SECOND, "s"],
];

/** A duration in its two leading units, such as "3 d 4 h". */
export function inWords(duration) {
  const place = UNITS.findIndex(([unit]) => duration >= unit);
  if (place < 0) return quantity(0, "s");
  const [unit, name] = UNITS[place];
  const whole = quantity(Math.floor(duration / unit), name);
  if (place + 1 === UNITS.length) return whole;
  const [smaller, smallerName] = UNITS[place + 1];
  const rest = Math.floor((duration % unit) / smaller);
  return rest ? `${whole} ${quantity(rest, smallerName)}` : whole;
}

// A number and its unit stay on one line.
const quantity = (number, unit) => `${number}\u00a0${unit}`;

/** An instant as "2011-12-09 12:50:00". */
export const asText = (at) => asField(at).replace("T", " ");

/** An instant as its day alone. */
export const asDay = (at) => asField(at).slice(0, 10);

/** An instant as a datetime-local field takes it. */
export const asField = (at) => new Date(at).toISOString().slice(0, 19);

/** What a datetime-local field holds, read as UTC; null where it is incomplete. */
export function fromField(text) {
  const at = Date.parse(text.length === 16 ? `${text}:00Z` : `${text}Z`);
  return Number.isNaN(at) ? null : at;
}
