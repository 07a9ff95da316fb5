/** What is sent again, and what is not: a server that answers as it is told. */

import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { Sameface, SamefaceError } from "../src/index.js";

interface Reply {
  status: number;
  body?: object;
  retryAfter?: string;
}
const BREAK = "break";
const ENROLLED: Reply = { status: 201, body: { person_id: "ada", faces: [], rejected: [], warnings: [] } };
const BUSY: Reply = { status: 429, body: { code: "overloaded", detail: "As told." }, retryAfter: "0" };
const PROXY: Reply = { status: 502 };
const photo = new Uint8Array(3);

async function answerWith(
  replies: (Reply | typeof BREAK)[],
  use: (faces: Sameface) => Promise<unknown>,
): Promise<IncomingHttpHeaders[]> {
  const asked: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      asked.push(request.headers);
      const reply = replies.shift()!;
      if (reply === BREAK) return request.socket.destroy();
      if (reply.retryAfter) response.setHeader("Retry-After", reply.retryAfter);
      response.writeHead(reply.status).end(reply.body && JSON.stringify(reply.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(new Sameface(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { key: "sesame" }));
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return asked;
}

for (const failure of [BUSY, PROXY, BREAK] as const) {
  const name = typeof failure === "string" ? failure : failure.status;
  test(`an enrolment is sent again with the same key after ${name}`, async () => {
    const asked = await answerWith([failure, ENROLLED], (faces) => faces.collection("staff").enroll("ada", [photo]));
    assert.equal(asked.length, 2);
    assert.ok(asked[0]!["idempotency-key"]);
    assert.equal(asked[0]!["idempotency-key"], asked[1]!["idempotency-key"]);
    assert.equal(asked[1]!.authorization, "Bearer sesame");
  });
}

for (const [failure, code] of [[PROXY, "unexpected_answer"], [BREAK, "connection_failed"]] as const) {
  test(`what may have been deleted is not deleted again: ${code}`, async () => {
    const asked = await answerWith([failure], (faces) =>
      assert.rejects(faces.collection("staff").forget("ada"), (error: SamefaceError) => error.code === code),
    );
    assert.equal(asked.length, 1);
  });
}

test("a deletion that was refused for now is sent again", async () => {
  const asked = await answerWith([BUSY, { status: 204 }], (faces) => faces.collection("staff").forget("ada"));
  assert.equal(asked.length, 2);
});

test("what waiting does not mend is thrown at once", async () => {
  const damaged: Reply = { status: 503, body: { code: "store_damaged", detail: "As told.", status: 503 } };
  const asked = await answerWith([damaged], (faces) =>
    assert.rejects(faces.detect(photo), (error: SamefaceError) => error.code === "store_damaged"),
  );
  assert.equal(asked.length, 1);
});
