/** Loads plotly.js beside everything else: the numbers need not wait for the picture. */

const loading = new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.src = new URL("plotly.min.js", import.meta.url);
  script.addEventListener("load", () => resolve(globalThis.Plotly));
  script.addEventListener("error", () => reject(new Error("plotly.js could not be loaded")));
  document.head.append(script);
});

/** The library, once it is there. */
export const plotly = () => loading;
