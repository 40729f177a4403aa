/** crates/server/explorer/address.js: what is asked, as an address and back; words in expressions. */

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { explorerModule } from "./support/module.js";
import { ODD_WORDS, oddRows } from "./support/odd_words.js";
import { prepare, serve } from "./support/service.js";

const { quoted, read, write } = await explorerModule("address.js");

const service = await serve(["--model", prepare(oddRows()), "--keep-tables", "false"]);
after(() => service.stop());

const plain = { k: 20, limit: null, fold: false, model: null };

test("an address says what was asked, whatever the words are", () => {
  for (const word of ODD_WORDS) {
    for (const question of [
      { ...plain, kind: "word", word },
      { ...plain, kind: "text", text: word, k: 7 },
      { ...plain, kind: "analogy", analogy: quoted(word), limit: 500, model: word },
      { ...plain, kind: "compare", compare: word, with: `${word} `, fold: true, k: 1000 },
      { ...plain, kind: "classify", classify: `${word}\n${word}`, head: null, label: null },
      { ...plain, kind: "classify", classify: word, head: word, label: word, model: word },
      { ...plain, kind: "expand", expand: `${word}\n${word}`, head: null, k: 100 },
      { ...plain, kind: "expand", expand: word, head: word, model: word },
    ]) {
      const address = write(question);
      assert.deepEqual(read(address), question, address);
      // It survives a browser's own handling of addresses.
      assert.deepEqual(read(new URL(address, "http://127.0.0.1/kindred/").hash), question, address);
    }
  }
});

test("an address that makes no sense asks with the defaults", () => {
  for (const hash of ["", "#", "#nonsense", "#k=0", "#k=-1&limit=-1&fold=yes", "#limit=1e30", "#word=", "#word=+", "#compare=coffee", "#compare=coffee&with=", "#k=1.5&limit=0", "#k=NaN&limit=x"]) {
    assert.deepEqual(read(hash), { ...plain, kind: null }, hash);
  }
});

test("more neighbours than the service gives are as many as it gives", () => {
  assert.deepEqual(read("#word=a&k=1e9"), { ...plain, kind: "word", word: "a", k: 1000 });
});

test("quoted words are these words for the service, in any place of an expression", async () => {
  for (const word of ODD_WORDS) {
    for (const expression of [quoted(word), `- ${quoted(word)}`, `2*${quoted(word)} + 3*(${quoted("c++")} - ${quoted(word)})`]) {
      const answer = await service.post("analogy", { expression, k: 1, explain: true });
      assert.equal(answer.status, 200, `${word}: ${expression}: ${answer.detail}`);
      assert.equal(answer.inputs[0].word, word, expression);
    }
  }
});

test("ordinary words need no quotes", () => {
  for (const word of ["ocean", "well-known", "covid-19", "c++", "12", "1e5", "é", "日本語"]) assert.equal(quoted(word), word);
});
