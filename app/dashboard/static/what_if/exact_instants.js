// @ts-check
/**
 * Instants to the microsecond, as the service writes them: RFC 3339 in UTC, without a fraction where
 * it is zero. `Date` holds milliseconds only, which would move an event that is only displayed.
 */

const WITH_OFFSET = /^(.+:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/i;
const COMPACT = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(?:-(\d{6}))?$/;

/**
 * Converts an instant with any offset to UTC.
 * @param {string} text
 */
export function toUtc(text) {
  const { seconds, fraction } = parse(text);
  return format(seconds, fraction);
}

/**
 * Formats milliseconds since 1970.
 * @param {number} milliseconds
 */
export const fromMilliseconds = (milliseconds) => toUtc(new Date(milliseconds).toISOString());

/**
 * Milliseconds since 1970, with a fraction for the microseconds.
 * @param {string} text
 */
export function toMilliseconds(text) {
  const { seconds, fraction } = parse(text);
  return seconds + Number(fraction) / 1000;
}

/**
 * Moves an instant by whole milliseconds, keeping its microseconds.
 * @param {string} text
 * @param {number} milliseconds
 */
export function shift(text, milliseconds) {
  const { seconds, fraction } = parse(text);
  return format(seconds + milliseconds, fraction);
}

/**
 * Formats for a URL: few characters, none of which needs escaping, such as 20111209T125000.
 * @param {string} text
 */
export function toCompact(text) {
  const { fraction } = parse(text);
  const seconds = text.slice(0, 19).replaceAll(/[-:]/g, "");
  return Number(fraction) === 0 ? seconds : `${seconds}-${fraction}`;
}

/**
 * Parses the result of `toCompact`; undefined for any other text.
 * @param {string} text
 */
export function fromCompact(text) {
  const found = COMPACT.exec(text);
  if (found === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = "0"] = found;
  const instant = `${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction}Z`;
  return Number.isNaN(Date.parse(instant)) ? undefined : toUtc(instant);
}

/**
 * Splits into whole seconds (as milliseconds since 1970) and six digits of fraction.
 * @param {string} text
 */
function parse(text) {
  const [, seconds, fraction = "", offset] = /** @type {RegExpExecArray} */ (WITH_OFFSET.exec(text));
  return { seconds: Date.parse(seconds + offset), fraction: fraction.slice(0, 6).padEnd(6, "0") };
}

/**
 * @param {number} seconds
 * @param {string} fraction
 */
function format(seconds, fraction) {
  const whole = new Date(seconds).toISOString().slice(0, -5);
  return Number(fraction) === 0 ? `${whole}Z` : `${whole}.${fraction}Z`;
}
