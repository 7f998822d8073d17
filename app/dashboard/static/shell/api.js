// @ts-check
/** Calls the service's HTTP API. */

import { authorizationHeaders, forgetKey, heldKey, promptForKey } from "./key.js";

// A read key, then an admin key: no request needs more than two.
const MOST_KEYS = 2;

// Every page lies at <service>/dashboard/, whatever path a proxy puts the service under.
const SERVICE = new URL("../", document.baseURI);

/** A request that failed. `message` is the API's `detail` where it sent one. */
export class Problem extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, code?: string | null}} [answer] HTTP status (0: no answer) and the
   *   API's problem code
   */
  constructor(message, { status = 0, code = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * @typedef {object} ApiRequest a GET, or a POST with a body
 * @property {string} path from the service's root, such as "v1/models"
 * @property {Record<string, any>} [query]
 * @property {any} [body]
 */

/**
 * The address of a path of the service.
 *
 * @param {string} path
 * @param {Record<string, any>} [query] null, undefined and empty values are left out
 */
export function toUrl(path, query = {}) {
  const url = new URL(path, SERVICE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  return url.href;
}

/**
 * Sends a request and returns the response's JSON, as `call` does.
 *
 * @param {ApiRequest} request
 * @param {AbortSignal} [signal]
 */
export const sendRequest = ({ path, query, body }, signal) => call(path, { query, body, signal });

/**
 * Sends a request and returns the response's JSON. On 401 or 403 the user is prompted for a key and
 * the request is sent again.
 *
 * @param {string} path from the service's root, such as "v1/models"
 * @param {object} [options]
 * @param {Record<string, any>} [options.query] as `toUrl` takes it
 * @param {any} [options.body] sent as JSON
 * @param {string} [options.method] GET without a body, POST with one, unless given
 * @param {AbortSignal} [options.signal]
 * @param {number | null} [options.usable] a status of a response that is no failure, besides success
 * @returns {Promise<any>}
 * @throws {Problem} if the request failed; an `AbortError` if `signal` was aborted
 */
export async function call(path, { query = {}, body, method, signal, usable = null } = {}) {
  const url = toUrl(path, query);
  /** @type {RequestInit} */
  const request = { signal, method: method ?? (body === undefined ? "GET" : "POST") };
  if (body !== undefined) request.body = JSON.stringify(body);
  let outcome = await send(url, request, usable);
  for (let prompts = 0; prompts < MOST_KEYS && outcome.requiredRole !== null; prompts += 1) {
    if (!(await obtainAnotherKey(outcome))) break;
    signal?.throwIfAborted();
    outcome = await send(url, request, usable);
  }
  if (outcome.problem !== null) throw outcome.problem;
  return outcome.content;
}

/** Whether to send the request again: another key arrived meanwhile, or the user enters one. */
async function obtainAnotherKey({ sentAt, key, requiredRole, problem }) {
  if (heldKey() !== null && heldKey() !== key) return true;
  // Expired, or revoked.
  if (key !== null && problem.status === 401) forgetKey();
  return promptForKey(requiredRole, problem.message, sentAt);
}

/**
 * @param {string} url
 * @param {RequestInit} request
 * @param {number | null} usable
 */
async function send(url, request, usable) {
  const sentAt = performance.now();
  const key = heldKey();
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", ...authorizationHeaders() };
  if (request.body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, { ...request, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("the service cannot be reached; check that it runs, then try again");
  }
  const content = response.status === 204 ? {} : await response.json().catch(() => null);
  return { sentAt, key, content, ...classify(response, content, { request, usable }) };
}

/**
 * `problem` is null for a usable response; `requiredRole` is the role of the key to prompt for, null
 * where no key would help.
 */
function classify(response, content, { request, usable }) {
  const { status } = response;
  const isProblem = response.headers.get("Content-Type")?.startsWith("application/problem+json");
  const isUsable = response.ok || (status === usable && !isProblem);
  if (isUsable && content !== null) return { problem: null, requiredRole: null };
  const message = response.ok
    ? "the service sent something other than JSON"
    : (content?.detail ?? `the service answered with status ${status}`);
  const isRead = status === 401 || request.method === "GET";
  const requiredRole = status === 401 || status === 403 ? (isRead ? "read" : "admin") : null;
  return { problem: new Problem(message, { status, code: content?.code ?? null }), requiredRole };
}

/** Users whose ids start with `prefix`, ordered by id. */
export async function listUsers(prefix, limit, signal) {
  return (await call("v1/users", { query: { limit, prefix }, signal })).users;
}

/**
 * A user's newest stored events, oldest first, and how many are stored.
 *
 * @returns {Promise<{events: any[], stored: number}>}
 */
export async function readHistory(userId, limit, signal) {
  const path = `v1/users/${encodeURIComponent(userId)}`;
  const { events, stored_events: stored } = await call(path, { query: { limit }, signal });
  return { events: events.reverse(), stored };
}

/** The request for the published versions. */
export const LIST_MODELS = { path: "v1/models" };

/** The published versions, newest first. */
export async function listModels(signal) {
  return (await sendRequest(LIST_MODELS, signal)).models;
}

/** The request for one version: manifest, kernels, attention profile, epochs, clicks. */
export const modelRequest = (version) => ({ path: `v1/models/${encodeURIComponent(version)}` });

export const describeModel = (version, signal) => sendRequest(modelRequest(version), signal);

/**
 * Loads something once for all that need it; again after a failure.
 *
 * @template T
 * @param {() => Promise<T>} load
 * @returns {() => Promise<T>}
 */
export function once(load) {
  /** @type {Promise<T> | null} */
  let loading = null;
  return () => {
    loading ??= load().catch((error) => {
      loading = null;
      throw error;
    });
    return loading;
  };
}

/**
 * Sends the newest of a stream of requests, such as those of a slider that is dragged.
 *
 * The first request is sent at once. Later ones wait for a short pause; one is in flight at a time,
 * and of those that arrive meanwhile only the newest is sent. The display keeps following without
 * flooding the service, and an older response never replaces a newer one.
 */
export class LatestRequest {
  #send;
  #show;
  #fail;
  #pause;
  #waiting = null;
  /** @type {any} */
  #timer = null;
  /** @type {AbortController | null} */
  #inFlight = null;
  #sentAt = -Infinity;

  /**
   * @param {object} options
   * @param {(request: any, signal: AbortSignal) => Promise<any>} options.send
   * @param {(response: any, request: any) => void} options.show
   * @param {(error: Error, request: any) => void} options.fail
   * @param {number} [options.pause] milliseconds between two requests
   */
  constructor({ send, show, fail, pause = 60 }) {
    this.#send = send;
    this.#show = show;
    this.#fail = fail;
    this.#pause = pause;
  }

  /** Whether nothing waits and nothing is in flight. */
  get isIdle() {
    return this.#waiting === null && this.#inFlight === null;
  }

  /** Send this next, in place of the request that waits. */
  request(request) {
    this.#waiting = request;
    if (this.#inFlight) return;
    const rest = this.#sentAt + this.#pause - performance.now();
    this.#timer ??= setTimeout(() => this.#sendWaiting(), Math.max(0, rest));
  }

  /** Drop the request that waits, and abort the one in flight. */
  cancel() {
    clearTimeout(this.#timer);
    this.#timer = this.#waiting = null;
    this.#inFlight?.abort();
    this.#inFlight = null;
  }

  async #sendWaiting() {
    this.#timer = null;
    this.#sentAt = performance.now();
    const request = this.#waiting;
    this.#waiting = null;
    const controller = new AbortController();
    this.#inFlight = controller;
    try {
      const response = await this.#send(request, controller.signal);
      if (this.#inFlight === controller) this.#show(response, request);
    } catch (error) {
      if (this.#inFlight === controller) this.#fail(error, request);
    }
    if (this.#inFlight !== controller) return;
    this.#inFlight = null;
    if (this.#waiting) this.request(this.#waiting);
  }
}
