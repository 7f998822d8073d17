/** Which version is worth comparing another with. */

/**
 * The version to compare `chosen` with unless the reader says otherwise: the one a retraining run
 * measured it against, the current one, or the next best. Null where there is no other.
 */
export function opponentOf(chosen, { models, runs }) {
  const others = models.filter((model) => model.version !== chosen && model.refused === null);
  const isThere = (version) => others.some((model) => model.version === version);
  const measured = runs.find((run) => run.candidate === chosen && isThere(run.champion));
  if (measured) return measured.champion;
  const current = others.find((model) => model.is_current);
  if (current) return current.version;
  const challenging = runs.find((run) => run.champion === chosen && isThere(run.candidate));
  return challenging?.candidate ?? others[0]?.version ?? null;
}
