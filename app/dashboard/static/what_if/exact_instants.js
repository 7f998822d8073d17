/**
 * Instants to the microsecond, as the service writes them: RFC 3339 in UTC, without a fraction where
 * that is zero. Dates of the browser know milliseconds only, and an event must not be moved by
 * being looked at.
 */

const WITH_OFFSET = /^(.+:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/i;
const COMPACT = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(?:-(\d{6}))?$/;

/** An instant with any offset, in UTC. */
export function inUtc(text) {
  const { seconds, fraction } = parts(text);
  return written(seconds, fraction);
}

/** Milliseconds since 1970 as such an instant. */
export const exactly = (milliseconds) => inUtc(new Date(milliseconds).toISOString());

/** Milliseconds since 1970, with a fraction for the microseconds. */
export function inMilliseconds(text) {
  const { seconds, fraction } = parts(text);
  return seconds + Number(fraction) / 1000;
}

/** The instant some milliseconds later, or earlier, to the same microsecond. */
export function shifted(text, milliseconds) {
  const { seconds, fraction } = parts(text);
  return written(seconds + milliseconds, fraction);
}

/** In few characters, none of which an address has to escape: 20111209T125000. */
export function compact(text) {
  const { fraction } = parts(text);
  const seconds = text.slice(0, 19).replaceAll(/[-:]/g, "");
  return Number(fraction) === 0 ? seconds : `${seconds}-${fraction}`;
}

/** What `compact` wrote; undefined for anything else. */
export function expanded(text) {
  const found = COMPACT.exec(text);
  if (found === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = "0"] = found;
  const written = `${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction}Z`;
  return Number.isNaN(Date.parse(written)) ? undefined : inUtc(written);
}

/** Whole seconds, in milliseconds since 1970, and six digits of what is left. */
function parts(text) {
  const [, seconds, fraction = "", offset] = WITH_OFFSET.exec(text);
  return { seconds: Date.parse(seconds + offset), fraction: fraction.slice(0, 6).padEnd(6, "0") };
}

function written(seconds, fraction) {
  const whole = new Date(seconds).toISOString().slice(0, -5);
  return Number(fraction) === 0 ? `${whole}Z` : `${whole}.${fraction}Z`;
}
