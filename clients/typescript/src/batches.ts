/**
 * Batches: entries are gathered into blocks, and each block is a request that can be retried alone.
 * A block is bounded in entries and in bytes, so memory stays flat however many entries there are. Probes that are
 * embeddings are sent as one array, everything else as lines of JSON.
 */

import { SamefaceError } from "./errors.js";
import type { Problem } from "./answers.js";
import type { Body } from "./connection.js";
import { toBase64 } from "./photos.js";

const BLOCK_ENTRIES = 1000;
const BLOCK_BYTES = 8_000_000;
const NPY_START = "\x93NUMPY\x01\x00"; // and the version of the format
const NPY_ALIGNMENT = 64; // of the first row

/** Why one entry of a batch failed; the others go on. */
export interface BatchFailed {
  id: string;
  error: SamefaceError;
}

/** Entries in an array, a generator or an asynchronous one. */
export type Entries<Entry> = Iterable<Entry> | AsyncIterable<Entry>;

type Line<Answer> = { id: string | null } & (Answer | { error: Problem });

/** Yield one answer per entry, in their order; lines are numbered, so ids of entries need not differ. */
export async function* inBlocks<Entry extends { id: string }, Answer extends { id: string }>(
  entries: Entries<Entry>,
  write: (entry: Entry) => Promise<object | Uint8Array>,
  send: (body: Body) => Promise<string>,
): AsyncGenerator<Answer | BatchFailed, void, void> {
  let ids: string[] = [];
  let written: (string | Uint8Array)[] = [];
  let held = 0;
  for await (const entry of entries) {
    const fields = await write(entry);
    const one = fields instanceof Uint8Array ? fields : JSON.stringify({ ...fields, id: String(ids.length) });
    ids.push(entry.id);
    written.push(one);
    held += one.length;
    if (ids.length >= BLOCK_ENTRIES || held >= BLOCK_BYTES) {
      yield* readBlock<Answer>(ids, await send(writeBlock(written)));
      [ids, written, held] = [[], [], 0];
    }
  }
  if (ids.length) yield* readBlock<Answer>(ids, await send(writeBlock(written)));
}

/** The body of a block of lines and embeddings; if all are embeddings of one length, they are one array. */
function writeBlock(written: (string | Uint8Array)[]): Body {
  const rows = written.filter((one) => one instanceof Uint8Array);
  const size = rows[0]?.length;
  if (size && rows.length === written.length && rows.every((row) => row.length === size)) {
    return { content: writeArray(rows, size), type: "application/x-npy" };
  }
  const lines = written.map((one, place) =>
    typeof one === "string" ? one : JSON.stringify({ embedding: toBase64(one), id: String(place) }),
  );
  return { content: lines.join("\n"), type: "application/x-ndjson" };
}

/** Rows of little-endian float32, `size` bytes each, as a file of NumPy's format, version 1.0. */
function writeArray(rows: Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows.length}, ${size / 4})}`;
  const ends = NPY_START.length + 2 + header.length + 1;
  const begins = Math.ceil(ends / NPY_ALIGNMENT) * NPY_ALIGNMENT;
  const length = begins - NPY_START.length - 2;
  const start = NPY_START + String.fromCharCode(length & 0xff, length >> 8) + header.padEnd(length - 1) + "\n";
  const content = new Uint8Array(begins + rows.length * size);
  content.set(Uint8Array.from(start, (character) => character.charCodeAt(0)));
  rows.forEach((row, place) => content.set(row, begins + place * size));
  return content;
}

function readBlock<Answer extends { id: string }>(ids: string[], text: string): (Answer | BatchFailed)[] {
  let failure = new SamefaceError("unexpected_answer", "The server did not answer this entry of the batch.");
  const answers = new Map<string, Answer | BatchFailed>();
  for (const written of text.split("\n").filter(Boolean)) {
    const line = JSON.parse(written) as Line<Answer>;
    const error = "error" in line ? SamefaceError.of(line.error as Problem) : undefined;
    if (line.id === null) failure = error ?? failure; // the rest of the block was given up
    else answers.set(line.id, error ? { id: "", error } : (line as Answer));
  }
  return ids.map((id, place) => ({ ...(answers.get(String(place)) ?? { error: failure }), id }) as Answer);
}
