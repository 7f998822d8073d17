// @ts-check
/** The Overview page. */

import { showBanner, showBusy, showServedVersion } from "../shell/page.js";

// Links to a customer led here before the page had a file of its own.
if (/[#&](user|history)=/.test(location.hash)) location.replace(`customers.html${location.hash}`);

showBanner();
showServedVersion().then(() => showBusy(false));
