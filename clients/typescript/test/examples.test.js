/** The examples of the README and of the doc comments print what their comments say. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { serve } from "../../../tests/browser/support/service.js";

const folder = new URL("..", import.meta.url);
const service = await serve();
after(() => service.stop());

/** What an example is to print: its comments after `// `, in order. */
const promised = (code) => [...code.matchAll(/(?<=^|[;}] )\/\/ (.*)$/gm)].map(([, said]) => said);

/** Runs it in a process of its own, in which the package imports itself by name. */
async function printed(code) {
  const text = code.replaceAll("http://127.0.0.1:8080", service.url);
  const options = { cwd: fileURLToPath(folder), encoding: "utf8" };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", text], options);
  return stdout.trimEnd().split("\n");
}

/** The examples of a source file: what stands in a comment behind `@example`, to an empty line, another tag or its end. */
function examples(file) {
  const text = readFileSync(new URL(`src/${file}`, folder), "utf8");
  const found = text.matchAll(/^ *\* @example\n((?: *\* (?!@).+\n)+)/gm);
  return [...found].map(([, lines]) => lines.replace(/^ *\* /gm, ""));
}

const START = `import { errorOf, Kindred, metadata, UnknownWordError } from "kindred-vectors";
  const kindred = new Kindred({ baseUrl: "http://127.0.0.1:8080" });\n`;
const END = "---";

test("the README's example", async () => {
  const text = readFileSync(new URL("README.md", folder), "utf8");
  const [, code, shown] = /^```js\n([^]*?)^```\n\nIt prints:\n\n```text\n([^]*?)^```$/m.exec(text);
  assert.deepEqual(await printed(code), shown.trimEnd().split("\n"));
});

test("the examples of the doc comments", async () => {
  const all = ["client.ts", "errors.ts"].flatMap(examples);
  assert.ok(all.length >= 15, `${all.length}`);
  // In one process, each in a block of its own.
  const lines = await printed(START + all.map((code) => `{\n${code}}\nconsole.log("${END}");\n`).join(""));
  const found = lines
    .join("\n")
    .split(`${END}`)
    .map((text) => text.split("\n").filter(Boolean));
  for (const [i, code] of all.entries()) {
    assert.ok(promised(code).length > 0, `it promises nothing: ${code}`);
    assert.deepEqual(found[i], promised(code), code);
  }
});
