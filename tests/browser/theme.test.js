/** Light and dark: as the system has it, or as the button says; and reduced motion. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { explorer } from "./support/explorer.js";

const { open } = await explorer();

/** How bright the paper is, from 0 to 255. */
const brightness = (page) =>
  page.evaluate(() => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
    return (red + green + blue) / 3;
  });

test("the page is as light or dark as the system", async () => {
  assert.ok((await brightness(await open("", { colorScheme: "light" }))) > 200);
  assert.ok((await brightness(await open("", { colorScheme: "dark" }))) < 60);
});

test("the button goes from system to light to dark, and what was chosen stays", async () => {
  const page = await open("", { colorScheme: "light" });
  const button = page.locator("#theme");
  assert.equal(await button.getAttribute("aria-label"), "Theme: system");
  await button.click();
  await button.click();
  assert.equal(await button.getAttribute("aria-label"), "Theme: dark");
  assert.ok((await brightness(page)) < 60);
  await page.reload();
  assert.ok((await brightness(page)) < 60);
  assert.equal(await button.getAttribute("aria-label"), "Theme: dark");
  await button.click();
  assert.equal(await button.getAttribute("aria-label"), "Theme: system");
  await page.emulateMedia({ colorScheme: "dark" });
  assert.ok((await brightness(page)) < 60);
  await page.emulateMedia({ colorScheme: "light" });
  assert.ok((await brightness(page)) > 200);
});

test("/docs is as light or dark as the system, or as the explorer's button says", async () => {
  const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const [light, dark] = ["rgb(255, 255, 255)", "rgb(28, 32, 34)"];
  assert.equal(await ground(await open("docs", { colorScheme: "light" })), light);
  const page = await open("docs", { colorScheme: "dark" });
  assert.equal(await ground(page), dark);
  await page.emulateMedia({ colorScheme: "light" });
  await page.waitForFunction(() => document.documentElement.classList.contains("light-mode"));
  assert.equal(await ground(page), light);
  await page.evaluate(() => localStorage.setItem("kindred-theme", "dark"));
  await page.reload();
  assert.equal(await ground(page), dark);
});

test("nothing moves for who wants no motion", async () => {
  const moving = (page) =>
    page.evaluate(() => {
      document.body.classList.add("busy");
      const styles = [...document.querySelectorAll("*")].map((element) => getComputedStyle(element));
      return styles.filter((style) => parseFloat(style.transitionDuration) > 0 || style.animationName !== "none").length;
    });
  assert.equal(await moving(await open("#word=ocean", { reducedMotion: "reduce" })), 0);
  assert.ok((await moving(await open("#word=ocean", { reducedMotion: "no-preference" }))) > 0);
});
