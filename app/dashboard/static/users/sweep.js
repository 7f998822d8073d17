/** One history at many instants: what a single request for a sweep was answered. */

import { SECOND } from "../shell/format.js";

const MOST_INSTANTS = 200;

/** Evenly spaced instants over a span, on whole seconds: where the slider stops. */
export function instantsOver({ first, end }) {
  const count = Math.max(2, Math.min(MOST_INSTANTS, Math.floor((end - first) / SECOND) + 1));
  const step = (end - first) / (count - 1);
  return Array.from(
    { length: count },
    (_, place) => Math.ceil((first + place * step) / SECOND) * SECOND,
  );
}

export class Sweep {
  #answer;
  #places;

  /**
   * `instants` are milliseconds, as they were asked about; `events` those read at any of them, with
   * the weights that `POST /v1/attention` answers: `weightsOf(event)` runs along the instants.
   */
  constructor(answer, instants) {
    this.#answer = answer;
    this.instants = instants;
    this.#places = new Map(instants.map((at, place) => [at, place]));
    this.events = answer.events.map((event) => ({
      itemId: event.item_id,
      action: event.action,
      at: Date.parse(event.timestamp),
    }));
  }

  get version() {
    return this.#answer.model_version;
  }

  /** Whether the model attends, so that there is something to draw. */
  get hasWeights() {
    return this.#answer.instants.some((instant) => instant.weights !== null);
  }

  /** Titles and categories of whatever was read or recommended. */
  get named() {
    return [...this.#answer.events, ...this.#answer.instants.flatMap((instant) => instant.items)];
  }

  /** The place of an instant among those swept, or null where it is none of them. */
  placeOf(at) {
    return this.#places.get(at) ?? null;
  }

  /** Events by instants: null before the event, 0 where the model no longer read it. */
  get matrix() {
    const instants = this.#answer.instants;
    return this.events.map((_, row) => instants.map((instant) => instant.weights?.[row] ?? null));
  }

  /** What `POST /v1/recommendations` would answer at a place, without heads. */
  answerAt(place) {
    const { query_time, weights, history_used, fallback, items, warnings } =
      this.#answer.instants[place];
    return {
      model_version: this.version,
      query_time,
      history_used,
      fallback,
      items,
      warnings: [...warnings, ...this.#unavailable],
      unknown_item_ids: this.#answer.unknown_item_ids,
      attention: weights === null ? null : this.#attentionAt(place, weights, history_used),
    };
  }

  get #unavailable() {
    return this.#answer.warnings.filter((code) => code === "attention_unavailable");
  }

  #attentionAt(place, weights, used) {
    const happened = weights.flatMap((weight, row) => (weight === null ? [] : [row]));
    // A model reads the most recent events; those before them weigh 0 in a sweep.
    const events = happened.slice(happened.length - used).map((row) => ({
      ...this.#answer.events[row],
      age_seconds: (this.instants[place] - this.events[row].at) / SECOND,
      weight: weights[row],
    }));
    return { normalised: this.#answer.normalised, events, heads: null };
  }
}
