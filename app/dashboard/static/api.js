/** The service's HTTP API, as far as this page needs it. */

// The page lies at <service>/dashboard/, whatever path a proxy puts the service under.
const SERVICE = new URL("../", document.baseURI);

/** A request that failed, in the words of the service where it said any. */
export class Problem extends Error {}

/** Users whose ids start with `prefix`, by id. */
export async function listUsers(prefix, limit, signal) {
  const query = new URLSearchParams({ limit });
  if (prefix) query.set("prefix", prefix);
  return (await call(`v1/users?${query}`, { signal })).users;
}

/** A user's newest stored events, oldest first. */
export async function readHistory(userId, limit, signal) {
  const path = encodeURIComponent(userId);
  const history = await call(`v1/users/${path}?${new URLSearchParams({ limit })}`, { signal });
  return history.events.reverse();
}

/** The top-n of a user at an instant (epoch milliseconds), with the weights of every head. */
export function recommend({ user, at, n, excludeSeen, withheld }, signal) {
  const body = {
    user_id: user,
    query_time: new Date(at).toISOString(),
    n,
    exclude_seen: excludeSeen,
    query_time_withheld: withheld,
    explain: "heads",
  };
  return call("v1/recommendations", { body, signal });
}

async function call(path, { body, signal }) {
  const request = { signal, headers: { Accept: "application/json" } };
  if (body !== undefined) {
    request.method = "POST";
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(new URL(path, SERVICE), request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("the service cannot be reached; check that it runs, then try again");
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok) {
    throw new Problem(answer?.detail ?? `the service answered with status ${response.status}`);
  }
  if (answer === null) throw new Problem("the service sent something other than JSON");
  return answer;
}
