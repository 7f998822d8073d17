// @ts-check
/** Why an item is recommended: the parts of its score, as a stacked bar and in words. */

import { html, nothing } from "../shell/html.js";

/** Parts with smaller shares, and terms with smaller effects, are not named. */
const LEAST_SHARE = 0.005;
const LEAST_EFFECT = 0.05;

/**
 * @typedef {object} Part of the API's `parts`, largest first
 * @property {"base" | "repeats" | "followers"} name
 * @property {number} share
 * @property {{name: string, effect: number}[]} terms
 */

/**
 * The parts of an item's score. The bar has the order and the colours of the words.
 *
 * @param {Part[] | null} parts null while they are not known, for an empty line of the same height
 */
export function scoreParts(parts) {
  const named = (parts ?? []).filter((part) => part.share >= LEAST_SHARE);
  const widths = new Map(named.map((part) => [part.name, 100 * part.share]));
  let begin = 0;
  const begins = new Map();
  for (const [name, width] of widths) {
    begins.set(name, begin);
    begin += width;
  }
  const x = (name) => begins.get(name) ?? 0;
  const width = (name) => widths.get(name) ?? 0;
  // One rectangle per name: nested templates would not be in the namespace of SVG.
  return html`<span class="note block score-parts">
    <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
      <rect class="base" x=${x("base")} width=${width("base")} height="1"></rect>
      <rect class="repeats" x=${x("repeats")} width=${width("repeats")} height="1"></rect>
      <rect class="followers" x=${x("followers")} width=${width("followers")} height="1"></rect>
    </svg>
    ${named.length ? named.map((part, index) => describePart(part, index)) : "\u00a0"}
  </span>`;
}

/** A part with its share; the base with its terms too, where it is the largest part. */
function describePart({ name, share, terms }, index) {
  const effects = terms
    .filter((term) => Math.abs(term.effect) >= LEAST_EFFECT)
    .map((term) => `${term.name}\u00a0${formatEffect(term.effect)}`);
  const inBrackets = index === 0 && effects.length ? ` (${effects.join(", ")})` : nothing;
  return html`${index ? ", " : nothing}<span class=${name}
      >${name}\u00a0${Math.round(100 * share)}\u00a0%</span
    >${inBrackets}`;
}

const formatEffect = (effect) => `${effect < 0 ? "−" : "+"}${Math.abs(effect).toFixed(1)}`;
