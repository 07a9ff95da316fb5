/** What calls take and return, by the names of openapi.json. */

import type { components, operations } from "./contract.js";

type Schemas = components["schemas"];

export type Decision = Schemas["VerifyResponse"];
export type Detection = Schemas["DetectResponse"];
export type Face = Schemas["Face"];
export type Candidate = Schemas["Candidate"];
export type Identification = Schemas["IdentifyResponse"];
export type IdentifiedFace = Schemas["IdentifiedFace"];
export type Enrollment = Schemas["EnrollResponse"];
export type Person = Schemas["PersonResponse"];
export type CollectionDescription = Schemas["CollectionResponse"];
export type BatchIdentified = Schemas["BatchIdentified"];
export type BatchEnrolled = Schemas["BatchEnrolled"];
export type AuditEntry = Schemas["AuditEntry"];
export type LoadedModel = Schemas["LoadedModel"];
export type Calibration = Schemas["CalibrationResponse"];
export type Key = Schemas["KeyResponse"];
export type KeyWithSecret = Schemas["KeyWithSecret"];
export type Problem = Schemas["Problem"];
/** The answer of embed, with embeddings as float32. */
export type PhotoEmbeddings = Omit<Schemas["EmbedResponse"], "faces"> & {
  faces: (Face & { embedding: Float32Array })[];
};
export type EmbedResponse = Schemas["EmbedResponse"];

export type VerifyOptions = Partial<
  Omit<Schemas["VerifyRequest"], "probe" | "reference" | "collection" | "person_id">
>;
export type DetectOptions = Partial<Omit<Schemas["DetectRequest"], "image">>;
export type IdentifyOptions = Partial<Omit<Schemas["IdentifyRequest"], "image" | "embedding" | "model">>;
export type FacesOptions = Partial<Omit<Schemas["FacesRequest"], "images" | "embeddings" | "model">> & {
  embeddings?: Embedding[];
};
export type EnrollOptions = FacesOptions & Partial<Pick<Schemas["PersonRequest"], "name" | "metadata">>;
export type BatchEnrollOptions = Omit<FacesOptions, "embeddings">;
export type AuditFilter = Omit<NonNullable<operations["list_audit"]["parameters"]["query"]>, "limit" | "cursor">;
export type ReviewRequest = Schemas["ReviewRequest"];
export type KeyOptions = Omit<Schemas["KeyRequest"], "name" | "scopes">;
export type Scope = Schemas["KeyRequest"]["scopes"][number];
export type PersonUpdate = Schemas["PersonUpdate"];

/** A photo: a file or a blob, or the bytes of a file. */
export type Photo = Blob | ArrayBuffer | Uint8Array;
/** An embedding of the server's recogniser. */
export type Embedding = number[] | Float32Array;

/** A probe of a batch, and the id by which its answer is known. */
export interface ProbeEntry {
  id: string;
  probe: Photo | Embedding;
}

/** Somebody to enrol in a batch; a known `person_id` gets one more face. */
export interface EnrollEntry extends ProbeEntry {
  person_id?: string;
  name?: string;
  metadata?: Record<string, unknown>;
}
