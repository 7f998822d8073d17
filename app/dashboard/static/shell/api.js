/** The service's HTTP API, as the pages ask it. */

import { askForKey, authorization, forgetKey, keyHeld } from "./key.js";

// A key that reads, then one that may change things: no request needs more than two.
const MOST_KEYS = 2;

// Every page lies at <service>/dashboard/, whatever path a proxy puts the service under.
const SERVICE = new URL("../", document.baseURI);

/** A request that failed, in the words of the service where it said any; `code` is the API's. */
export class Problem extends Error {
  constructor(message, { status = 0, code = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * Ask the service: `path` from its root, `query` and `body` as plain objects (nulls of the query are
 * left out). Where it wants a key, the reader is asked for one and the request sent again.
 *
 * Throws a `Problem`, or an `AbortError` once `signal` says so.
 */
export async function call(path, { query = {}, body, method, signal } = {}) {
  const url = new URL(path, SERVICE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  const request = { signal, method: method ?? (body === undefined ? "GET" : "POST") };
  if (body !== undefined) request.body = JSON.stringify(body);
  let answer = await send(url, request);
  for (let asked = 0; asked < MOST_KEYS && answer.refused !== null; asked += 1) {
    if (!(await anotherKeyIsHeld(answer))) break;
    signal?.throwIfAborted();
    answer = await send(url, request);
  }
  if (answer.problem !== null) throw answer.problem;
  return answer.content;
}

/** Whether it is worth sending again: the reader is asked unless a key came while the request ran. */
async function anotherKeyIsHeld({ sentAt, key, refused, problem }) {
  if (keyHeld() !== null && keyHeld() !== key) return true;
  // Expired, or revoked.
  if (key !== null && problem.status === 401) forgetKey();
  return askForKey(refused, problem.message, sentAt);
}

/** Part of a path, whatever an id holds. */
export const part = (id) => id.split("/").map(encodeURIComponent).join("/");

async function send(url, request) {
  const sentAt = performance.now();
  const key = keyHeld();
  const headers = { Accept: "application/json", ...authorization() };
  if (request.body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, { ...request, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("the service cannot be reached; check that it runs, then try again");
  }
  const content = response.status === 204 ? {} : await response.json().catch(() => null);
  return { sentAt, key, content, ...judged(response, content, request) };
}

/** `problem` is null for an answer that can be used; `refused` is the role that may be let in. */
function judged(response, content, request) {
  const { status } = response;
  if (response.ok && content !== null) return { problem: null, refused: null };
  const said = response.ok
    ? "the service sent something other than JSON"
    : (content?.detail ?? `the service answered with status ${status}`);
  const reads = status === 401 || request.method === "GET";
  const refused = status === 401 || status === 403 ? (reads ? "read" : "admin") : null;
  return { problem: new Problem(said, { status, code: content?.code ?? null }), refused };
}

/** Users whose ids start with `prefix`, by id. */
export async function listUsers(prefix, limit, signal) {
  return (await call("v1/users", { query: { limit, prefix }, signal })).users;
}

/** A user's newest stored events, oldest first. */
export async function readHistory(userId, limit, signal) {
  const path = `v1/users/${encodeURIComponent(userId)}`;
  return (await call(path, { query: { limit }, signal })).events.reverse();
}

/** The published versions, newest first. */
export async function listModels(signal) {
  return (await call("v1/models", { signal })).models;
}

/** One version: manifest, kernels, attention profile, epochs, clicks, and what is missing. */
export const describeModel = (version, signal) =>
  call(`v1/models/${encodeURIComponent(version)}`, { signal });
