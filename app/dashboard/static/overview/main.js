// @ts-check
/** The Overview page. */

import { showBanner, showBusy, showServedVersion } from "../shell/page.js";

showBanner();
showServedVersion().then(() => showBusy(false));
