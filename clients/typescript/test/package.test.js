/** The package as others use it: its types are current, it is well formed, small, and depends on nothing. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));

/** Runs a program of `node_modules`. */
function run(program, ...words) {
  return new Promise((resolve) => {
    const done = (error, stdout, stderr) => resolve({ failed: error !== null, said: stdout + stderr });
    execFile(process.execPath, [`${folder}/node_modules/.bin/${program}`, ...words], { cwd: folder, encoding: "utf8" }, done);
  });
}

test("src/generated.ts is current: else run `npm run generate`", async () => {
  const [program, ...words] = manifest.scripts.generate.split(" ");
  assert.equal(program, "openapi-typescript");
  const { failed, said } = await run(program, ...words, "--check");
  assert.ok(!failed, said);
});

test("users' code compiles, and wrong code does not: test/types.ts", async () => {
  const strict = ["--noEmit", "--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "false", "--target", "es2022"];
  for (const environment of [
    // In Node, with nothing but what Node's types declare; and in a browser, with nothing of Node's.
    ["--lib", "es2023", "--types", "node", "--module", "nodenext"],
    ["--lib", "es2022,dom", "--typeRoots", "none", "--module", "esnext", "--moduleResolution", "bundler"],
  ]) {
    const { failed, said } = await run("tsc", ...strict, ...environment, "test/types.ts");
    assert.ok(!failed, `${environment}\n${said}`);
  }
});

test("publint finds nothing to improve", async () => {
  const { failed, said } = await run("publint", "--strict");
  assert.ok(!failed && said.includes("All good!"), said);
});

test("the types are found by every way to import it: @arethetypeswrong/cli", async () => {
  const { failed, said } = await run("attw", "--pack", ".", "--profile", "esm-only", "--no-color");
  assert.ok(!failed, said);
});

test("it depends on nothing, and its code is small", async () => {
  for (const kind of ["dependencies", "peerDependencies", "optionalDependencies"]) assert.equal(manifest[kind], undefined);
  const sizes = ["arrays", "client", "deadline", "errors", "index", "settings", "transport"].map((name) =>
    readFileSync(`${folder}/dist/${name}.js`, "utf8"),
  );
  for (const text of sizes) assert.doesNotMatch(text, /from "(?!\.\/)|require\(|import\(/);
  const code = sizes
    .join("")
    .replace(/\/\*\*[^]*?\*\//g, "")
    .replace(/^ *\/\/.*\n/gm, "");
  assert.ok(code.length < 26_000, `${code.length}`);
});
