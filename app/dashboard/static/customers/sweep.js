// @ts-check
/** One history at many query times: a response of `POST /v1/attention` with `weights_of: "read"`. */

/**
 * @typedef {{itemId: string, action: string | null, at: number}} Event `at` in milliseconds
 *
 * @typedef {object} Basket the events of one instant
 * @property {number} at
 * @property {number} first the index of its first event
 * @property {number} end the index after its last event
 */

export class Sweep {
  #answer;
  #indices;
  /** Lifts by range of events, an array over the instants each. */
  #lifts = new Map();
  /** @type {Map<string, (number | null)[]> | null} */
  #ranks = null;

  /**
   * @param {any} answer
   * @param {number[]} instants as they were requested, ascending
   */
  constructor(answer, instants) {
    this.#answer = answer;
    this.instants = instants;
    this.#indices = new Map(instants.map((at, index) => [at, index]));
    /** @type {Event[]} those read at any of the instants */
    this.events = answer.events.map((event) => ({
      itemId: event.item_id,
      action: event.action,
      at: Date.parse(event.timestamp),
    }));
    /** @type {Basket[]} */
    this.baskets = groupBaskets(this.events);
  }

  get version() {
    return this.#answer.model_version;
  }

  /** Whether there are weights to draw. */
  get hasWeights() {
    return this.#answer.instants.some((instant) => instant.weights !== null);
  }

  get unknownItemIds() {
    return this.#answer.unknown_item_ids;
  }

  /** Items with titles and categories: those read or recommended. */
  get named() {
    return [...this.#answer.events, ...this.#answer.instants.flatMap((instant) => instant.items)];
  }

  /** The index of an instant, or null if it was not swept. */
  indexAt(at) {
    return this.#indices.get(at) ?? null;
  }

  /** The index of the swept instant that is nearest to an instant. */
  nearest(at) {
    const after = this.instants.findIndex((instant) => instant >= at);
    if (after < 0) return this.instants.length - 1;
    const isBefore = after > 0 && at - this.instants[after - 1] < this.instants[after] - at;
    return isBefore ? after - 1 : after;
  }

  /** What the API answers at one instant: items, history_used, fallback, warnings. */
  at(index) {
    return this.#answer.instants[index];
  }

  /**
   * The weight of a range of events at one instant, and how many of them were read.
   *
   * @param {number} index of the instant
   * @param {{first: number, end: number}} range of events
   */
  weightAt(index, range) {
    return sumWeights(this.#answer.instants[index], range);
  }

  /**
   * The lift of a range of events at one instant: their mean weight over that of all events read.
   *
   * @returns {number | null} null where none of them was read
   */
  liftAt(index, { first, end }) {
    return this.lifts({ first, end })[index];
  }

  /**
   * The lifts of a range of events over all instants.
   *
   * @param {{first: number, end: number}} range
   * @returns {(number | null)[]}
   */
  lifts(range) {
    const key = `${range.first}-${range.end}`;
    if (!this.#lifts.has(key)) {
      this.#lifts.set(key, this.#answer.instants.map((instant) => liftOf(instant, range)));
    }
    return this.#lifts.get(key);
  }

  /**
   * The ranks of each item over all instants, null where it is not among the items.
   *
   * @returns {Map<string, (number | null)[]>} by item id
   */
  get ranks() {
    if (this.#ranks === null) {
      this.#ranks = new Map();
      this.#answer.instants.forEach(({ items }, index) => {
        for (const { item_id: itemId, rank } of items) {
          let ranks = this.#ranks?.get(itemId);
          if (ranks === undefined) {
            ranks = new Array(this.instants.length).fill(null);
            this.#ranks?.set(itemId, ranks);
          }
          ranks[index] = rank;
        }
      });
    }
    return this.#ranks;
  }

  /**
   * The baskets over a span of instants, by how far their mean share of the attention exceeds an
   * even one, largest first: a basket of fifty has a large share for its size alone.
   *
   * @param {number} from the index of the first instant
   * @param {number} until that of the last one
   * @returns {{basket: Basket, weight: number, lift: number}[]} without those that were not read
   */
  rankBaskets(from, until) {
    const shares = this.baskets.map((basket) => ({ basket, ...this.meanOver(from, until, basket) }));
    const excess = ({ weight, lift }) => weight - weight / lift;
    return shares.filter(({ lift }) => lift > 0).sort((one, other) => excess(other) - excess(one));
  }

  /** The mean weight and lift of a range of events over a span of instants; 0 where it was not read. */
  meanOver(from, until, range) {
    let [weight, lift, read] = [0, 0, 0];
    const lifts = this.lifts(range);
    for (let index = from; index <= until; index += 1) {
      weight += this.weightAt(index, range).weight;
      if (lifts[index] !== null) read += 1;
      lift += lifts[index] ?? 0;
    }
    return { weight: weight / (until - from + 1), lift: read === 0 ? 0 : lift / read };
  }
}

/** Groups events, oldest first, by instant. */
function groupBaskets(events) {
  /** @type {Basket[]} */
  const baskets = [];
  events.forEach(({ at }, index) => {
    const last = baskets.at(-1);
    if (last !== undefined && last.at === at) last.end = index + 1;
    else baskets.push({ at, first: index, end: index + 1 });
  });
  return baskets;
}

function sumWeights({ first_event: start, weights, history_used: used }, { first, end }) {
  const from = Math.max(first, start);
  const until = Math.min(end, start + used);
  let weight = 0;
  if (weights !== null) for (let index = from; index < until; index += 1) weight += weights[index - start];
  return { weight, read: Math.max(0, until - from) };
}

function liftOf(instant, range) {
  const { weights, history_used: used } = instant;
  if (weights === null || used === 0) return null;
  const { weight, read } = sumWeights(instant, range);
  if (read === 0) return null;
  // Of modulated attention the weights do not sum to 1.
  instant.sum ??= weights.reduce((sum, one) => sum + one, 0);
  return instant.sum === 0 ? null : weight / read / (instant.sum / used);
}
