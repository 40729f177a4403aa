/** The documents of examples/search, prepared as its README says. */

import { join } from "node:path";

import { kindred, temporaryFolder } from "./service.js";

const ofRepository = (path) => new URL(`../../../${path}`, import.meta.url).pathname;

export const THINGS = ofRepository("examples/search/documents.jsonl");

/** The built-in model's words, as a folder that encodes texts. */
export function prepareWords(folder = temporaryFolder()) {
  const words = join(folder, "words");
  kindred("prepare", ofRepository("models/demo/demo-100d.txt.gz"), "--out", words);
  return words;
}

/** Documents whose texts are kept, with all other fields as attributes; returns their folder. */
export function prepareDocuments(file, encoder, text = "text") {
  const folder = join(temporaryFolder(), "documents");
  kindred("prepare", file, "--encoder", encoder, "--text", text, "--key", "id", "--attributes", file, "--keep-text", "--out", folder);
  return folder;
}
