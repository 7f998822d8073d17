/** How curves are told apart: by colour, and by the shape of their points. */

import { color, seriesToken } from "../shell/palette.js";

// Seven shapes and eight colours share no divisor: the first 56 names all look different.
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x"];

/** The symbols of plotly.js as letters, for legends. */
export const LETTERS = {
  circle: "●",
  square: "■",
  diamond: "◆",
  "triangle-up": "▲",
  "triangle-down": "▼",
  cross: "✚",
  x: "✖",
  "square-open": "□",
  "circle-open": "○",
};

/**
 * A style per name, the same wherever the same list of names is drawn: `{token, symbol}`, the custom
 * property of its colour and the name of its shape, as plotly.js knows it.
 */
export const seriesStyles = (names) =>
  new Map(
    names.map((name, place) => [
      name,
      { token: seriesToken(place), symbol: SYMBOLS[place % SYMBOLS.length] },
    ]),
  );

/** The colour of a style, as it is now. */
export const colorOf = (style) => color(style.token);
