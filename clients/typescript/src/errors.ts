/** Every failure of a call: one class, told apart by its code. */

import type { Problem } from "./answers.js";

/** The codes of docs/errors.md; the last two are the client's own. */
export const CODES = [
  "unreadable_image",
  "unauthorized",
  "forbidden",
  "not_found",
  "collection_not_found",
  "person_not_found",
  "face_not_found",
  "entry_not_found",
  "calibration_not_found",
  "key_not_found",
  "method_not_allowed",
  "already_exists",
  "idempotency_key_reused",
  "model_mismatch",
  "image_too_large",
  "body_too_large",
  "too_many_images",
  "unsupported_image",
  "unsupported_media_type",
  "host_not_allowed",
  "not_served_here",
  "invalid_request",
  "no_face_found",
  "several_faces_found",
  "face_too_small",
  "low_quality_face",
  "not_calibrated",
  "fmr_not_supported",
  "fpir_not_supported",
  "overloaded",
  "rate_limited",
  "internal",
  "not_ready",
  "store_damaged",
  "store_refused",
  "store_unavailable",
  "index_unavailable",
  "index_refused",
  "timed_out",
  "storage_full",
  "connection_failed",
  "unexpected_answer",
] as const;

/** A known code, or one that only a newer server has. */
export type Code = (typeof CODES)[number] | (string & {});

/** A failure: `code` is stable, `detail` is a sentence, `problem` has what helps to act. */
export class SamefaceError extends Error {
  override readonly name = "SamefaceError";

  constructor(
    readonly code: Code,
    readonly detail: string,
    readonly status?: number,
    readonly problem: Partial<Problem> = {},
    options?: ErrorOptions,
  ) {
    super(`${code}: ${detail}`, options);
  }

  /** The error of a problem+json. */
  static of(problem: Problem): SamefaceError {
    return new SamefaceError(problem.code, problem.detail, problem.status, problem);
  }
}
