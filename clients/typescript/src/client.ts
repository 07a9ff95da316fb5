/** The client: what the server does with faces, as methods. */

import type {
  AuditEntry,
  AuditFilter,
  BatchEnrolled,
  BatchEnrollOptions,
  BatchIdentified,
  Calibration,
  CollectionDescription,
  Decision,
  DetectOptions,
  Detection,
  Embedding,
  EmbedResponse,
  EnrollEntry,
  Enrollment,
  EnrollOptions,
  FacesOptions,
  Identification,
  IdentifyOptions,
  LoadedModel,
  Person,
  PersonUpdate,
  Photo,
  PhotoEmbeddings,
  ProbeEntry,
  ReviewRequest,
  VerifyOptions,
} from "./answers.js";
import { type BatchFailed, type Entries, inBlocks } from "./batches.js";
import { Connection, type Options, readPages, type Request, toTexts } from "./connection.js";
import { SamefaceError } from "./errors.js";
import { checkId } from "./ids.js";
import { Keys } from "./keys.js";
import { decodeEmbedding, encodeEmbedding, isEmbedding, packEmbedding, toBlob, toLine } from "./photos.js";

/** Verifies, detects and embeds faces, and opens collections. */
export class Sameface {
  /** The API keys that the caller's own may manage. */
  readonly keys: Keys;
  private readonly connection: Connection;

  constructor(url: string, options: Options = {}) {
    this.connection = new Connection(url, options);
    this.keys = new Keys(this.connection);
  }

  /** Whether two photos show the same person. */
  async verify(probe: Photo, reference: Photo, options: VerifyOptions = {}): Promise<Decision> {
    const form = toForm({ probe, reference }, options);
    return this.connection.ask({ method: "POST", path: "/v1/verify", form });
  }

  /** The faces in a photo: boxes, landmarks and quality. */
  async detect(photo: Photo, options: DetectOptions = {}): Promise<Detection> {
    const form = toForm({ image: photo }, options);
    return this.connection.ask({ method: "POST", path: "/v1/detect", form });
  }

  /** The faces in a photo with their unit embeddings. */
  async embed(photo: Photo, options: DetectOptions = {}): Promise<PhotoEmbeddings> {
    const form = toForm({ image: photo }, { ...options, encoding: "base64" });
    const found = await this.connection.ask<EmbedResponse>({ method: "POST", path: "/v1/embed", form });
    const faces = found.faces.map((face) => ({ ...face, embedding: decodeEmbedding(face.embedding as string) }));
    return { ...found, faces };
  }

  /** The collection of this name; the first enrolment creates it, with this `store_crops`. */
  collection(name: string, options: { store_crops?: boolean } = {}): Collection {
    return new Collection(this.connection, name, options.store_crops ?? false);
  }

  /** Yields all collections by name. */
  collections(): AsyncGenerator<CollectionDescription, void, void> {
    return readPages(this.connection, "/v1/collections");
  }

  /** The networks that the server runs, with their licence, hash and device. */
  async models(): Promise<LoadedModel[]> {
    return (await this.connection.ask<{ items: LoadedModel[] }>({ method: "GET", path: "/v1/models" })).items;
  }

  /** What the recogniser is calibrated on, and the error rates that its thresholds have there. */
  async calibrations(): Promise<Calibration[]> {
    const path = "/v1/calibrations";
    return (await this.connection.ask<{ items: Calibration[] }>({ method: "GET", path })).items;
  }

  /** Yields the entries of the audit with their reviews, newest first. */
  audit(filter: AuditFilter = {}): AsyncGenerator<AuditEntry, void, void> {
    return readPages(this.connection, "/v1/audit", filter);
  }

  /** Writes down that a person confirmed or rejected a decision. */
  async review(entryId: string, review: ReviewRequest): Promise<AuditEntry> {
    const path = `/v1/audit/${checkId(entryId)}/review`;
    return this.connection.ask({ method: "POST", path, json: review, once: true });
  }
}

/** People that are searched together. */
export class Collection {
  constructor(
    private readonly connection: Connection,
    readonly name: string,
    private readonly storeCrops: boolean,
  ) {}

  /** Enrols a person by photos or embeddings; a known id is `already_exists`, null makes an id. */
  async enroll(personId: string | null, photos: Photo[], options: EnrollOptions = {}): Promise<Enrollment> {
    const form = toForm({ images: photos }, { person_id: personId, ...encoded(options) });
    const request = { method: "POST", path: `${this.path}/people`, form, idempotencyKey: makeKey() } as const;
    return this.orCreate(() => this.connection.ask(request));
  }

  /** Adds faces to an enrolled person; an unknown id is `person_not_found`. */
  async addFaces(personId: string, photos: Photo[], options: FacesOptions = {}): Promise<Enrollment> {
    const form = toForm({ images: photos }, encoded(options));
    const path = `${this.personPath(personId)}/faces`;
    return this.connection.ask({ method: "POST", path, form, idempotencyKey: makeKey() });
  }

  /** Identifies the faces in a photo, or an embedding, among the people of the collection. */
  async identify(probe: Photo | Embedding, options: IdentifyOptions = {}): Promise<Identification> {
    const request: Request = { method: "POST", path: `${this.path}/identify` };
    if (isEmbedding(probe)) request.json = { embedding: encodeEmbedding(probe), ...options };
    else request.form = toForm({ image: probe }, options);
    return this.connection.ask(request);
  }

  /** Identifies probes as they come; yields one answer per probe, in their order. */
  identifyMany(
    probes: Entries<ProbeEntry>,
    options: IdentifyOptions = {},
  ): AsyncGenerator<BatchIdentified | BatchFailed, void, void> {
    return inBlocks(
      probes,
      async ({ probe }) => (isEmbedding(probe) ? packEmbedding(probe) : toLine(probe)),
      async (body) => {
        const path = `${this.path}/identify/batch`;
        return this.connection.send({ method: "POST", path, query: options, body });
      },
    );
  }

  /** Enrols entries as they come; yields one answer per entry, in their order, once it is on the disk. */
  enrollMany(
    entries: Entries<EnrollEntry>,
    options: BatchEnrollOptions = {},
  ): AsyncGenerator<BatchEnrolled | BatchFailed, void, void> {
    return inBlocks(
      entries,
      async ({ probe, person_id, name, metadata }) => ({ person_id, name, metadata, ...(await toLine(probe)) }),
      async (body) => {
        const path = `${this.path}/people/batch`;
        const request = { method: "POST", path, query: options, body, idempotencyKey: makeKey() } as const;
        return this.orCreate(() => this.connection.send(request));
      },
    );
  }

  /** Whether a photo shows an enrolled person. */
  async verify(personId: string, probe: Photo, options: VerifyOptions = {}): Promise<Decision> {
    const form = toForm({ probe }, { collection: this.name, person_id: personId, ...options });
    return this.connection.ask({ method: "POST", path: "/v1/verify", form });
  }

  /** The collection's recogniser and its numbers of people and faces, as they are now. */
  async describe(): Promise<CollectionDescription> {
    return this.connection.ask({ method: "GET", path: this.path });
  }

  /** Yields all people in the order of their ids. */
  async *people(): AsyncGenerator<Person, void, void> {
    yield* readPages<Person>(this.connection, `${this.path}/people`);
  }

  /** The person of this id, with the ids of their faces. */
  async person(personId: string): Promise<Person> {
    return this.connection.ask({ method: "GET", path: this.personPath(personId) });
  }

  /** Sets a person's name, metadata or both; returns the person. */
  async update(personId: string, change: PersonUpdate): Promise<Person> {
    return this.connection.ask({ method: "PATCH", path: this.personPath(personId), json: change });
  }

  /** Deletes a person; once this resolves, no search finds them. */
  async forget(personId: string): Promise<void> {
    await this.connection.send({ method: "DELETE", path: this.personPath(personId), once: true });
  }

  /** Deletes one face of a person. */
  async forgetFace(personId: string, faceId: string): Promise<void> {
    const path = `${this.personPath(personId)}/faces/${checkId(faceId)}`;
    await this.connection.send({ method: "DELETE", path, once: true });
  }

  /** Deletes the collection with everybody in it. */
  async delete(): Promise<void> {
    await this.connection.send({ method: "DELETE", path: this.path, once: true });
  }

  private get path(): string {
    return `/v1/collections/${checkId(this.name)}`;
  }

  private personPath(personId: string): string {
    return `${this.path}/people/${checkId(personId)}`;
  }

  /** Enrols; if there is no such collection, makes it and enrols again. */
  private async orCreate<Answer>(enroll: () => Promise<Answer>): Promise<Answer> {
    try {
      return await enroll();
    } catch (error) {
      if (!(error instanceof SamefaceError && error.code === "collection_not_found")) throw error;
    }
    try {
      await this.connection.send({ method: "PUT", path: this.path, json: { store_crops: this.storeCrops } });
    } catch (error) {
      // Somebody else may have made it meanwhile, in their own way.
      if (!(error instanceof SamefaceError && error.code === "already_exists")) throw error;
    }
    return enroll();
  }
}

function toForm(photos: Record<string, Photo | Photo[]>, options: object): FormData {
  const form = new FormData();
  for (const [name, value] of toTexts(options)) form.append(name, value);
  for (const [name, given] of Object.entries(photos)) {
    for (const photo of Array.isArray(given) ? given : [given]) form.append(name, toBlob(photo), "photo");
  }
  return form;
}

function encoded(options: FacesOptions): object {
  return { ...options, embeddings: options.embeddings?.map(encodeEmbedding) };
}

function makeKey(): string {
  // crypto.randomUUID() exists only on pages that came by https; this exists on all.
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(16)));
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
