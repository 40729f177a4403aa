/** Texts classified: labels, the painted text, several heads, and what keyboards and screen readers get. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, eventually, explorer, goTo, settled, shows, typeTwoLines } from "./support/explorer.js";

const { service, open } = await explorer();

const ask = (page, question) => page.evaluate((hash) => (location.hash = hash), `${new URLSearchParams(question)}`);
const classified = (page) => page.locator("#answer .painted").waitFor();
const percent = (probability) => `${(100 * probability).toFixed(1)} %`;

/** The painted text in pieces, with the n-grams that cover each. */
const painted = (page) =>
  page.locator("#answer .painted").evaluate((whole) =>
    [...whole.childNodes].map((part) => ({
      text: part.textContent,
      covering: (part.dataset?.ranges ?? "").split(" ").filter(Boolean).map(Number),
      side: ["for", "against"].find((side) => part.classList?.contains(side)) ?? "",
      isUnknown: part.classList?.contains("unknown") ?? false,
      strength: Number(part.style?.getPropertyValue("--share") ?? 0),
      title: part.title ?? "",
    })),
  );

/** The n-grams of the table and their shares as shown. */
const shares = (page) =>
  page.locator("#answer .ngrams tbody tr[data-ranges]").evaluateAll((rows) =>
    rows.map((row) => [row.cells[0].textContent, Number(row.cells[2].textContent.replace("−", "-"))]),
  );

test("labels with their probabilities, the most probable first, and a sum that adds up", async () => {
  const page = await open();
  await page.click("#tab-classify");
  await page.keyboard.type("what a waste of time");
  await page.click("button.go");
  await shows(page, "Labels of “what a waste of time”");
  assert.equal(new URL(page.url()).hash, "#classify=what+a+waste+of+time");
  const { labels, explanation } = await service.post("classify", { text: "what a waste of time", explain: true });
  const rows = await page.locator("#answer li").evaluateAll((rows) => rows.map((row) => [row.querySelector("a").textContent, row.querySelector(".score").textContent]));
  assert.deepEqual(rows, labels.map(({ label, probability }) => [label, percent(probability)]));
  assert.deepEqual(await shares(page), explanation.ngrams.map(({ text, share }) => [text, Number(share.toFixed(3))]));
  const all = await page.locator("#answer .ngrams tbody td:last-child").allTextContents();
  const sum = all.map((text) => Number(text.replace("−", "-"))).reduce((sum, share) => sum + share, 0);
  const score = Number(await page.locator("#answer .ngrams .sum td").last().textContent());
  assert.ok(Math.abs(sum - score) < 0.01, `${sum} ${score}`);
  assert.match(await page.locator("#status").textContent(), /^what a waste of time: negative 92\.2 %, positive 7\.8 %$/);
  assert.equal(await page.locator(".picture:visible").count(), 0);
  // The same command in a shell asks the same.
  assert.match(await page.locator("#curl").textContent(), /"explain":true.*\n.*\/classify'$/s);
});

test("each n-gram is painted where it stands", async () => {
  const page = await open();
  for (const text of [
    "what a waste of time",
    "🎬👩‍👩‍👧 a moving and funny film über Käse, naïve “but” good 🦀🦀 bad e\u0301 日本語 boring",
    "ünnötig: <b>bad</b> &amp; moving",
    "\tbad\n\n  film 𝒳 bad  ",
  ]) {
    await goTo(page, `#${new URLSearchParams({ classify: text })}`);
    await classified(page);
    const { explanation: { ngrams }, unknown = [] } = await service.post("classify", { text, explain: true });
    const parts = await painted(page);
    assert.equal(parts.map((part) => part.text).join(""), text);
    assert.ok(ngrams.length > 0);
    const most = Math.max(...parts.map(({ covering }) => Math.abs(covering.reduce((sum, index) => sum + ngrams[index].share, 0))));
    ngrams.forEach(({ text: own, start, end }, index) => {
      const covered = parts.filter(({ covering }) => covering.includes(index)).map((part) => part.text).join("");
      assert.equal(covered, own);
      const before = parts.slice(0, parts.findIndex(({ covering }) => covering.includes(index))).map((part) => part.text).join("");
      assert.deepEqual([Buffer.byteLength(before), Buffer.byteLength(before + covered)], [start, end]);
    });
    for (const { covering, side, strength, title } of parts) {
      const sum = covering.reduce((sum, index) => sum + ngrams[index].share, 0);
      assert.equal(side, sum > 0 ? "for" : sum < 0 ? "against" : "");
      assert.ok(Math.abs(strength - Math.abs(sum) / most) < 1e-9);
      for (const index of covering) assert.ok(title.includes(ngrams[index].text), title);
    }
    const unknownWords = unknown.filter((word) => /[\p{L}\p{N}]|\p{Extended_Pictographic}/u.test(word));
    for (const word of unknownWords) assert.ok(parts.some((part) => part.isUnknown && part.text.includes(word)), word);
    assert.equal(await page.locator("#answer .note", { hasText: "Unknown words" }).count(), unknownWords.length > 0 ? 1 : 0);
  }
});

test("an unknown word is dotted wherever it stands, but not within another word", async () => {
  const page = await open(`#${new URLSearchParams({ classify: "qqqq film qqqqs, qqqq-bad (qqqq)" })}`);
  await classified(page);
  const unknown = (await painted(page)).filter((part) => part.isUnknown);
  assert.deepEqual(unknown.map((part) => part.text), ["qqqq", "qqqqs", "qqqq", "qqqq"]);
  assert.ok(unknown.every(({ title }) => /unknown word$/.test(title)));
});

test("another label is explained when it is chosen, and the address says so", async () => {
  const text = "not bad at all, but far too long";
  const page = await open(`#${new URLSearchParams({ classify: text })}`);
  await classified(page);
  const { labels, explanation } = await service.post("classify", { text, explain: true });
  assert.equal(await page.locator("#answer [aria-current]").textContent(), labels[0].label);
  const other = labels[1].label;
  await page.locator("#answer li a", { hasText: other }).click();
  await becomes(() => page.locator("#answer h3").textContent(), `What speaks for and against ${other}`);
  await settled(page);
  const second = await service.post("classify", { text, explain_label: other });
  assert.deepEqual(await shares(page), second.explanation.ngrams.map(({ text, share }) => [text, Number(share.toFixed(3))]));
  assert.equal(await page.locator("#answer [aria-current]").textContent(), other);
  assert.equal(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("label"), other);
  await page.goBack();
  await becomes(() => page.locator("#answer [aria-current]").textContent(), explanation.label);
  // A new text starts with its own most probable label.
  await page.goForward();
  await becomes(() => page.locator("#answer [aria-current]").textContent(), other);
  await page.fill("#classify", "a moving and funny film");
  await page.click("button.go");
  await shows(page, "Labels of “a moving and funny film”");
  assert.equal(await page.locator("#answer [aria-current]").textContent(), "positive");
});

test("the n-gram that is pointed at is marked in text and table", async () => {
  const page = await open("#classify=what+a+waste+of+time");
  await classified(page);
  const row = page.locator("#answer .ngrams [data-ranges='0']");
  await row.hover();
  assert.equal((await page.locator(".painted .pointed-at").allTextContents()).join(""), await row.locator("th").textContent());
  await page.locator("h1").hover();
  assert.equal(await page.locator(".pointed-at").count(), 0);
});

test("texts that are code are only texts", async () => {
  const page = await open("", { failing: /404|422/ });
  for (const text of [
    "a bad <img src=x onerror=alert(1)> film", "<script>alert(1)</script> boring", "'; bad \"quotes\" & &lt;b&gt;",
    "bad \u202e film \u2066 שלום مرحبا", `bad ${"x".repeat(300)} film`, "<mark class='for' style='--share: 1'>good</mark>",
  ]) {
    await ask(page, { classify: text });
    await becomes(() => page.locator("#answer .painted").textContent(), text);
    await settled(page);
    assert.equal(await page.inputValue("#classify"), text);
    assert.equal(await page.locator("#answer :is(img, script, b)").count(), 0);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${text}: ${wide} px too wide`);
  }
  await ask(page, { classify: "film", label: "<img src=x onerror=alert(1)>" });
  await page.locator("#notice h2").waitFor();
  await ask(page, { classify: "film", head: "<img src=x onerror=alert(1)>" });
  await becomes(async () => (await page.locator("#notice").textContent()).includes("there is no head `<img src=x onerror=alert(1)>`"), true);
});

test("a text of unknown words is answered with suggestions, and one of no words with the service's message", async () => {
  const page = await open(`#${new URLSearchParams({ classify: "oceann (oceann)" })}`, { failing: /404|422/ });
  await page.locator("#notice .chip", { hasText: /^ocean$/ }).click();
  await shows(page, "Labels of “ocean (ocean)”");
  // A space for the service, but not for the page.
  await ask(page, { classify: "\u0085" });
  const { detail } = await service.post("classify", { text: "\u0085" });
  assert.match(detail, /at least one word/);
  await becomes(() => page.locator("#notice p").first().textContent(), detail);
  assert.equal(await page.locator("#found").isVisible(), false);
});

test("a text that is longer than the head reads says so", async () => {
  const page = await open(`#${new URLSearchParams({ classify: "good film ".repeat(400) })}`);
  await classified(page);
  const { heads } = await service.get("heads");
  await becomes(async () => (await page.locator("#answer .note").first().textContent()).includes(`first ${heads[0].tokens.limit} tokens`), true);
});

test("a text that is too long for a request is refused in the service's words", async () => {
  const page = await open("", { failing: /413/ });
  await page.click("#tab-classify");
  await page.route("**/classify", (route) => route.continue({ postData: JSON.stringify({ text: "film ".repeat(2_000_000) }) }));
  await page.fill("#classify", "film");
  await page.keyboard.press("Enter");
  await becomes(async () => (await page.locator("#notice h2").count()) > 0, true);
  const answer = await service.post("classify", { text: "film ".repeat(2_000_000) });
  assert.equal(answer.status, 413);
  assert.equal(await page.locator("#notice p").first().textContent(), answer.detail);
});

test("no text: the field gets the focus, and nothing is asked", async () => {
  const page = await open();
  await page.click("#tab-classify");
  await page.fill("#classify", "  \n ");
  await page.locator("button.go").click();
  assert.equal(await page.evaluate(() => document.activeElement.id), "classify");
  assert.equal(await page.locator("#missing").isVisible(), true);
  assert.equal(new URL(page.url()).hash, "#tab=classify");
});

test("punctuation is no unknown word, in notes, in the text and in the neighbours of a text", async () => {
  const page = await open();
  const [said, dotted] = [page.locator("#answer .note", { hasText: "Unknown words" }), page.locator("#answer .painted .unknown")];
  for (const kind of ["classify", "expand"]) {
    await goTo(page, `#${new URLSearchParams({ [kind]: "film ... (qqqq) ? ! ocean – ## *" })}`);
    assert.equal(await said.textContent(), "Unknown words, dotted in the text: qqqq.", kind);
    assert.equal((await dotted.allTextContents()).join(""), "qqqq", kind);
  }
  await goTo(page, `#${new URLSearchParams({ text: "film ... (qqqq) ? ! ocean ##" })}`);
  assert.equal(await page.locator("#answer .note").textContent(), "Not in the model: qqqq.");
});

test("a long text is painted without holding the page up", async () => {
  const page = await open("#classify=film");
  const words = Array.from({ length: 20_000 }, (_, place) => `qq${place % 50}`).join(" ");
  const took = await page.evaluate(async (words) => {
    const { pieces } = await import(new URL("explorer/paint.js", document.baseURI));
    const began = performance.now();
    const parts = pieces(words, [{ start: 0, end: 3, share: 1 }], Array.from({ length: 50 }, (_, place) => `qq${place}`));
    return { time: performance.now() - began, unknown: parts.filter(({ isUnknown }) => isUnknown).length, whole: parts.map(({ text }) => text).join("") === words };
  }, words);
  assert.deepEqual([took.unknown, took.whole], [20_000, true]);
  // Piece by piece against every range it took minutes.
  assert.ok(took.time < 3000, `${took.time} ms`);
});

test("examples are there to click", async () => {
  const page = await open();
  assert.equal(await page.locator("#text-examples").isVisible(), false);
  await page.click("#tab-classify");
  const chip = page.locator("#text-examples .chip", { hasText: "a moving and funny film" });
  await chip.waitFor();
  assert.equal(await page.locator("#examples").isVisible(), false);
  await chip.click();
  await shows(page, "Labels of “a moving and funny film”");
  assert.equal(await page.inputValue("#classify"), "a moving and funny film");
  await page.click("#tab-word");
  assert.equal(await page.locator("#examples").isVisible(), true);
  assert.equal(await page.locator("#text-examples").isVisible(), false);
});

test("keyboard only: the tab, a text of two lines, a label", async () => {
  const page = await open();
  const lines = ["a bad film", "and/or boring"];
  const { focus, tabTo } = await typeTwoLines(page, { kind: "classify", left: 3, lines, title: "Labels of “a bad film\nand/or boring”" });
  await tabTo("positive", 10);
  await page.keyboard.press("Enter");
  await becomes(() => page.locator("#answer [aria-current]").textContent(), "positive");
  await settled(page);
  assert.equal(await focus(), "answer-title");
  await page.keyboard.press("/");
  assert.equal(await focus(), "classify");
});

test("an input method's Enter asks nothing", async () => {
  const page = await open();
  await page.click("#tab-classify");
  await page.fill("#classify", "film");
  await page.locator("#classify").dispatchEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true });
  assert.equal(new URL(page.url()).hash, "#tab=classify");
  assert.equal(await page.locator("#found").isVisible(), false);
});

test("of two texts, the one that was asked last is shown", async () => {
  const page = await open();
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route("**/classify", async (route) => {
    if (route.request().postDataJSON().text === "slow film") await released;
    await route.continue().catch(() => {}); // It was given up.
  });
  await ask(page, { classify: "slow film" });
  await eventually(async () => assert.ok(await page.evaluate(() => document.body.classList.contains("busy"))));
  await ask(page, { classify: "good film" });
  await shows(page, "Labels of “good film”");
  release();
  await page.waitForTimeout(500);
  assert.equal(await page.locator("#answer-title").textContent(), "Labels of “good film”");
  await ask(page, { word: "ocean" });
  await shows(page, "Nearest to “ocean”");
  assert.equal(await page.locator("#map .asked text").textContent(), "ocean");
});

test("approximate shares and independent labels are said to be so", async () => {
  const page = await open();
  const change = (route, edit) =>
    page.route(route, async (to) => {
      const response = await to.fetch();
      const answer = await response.json();
      edit(answer);
      await to.fulfill({ response, json: answer });
    });
  await change("**/classify", ({ explanation }) => (explanation.exact = false));
  await change("**/heads", ({ heads }) => {
    heads[0].probabilities = "sigmoid";
    heads[0].labels.push("a third");
  });
  await ask(page, { classify: "a moving and funny film" });
  await classified(page);
  const said = await page.locator("#answer").textContent();
  assert.match(said, /gradient of the class score times the n-gram's value: an approximation/);
  assert.doesNotMatch(said, /add up to the class score/);
  assert.match(said, /the probabilities need not add up to 1/);
  assert.match(said, /1 less probable label is not shown/);
});

test("roles and names", async () => {
  const page = await open("#classify=what+a+waste+of+time");
  await classified(page);
  for (const [role, name] of [
    ["tab", "Classify"], ["textbox", "Text"], ["button", "Classify"], ["link", "negative"], ["link", "positive"],
    ["table", "N-grams with their shares of the class score of negative"], ["columnheader", "share"],
  ]) {
    assert.ok((await page.getByRole(role, { name, exact: true }).count()) > 0, `${role} ${name}`);
  }
});
