// Waits until a service answers in a browser: first_answer.js URL PROCESS. Ends with 1 if the process does before.
import { chromium } from "playwright-core";

import { FLAGS } from "./chromium.js";

const [url, service] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
const page = await browser.newPage();
for (;;) {
  try {
    await page.goto(url);
    break;
  } catch {
    // Not yet; kill throws when there is no such process any more.
    process.kill(Number(service), 0);
    await page.waitForTimeout(100);
  }
}
await page.waitForSelector("#answer li");
console.log(await page.textContent("#answer-title"), "→", await page.textContent("#answer li a"));
await browser.close();
