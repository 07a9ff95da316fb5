/** Photos and embeddings as a form or a line of JSON holds them. */

import type { Embedding, Photo } from "./answers.js";

/** Whether a probe is an embedding. */
export function isEmbedding(probe: Photo | Embedding): probe is Embedding {
  return Array.isArray(probe) || probe instanceof Float32Array;
}

/** A photo as a part of a form. */
export function toBlob(photo: Photo): Blob {
  return photo instanceof Blob ? photo : new Blob([photo as BlobPart]);
}

/** An embedding as JSON holds it: numbers, or base64 of little-endian float32. */
export function encodeEmbedding(embedding: Embedding): number[] | string {
  return Array.isArray(embedding) ? embedding : toBase64(packEmbedding(embedding));
}

/** An embedding as little-endian float32. */
export function packEmbedding(embedding: Embedding): Uint8Array {
  const view = new DataView(new ArrayBuffer(embedding.length * 4));
  embedding.forEach((value, place) => view.setFloat32(place * 4, value, true));
  return new Uint8Array(view.buffer);
}

/** The floats of base64 of little-endian float32. */
export function decodeEmbedding(encoded: string): Float32Array {
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, place) => view.getFloat32(place * 4, true));
}

/** The fields of a line that hold a photo or an embedding. */
export async function toLine(probe: Photo | Embedding): Promise<object> {
  if (isEmbedding(probe)) return { embedding: encodeEmbedding(probe) };
  const bytes = new Uint8Array(await toBlob(probe).arrayBuffer());
  return { image: { base64: toBase64(bytes) } };
}

/** Bytes as JSON holds them. */
export function toBase64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let start = 0; start < bytes.length; start += 0x8000) {
    pieces.push(String.fromCharCode(...bytes.subarray(start, start + 0x8000)));
  }
  return btoa(pieces.join(""));
}
