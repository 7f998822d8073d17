/** Runs plotly.js when the first picture is due: the numbers need not wait for it. */

/** Milliseconds after which it runs though none is: browsers complain of what was preloaded for nothing. */
const LATEST = 1000;

let loading = null;
setTimeout(() => plotly().catch(() => {}), LATEST);

/** The library, once it is there. */
export function plotly() {
  loading ??= load();
  return loading;
}

async function load() {
  const script = document.createElement("script");
  script.src = new URL("../plotly.min.js", import.meta.url);
  const loaded = new Promise((resolve, reject) => {
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error("plotly.js could not be loaded")));
  });
  document.head.append(script);
  withoutStyles();
  await loaded;
  delete document.head.appendChild;
  return globalThis.Plotly;
}

/**
 * While plotly.js runs for the first time, drop the style element of the map library inside it: we
 * draw no maps, and the Content-Security-Policy would refuse it with an error on the console.
 */
function withoutStyles() {
  document.head.appendChild = (node) =>
    node.nodeName === "STYLE" ? node : Node.prototype.appendChild.call(document.head, node);
}
