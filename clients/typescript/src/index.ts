export type * from "./answers.js";
export type { BatchFailed, Entries } from "./batches.js";
export { Collection, Sameface } from "./client.js";
export { Keys } from "./keys.js";
export type { Options } from "./connection.js";
export { CODES, type Code, SamefaceError } from "./errors.js";
