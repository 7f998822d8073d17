/** The map with all that belongs to it: what it shows in words, its legend, and a table. */

import { formatCount, formatPercent, pluralize } from "../shell/format.js";
import { byId } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { groupsOf } from "./categories.js";
import { CategoryLegend } from "./category_legend.js";
import { MapPlot } from "./map_plot.js";

export class ItemMap {
  #plot;
  #legend;
  #answer = null;
  #groups = [];

  /** `choose(itemId)` is called for a click, `change(update)` for a choice of categories. */
  constructor({ choose, change }) {
    this.#plot = new MapPlot(choose);
    this.#legend = new CategoryLegend(change);
  }

  /** The items on the map, the most popular first. */
  get items() {
    return this.#answer?.items ?? [];
  }

  /** An item as the map has it; undefined where it does not. */
  find(itemId) {
    return this.items.find((item) => item.item_id === itemId);
  }

  /** Take over a map's answer, of a model with vectors of so many dimensions. */
  take(answer, dimensions) {
    this.#answer = answer;
    this.#groups = groupsOf(answer.items);
    byId("map-missing").hidden = true;
    byId("map-shown").hidden = false;
    byId("map-summary").textContent = summary(answer, dimensions);
    showAsTable(byId("map-table"), {
      caption: "Items on the map",
      columns: ["Item", "Title", "Categories", "Events", "x", "y"],
      rows: answer.items.map((item) => [
        item.item_id,
        item.title ?? "",
        item.categories.join(", "),
        item.events,
        item.x,
        item.y,
      ]),
    });
  }

  /** Say why there is no map. */
  showNone(why) {
    this.#answer = null;
    byId("map-missing").textContent = why;
    byId("map-missing").hidden = false;
    byId("map-shown").hidden = true;
  }

  /** Draw the map with the chosen item, or null, and the ids of those like it; once it is there. */
  async draw(state, chosen, similar) {
    if (this.#answer === null) return;
    this.#legend.show(this.#groups, state);
    byId("map-marked").textContent = this.#marked(chosen, similar);
    const { items, explained } = this.#answer;
    await this.#plot.show({ items, explained, groups: this.#groups, state, chosen, similar });
  }

  #marked(chosen, similar) {
    if (chosen === null) return "Choose a point to see its item.";
    const item = this.find(chosen);
    const there = similar.filter((itemId) => this.find(itemId)).length;
    const near = similar.length
      ? ` In circles: ${there} of the ${pluralize(similar.length, "item")} listed as similar.`
      : "";
    return item
      ? `In a diamond: ${item.title || chosen}.${near}`
      : `${chosen} is not among the items of this map.${near}`;
  }
}

function summary({ items, model_version: version, explained }, dimensions) {
  const [first, second] = explained.map(formatPercent);
  const all = dimensions === null ? "all" : `all ${dimensions}`;
  const of = dimensions === null ? "" : ` of ${dimensions}`;
  return (
    `The ${formatCount(items.length)} items of ${version} with the most events, the larger the more, laid out ` +
    `by PCA of the directions of their vectors: the first axis explains ${first} of the variance, the ` +
    `second ${second}. Near on the map is near in two${of} directions only; the list of similar items ` +
    `goes by ${all}.`
  );
}
