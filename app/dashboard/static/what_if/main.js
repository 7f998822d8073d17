/** The page: what if the history were another?. */

import { showBanner, showServedVersion } from "../shell/banner.js";
import { showBusy, showProblem } from "../shell/problem.js";

async function start() {
  showBanner();
  try {
    await showServedVersion();
  } catch (error) {
    showProblem(error);
  }
  showBusy(false);
}

start();
