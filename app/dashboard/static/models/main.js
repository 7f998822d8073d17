/** The page: versions, and which of them serves. */

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
