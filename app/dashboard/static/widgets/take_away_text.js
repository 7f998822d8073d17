// @ts-check
/** What is taken away from a card as text: its numbers as CSV, its requests as curl and as Python. */

import { toUrl } from "../shell/api.js";

/** @typedef {import("../shell/api.js").ApiRequest} ApiRequest */

/** The columns of some rows, each once. */
export const columnsOf = (rows) => [...new Set(rows.flatMap((row) => Object.keys(row)))];

/** Rows as CSV. */
export function toCsv(rows) {
  const columns = columnsOf(rows);
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  const text = lines.map((cells) => cells.map(toCell).join(",")).join("\r\n");
  // Excel reads a text as UTF-8 if it begins with this mark.
  return `\ufeff${text}\r\n`;
}

/** A cell of a CSV file. Spreadsheets would run a text that begins like a formula. */
export function toCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Requests as commands for a shell, each with its JSON on a line of its own. The key stands in a
 * variable: it is in no picture and no text.
 *
 * @param {ApiRequest[]} requests
 */
export const toCurl = (requests) => requests.map(toCommand).join("\n\n");

/** @param {ApiRequest} request */
function toCommand({ path, query, body }) {
  const lines = [
    `curl -s -w '\\n' ${quote(toUrl(path, query))}`,
    '-H "Authorization: Bearer $KAIROS_API_KEY"',
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`]),
  ];
  return lines.join(" \\\n  ");
}

/** A text as one word of a shell. */
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * Requests as a Python script that prints their answers, one after another.
 *
 * @param {ApiRequest[]} requests
 */
export const toPython = (requests) =>
  [
    "import os",
    "",
    "import httpx",
    "",
    "client = httpx.Client(",
    '    headers={"Authorization": f"Bearer {os.environ[\'KAIROS_API_KEY\']}"},',
    "    timeout=60,",
    ")",
    ...requests.flatMap(({ path, query, body }) => [
      "",
      ...(body === undefined
        ? [`response = client.get(${toLiteral(toUrl(path, query))})`]
        : [
            "response = client.post(",
            `    ${toLiteral(toUrl(path, query))},`,
            `    json=${toLiteral(body)},`,
            ")",
          ]),
      "print(response.raise_for_status().json())",
    ]),
  ].join("\n");

/** A JSON value as a literal of Python; texts of both are written alike. */
function toLiteral(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(toLiteral).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${toLiteral(one)}`);
  return `{${entries.join(", ")}}`;
}
