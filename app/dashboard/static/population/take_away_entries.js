// @ts-check
/** What is taken away from each card of the Population page. */

import { modelRequest } from "../shell/api.js";
import { byId } from "../shell/html.js";
import { TakeAway, toFileName } from "../widgets/take_away.js";
import { toRows } from "./chart.js";

/**
 * @typedef {import("./chart.js").Line} Line
 * @typedef {import("./chart.js").View} View
 */

/**
 * Fills the menus of the cards.
 *
 * @param {object} page
 * @param {View[]} page.views
 * @param {Map<View, any>} page.charts
 * @param {any} page.examples the card of example customers
 * @param {() => Line[]} page.lines those on display
 */
export function offerTakeAway({ views, charts, examples, lines }) {
  for (const view of views) {
    new TakeAway(byId(view), () => {
      const shown = lines();
      const versions = [...new Set(shown.map(({ version }) => version))];
      const rows = toRows(shown, view);
      if (rows.length === 0) return { why: "No curve is chosen." };
      return {
        title: `Attention on the last event: ${byId(`${view}-heading`).textContent.toLowerCase()}`,
        caption: `Version ${versions.join(" compared with ")}. ${byId("band-note").textContent}`,
        name: toFileName(`attention-${view}`, ...versions),
        chart: charts.get(view),
        rows,
        requests: versions.map(modelRequest),
      };
    });
  }
  new TakeAway(byId("examples"), () => {
    if (examples.found === null) return { why: "Find customers first." };
    const { request, response } = examples.found;
    return {
      title: byId("examples-heading").textContent,
      caption: `Version ${response.model_version}. ${byId("examples-note").textContent}`,
      name: toFileName("example-customers", response.model_version),
      chart: null,
      rows: response.users,
      requests: [request],
    };
  });
}
