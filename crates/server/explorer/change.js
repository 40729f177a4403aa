/** What all changes need: a question before, and words for what went wrong. */

import { Unreachable } from "./api.js";
import { make } from "./dom.js";
import { keyForm } from "./notice.js";

/** Asks before something that can't be undone; returns whether it may be done. */
export async function confirmed(title, text, action) {
  const dialog = make(
    "dialog",
    { class: "card", "aria-labelledby": "dialog-title" },
    make(
      "form",
      { method: "dialog" },
      make("h2", { id: "dialog-title" }, title),
      make("p", { class: "lines" }, text),
      make(
        "p",
        { class: "tools" },
        make("button", { value: "no", autofocus: true }, "Cancel"),
        make("button", { value: "yes", class: "danger" }, action),
      ),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  dialog.remove();
  return dialog.returnValue === "yes";
}

/**
 * Says why a change failed, and what helps.
 * @param {function} again sends it again
 */
export function failure(error, place, again) {
  const { document, status } = error;
  if (!document && !(error instanceof Unreachable)) console.error(error);
  const text =
    error instanceof Unreachable
      ? "The service is not responding. The change may be made or not: look, or send it again."
      : `${document ? `${document.title}: ` : ""}${error.message}.`;
  const isOfKey = status === 401 || document?.code === "forbidden";
  place.replaceChildren(
    make("div", { class: "fault" }, make("p", {}, text), isOfKey ? keyForm(again) : null),
  );
}
