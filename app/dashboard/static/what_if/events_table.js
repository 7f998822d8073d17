/** The history as a table that can be edited: every event, with its weight before and after. */

import { pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { EventEditor } from "./event_editor.js";
import { EventRow } from "./event_row.js";
import { inMilliseconds } from "./exact_instants.js";

const COLUMNS = 4;
const SHOWN = 100;

const latest = (row) => inMilliseconds((row.after ?? row.before).at);
const heaviest = (row) => Math.max(row.before?.weight ?? -1, row.after?.weight ?? -1);
const ORDERS = {
  time: (one, other) => latest(other) - latest(one),
  weight: (one, other) => heaviest(other) - heaviest(one) || latest(other) - latest(one),
};

export class EventsTable {
  #body = byId("events");
  #more = byId("more-events");
  #order = "time";
  #isWhole = false;
  #rows = [];
  #titles = new Map();
  #shown = new Map();
  #editor = null;
  #edit;

  /** `edit` has `remove(row)`, `restore(row)`, `move(row, at)` and `act(row, action)`. */
  constructor(edit) {
    this.#edit = edit;
    byId("order").addEventListener("change", ({ target }) => {
      this.#order = target.value;
      this.#render();
    });
    this.#body.addEventListener("click", (event) => this.#press(event.target.closest("button[data-do]")));
    this.#more.addEventListener("click", () => {
      this.#isWhole = true;
      this.#render();
    });
  }

  /** Begin with another history. */
  begin() {
    this.#isWhole = false;
    this.#closeEditor();
    this.#shown.clear();
  }

  /** Show rows as `weightedRows` has them. */
  show(rows, titles) {
    this.#rows = rows;
    this.#titles = titles;
    this.#render();
  }

  #press(button) {
    const key = button?.closest("tr").dataset.key;
    const row = this.#rows.find((one) => one.key === key);
    if (!row) return;
    if (button.dataset.do === "edit") {
      if (this.#editor?.key === key) this.#closeEditor();
      else this.#open(row);
    } else if (row.after === null) {
      this.#edit.restore(row);
    } else {
      if (row.added) this.#focusBeside(button.closest("tr"));
      this.#edit.remove(row);
    }
  }

  #open(row) {
    this.#closeEditor();
    const now = () => this.#rows.find((one) => one.key === row.key) ?? row;
    const editor = new EventEditor({
      label: this.#titles.get(row.itemId) || row.itemId,
      columns: COLUMNS,
      move: (at) => this.#edit.move(now(), at),
      act: (action) => this.#edit.act(now(), action),
      close: () => {
        const { shown } = this.#editor;
        this.#closeEditor();
        shown.focus();
      },
    });
    this.#editor = { key: row.key, editor, shown: this.#shown.get(row.key) };
    this.#render();
    editor.focus();
  }

  #closeEditor() {
    this.#editor?.editor.row.remove();
    this.#editor?.shown.expand(false);
    this.#editor = null;
  }

  /** The row of an added event goes when it is removed; the focus goes to one that stays. */
  #focusBeside(line) {
    const other = line.nextElementSibling ?? line.previousElementSibling;
    (other?.querySelector("button[data-do=edit]") ?? byId("history-heading")).focus();
  }

  #render() {
    const sorted = [...this.#rows].sort(ORDERS[this.#order]);
    // What was edited is shown wherever it stands.
    const shown = this.#isWhole ? sorted : sorted.filter((row, place) => place < SHOWN || isEdited(row));
    const lines = shown.map((row) => this.#line(row));
    const edited = this.#editor && shown.find((row) => row.key === this.#editor.key);
    if (!edited?.after) this.#closeEditor();
    else {
      this.#editor.editor.show(edited.after);
      this.#editor.shown.expand(true);
      lines.splice(shown.indexOf(edited) + 1, 0, this.#editor.editor.row);
    }
    replaceInPlace(this.#body, lines);
    this.#more.hidden = shown.length === sorted.length;
    this.#more.textContent = `Show all ${pluralize(sorted.length, "event")}`;
    byId("no-events").hidden = sorted.length > 0;
  }

  #line(row) {
    if (!this.#shown.has(row.key)) this.#shown.set(row.key, new EventRow(row.key));
    const line = this.#shown.get(row.key);
    line.show(row, this.#titles.get(row.itemId));
    return line.element;
  }
}

/** Whether a row is not as it was stored. */
export const isEdited = ({ before, after }) =>
  before === null || after === null || before.at !== after.at || before.action !== after.action;

/** Put children into an order without taking out one that stays where it is: it may have the focus. */
function replaceInPlace(place, children) {
  const wanted = new Set(children);
  for (const child of [...place.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, number) => {
    if (place.children[number] !== child) {
      const focused = child.contains(document.activeElement) ? document.activeElement : null;
      place.insertBefore(child, place.children[number] ?? null);
      focused?.focus();
    }
  });
}
