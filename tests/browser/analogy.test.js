/** Analogies: each term's share of the score, the same numbers as the service's. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { becomes, explorer, goTo, listed, settled, shows } from "./support/explorer.js";

const { service, open } = await explorer();

/** A number as the page writes it. */
const read = (text) => Number(text.replace("−", "-"));

test("shares sum to the score", async () => {
  const page = await open();
  for (const [expression, terms] of [
    ["king - man + woman", 3],
    ["0.5*(paris + japan) - france", 3],
    ["ocean", 1],
    ["2*king - queen - man - woman + tree + house + river", 7],
  ]) {
    await goTo(page, `#${new URLSearchParams({ analogy: expression, k: 10 })}`);
    await shows(page, `${expression} ≈`);
    const answer = await service.post("analogy", { expression, k: 10, explain: true });
    assert.deepEqual(await listed(page), answer.neighbors.map((hit) => hit.word));
    assert.equal(await page.locator(".terms li").count(), terms);

    const rows = await page.locator("#answer li:has(.shares)").evaluateAll((rows) =>
      rows.map((row) => ({
        score: row.querySelector(".score").textContent,
        shares: row.querySelector(".share-list").textContent.split(" · ").map((share) => share.split(": ").at(-1)),
        given: [...row.querySelectorAll(".give i")].map((part) => part.getBoundingClientRect().width),
        taken: [...row.querySelectorAll(".take i")].map((part) => part.getBoundingClientRect().width),
        room: row.querySelector(".shares").getBoundingClientRect().width - 2,
      })),
    );
    assert.equal(rows.length, 10);
    const sum = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
    const scale = rows.map(({ given, taken }, place) => (sum(given) - sum(taken)) / answer.neighbors[place].score);
    rows.forEach((row, place) => {
      const hit = answer.neighbors[place];
      assert.equal(read(row.score), Number(hit.score.toFixed(3)));
      assert.deepEqual(row.shares.map(read), hit.terms.map((term) => Number(term.contribution.toFixed(2)) + 0));
      assert.ok(Math.abs(sum(hit.terms.map((term) => term.contribution)) - hit.score) < 1e-6);
      // One scale for all bars: they are as long as the scores, less what is taken.
      assert.ok(Math.abs(scale[place] / scale[0] - 1) < 0.03, `${scale}`);
      assert.ok(sum(row.given) + sum(row.taken) <= row.room + 2, JSON.stringify(row));
    });
  }
});

test("the words of the question are named with the places that they would have", async () => {
  const page = await open("#analogy=king+-+man+%2B+woman");
  await shows(page, "king - man + woman ≈");
  const { inputs } = await service.post("analogy", { expression: "king - man + woman", explain: true });
  const note = await page.locator("#answer .note").textContent();
  for (const { word, rank, score } of inputs) {
    assert.ok(note.includes(`${word} would have rank ${rank.toLocaleString("en")} with ${score.toFixed(3).replace("-", "−")}`), note);
  }
});

test("no two terms look the same, but those that are called further terms", async () => {
  const words = ["king", "queen", "man", "woman", "tree", "house", "river", "ocean", "piano", "tea", "coffee", "green", "lake", "city", "war"];
  const page = await open(`#${new URLSearchParams({ analogy: words.join(" + "), k: 10 })}`);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const looks = await page.locator(".terms li").evaluateAll((terms) =>
      terms.map((term) => {
        const { backgroundColor, backgroundImage } = getComputedStyle(term, "::before");
        return { look: `${backgroundColor} ${backgroundImage}`, name: term.textContent };
      }),
    );
    assert.equal(looks.length, 13);
    assert.equal(new Set(looks.map(({ look }) => look)).size, looks.length, JSON.stringify(looks));
    assert.equal(looks.at(-1).name, "3 further terms");
    // Bars look as the legend says.
    const used = await page.locator(".shares i").evaluateAll((parts) =>
      parts.map((part) => `${getComputedStyle(part).backgroundColor} ${getComputedStyle(part).backgroundImage}`),
    );
    assert.ok(used.length > 10);
    for (const look of used) assert.ok(looks.some((term) => term.look === look), look);
    const most = await page.locator(".shares").evaluateAll((rows) => Math.max(...rows.map((row) => row.querySelectorAll("i").length)));
    assert.ok(most <= 14, `${most}`);
    // All terms are named with each neighbour.
    assert.equal((await page.locator(".share-list").first().textContent()).split(" · ").length, words.length);
  }
});

test("other methods: scores are the service's, the address says which, and factors multiply", async () => {
  const page = await open("#analogy=king+-+man+%2B+woman");
  for (const method of ["3cosmul", "pairdirection"]) {
    await page.selectOption("#method", method);
    await becomes(() => new URLSearchParams(new URL(page.url()).hash.slice(1)).get("method"), method);
    await settled(page);
    const { neighbors } = await service.post("analogy", { expression: "king - man + woman", method, k: 20 });
    assert.deepEqual(await listed(page), neighbors.map((hit) => hit.word));
    const scores = (await page.locator("#answer .score").allTextContents()).map(read);
    assert.deepEqual(scores, neighbors.map((hit) => Number(hit.score.toFixed(3)) + 0));
    assert.equal(await page.locator(".terms li").count(), method === "3cosmul" ? 0 : 3);
    // The expression is no vector now, so the map has only words.
    assert.equal(await page.locator("#map .point.asked").count(), 3);
  }
  await page.selectOption("#method", "3cosmul");
  await page.getByText("product of its terms' factors").waitFor();
  assert.match(await page.locator(".share-list").first().textContent(), /^\+ king: ×[\d.]+ · \+ woman: ×[\d.]+ · − man: ×[\d.]+$/);
  const other = await open(new URL(page.url()).hash);
  assert.equal(await other.inputValue("#method"), "3cosmul");
  await page.selectOption("#method", "");
  await becomes(() => new URL(page.url()).hash, "#analogy=king+-+man+%2B+woman");
});

test("a typed expression is asked, its answer can be clicked, and the expression comes back", async () => {
  const page = await open();
  await page.click("#tab-analogy");
  await page.keyboard.type("paris - france + japan");
  await page.keyboard.press("Enter");
  await shows(page, "paris - france + japan ≈");
  const [first] = await listed(page);
  await page.click("#answer li a >> nth=0");
  await shows(page, `Nearest to “${first}”`);
  await page.goBack();
  await shows(page, "paris - france + japan ≈");
  assert.equal(await page.inputValue("#analogy"), "paris - france + japan");
});
