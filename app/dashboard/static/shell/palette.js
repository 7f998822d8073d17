/** The colours of the style sheet, for what is drawn rather than styled. */

/** The value of a custom property, such as "--bar". */
export const color = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const SERIES = 8;

/** The custom property that holds the colour of the name at a place of a list. */
export const seriesToken = (place) => `--series-${(place % SERIES) + 1}`;

/**
 * A colour per name: the same one wherever the same list of names is drawn. After eight names the
 * colours begin again, so whatever draws more than eight at once must tell them apart otherwise.
 */
export function seriesColors(names) {
  return new Map(names.map((name, place) => [name, color(seriesToken(place))]));
}

/** A colour with an opacity, for bands: any colour CSS understands becomes an rgba. */
export function faded(css, opacity) {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = css;
  const [red, green, blue] = canvas.fillStyle.match(/[0-9a-f]{2}/gi).map((hex) => parseInt(hex, 16));
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}

/** From the card's own colour to a strong one: what a heat map runs through. */
export const heatScale = () => [
  [0, color("--heat-0")],
  [0.25, color("--heat-1")],
  [0.5, color("--heat-2")],
  [1, color("--heat-3")],
];
