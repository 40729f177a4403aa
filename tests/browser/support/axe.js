/** axe-core on a page. */

import { readFileSync } from "node:fs";

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** The rules whose result depends on colours: all others say the same in light and dark. */
export const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/** The rules whose result depends on the width of the window. */
export const OF_WIDTHS = ["scrollable-region-focusable"];

/**
 * Its findings, in one line for each element.
 * @param {?string[]} rules only these, or all that are on by default
 */
export async function findings(page, rules = null) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  const only = rules && { runOnly: { type: "rule", values: rules } };
  const { violations } = await page.evaluate((only) => axe.run({ resultTypes: ["violations"], ...only }), only);
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ target, any, all }) => `${impact} ${id}: ${target} ${[...any, ...all][0]?.message ?? ""}`),
  );
}
