/** What the what-if view shows, in the words of the API, and its edits in few characters. */

import { choice, flag, instant, integer, Permalink, text } from "../shell/permalink.js";
import { addition, MOST_EDITS } from "./edits.js";
import { compact, exactly, expanded, inMilliseconds } from "./exact_instants.js";

export const COUNTS = [5, 10, 20, 50, 100];

/**
 * Edits, such as `remove.sku-0002.20111207T155200.purchase*query_time.20111224T120000`: separated by
 * stars, their fields by points, as an address escapes neither.
 */
const edits = () => ({
  defaultValue: [],
  read(said) {
    const read = said === "" ? [] : said.split("*").slice(0, MOST_EDITS).map(readEdit);
    return read.includes(undefined) ? undefined : read;
  },
  write: (made) => made.map(writeEdit).join("*"),
});

export const LINK = new Permalink({
  user: text(),
  /** Whether to begin with what is stored of the user, or with nothing. */
  history: choice("stored", "empty"),
  /** That of the history before any edit; null until it is known when the last event was. */
  query_time: instant(),
  edits: edits(),
  n: integer(1, 100, 10),
  exclude_seen: flag(true),
  /** Null for the version that serves. */
  model_version: text(),
});

function writeEdit(edit) {
  switch (edit.kind) {
    case "add":
      return ["add", ...event(edit)].join(".");
    case "remove":
      return ["remove", ...event(edit.of)].join(".");
    case "move":
      return ["move", ...event(edit.of), compact(edit.at)].join(".");
    case "action":
      return ["action", ...event(edit.of), escaped(edit.action ?? "")].join(".");
    default:
      return `query_time.${compact(exactly(edit.at))}`;
  }
}

function readEdit(said) {
  const [kind, ...fields] = said.split(".");
  if (kind === "query_time") {
    const at = expanded(fields[0] ?? "");
    return at === undefined ? undefined : { kind, at: inMilliseconds(at) };
  }
  const [itemId, at, action, other] = fields;
  const of = {
    itemId: plainly(itemId ?? ""),
    at: expanded(at ?? ""),
    action: plainly(action ?? "") || null,
  };
  if (of.itemId === "" || of.at === undefined) return undefined;
  if (kind === "add") return addition(of.itemId, of.action, of.at);
  if (kind === "remove") return { kind, of };
  if (other === undefined) return undefined;
  if (kind === "action") return { kind, of, action: plainly(other) || null };
  const to = expanded(other);
  return kind === "move" && to !== undefined ? { kind, of, at: to } : undefined;
}

const event = ({ itemId, at, action }) => [escaped(itemId), compact(at), escaped(action ?? "")];

const ESCAPES = { _: "__", ".": "_p", "*": "_s" };
const CHARACTERS = { _: "_", p: ".", s: "*" };

const escaped = (name) => name.replaceAll(/[_.*]/g, (character) => ESCAPES[character]);

const plainly = (said) => said.replaceAll(/_(.)/g, (_, letter) => CHARACTERS[letter] ?? letter);
