// @ts-check
/** What is pointed at or pinned, and its partners in the other cards. */

import { parseInstant } from "../shell/instants.js";

/**
 * @typedef {{kind: "item", itemId: string} | {kind: "basket", at: number} |
 *   {kind: "event", at: number, itemId: string}} Target
 */

/** The target under the pointer or focus, and the one that stays until another is pinned. */
export class Linked {
  /** @type {Target | null} */
  #hovered = null;
  /** @type {Target | null} */
  #pinned = null;
  #change;
  #keep;

  /**
   * @param {object} options
   * @param {() => void} options.change called whenever the target changes
   * @param {(pinned: Target | null) => void} options.keep called when another one is pinned
   */
  constructor({ change, keep }) {
    this.#change = change;
    this.#keep = keep;
  }

  /** The target whose partners are highlighted: the hovered one, or else the pinned one. */
  get target() {
    return this.#hovered ?? this.#pinned;
  }

  get pinned() {
    return this.#pinned;
  }

  hover(target) {
    if (isSame(target, this.#hovered)) return;
    this.#hovered = target;
    this.#change();
  }

  /** Pins a target, or unpins it if it is pinned already. */
  toggle(target) {
    this.pin(isSame(target, this.#pinned) ? null : target);
  }

  pin(target) {
    this.restore(target);
    this.#keep(target);
  }

  /** Pins the target of a link, without writing it back. */
  restore(target) {
    this.#pinned = target;
    this.#hovered = null;
    this.#change();
  }

  /** Whether an item is the target, or among its events. */
  hasItem(itemId, sweep) {
    const { target } = this;
    if (target === null) return false;
    if (target.kind !== "basket") return target.itemId === itemId;
    const basket = sweep?.baskets.find(({ at }) => at === target.at);
    if (!basket) return false;
    for (let index = basket.first; index < basket.end; index += 1) {
      if (sweep.events[index].itemId === itemId) return true;
    }
    return false;
  }

  /** Whether a row of events of one instant is the target, or holds the target's item. */
  hasEvents({ first, end, isEvent }, sweep) {
    const { target } = this;
    if (target === null) return false;
    if (target.kind !== "item" && target.at !== sweep.events[first].at) return false;
    if (target.kind === "basket") return !isEvent;
    for (let index = first; index < end; index += 1) {
      if (sweep.events[index].itemId === target.itemId) return true;
    }
    return false;
  }
}

export const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** A target as the text of a link, such as "item:sku-1". */
export function writeTarget(target) {
  const at = "at" in target ? new Date(target.at).toISOString() : "";
  if (target.kind === "item") return `item:${target.itemId}`;
  return target.kind === "basket" ? `basket:${at}` : `event:${at}:${target.itemId}`;
}

/**
 * The target of a text of `writeTarget`.
 *
 * @returns {Target | undefined} undefined if it is invalid
 */
export function readTarget(text) {
  const [, kind, rest] = /^(item|basket|event):(.+)$/s.exec(text) ?? [];
  if (kind === "item") return { kind, itemId: rest };
  const [, instant, itemId] = /^([^Z]+Z)(?::(.+))?$/s.exec(rest ?? "") ?? [];
  const at = parseInstant(instant);
  if (Number.isNaN(at)) return undefined;
  if (kind === "basket") return { kind, at };
  return itemId === undefined ? undefined : { kind: "event", at, itemId };
}
