// Shows openapi.yaml, which lies beside this page: so it is found behind any prefix of a proxy.
SwaggerUIBundle({
  url: "openapi.yaml",
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  // Else it asks a service on the internet what it thinks of the file.
  validatorUrl: null,
});
