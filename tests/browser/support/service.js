/** The service under test: the real program on a port that the system chooses. */

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The program; scripts/check-explorer names it. */
const KINDRED = process.env.TEST_KINDRED;
if (!KINDRED) throw new Error("TEST_KINDRED must name the program: run scripts/check-explorer");

/** The environment without settings that someone has for a service of their own. */
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("KINDRED_")));

/** What a command of the program prints. */
export function kindred(...words) {
  return execFileSync(KINDRED, words, { env: environment, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** An API key and its line for the file of keys; with `--admin`, an admin's. */
export function apiKey(...flags) {
  const [, key, , , line] = kindred("api-key", "reader", ...flags).split("\n");
  return { key, line };
}

/** A folder that is removed when the process ends. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), "explorer-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Prepares a model from its rows.
 * @param {Object<string, number[]>|[string, number[]][]} rows vectors by word
 * @param {string} folder where it goes; a model that is there already is replaced
 * @param {object[]} attributes of each row, if there are any
 */
export function prepare(rows, folder = join(temporaryFolder(), "model"), attributes = []) {
  const text = join(temporaryFolder(), "vectors.txt");
  const lines = (Array.isArray(rows) ? rows : Object.entries(rows)).map(([word, row]) => `${word} ${row.join(" ")}\n`);
  writeFileSync(text, lines.join(""));
  const width = (Array.isArray(rows) ? rows[0][1] : Object.values(rows)[0]).length;
  const also = [];
  if (attributes.length > 0) {
    const file = join(temporaryFolder(), "attributes.jsonl");
    writeFileSync(file, attributes.map((one) => `${JSON.stringify(one)}\n`).join(""));
    also.push("--attributes", file);
  }
  kindred("prepare", text, "--format", "glove", "--dim", String(width), "--replace", "--out", folder, ...also);
  return folder;
}

/**
 * Starts it and waits until it answers.
 * @param {string[]} settings further arguments of `kindred serve`
 * @param {number} port 0: any that is free
 */
export async function serve(settings = [], port = 0) {
  const words = ["serve", "--listen", `127.0.0.1:${port}`, "--log-level", "warn", ...settings];
  const child = spawn(KINDRED, words, { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (bytes) => {
      said += bytes;
      const found = /http:\/\/[\d.]+:\d+/.exec(said);
      if (found) resolve(found[0]);
    });
    ended.then((code) => reject(new Error(`the service ended with ${code} before it listened: ${said}`)));
  });
  const answer = async (response) => ({ status: response.status, headers: response.headers, ...(await response.json()) });
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid,
    /** A route's answer, as JSON, with its `status` and `headers`. */
    get: async (route, parameters = {}) => answer(await fetch(`${url}/${route}?${new URLSearchParams(parameters)}`)),
    post: async (route, body) =>
      answer(
        await fetch(`${url}/${route}`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
        }),
      ),
    signal: (name) => child.kill(name),
    stop: () => (child.kill("SIGKILL"), ended),
  };
}
