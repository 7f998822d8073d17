/** Bars over time that never hide each other. */

/** Bars closer than the least width are piled up; where there is room, they grow to the most. */
const PIXELS = { least: 5, most: 14 };

/**
 * A bar `{event, x, base, pile}` per event, oldest first, and the width they all have, in units of
 * the axis: `place(event)` says where on it, `pixel` how much of it one pixel is. Events that would
 * cover each other are piled up instead, where the oldest of them stands: a basket is many events
 * of one minute. `pile` knows how many they are, and their weight together.
 */
export function barsOver(events, place, pixel) {
  const bars = piledUp(events, place, PIXELS.least * pixel);
  return { bars, width: roomFor(bars, pixel) };
}

/** The trace of bars as plotly.js takes it, but for their colours. */
export const barTrace = ({ bars, width }) => ({
  type: "bar",
  x: bars.map((bar) => bar.x),
  y: bars.map((bar) => bar.event.weight),
  base: bars.map((bar) => bar.base),
  width,
});

/** How high the bars reach; never nothing. */
export const heightOf = (bars) =>
  bars.reduce((highest, bar) => Math.max(highest, bar.base + bar.event.weight), 0.01);

function piledUp(events, place, leastGap) {
  let pile = null;
  return events.map((event) => {
    const x = place(event);
    if (pile === null || x - pile.x >= leastGap) pile = { x, events: 0, weight: 0 };
    const bar = { event, x: pile.x, base: pile.weight, pile };
    pile.events += 1;
    pile.weight += event.weight;
    return bar;
  });
}

/** How wide bars may be without touching. */
function roomFor(bars, pixel) {
  let gap = Infinity;
  for (let place = 1; place < bars.length; place += 1) {
    const step = bars[place].x - bars[place - 1].x;
    if (step > 0) gap = Math.min(gap, step);
  }
  const { least, most } = PIXELS;
  return Math.max(least * pixel, Math.min(most * pixel, gap * 0.8));
}
