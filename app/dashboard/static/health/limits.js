/**
 * From where on a figure is worth a look. `bad` is the limit of the Prometheus alert of that name in
 * docker/prometheus/alerts.yml, which a test holds equal to these; `watch` is half of it.
 *
 * Alerts look at five minutes and more, this page at one: it is earlier, and wrong more often.
 */

const asTheAlert = (alert, bad) => ({ alert, bad, watch: bad / 2 });

export const LIMITS = {
  failed: asTheAlert("KairosErrors", 0.01),
  unavailable: asTheAlert("KairosUnavailable", 0.05),
  shed: asTheAlert("KairosShedding", 1),
  slow: asTheAlert("KairosSlow", 0.5),
  late: asTheAlert("KairosEventsLate", 3600),
  // The alert also asks for twice yesterday's share, which no page knows: reason to watch, no more.
  fallback: { alert: "KairosFallbackJump", bad: Infinity, watch: 0.1 },
};

/** "ok", "watch" or "bad"; null where there is no figure. */
export function judge(value, limit) {
  if (value === null) return null;
  if (value > limit.bad) return "bad";
  return value > limit.watch ? "watch" : "ok";
}

const BY_WEIGHT = [null, "ok", "watch", "bad"];

/** The worst of several judgements. */
export const worst = (judgements) =>
  BY_WEIGHT[Math.max(0, ...judgements.map((judgement) => BY_WEIGHT.indexOf(judgement)))];

/** A limit in words; `say` writes its numbers. */
export function limitInWords({ alert, bad, watch }, say) {
  if (bad === Infinity) return `Limit: watch above ${say(watch)} (${alert}).`;
  return `Limit: bad above ${say(bad)}, watch above ${say(watch)} (${alert}).`;
}
