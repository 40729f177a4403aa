/** Highlights a word in the list, on the map and in the grid when it is hovered or focused in any of them. */

/** Starts listening. */
export function watchHighlights() {
  const found = document.getElementById("found");
  const mark = (event) => {
    const word = event.target.closest("[data-word]")?.dataset.word;
    for (const element of found.querySelectorAll(".marked")) element.classList.remove("marked");
    if (word === undefined) return;
    for (const element of found.querySelectorAll("[data-word]")) {
      if (element.dataset.word === word) element.classList.add("marked");
    }
  };
  for (const name of ["pointerover", "focusin"]) found.addEventListener(name, mark);
}
