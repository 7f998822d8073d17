// @ts-check
/** The picture of a card: its title, its chart or a table of its numbers, and what they are of. */

import { shorten } from "../shell/canvas_chart.js";
import { cssColor } from "../shell/colors.js";
import { SvgContext } from "./svg_context.js";
import { columnsOf } from "./take_away_text.js";

/**
 * @typedef {object} Drawing what a chart looks like
 * @property {number} width in pixels
 * @property {number} height
 * @property {(context: any) => void} paint takes an `SvgContext` whose origin is the corner of the chart
 *
 * @typedef {{toDrawing: () => Drawing | Promise<Drawing>}} Drawable a chart
 * @typedef {{text: string, width: number, height: number}} Svg
 */

const FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
const TITLE = { font: `600 15px ${FONT}`, color: "--text", line: 24 };
const CAPTION = { font: `12px ${FONT}`, color: "--quiet", line: 17 };
const CELL = `13px ${FONT}`;
const MARGIN = 16;
const GAP = 8;
/** Of the content, in pixels. */
const LEAST_WIDTH = 480;
/** Of a PNG file: sharp on a screen with two pixels per CSS pixel. */
const SCALE = 2;

/**
 * Draws a card.
 *
 * @param {{title: string, caption?: string, chart: Drawable | null, rows: Record<string, any>[]}} taken
 * @returns {Promise<Svg>}
 */
export async function toSvg({ title, caption = "", chart, rows }) {
  const { width: own, height, paint } = chart === null ? drawTable(rows) : await chart.toDrawing();
  const rest = chart === null && rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${rows.length} rows. ` : "";
  const width = Math.max(own, LEAST_WIDTH);
  const above = layOut(title, TITLE, width);
  const below = layOut(`${rest}${caption}`.trim(), CAPTION, width);
  const size = {
    width: width + 2 * MARGIN,
    height: height + above.height + below.height + 2 * (MARGIN + GAP),
  };
  const context = new SvgContext(size);
  context.fillStyle = cssColor("--card");
  context.fillRect(0, 0, size.width, size.height);
  context.translate(MARGIN, MARGIN);
  above.paint(context);
  context.translate(0, above.height + GAP);
  context.save();
  paint(context);
  context.restore();
  context.translate(0, height + GAP);
  below.paint(context);
  return { ...size, text: context.toText() };
}

/**
 * Draws a document onto the pixels of a PNG file.
 *
 * @param {Svg} svg
 * @returns {Promise<Blob>}
 */
export async function toPng({ text, width, height }) {
  const image = new Image();
  // The policy of the pages allows images from `data:` addresses, not from `blob:` ones.
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * SCALE);
  canvas.height = Math.round(height * SCALE);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser cannot make a picture of this size"))));
  });
}

/** A text in lines of at most a width. */
function layOut(text, { font, color, line }, width) {
  const lines = text === "" ? [] : breakLines(text, font, width);
  return {
    height: lines.length * line,
    paint: (context) => {
      Object.assign(context, { font, fillStyle: cssColor(color), textAlign: "left" });
      lines.forEach((one, index) => {
        context.fillText(one, 0, (index + 0.5) * line, width);
      });
    },
  };
}

function breakLines(text, font, width) {
  const context = measuring(font);
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const longer = `${lines[lines.length - 1]} ${word}`.trimStart();
    if (context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.filter((line) => line !== "");
}

/** A context that measures texts of a font. */
function measuring(font) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  context.font = font;
  return context;
}

const ROW = 20;
const BETWEEN = 18;
const WIDEST_COLUMN = 330;
const MOST_ROWS = 50;

/**
 * A table of the first rows.
 *
 * @returns {Drawing}
 */
function drawTable(rows) {
  const columns = columnsOf(rows);
  const context = measuring(CELL);
  const fit = (text) => shorten(context, text, WIDEST_COLUMN);
  const lines = [columns, ...rows.slice(0, MOST_ROWS).map((row) => columns.map((name) => toText(row[name])))].map(
    (cells) => cells.map(fit),
  );
  const widths = columns.map((_, index) =>
    Math.max(...lines.map((cells) => context.measureText(cells[index]).width)),
  );
  return {
    width: widths.reduce((sum, width) => sum + width + BETWEEN, 0),
    height: lines.length * ROW,
    paint: (target) => {
      Object.assign(target, { font: CELL, textAlign: "left" });
      lines.forEach((cells, line) => {
        let x = 0;
        target.fillStyle = cssColor(line === 0 ? "--quiet" : "--text");
        cells.forEach((text, index) => {
          target.fillText(text, x, (line + 0.5) * ROW);
          x += widths[index] + BETWEEN;
        });
      });
    },
  };
}

const toText = (value) =>
  value === null || value === undefined
    ? ""
    : typeof value === "number" && !Number.isInteger(value)
      ? String(Number(value.toPrecision(6)))
      : String(value);
