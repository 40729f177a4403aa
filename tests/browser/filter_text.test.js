/** crates/server/explorer/filter_text.js: what may follow in a filter, its tests, and texts as values. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { explorerModule } from "./support/module.js";

const { asValue, completions, testsOf } = await explorerModule("filter_text.js");

const ATTRIBUTES = [
  { name: "category", type: "text", frequent: [{ value: "shoes", rows: 6 }, { value: "winter coats", rows: 2 }] },
  { name: "tags", type: "list", frequent: [{ value: "red", rows: 3 }] },
  { name: "price", type: "number" },
  { name: "on_sale", type: "boolean" },
];

/** What is suggested where `|` stands. */
function suggested(text) {
  const caret = text.indexOf("|");
  return completions(text.replace("|", ""), caret, ATTRIBUTES).items.map(({ text }) => text);
}

test("what may follow is suggested at each place", () => {
  const names = ["category", "tags", "price", "on_sale", "key", "NOT"];
  const ordered = ["<", "<=", ">", ">=", "=", "!=", "EXISTS", "IS NULL"];
  const values = ["shoes", '"winter coats"'];
  const joints = ["AND", "OR"];
  for (const [text, expected] of [
    ["|", names],
    ["(|", names],
    ["NOT |", names],
    ["c|", ["category"]],
    ["Pri|", ["price"]],
    ["cat|egory = x", ["category"]],
    ["price |", ordered],
    ["price<|", ["<", "<="]],
    ["price is|", ["IS NULL"]],
    ["price < |", []],
    ["price 5 |", ["TO"]],
    ["price 5 TO |", []],
    ["price 5 TO 7 |", joints],
    ["price EXISTS |", joints],
    ["price IS NOT NULL |", joints],
    ["category |", ["=", "!=", "IN [", "NOT IN [", "STARTS WITH", "EXISTS", "IS NULL"]],
    ["category=|", ["="]],
    ["category = |", values],
    ["category = w|", ['"winter coats"']],
    ['category = "w|', ['"winter coats"']],
    ["category STARTS WITH |", values],
    ["category IN [|", values],
    ["category IN [shoes|]", ["shoes"]],
    ["category IN [shoes |", [",", "]"]],
    ["category IN [shoes, |", values],
    ["category IN [shoes, boots] |", joints],
    ['category = "a AND b" a|', ["AND"]],
    ["category = shoes AND |", names],
    ["category = shoes OR (tags != |", ["red"]],
    ["on_sale = |", ["true", "false"]],
    ["key |", ["=", "!=", "IN [", "NOT IN ["]],
    ["key = |", []],
    ["colour |", []],
    ["| price < 5", names],
  ]) {
    assert.deepEqual(suggested(text), expected, text);
  }
});

test("a suggestion takes the place of the whole piece at the caret", () => {
  for (const [text, from, to] of [["price < 5 AND cat|egory = x", 14, 22], ["price |", 6, 6], ['tags = "re|', 7, 10], ["(|price", 1, 1], ["a = (|", 5, 5]]) {
    const caret = text.indexOf("|");
    const found = completions(text.replace("|", ""), caret, ATTRIBUTES);
    assert.deepEqual([found.from, found.to], [from, to], text);
  }
});

test("a filter is as many tests as rows have to meet", () => {
  for (const [filter, tests] of [
    ["price < 80", ["price < 80"]],
    [" price 5 TO 7 AND category = shoes and NOT on_sale = true ", ["price 5 TO 7", "category = shoes", "NOT on_sale = true"]],
    ["(a = 1 AND b = 2) AND c = 3", ["(a = 1 AND b = 2)", "c = 3"]],
    ["a = 1 AND b = 2 OR c = 3", ["a = 1 AND b = 2 OR c = 3"]],
    ["(a = 1 OR b = 2) AND c IN [AND, 'OR']", ["(a = 1 OR b = 2)", "c IN [AND, 'OR']"]],
    [`t = "x AND y" AND u = 'a\\' OR'`, [`t = "x AND y"`, `u = 'a\\' OR'`]],
    ["(a = 1 AND b", ["(a = 1 AND b"]],
    ["a = 1 AND", ["a = 1"]],
  ]) {
    assert.deepEqual(testsOf(filter), tests, filter);
  }
});

test("texts that are read as something else have quotes", () => {
  for (const [text, value] of [
    ["shoes", "shoes"], ["Größe-1.5", "Größe-1.5"], ["winter coats", '"winter coats"'], ["", '""'], ["and", '"and"'], ["true", '"true"'],
    ['a"b\\', '"a\\"b\\\\"'], ["a=b", '"a=b"'], ["it's", `"it's"`], ["\n", '"\n"'],
  ]) {
    assert.equal(asValue(text), value);
  }
});
