/** How sure a share of clicks is. */

const Z = 1.959964;

/** Wilson's 95 % interval of a share, `[from, to]`, that `hits` of `trials` tell of. */
export function wilson(hits, trials) {
  const share = hits / trials;
  const weight = 1 + Z ** 2 / trials;
  const center = (share + Z ** 2 / (2 * trials)) / weight;
  const reach = (Z / weight) * Math.sqrt((share * (1 - share)) / trials + Z ** 2 / (4 * trials ** 2));
  return [Math.max(0, center - reach), Math.min(1, center + reach)];
}
