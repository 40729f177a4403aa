/** A script of the explorer without a browser: it is no package of Node's, so its text is imported. */

import { readFileSync } from "node:fs";

export const explorerModule = (name) => {
  const text = readFileSync(new URL(`../../../crates/server/explorer/${name}`, import.meta.url));
  return import(`data:text/javascript;base64,${text.toString("base64")}`);
};
