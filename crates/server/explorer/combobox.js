/**
 * Suggestions while typing: a combobox with a list, following the ARIA Authoring Practices Guide (editable combobox with
 * list autocomplete).
 */

import { make } from "./dom.js";

/**
 * Adds suggestions to a field.
 * @param {HTMLInputElement} input
 * @param {object} options `label`: the list's name; `find(signal)`: what fits the text at the caret, as `{typed, items}`: what
 *   is typed of it, and for each suggestion its `text`, a `note` and the note's `title`; `take(text)`: puts a chosen one
 *   into the field, and returns whether to suggest what may follow
 */
export function combobox(input, { label, find, take }) {
  const list = make("ul", { id: `${input.id}-words`, role: "listbox", class: "suggestions", hidden: true });
  list.setAttribute("aria-label", label);
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
    asked = new AbortController();
    const { signal } = asked;
    try {
      const { typed, items } = await find(signal);
      if (!signal.aborted) show(items, typed);
    } catch {
      // A newer request has replaced it.
      if (signal.aborted) return;
      // The query itself will report any error.
      close();
    }
  }

  function show(items, typed) {
    if (document.activeElement !== input || (items.length === 1 && items[0].text === typed)) return close();
    list.replaceChildren(
      ...items.map(({ text, note, title }, index) =>
        make(
          "li",
          { role: "option", id: `${list.id}-${index}`, "data-word": text, "aria-selected": "false" },
          make("span", {}, make("b", {}, text.slice(0, typed.length)), text.slice(typed.length)),
          make("small", { title }, note),
        ),
      ),
    );
    active = -1;
    input.removeAttribute("aria-activedescendant");
    list.hidden = items.length === 0;
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

  function choose(text) {
    close();
    if (take(text)) refresh();
  }
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}
