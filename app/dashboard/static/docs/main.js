// @ts-check
// The reference of the API. Swagger UI comes from the installed package, as a script of its own.

const { SwaggerUIBundle } = /** @type {any} */ (window);

SwaggerUIBundle({
  url: "../openapi.json",
  dom_id: "#api",
  deepLinking: true,
  // Otherwise a service of swagger.io is asked to check the description.
  validatorUrl: null,
  showExtensions: true,
});
