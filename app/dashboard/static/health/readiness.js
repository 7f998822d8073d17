/** Asks whether the service can do its work; no key is needed for it. */

// As api.js, but an answer of status 503 is what is asked for here.
const READY = new URL("../health/ready", document.baseURI);

/** What `GET /health/ready` says, also where it says no; null where nothing answers. */
export async function askReadiness() {
  try {
    const said = await (await fetch(READY, { headers: { Accept: "application/json" } })).json();
    return said.status === undefined || said.model === undefined ? null : said;
  } catch {
    return null;
  }
}
