/** crates/server/explorer/address.js and words.js: what is asked, as an address and back; words in expressions and lists. */

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { explorerModule } from "./support/module.js";
import { ODD_WORDS, oddRows } from "./support/odd_words.js";
import { prepare, serve } from "./support/service.js";

const { quoted, read, write } = await explorerModule("address.js");
const { inList, isWord, wordsIn } = await explorerModule("words.js");

const service = await serve(["--model", prepare(oddRows()), "--keep-tables", "false"]);
after(() => service.stop());

const plain = { k: 20, limit: null, fold: false, exclude: null, filter: null, model: null, tab: null };

test("an address says what was asked, whatever the words are", () => {
  for (const word of ODD_WORDS) {
    for (const question of [
      { ...plain, kind: "word", word },
      { ...plain, kind: "text", text: word, k: 7 },
      { ...plain, kind: "analogy", analogy: quoted(word), method: null, limit: 500, model: word },
      { ...plain, kind: "analogy", analogy: quoted(word), method: "3cosmul", exclude: `${word}, ${inList(word)}` },
      { ...plain, kind: "odd", odd: `${inList(word)} ${word}`, exclude: word, filter: `key = ${inList(word)} AND a < 5` },
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
  for (const hash of ["", "#", "#nonsense", "#k=0", "#k=-1&limit=-1&fold=yes", "#limit=1e30", "#word=", "#word=+", "#compare=coffee", "#compare=coffee&with=", "#k=1.5&limit=0", "#k=NaN&limit=x", "#exclude=+", "#filter=+", "#tab=word", "#tab=text", "#tab=none", "#method=3cosmul"]) {
    assert.deepEqual(read(hash), { ...plain, kind: null }, hash);
  }
  assert.deepEqual(read("#analogy=a&method=best&tab=odd"), { ...plain, kind: "analogy", analogy: "a", method: null });
});

test("an address names the tab that is open while it has no query", () => {
  for (const tab of ["analogy", "compare", "odd", "classify", "expand"]) {
    const question = { ...plain, kind: null, tab, k: 7 };
    assert.equal(write(question), `#tab=${tab}&k=7`);
    assert.deepEqual(read(write(question)), question);
  }
});

test("a list has its words apart by spaces, or by commas, and quotes keep both", () => {
  for (const [text, words] of [
    ["breakfast cereal  dinner\tlunch ", ["breakfast", "cereal", "dinner", "lunch"]],
    ["new york, los angeles ,paris,", ["new york", "los angeles", "paris"]],
    ['"new york" paris', ["new york", "paris"]],
    ['"1,000" "say \\"hi\\"" c++', ["1,000", 'say "hi"', "c++"]],
    [' "1,000" , two words,"a b"', ["1,000", "two words", "a b"]],
    ['it\'s say"hi', ["it's", 'say"hi']],
    ["", []], [" , ,", []],
  ]) {
    assert.deepEqual(wordsIn(text), words, text);
  }
  for (const word of ODD_WORDS.filter((word) => word.trim() === word)) {
    assert.deepEqual(wordsIn([word, "x", word].map(inList).join(" ")), [word, "x", word], word);
    assert.deepEqual(wordsIn([word, "x", word].map(inList).join(", ")), [word, "x", word], word);
  }
});

test("punctuation is no word; letters, digits, emoji and signs with them are", () => {
  for (const text of [",", "?!", "(", "«", "…", "--", "$", "<>", "\u200b"]) assert.equal(isWord(text), false, text);
  for (const word of ["a", "é", "日本語", "12", "c++", "it's", "🦀", "u.s.", "#1", "©"]) assert.equal(isWord(word), true, word);
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
