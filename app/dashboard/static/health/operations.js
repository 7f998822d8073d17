/** Every operation that was asked for: how often, how fast, with what success. */

import { byId, render } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import { duration, perSecond, share } from "./figures.js";
import { isWork } from "./panels.js";

const COLUMNS = ["Operation", "Requests", "p50", "p95", "p99", "4xx", "5xx"];
const SECONDS = "http_request_duration_seconds";
const REQUESTS = "http_requests_total";

/** List them, the busiest first, unless somebody is reading the list just now. */
export function showOperations(rates) {
  const place = byId("operations");
  if (place.querySelector(":focus")) return;
  const rows = busiest(rates).map(({ method, route, rate }) => {
    const isThis = (labels) => labels.method === method && labels.route === route;
    const began = (digit) =>
      rates.share(REQUESTS, ({ status }) => status.startsWith(digit), isThis);
    return [
      `${method} ${route}`,
      perSecond(rate),
      ...[0.5, 0.95, 0.99].map((place) => duration(rates.quantile(place, SECONDS, isThis))),
      share(began("4")),
      share(began("5")),
    ];
  });
  const caption = "Operations, the busiest first";
  render(scrollRegion(table({ caption, columns: COLUMNS, rows }), caption), place);
}

function busiest(rates) {
  const asked = [];
  for (const method of rates.sumBy("method", REQUESTS, isWork).keys()) {
    const isThis = (labels) => isWork(labels) && labels.method === method;
    const routes = rates.sumBy("route", REQUESTS, isThis);
    for (const [route, rate] of routes) if (rate > 0) asked.push({ method, route, rate });
  }
  return asked.sort((one, other) => other.rate - one.rate);
}
