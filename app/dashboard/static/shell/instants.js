// @ts-check
/** Instants that the API takes: RFC 3339 with an offset from UTC, of the years 1 to 9999. */

const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)([Zz]|[+-]\d\d:\d\d)$/;

/** The bounds of instants, in milliseconds since 1970. */
export const EARLIEST = Date.parse("0001-01-01T00:00:00Z");
export const LATEST = Date.parse("9999-12-31T23:59:59.999Z");

/** Milliseconds since 1970 of a text; NaN if it is no instant that the API takes. */
export function parseInstant(text) {
  const found = RFC_3339.exec(text);
  if (found === null) return NaN;
  const [, day, time, offset] = found;
  // `Date` reads 30 February as 2 March, and 24:00 as the next day.
  if (!new Date(`${day}T00:00Z`).toJSON()?.startsWith(day) || time.startsWith("24")) return NaN;
  return requirePossible(Date.parse(`${day}T${time}${offset.toUpperCase()}`));
}

/** Milliseconds since 1970 of epoch seconds; NaN if it is no instant that the API takes. */
export const fromEpochSeconds = (seconds) => requirePossible(Math.floor(seconds * 1000));

/** The instant that is nearest among those that the API takes. */
export const clampInstant = (at) => Math.min(LATEST, Math.max(EARLIEST, at));

const requirePossible = (at) => (at >= EARLIEST && at <= LATEST ? at : NaN);
