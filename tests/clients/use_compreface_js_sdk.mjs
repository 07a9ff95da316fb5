// Calls every method of @exadel/compreface-js-sdk, and prints what came back as JSON.

import { readFileSync } from "node:fs";
import { CompreFace } from "@exadel/compreface-js-sdk";

const [address, recognitionKey, detectionKey, verificationKey] = process.argv.slice(2);
const [server, port] = address.split(/:(?=\d+$)/);
const print = console.log;
console.log = () => {}; // the client prints keys
const compreface = new CompreFace(server, port);
const recognition = compreface.initFaceRecognitionService(recognitionKey);
const detection = compreface.initFaceDetectionService(detectionKey);
const verification = compreface.initFaceVerificationService(verificationKey);
const faces = () => recognition.getFaceCollection(); // its methods change the address of the next
const subjects = () => recognition.getSubjects();
const refusal = (call) => call.then(() => null, (error) => [error.response.status, error.response.data.code]);
const base64 = readFileSync("./one.png").toString("base64");

const said = {};
said.added = await subjects().add("Grace Hopper");
said.face = await faces().add("./one.png", "Ada", { det_prob_threshold: 0.8 });
said.second = await faces().add(base64, "Ada");
said.faces = (await faces().list()).total_elements;
said.subjects = await subjects().list();
said.recognized = await recognition.recognize("./another.png", { prediction_count: 2, status: true });
said.verifiedFace = await faces().verify("./another.png", said.face.image_id, { limit: 1 });
said.detected = await detection.detect("./two.png", { limit: 1, face_plugins: "landmarks" });
said.detectedWithoutLimit = await detection.detect("./two.png", { det_prob_threshold: 0.5, face_plugins: "pose" });
said.verified = await verification.verify("./one.png", "./another.png", { limit: 0 });
said.verifiedBase64 = await verification.verify(base64, base64, {});
said.refused = [
  await refusal(subjects().add("GRACE HOPPER")),
  await refusal(faces().add("./two.png", "Ada")),
  await refusal(faces().delete("nothing")),
  await refusal(compreface.initFaceDetectionService(recognitionKey).detect("./one.png", {})),
];
said.renamed = await subjects().rename("ada", "Countess");
said.deletedFace = await faces().delete(said.face.image_id);
said.deletedSeveral = await faces().delete_multiple_images([said.second.image_id, "nothing"]);
said.deletedOfSubject = await faces().delete_all_subject("Countess");
await faces().add("./one.png", "Ada");
said.deletedAllFaces = await faces().delete_all();
await subjects().add("Bob");
said.deletedSubject = await subjects().delete("bob");
await subjects().add("Bob");
said.deletedAll = await subjects().deleteAll();
print(JSON.stringify(said));
