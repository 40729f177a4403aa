/** Word suggestions while typing. */

import { ask } from "./api.js";
import { quoted } from "./address.js";
import { combobox } from "./combobox.js";
import { count } from "./dom.js";

const SHOWN = 8;

/**
 * Adds suggestions to a field.
 * @param {HTMLInputElement} input
 * @param {object} options `model()`: the name of the model; `expression`: whether the field takes an expression, so that
 *   the word at the caret is completed; `chosen()`: called when a whole word is selected
 */
export function suggest(input, { model, expression = false, chosen }) {
  async function find(signal) {
    const typed = expression ? wordAtCaret(input).word : input.value.trimStart();
    if (typed === "") return { typed, items: [] };
    const { answer } = await ask("words", { parameters: { prefix: typed, limit: SHOWN }, model: model(), signal });
    return { typed, items: answer.words.map(({ word, row }) => ({ text: word, note: count(row + 1), title: "frequency rank" })) };
  }

  function take(word) {
    if (expression) {
      const { from, to } = wordAtCaret(input);
      input.setRangeText(quoted(word) + (to === input.value.length ? " " : ""), from, to, "end");
    } else {
      input.value = word;
      chosen();
    }
    return false;
  }

  combobox(input, { label: "Suggested words", find, take });
}

/** The piece of an expression at the caret, without sign, weight and quotes. */
function wordAtCaret(input) {
  const caret = input.selectionStart;
  const before = /(?:"[^"]*|[^\s()"]*)$/.exec(input.value.slice(0, caret))[0];
  const sign = /^(?:[+-](?=.))?(?:[\d.]+(?:e[+-]?\d+)?\*)?"?|^[+-]$/i.exec(before)[0].length;
  const from = caret - before.length + (before[sign - 1] === '"' ? sign - 1 : sign);
  const after = /^[^\s()"]*"?/.exec(input.value.slice(caret))[0];
  return { word: before.slice(sign), from, to: caret + after.length };
}
