// A server that answers every request with what Node's http module (llhttp) read of it, as JSON in the header x-read.
import { createHash } from "node:crypto";
import { createServer } from "node:http";

const server = createServer({ maxHeaderSize: 128 * 1024, keepAliveTimeout: 60_000 }, (request, response) => {
  const digest = createHash("sha256");
  let length = 0;
  request.on("data", (piece) => {
    digest.update(piece);
    length += piece.length;
  });
  request.on("end", () => {
    const { headers } = request;
    const framing = headers["transfer-encoding"] !== undefined ? "chunked"
      : Number(headers["content-length"] ?? 0) > 0 ? "length" : "empty";
    const read = {
      method: request.method, target: request.url, host: headers.host, framing, length, sha256: digest.digest("hex"),
    };
    response.setHeader("x-read", JSON.stringify(read));
    response.setHeader("content-length", 0);
    response.end();
  });
});
server.maxHeadersCount = 0;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
