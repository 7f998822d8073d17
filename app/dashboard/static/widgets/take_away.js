// @ts-check
/** A menu that takes a card away: a picture, its numbers, the request behind it, a link. */

import { cssColor } from "../shell/colors.js";
import { byId, html, nothing, render } from "../shell/html.js";
import { announce } from "../shell/page.js";
import { SvgContext } from "./svg_context.js";

const SERVICE = new URL("../", document.baseURI).href.replace(/\/$/, "");
const PICTURE = { scale: 2, margin: 16, title: 28, row: 20, width: 900 };
const TEXT = "13px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";

/**
 * @typedef {object} Taken what can be taken away
 * @property {string} title of the picture
 * @property {string} name of the files, without a suffix
 * @property {import("../shell/canvas_chart.js").CanvasChart | null} chart null: the picture is a table
 * @property {Record<string, any>[]} rows the numbers, by column
 * @property {{path: string, body: any} | null} request
 */

/** Fills the element `.take-away` of a card. */
export class TakeAway {
  #menu = document.createElement("details");
  #take;

  /**
   * @param {any} card
   * @param {() => Taken | null} take returns what is on display; null where there is nothing
   */
  constructor(card, take) {
    this.#take = take;
    this.#menu.className = "menu";
    card.querySelector(".take-away").append(this.#menu);
    const actions = /** @type {[string, (taken: Taken) => any][]} */ ([
      ["Picture (PNG)", savePng],
      ["Picture (SVG)", saveSvg],
      ["Numbers (CSV)", saveCsv],
      ["Request as curl", (taken) => showText("The request as curl", toCurl(taken.request))],
      ["Request as Python", (taken) => showText("The request as Python", toPython(taken.request))],
      ["Link to this view", () => showText("A link to this view", location.href)],
    ]);
    render(
      html`<summary>Take away</summary>
        <ul>${actions.map(
          ([label, act]) => html`<li><button type="button" @click=${() => this.#run(act)}>${label}</button></li>`,
        )}</ul>`,
      this.#menu,
    );
    document.addEventListener("pointerdown", (event) => {
      if (!this.#menu.contains(/** @type {Node} */ (event.target))) this.#menu.open = false;
    });
    this.#menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.#menu.open = false;
      this.#menu.querySelector("summary")?.focus();
    });
  }

  #run(act) {
    this.#menu.open = false;
    const taken = this.#take();
    if (taken === null) announce("There is nothing to take away yet.");
    else act(taken);
  }
}

/** Paints a card onto a context of the size of `sizeOf`. */
function paint(context, taken) {
  const { width, height } = sizeOf(taken);
  context.fillStyle = cssColor("--card");
  context.fillRect(0, 0, width, height);
  context.fillStyle = cssColor("--text");
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.font = `600 ${TEXT}`;
  context.fillText(taken.title, PICTURE.margin, PICTURE.margin + 6);
  context.save();
  context.translate(PICTURE.margin, PICTURE.margin + PICTURE.title);
  if (taken.chart !== null) taken.chart.paintOn(context);
  else paintTable(context, taken.rows);
  context.restore();
}

function sizeOf({ chart, rows }) {
  const { width, height } =
    chart === null
      ? { width: PICTURE.width, height: (rows.length + 1) * PICTURE.row }
      : chart.size;
  return {
    width: width + 2 * PICTURE.margin,
    height: height + 2 * PICTURE.margin + PICTURE.title,
  };
}

function paintTable(context, rows) {
  const columns = Object.keys(rows[0] ?? {});
  context.font = TEXT;
  const widths = columns.map((name) =>
    Math.max(...[name, ...rows.map((row) => toText(row[name]))].map((text) => context.measureText(text).width)),
  );
  const scale = Math.min(1, PICTURE.width / (widths.reduce((sum, width) => sum + width + 16, 0) || 1));
  [Object.fromEntries(columns.map((name) => [name, name])), ...rows].forEach((row, line) => {
    let x = 0;
    columns.forEach((name, index) => {
      context.fillStyle = cssColor(line === 0 ? "--quiet" : "--text");
      context.fillText(toText(row[name]), x, (line + 0.5) * PICTURE.row, widths[index] * scale);
      x += (widths[index] + 16) * scale;
    });
  });
}

const toText = (value) =>
  value === null || value === undefined
    ? ""
    : typeof value === "number" && !Number.isInteger(value)
      ? value.toPrecision(6)
      : String(value);

function savePng(taken) {
  const { width, height } = sizeOf(taken);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * PICTURE.scale);
  canvas.height = Math.round(height * PICTURE.scale);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(PICTURE.scale, PICTURE.scale);
  paint(context, taken);
  canvas.toBlob((blob) => blob && save(blob, `${taken.name}.png`));
}

function saveSvg(taken) {
  const context = new SvgContext(sizeOf(taken));
  paint(context, taken);
  save(new Blob([context.toText()], { type: "image/svg+xml" }), `${taken.name}.svg`);
}

function saveCsv({ rows, name }) {
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  const text = lines.map((cells) => cells.map(toCell).join(",")).join("\r\n");
  // Excel reads a text as UTF-8 if it begins with this mark.
  save(new Blob([`\ufeff${text}\r\n`], { type: "text/csv" }), `${name}.csv`);
}

/** A cell of a CSV file. Spreadsheets would run a text that begins like a formula. */
export function toCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  announce(`${name} is saved.`);
}

const KEY = "$KAIROS_API_KEY";

/** A request as a command for a shell. The key stands in a variable: it is in no picture and no text. */
function toCurl(request) {
  if (request === null) return "There is no request behind this card.";
  const body = JSON.stringify(request.body).replaceAll("'", "'\\''");
  return [
    `curl -s ${SERVICE}/${request.path}`,
    `-H "Authorization: Bearer ${KEY}"`,
    "-H 'Content-Type: application/json'",
    `-d '${body}'`,
  ].join(" \\\n  ");
}

/** A request as a Python script. */
function toPython(request) {
  if (request === null) return "There is no request behind this card.";
  return [
    "import os",
    "",
    "import httpx",
    "",
    "response = httpx.post(",
    `    "${SERVICE}/${request.path}",`,
    `    json=${toLiteral(request.body)},`,
    '    headers={"Authorization": f"Bearer {os.environ[\'KAIROS_API_KEY\']}"},',
    ")",
    "print(response.raise_for_status().json())",
  ].join("\n");
}

/** A JSON value as a literal of Python; texts of both are written alike. */
function toLiteral(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(toLiteral).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${toLiteral(one)}`);
  return `{${entries.join(", ")}}`;
}

function showText(title, text) {
  const dialog = document.createElement("dialog");
  dialog.className = "card copied";
  dialog.setAttribute("aria-labelledby", "copied-heading");
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  const copy = async () => {
    const field = byId("copied-text");
    field.select();
    try {
      await navigator.clipboard.writeText(text);
      byId("copied-note").textContent = "Copied.";
    } catch {
      byId("copied-note").textContent = "The text is selected; copy it by keyboard.";
    }
  };
  render(
    html`<form method="dialog">
      <h2 id="copied-heading">${title}</h2>
      <textarea id="copied-text" rows="8" readonly aria-label=${title} .value=${text}></textarea>
      <p id="copied-note" class="note" role="status">${
        text.includes("KAIROS_API_KEY") ? "Set KAIROS_API_KEY to a key of the service first." : nothing
      }</p>
      <div class="buttons">
        <button type="button" class="main" @click=${copy}>Copy</button>
        <button type="submit">Close</button>
      </div>
    </form>`,
    dialog,
  );
  dialog.showModal();
}
