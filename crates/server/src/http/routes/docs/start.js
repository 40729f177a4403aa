// Shows openapi.yaml, which lies beside this page: so it is found behind any prefix of a proxy.
"use strict";

const root = document.getElementById("api");

// Light or dark as the explorer is: by the choice that its button stores, otherwise as the system.
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  let chosen = null;
  try {
    chosen = localStorage.getItem("kindred-theme");
  } catch {
    // Storage is not allowed.
  }
  const isDark = chosen === "dark" || (chosen !== "light" && systemIsDark.matches);
  document.documentElement.classList.toggle("dark-mode", isDark);
  document.documentElement.classList.toggle("light-mode", !isDark);
}

showTheme();
systemIsDark.addEventListener("change", showTheme);
addEventListener("storage", showTheme);

// A link within a button can't be used from the keyboard. The button opens the request and changes the address itself.
const withoutLinksInButtons = () => ({
  wrapComponents: {
    DeepLink: (DeepLink, { React }) => (link) =>
      link.path.includes("/") ? React.createElement("span", null, link.text) : React.createElement(DeepLink, link),
  },
});

// Names for the fields, tables and buttons that Swagger UI leaves without one.
function nameAll() {
  for (const field of root.querySelectorAll(":is(input, select, textarea):not([aria-label])")) {
    const parameter = field.closest("tr[data-param-name]")?.dataset.paramName;
    const name = parameter ?? (field.matches(".body-param__text") ? "Request body" : field.matches(".examples-select-element") ? "Example" : null);
    if (name !== null) field.setAttribute("aria-label", name);
  }
  root.querySelector("#servers:not([aria-label])")?.setAttribute("aria-label", "Server");
  root.querySelector(".close-modal:not([aria-label])")?.setAttribute("aria-label", "Close");
  // Their text says what they do; their labels say something else.
  for (const button of root.querySelectorAll(".modal-btn[aria-label]")) button.removeAttribute("aria-label");
  for (const table of root.querySelectorAll("table.responses-table[role=region]:not([aria-label])")) {
    table.setAttribute("aria-label", `Responses of ${table.closest(".opblock")?.id.split("-").pop() ?? table.id}`);
  }
  for (const button of root.querySelectorAll(".copy-to-clipboard button:not([aria-label])")) button.setAttribute("aria-label", "Copy");
}

new MutationObserver(nameAll).observe(root, { childList: true, subtree: true });
document.getElementById("skip").addEventListener("click", () => root.querySelector(".opblock-tag a")?.focus());

SwaggerUIBundle({
  url: "openapi.yaml",
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  // Its colours are too pale to read, and large answers hold the page up.
  syntaxHighlight: { activated: false },
  plugins: [withoutLinksInButtons],
  // Else it asks a service on the internet what it thinks of the file.
  validatorUrl: null,
});
