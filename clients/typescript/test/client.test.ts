/** The client against a real server at SAMEFACE_URL, with the key in SAMEFACE_API_KEY and photos of three people in SAMEFACE_PHOTOS. */

import assert from "node:assert/strict";
import { openAsBlob } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, test } from "node:test";

import { Sameface, SamefaceError } from "../src/index.js";

const faces = new Sameface(process.env["SAMEFACE_URL"]!);
const photo = (name: string) => readFile(join(process.env["SAMEFACE_PHOTOS"]!, `${name}.png`));
const staff = faces.collection("staff");

const fails = (code: string) => (error: unknown) => error instanceof SamefaceError && error.code === code;

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

afterEach(async () => {
  for await (const { name } of faces.collections()) await faces.collection(name).delete();
});

test("two photos are verified, from bytes and from blobs", async () => {
  const blob = await openAsBlob(join(process.env["SAMEFACE_PHOTOS"]!, "ada.png"));
  const decision = await faces.verify(blob, await photo("ada-again"), { threshold: 0.4 });
  assert.equal(decision.same_person, true);
  assert.equal(decision.threshold, 0.4);
  assert.ok(decision.probe.face.box.left > 0);
  assert.equal((await faces.verify(blob, await photo("bob"))).same_person, false);
});

test("faces are detected and embedded, and an embedding is searched for", async () => {
  assert.equal((await faces.detect(await photo("nobody"))).faces_found, 0);
  const embedding = (await faces.embed(await photo("ada"))).faces[0]!.embedding;
  assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-3);
  await staff.enroll("ada", [], { embeddings: [embedding, Array.from(embedding)] });
  assert.equal((await staff.identify(embedding)).results[0]!.match?.person_id, "ada");
});

test("a person is enrolled, identified, changed and forgotten", async () => {
  const photos = [await photo("ada"), await photo("nobody")];
  const enrolled = await staff.enroll("ada", photos, { name: "Ada", metadata: { room: 7 } });
  assert.equal(enrolled.faces.length, 1);
  assert.equal(enrolled.rejected[0]!.code, "no_face_found");
  const [result] = (await staff.identify(await photo("ada-again"), { limit: 1 })).results;
  assert.equal(result!.match?.name, "Ada");
  assert.ok((await staff.verify("ada", await photo("ada-again"))).same_person);
  await staff.addFaces("ada", [await photo("ada-again")]);
  assert.equal((await staff.describe()).faces, 2);
  const changed = await staff.update("ada", { name: null });
  assert.deepEqual([changed.name, changed.metadata], [null, { room: 7 }]);
  await staff.forgetFace("ada", enrolled.faces[0]!.face_id);
  assert.deepEqual((await collect(staff.people())).map((person) => person.faces.length), [1]);
  await staff.forget("ada");
  await assert.rejects(staff.person("ada"), fails("person_not_found"));
});

test("problems are errors of their code", async () => {
  await assert.rejects(faces.verify(await photo("ada"), await photo("nobody")), (error: SamefaceError) => {
    assert.deepEqual([error.code, error.status, error.problem.image], ["no_face_found", 422, "reference"]);
    return true;
  });
  await assert.rejects(staff.identify(await photo("ada")), fails("collection_not_found"));
  await assert.rejects(faces.collection("..").delete(), fails("invalid_request"));
  await assert.rejects(staff.forget("a/b"), fails("invalid_request"));
});

test("the audit is listed, and what is no decision is not reviewed", async () => {
  await staff.enroll("ada", [await photo("ada")]);
  const [enrolled] = await collect(faces.audit({ collection: "staff", person_id: "ada" }));
  assert.deepEqual([enrolled!.action, enrolled!.reviews], ["enroll_person", []]);
  const review = faces.review(enrolled!.entry_id, { reviewer: "officer-1", confirmed: true });
  await assert.rejects(review, fails("invalid_request"));
});

test("networks, calibrations and keys are the server's", async () => {
  assert.deepEqual((await faces.models()).map((model) => model.kind), ["recogniser", "detector"]);
  assert.ok(Array.isArray(await faces.calibrations()));
  assert.equal((await faces.keys.own()).name, "tests");
});

test("batches go in and come out one by one and in order", async () => {
  const ada = await photo("ada");
  const entries = [
    { id: "1", probe: ada, person_id: "ada", name: "Ada", metadata: { room: 7 } },
    { id: "2", probe: await photo("nobody") },
    { id: "2", probe: await photo("ada-again"), person_id: "ada" },
  ];
  const enrolled = await collect(staff.enrollMany(entries));
  assert.deepEqual(enrolled.map((answer) => answer.id), ["1", "2", "2"]);
  const codes = enrolled.map((answer) => ("error" in answer ? answer.error.code : answer.person_id));
  assert.deepEqual(codes, ["ada", "no_face_found", "ada"]);
  const embedding = (await faces.embed(ada)).faces[0]!.embedding;
  async function* probes() {
    for (let number = 0; number < 2500; number++) yield { id: `p${number}`, probe: embedding };
  }
  let count = 0;
  for await (const answer of staff.identifyMany(probes(), { limit: 1 })) {
    assert.ok("results" in answer);
    assert.equal(answer.id, `p${count++}`);
    assert.equal(answer.results[0]!.match?.name, "Ada");
  }
  assert.equal(count, 2500);
});

test("keys are made, looked up, rotated and revoked", async () => {
  const door = await faces.keys.create("door", ["read"], { collections: ["staff-*"] });
  assert.deepEqual((await collect(faces.keys.list())).map((key) => key.name), ["door"]);
  const rotated = await faces.keys.rotate(door.key_id, { grace_seconds: 0 });
  const visitor = new Sameface(process.env["SAMEFACE_URL"]!, { key: rotated.secret });
  assert.equal((await visitor.keys.own()).key_id, door.key_id);
  await faces.keys.revoke(door.key_id);
  assert.ok((await faces.keys.get(door.key_id)).revoked_at);
  await assert.rejects(visitor.keys.own(), fails("unauthorized"));
});
