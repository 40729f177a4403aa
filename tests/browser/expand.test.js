/** Texts expanded: terms and their tokens, what is pointed at, and what keyboards and screen readers get. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, goTo, settled, shows, typeTwoLines } from "./support/explorer.js";

const { service, open } = await explorer();

const ask = (page, question) => page.evaluate((hash) => (location.hash = hash), `${new URLSearchParams(question)}`);
const expanded = (page) => page.locator("#answer .expanded li").first().waitFor();

/** The lines of the list. */
const listed = (page) =>
  page.locator("#answer li").evaluateAll((lines) =>
    lines.map((line) => ({
      term: line.querySelector("a").textContent,
      weight: line.querySelector(".score").textContent,
      token: line.querySelector(".token").lastChild.textContent,
      bar: Number(line.querySelector(".bar i").style.getPropertyValue("--share")),
    })),
  );

/** The painted text in pieces. */
const painted = (page) =>
  page.locator("#answer .painted").evaluate((whole) =>
    [...whole.childNodes].map((part) => ({
      text: part.textContent,
      ranges: (part.dataset?.ranges ?? "").split(" ").filter(Boolean).map(Number),
      isMark: part.tagName === "MARK",
      isUnknown: part.classList?.contains("unknown") ?? false,
      strength: Number(part.style?.getPropertyValue("--share") ?? 0),
      title: part.title ?? "",
    })),
  );

const marked = (page, within) => page.locator(`${within} .pointed-at`).evaluateAll((all) => all.map((one) => one.querySelector("a")?.textContent ?? one.textContent));

test("terms with their weights and tokens, the largest weight first", async () => {
  const page = await open();
  await page.click("#tab-expand");
  await page.keyboard.type("cheap flights");
  await page.click("button.go");
  await shows(page, "Terms of “cheap flights”");
  assert.equal(new URL(page.url()).hash, "#expand=cheap+flights");
  const { terms } = await service.post("expand", { text: "cheap flights", top: 20, explain: true });
  assert.equal(terms.length, 20);
  const expected = terms.map(({ term, weight, token }) => ({ term, weight: weight.toFixed(3), token: token.text, bar: weight / terms[0].weight }));
  assert.deepEqual(await listed(page), expected);
  assert.match(await page.locator("#status").textContent(), /^cheap flights: cheap 0\.415, flights 0\.415, inexpensive 0\.207$/);
  assert.equal(await page.locator(".picture:visible").count(), 0);
  assert.match(await page.locator("#answer").textContent(), /By the head nearby, which knows 30,000 terms\. .* as the logarithm of 1 \+ value\./);
  // The same command in a shell asks the same.
  assert.match(await page.locator("#curl").textContent(), /"top":20,"explain":true.*\n.*\/expand'$/s);
});

test("each token is painted where it stands, as strong as its terms", async () => {
  const page = await open();
  for (const text of [
    "cheap flights to the coast",
    "🎬👩‍👩‍👧 cheap flights über Käse, naïve “but” coast 🦀🦀 flights e\u0301 日本語 frog",
    "ünnötig: <b>cheap</b> &amp; flights don't",
    "\tfrog\n\n  toad 𝒳 frog  ",
  ]) {
    await goTo(page, `#${new URLSearchParams({ expand: text })}`);
    await expanded(page);
    const { terms, unknown = [] } = await service.post("expand", { text, top: 20, explain: true });
    const parts = await painted(page);
    assert.equal(parts.map((part) => part.text).join(""), text);
    const sums = new Map();
    for (const { weight, token } of terms) sums.set(token.position, (sums.get(token.position) ?? 0) + weight);
    const most = Math.max(...sums.values());
    assert.equal(parts.filter(({ isMark }) => isMark).length, sums.size);
    let byte = 0;
    for (const part of parts) {
      const start = byte;
      byte += Buffer.byteLength(part.text);
      if (!part.isMark) continue;
      const own = terms.filter(({ token }) => token.start === start && token.end === byte);
      assert.ok(own.length > 0, part.text);
      assert.ok(Math.abs(part.strength - sums.get(own[0].token.position) / most) < 1e-9, part.text);
      assert.deepEqual(part.title.split("\n"), own.map(({ term, weight }) => `${term} ${weight.toFixed(3)}`));
    }
    // One unknown word may be a part of another; what is only the end of a word is not dotted.
    const dotted = parts.filter(({ isUnknown }) => isUnknown).map((part) => part.text).join("");
    const unknownWords = unknown.filter((word) => /[\p{L}\p{N}]|\p{Extended_Pictographic}/u.test(word));
    for (const word of unknownWords.filter((word) => word !== "n't")) assert.ok(dotted.includes(word), word);
    assert.equal(await page.locator("#answer .note", { hasText: "Unknown words" }).count(), unknownWords.length > 0 ? 1 : 0);
  }
});

test("a term that is pointed at or focused marks its token, and a token all of its terms", async () => {
  const page = await open("#expand=cheap+flights+to+the+coast");
  await expanded(page);
  const lines = await listed(page);
  const last = lines.at(-1);
  const line = page.locator("#answer li").last();
  await line.hover();
  assert.deepEqual([await marked(page, ".painted"), await marked(page, ".hits")], [[last.token], [last.term]]);
  await page.locator("h1").hover();
  assert.equal(await page.locator(".pointed-at").count(), 0);
  await page.locator(".painted mark", { hasText: /^flights$/ }).hover();
  const ofFlights = lines.filter(({ token }) => token === "flights").map(({ term }) => term);
  assert.ok(ofFlights.length > 2);
  assert.deepEqual([await marked(page, ".painted"), await marked(page, ".hits")], [["flights"], ofFlights]);
  // What scrolls under the pointer counts as pointed at, so it rests elsewhere.
  await page.mouse.move(2, 500);
  await line.locator("a").focus();
  assert.deepEqual([await marked(page, ".painted"), await marked(page, ".hits")], [[last.token], [last.term]]);
  await page.locator("#expand").focus();
  assert.equal(await page.locator(".pointed-at").count(), 0);
});

test("a token that stands twice is the one that the service names", async () => {
  const page = await open("#expand=frog+toad+frog");
  await expanded(page);
  const marks = (await painted(page)).filter(({ isMark }) => isMark).map(({ text }) => text);
  assert.deepEqual(marks, ["frog", "toad"]);
  await page.locator("#answer li", { has: page.locator("a", { hasText: /^frog$/ }) }).hover();
  assert.equal(await page.locator(".painted .pointed-at").evaluate((mark) => mark.previousSibling), null);
});

test("as many terms as are asked for, and the address says so", async () => {
  const page = await open("#expand=cheap+flights");
  await expanded(page);
  assert.equal(await page.locator("label:visible", { has: page.locator("#k") }).innerText().then((text) => text.split(/\s/)[0]), "Terms");
  assert.equal(await page.locator("#limit").isVisible(), false);
  await page.selectOption("#k", "10");
  await becomes(() => page.locator("#answer li").count(), 10);
  await settled(page);
  assert.equal(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("k"), "10");
  assert.match(await page.locator("#answer").textContent(), /Only the first 10 terms are shown\./);
  await ask(page, { expand: "cheap flights", k: "1000" });
  const { terms } = await service.post("expand", { text: "cheap flights", top: 1000 });
  assert.ok(terms.length < 1000);
  await becomes(() => page.locator("#answer li").count(), terms.length);
  assert.doesNotMatch(await page.locator("#answer").textContent(), /Only the first/);
  await page.goBack();
  await becomes(() => page.locator("#answer li").count(), 10);
  await page.click("#tab-word");
  assert.equal(await page.locator("#limit").isVisible(), true);
  assert.equal(await page.locator("label:visible", { has: page.locator("#k") }).innerText().then((text) => text.split(/\s/)[0]), "Neighbours");
});

test("each term is a link to its neighbours", async () => {
  const page = await open("#expand=cheap+flights");
  await expanded(page);
  await page.locator("#answer li a", { hasText: "inexpensive" }).click();
  await shows(page, "Nearest to “inexpensive”");
  await page.goBack();
  await shows(page, "Terms of “cheap flights”");
  assert.equal(await page.inputValue("#expand"), "cheap flights");
});

test("unknown words are said, and suggestions replace them", async () => {
  const page = await open(`#${new URLSearchParams({ expand: "qqqq flights qqqqs, qqqq" })}`, { failing: /404|422/ });
  await expanded(page);
  assert.deepEqual((await painted(page)).filter((part) => part.isUnknown).map((part) => part.text), ["qqqq", "qqqqs", "qqqq"]);
  assert.match(await page.locator("#answer .note").first().textContent(), /^Unknown words, dotted in the text: qqqq, qqqqs/);
  await ask(page, { expand: "oceann (oceann)" });
  await page.locator("#notice .chip", { hasText: /^ocean$/ }).click();
  await shows(page, "Terms of “ocean (ocean)”");
  await ask(page, { expand: "\u0085" });
  await becomes(async () => /at least one word/.test(await page.locator("#notice").textContent()), true);
  assert.equal(await page.locator("#found").isVisible(), false);
});

test("a text that is longer than the head reads says so", async () => {
  const page = await open(`#${new URLSearchParams({ expand: "cheap flights ".repeat(400) })}`);
  await expanded(page);
  const { heads } = await service.get("heads");
  const { tokens } = heads.find(({ kind }) => kind === "expander");
  assert.match(await page.locator("#answer .note").first().textContent(), new RegExp(`first ${tokens.limit} tokens`));
});

test("a text without terms says so; plain weights are said to be plain", async () => {
  const page = await open();
  const change = (route, edit) =>
    page.route(route, async (to) => {
      const response = await to.fetch();
      const answer = await response.json();
      edit(answer);
      await to.fulfill({ response, json: answer });
    });
  await change("**/expand", (answer) => (answer.terms = []));
  await change("**/heads", ({ heads }) => heads.forEach((head) => (head.log1p = false)));
  await ask(page, { expand: "cheap flights" });
  await shows(page, "Terms of “cheap flights”");
  const said = await page.locator("#answer").textContent();
  assert.match(said, /No term of this head has a weight above 0 for this text\./);
  assert.match(said, /as a plain value/);
  assert.equal(await page.locator("#status").textContent(), "cheap flights: no terms");
});

test("texts that are code are only texts", async () => {
  const page = await open("", { failing: /404|422/ });
  for (const text of [
    "a cheap <img src=x onerror=alert(1)> film", "<script>alert(1)</script> coast", "cheap \u202e film \u2066 שלום مرحبا",
    `cheap ${"x".repeat(300)} film`, "<mark class='for' style='--share: 1'>good</mark>",
  ]) {
    await ask(page, { expand: text });
    await becomes(() => page.locator("#answer .painted").textContent(), text);
    await settled(page);
    assert.equal(await page.locator("#answer :is(img, script, b)").count(), 0);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${text}: ${wide} px too wide`);
  }
  await ask(page, { expand: "film", head: "<img src=x onerror=alert(1)>" });
  await becomes(async () => (await page.locator("#notice").textContent()).includes("there is no head `<img src=x onerror=alert(1)>`"), true);
});

test("of two texts, the one that was asked last is shown", async () => {
  const page = await open();
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route("**/expand", async (route) => {
    if (route.request().postDataJSON().text === "slow frog") await released;
    await route.continue().catch(() => {}); // It was given up.
  });
  const asked = page.waitForRequest("**/expand");
  await ask(page, { expand: "slow frog" });
  await asked;
  await ask(page, { expand: "good frog" });
  await shows(page, "Terms of “good frog”");
  release();
  await page.waitForTimeout(500);
  assert.equal(await page.locator("#answer-title").textContent(), "Terms of “good frog”");
});

test("examples are there to click, each tab its own", async () => {
  const page = await open();
  await page.click("#tab-classify");
  await page.locator("#text-examples .chip", { hasText: "film" }).waitFor();
  await page.click("#tab-expand");
  const chip = page.locator("#text-examples .chip", { hasText: "cheap flights to the coast" });
  await chip.waitFor();
  assert.equal(await page.locator("#text-examples .chip", { hasText: "film" }).count(), 0);
  assert.equal(await page.locator("#examples").isVisible(), false);
  await chip.click();
  await shows(page, "Terms of “cheap flights to the coast”");
  assert.equal(await page.locator("button.go").textContent(), "Expand");
  // They are no examples of words.
  await page.click("#tab-word");
  assert.equal(await page.locator("#examples .chip", { hasText: "cheap" }).count(), 0);
});

test("keyboard only: the tab, a text of two lines, a term", async () => {
  const page = await open();
  const { focus, tabTo } = await typeTwoLines(page, { kind: "expand", left: 2, lines: ["cheap", "flights"], title: "Terms of “cheap\nflights”" });
  await tabTo("inexpensive", 15);
  assert.deepEqual(await marked(page, ".painted"), ["cheap"]);
  await page.keyboard.press("/");
  assert.equal(await focus(), "expand");
});

test("roles and names", async () => {
  const page = await open("#expand=cheap+flights");
  await expanded(page);
  for (const [role, name] of [["tab", "Expand"], ["textbox", "Text"], ["button", "Expand"], ["combobox", "Terms"], ["link", "inexpensive"]]) {
    assert.ok((await page.getByRole(role, { name, exact: true }).count()) > 0, `${role} ${name}`);
  }
  const line = page.getByRole("listitem").filter({ hasText: "inexpensive" });
  assert.match(await line.ariaSnapshot(), /0\.207.*from the token cheap/s);
});
