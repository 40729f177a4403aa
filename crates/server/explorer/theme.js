// Sets light or dark before anything is drawn, to avoid a flash; a classic script, because modules load later.
// The choice is stored on this computer. If storage is not allowed, the system's setting applies.
"use strict";
const themes = ["system", "light", "dark"];

function chosenTheme() {
  try {
    const kept = localStorage.getItem("kindred-theme");
    return themes.includes(kept) ? kept : "system";
  } catch {
    return "system";
  }
}

function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (!button) return;
  button.setAttribute("aria-label", `Theme: ${theme}`);
  button.querySelector(".theme-name").textContent = theme;
}

showTheme(chosenTheme());
addEventListener("DOMContentLoaded", () => {
  showTheme(chosenTheme());
  document.getElementById("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme;
    const next = themes[(themes.indexOf(now) + 1) % themes.length];
    try {
      localStorage.setItem("kindred-theme", next);
    } catch {
      // The choice lasts until the page is closed.
    }
    showTheme(next);
  });
});
