/** What the service tells of its versions, asked for in parallel. */

import { call, describeModel, listModels } from "../shell/api.js";

const MOST_CHANGES = 1000;
const MOST_RUNS = 200;
/** A description opens the bundle, so that not all of a long list are asked for at once. */
const DESCRIBED_AT_ONCE = 3;

/** The published versions, who answers beside the current one, the audit trail and the runs. */
export async function readServing(signal) {
  const [models, traffic, { changes }, { runs }] = await Promise.all([
    listModels(signal),
    call("v1/models/traffic", { signal }),
    call("v1/models/changes", { query: { limit: MOST_CHANGES }, signal }),
    call("v1/training-runs", { query: { limit: MOST_RUNS }, signal }),
  ]);
  return { models, traffic, changes, runs };
}

/**
 * Descriptions of versions, a few at a time; `tell(version, description)` as each arrives. One that
 * cannot be described is left out: why is told where versions are listed or opened.
 */
export async function describeAll(versions, tell, signal) {
  const waiting = [...versions];
  const work = async () => {
    while (waiting.length > 0) {
      const version = waiting.shift();
      tell(version, await describeModel(version, signal).catch(leftOut));
    }
  };
  await Promise.all(Array.from({ length: DESCRIBED_AT_ONCE }, work));
}

function leftOut(error) {
  // Deleted or altered since it was listed; anything else is of interest to the whole page.
  if (error.status === 404 || error.status === 409) return null;
  throw error;
}
