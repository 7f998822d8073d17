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
