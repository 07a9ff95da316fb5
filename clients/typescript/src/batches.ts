/**
 * Batches: entries are gathered into blocks, and each block is a request of NDJSON that can be retried alone.
 * A block is bounded in entries and in characters, so memory stays flat however many entries there are.
 */

import { SamefaceError } from "./errors.js";
import type { Problem } from "./answers.js";

const BLOCK_ENTRIES = 1000;
const BLOCK_CHARACTERS = 8_000_000;

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
  write: (entry: Entry) => Promise<object>,
  send: (lines: string) => Promise<string>,
): AsyncGenerator<Answer | BatchFailed, void, void> {
  let ids: string[] = [];
  let lines: string[] = [];
  let held = 0;
  for await (const entry of entries) {
    const line = JSON.stringify({ ...(await write(entry)), id: String(ids.length) });
    ids.push(entry.id);
    lines.push(line);
    held += line.length;
    if (ids.length >= BLOCK_ENTRIES || held >= BLOCK_CHARACTERS) {
      yield* readBlock<Answer>(ids, await send(lines.join("\n")));
      [ids, lines, held] = [[], [], 0];
    }
  }
  if (ids.length) yield* readBlock<Answer>(ids, await send(lines.join("\n")));
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
