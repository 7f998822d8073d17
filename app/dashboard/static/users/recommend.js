/** One question to the service. */

import { call } from "../shell/api.js";

/** The top-n of a user at an instant (milliseconds since 1970), with the weights of every head. */
export function recommend({ user, query_time: at, n, exclude_seen, query_time_withheld }, signal) {
  const body = {
    user_id: user,
    query_time: new Date(at).toISOString(),
    n,
    exclude_seen,
    query_time_withheld,
    explain: "heads",
  };
  return call("v1/recommendations", { body, signal });
}
