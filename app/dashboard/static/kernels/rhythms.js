/** A kernel by its rhythms: psi(x) = constant + sum of power * cos(2 pi x / period). */

const TURN = 2 * Math.PI;
/** By how much of a kernel's height the sum may miss it: the model computes in single precision. */
const TOLERANCE = 1e-4;
/** What the service tells of kernels before training has six digits. */
export const SIX_DIGITS = 5e-6;

const SAMPLES = { perPeriod: 8, most: 48 };

/**
 * `{constant, rhythms}` of a stationary kernel, or null where they do not reproduce every point of
 * `psi` that the service tells: where the kernel is of another form, it must not be drawn by them.
 * `digits` is the relative error of the numbers as they were told.
 */
export function formulaOf({ is_stationary: isStationary, interval_days: intervals, psi, spectrum }, digits = 0) {
  if (!isStationary || spectrum === null || psi === null) return null;
  const rests = psi.map((value, place) => value - sumAt(spectrum, intervals[place]));
  // At the shortest interval no rhythm has moved yet.
  const [constant] = rests;
  const height = Math.max(...psi.map(Math.abs));
  const isReproduced = rests.every(
    (rest, place) =>
      Math.abs(rest - constant) <=
      TOLERANCE * height + digits * height + uncertainty(spectrum, intervals[place], digits),
  );
  return isReproduced ? { constant, rhythms: spectrum } : null;
}

/** psi at an interval, in days. */
export const psiAt = ({ constant, rhythms }, interval) => constant + sumAt(rhythms, interval);

/**
 * psi between two intervals, in days: `{mean, low, high}`, its mean and how far it swings. The mean is
 * exact, so that rhythms too fast to be drawn leave no pattern that is not there.
 */
export function psiBetween({ constant, rhythms }, from, to) {
  const shortest = Math.min(...rhythms.map((rhythm) => Math.abs(rhythm.period_days)));
  const wanted = Math.ceil((SAMPLES.perPeriod * (to - from)) / shortest);
  const samples = Math.max(2, Math.min(wanted, SAMPLES.most));
  let [low, high] = [Infinity, -Infinity];
  for (let sample = 0; sample <= samples; sample += 1) {
    const value = psiAt({ constant, rhythms }, from + ((to - from) * sample) / samples);
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return { mean: constant + meanBetween(rhythms, from, to), low, high };
}

/** Rhythms with the share of all power that each has; none where there is no power. */
export function sharesOf(rhythms) {
  const all = rhythms.reduce((sum, rhythm) => sum + rhythm.power, 0);
  return all > 0 ? rhythms.map((rhythm) => ({ ...rhythm, share: rhythm.power / all })) : [];
}

/**
 * Which rhythm before training became which: `[{before, after}]` in the order of their periods, which
 * they rarely overtake each other in; null where they are not equally many.
 */
export function movesOf(before, after) {
  if (before === null || before.length !== after.length) return null;
  const [from, to] = [before, after].map((rhythms) =>
    rhythms.toSorted((one, other) => Math.abs(one.period_days) - Math.abs(other.period_days)),
  );
  return from.map((rhythm, place) => ({ before: rhythm, after: to[place] }));
}

function sumAt(rhythms, interval) {
  return rhythms.reduce(
    (sum, { power, period_days: period }) => sum + power * Math.cos((TURN * interval) / period),
    0,
  );
}

function meanBetween(rhythms, from, to) {
  return rhythms.reduce((sum, { power, period_days: period }) => {
    const frequency = TURN / period;
    const turned = Math.sin(frequency * to) - Math.sin(frequency * from);
    return sum + (power * turned) / (frequency * (to - from));
  }, 0);
}

/** How far the sum may be off where periods are off by a relative error. */
function uncertainty(rhythms, interval, digits) {
  return rhythms.reduce(
    (sum, { power, period_days: period }) =>
      sum + power * Math.min(2, Math.abs((TURN * interval) / period) * digits),
    0,
  );
}
