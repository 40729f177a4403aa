/**
 * Word suggestions while typing: a combobox with a list, following the ARIA Authoring Practices Guide
 * (editable combobox with list autocomplete).
 */

import { ask } from "./api.js";
import { quoted } from "./address.js";
import { count, make } from "./dom.js";

const SHOWN = 8;

/**
 * Adds suggestions to a field.
 * @param {HTMLInputElement} input
 * @param {object} options `model()`: the name of the model; `expression`: whether the field takes an expression, so that
 *   the word at the caret is completed; `chosen()`: called when a whole word is selected
 */
export function suggest(input, { model, expression = false, chosen }) {
  const list = make("ul", { id: `${input.id}-words`, role: "listbox", class: "suggestions", hidden: true });
  list.setAttribute("aria-label", "Suggested words");
  input.after(list);
  set(input, { role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false" });
  let asked = null;
  let active = -1;

  input.addEventListener("input", refresh);
  input.addEventListener("keydown", onKey);
  input.addEventListener("blur", close);
  list.addEventListener("mousedown", (event) => {
    // The field keeps the focus.
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) choose(option.dataset.word);
  });

  async function refresh() {
    asked?.abort();
    const prefix = expression ? wordAtCaret(input).word : input.value.trimStart();
    if (prefix === "") return close();
    asked = new AbortController();
    const { signal } = asked;
    try {
      const parameters = { prefix, limit: SHOWN };
      const { answer } = await ask("words", { parameters, model: model(), signal });
      show(answer.words, prefix);
    } catch {
      // A newer request has replaced it.
      if (signal.aborted) return;
      // The query itself will report any error.
      close();
    }
  }

  function show(words, prefix) {
    if (document.activeElement !== input || (words.length === 1 && words[0].word === prefix)) return close();
    list.replaceChildren(
      ...words.map(({ word, row }, index) =>
        make(
          "li",
          { role: "option", id: `${list.id}-${index}`, "data-word": word, "aria-selected": "false" },
          make("span", {}, make("b", {}, word.slice(0, prefix.length)), word.slice(prefix.length)),
          make("small", { title: "frequency rank" }, count(row + 1)),
        ),
      ),
    );
    active = -1;
    input.removeAttribute("aria-activedescendant");
    list.hidden = words.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
  }

  function close() {
    asked?.abort();
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function onKey(event) {
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      return close();
    }
    if (event.key === "Enter") {
      if (active < 0) return close();
      event.preventDefault();
      return choose(list.children[active].dataset.word);
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    if (list.hidden) refresh();
    else move(step);
  }

  function move(step) {
    const count = list.children.length;
    // One more position than words: the field itself.
    active = ((active + 1 + step + count + 1) % (count + 1)) - 1;
    [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === active)));
    if (active < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[active].id);
    list.children[active].scrollIntoView({ block: "nearest" });
  }

  function choose(word) {
    if (expression) {
      const { from, to } = wordAtCaret(input);
      input.setRangeText(quoted(word) + (to === input.value.length ? " " : ""), from, to, "end");
      close();
    } else {
      input.value = word;
      close();
      chosen();
    }
  }
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

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}
