/** A small reverse proxy that puts the service below a path, and can be slow or fail. */

import { createServer, request } from "node:http";

/**
 * @param {function} before `(request, response)`: true if it has answered, or will; a promise is waited for
 * @returns {Promise<{url, close}>} `url` is where the service's `/` is
 */
export async function proxy(service, { prefix = "/kindred/", before = () => false } = {}) {
  const server = createServer(async (from, to) => {
    if (await before(from, to)) return;
    if (!from.url.startsWith(prefix)) return to.writeHead(404).end("not below the prefix");
    const { hostname, port } = new URL(service.url);
    const path = from.url.slice(prefix.length - 1);
    const onward = request({ hostname, port, path, method: from.method, headers: from.headers }, (answer) => {
      to.writeHead(answer.statusCode, answer.headers);
      answer.pipe(to);
    });
    // As the usual ones answer while what is behind them is gone.
    onward.on("error", () => to.headersSent || to.writeHead(502, { "Content-Type": "text/html" }).end("<h1>502 Bad Gateway</h1>"));
    from.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}${prefix}`,
    close: () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))),
  };
}
