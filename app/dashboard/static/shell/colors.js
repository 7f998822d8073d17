// @ts-check
/** The colours of the style sheet, for what pages paint themselves. */

const tokens = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => tokens.clear());

/** The value of a custom property of the style sheet, such as "--bar"; read once per scheme. */
export function cssColor(name) {
  if (!tokens.has(name)) {
    const style = getComputedStyle(document.documentElement);
    tokens.set(name, style.getPropertyValue(name).trim());
  }
  return tokens.get(name);
}

/** The doublings to either side on the colour scale: from a quarter to four times the uniform share. */
const DOUBLINGS = 2;
const LEVELS = 32;
/** @type {string[] | null} */
let liftColors = null;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  liftColors = null;
});

/**
 * The colour of a lift: the weight as a multiple of the uniform share. The scale is fixed, from a
 * quarter to four times, so that colours mean the same in every chart and frame.
 */
export function liftColor(lift) {
  liftColors ??= mixColors(["--lift-low", "--lift-even", "--lift-high"].map(cssColor));
  const position = (Math.log2(lift) + DOUBLINGS) / (2 * DOUBLINGS);
  return liftColors[Math.round(Math.min(1, Math.max(0, position)) * LEVELS)];
}

function mixColors(stops) {
  const canvas = Object.assign(document.createElement("canvas"), { width: LEVELS + 1, height: 1 });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const scale = context.createLinearGradient(0.5, 0, LEVELS + 0.5, 0);
  for (const [index, color] of stops.entries()) scale.addColorStop(index / (stops.length - 1), color);
  context.fillStyle = scale;
  context.fillRect(0, 0, LEVELS + 1, 1);
  const { data } = context.getImageData(0, 0, LEVELS + 1, 1);
  return Array.from({ length: LEVELS + 1 }, (_, index) => {
    const [red, green, blue] = data.slice(index * 4);
    return `rgb(${red}, ${green}, ${blue})`;
  });
}

/** Colours of actions. Neither brown nor red, which are near the orange of the point in time. */
const ACTION_SERIES = [1, 2, 3, 5, 6, 8];
/** Frequent actions, in the order of the styles; the others have what their name gives. */
const KNOWN_ACTIONS = ["purchase", "cancel", "view", "cart", "click", "other actions"];
/** Hatchings. Six colours and seven hatchings share no divisor: there are 42 styles. */
const ACTION_PATTERNS = ["", "/", "\\", "x", "-", "|", "."];

/**
 * The style of an action: the same for every item, whatever its other actions are.
 *
 * @param {string} name
 * @returns {{token: string, pattern: string}} the custom property with the colour, and the hatching
 *   as plotly.js names it
 */
export function actionStyle(name) {
  const known = KNOWN_ACTIONS.indexOf(name);
  const rest = ACTION_SERIES.length * ACTION_PATTERNS.length - KNOWN_ACTIONS.length;
  const index = known >= 0 ? known : KNOWN_ACTIONS.length + (hash(name) % rest);
  return {
    token: `--series-${ACTION_SERIES[index % ACTION_SERIES.length]}`,
    pattern: ACTION_PATTERNS[index % ACTION_PATTERNS.length],
  };
}

/** A number from a text (FNV-1a, 32 bits). */
function hash(text) {
  let sum = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
  return sum;
}
