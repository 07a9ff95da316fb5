/** Ids and names that go into an address. */

import { SamefaceError } from "./errors.js";

const ID = /^(\.{3,}|\.*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)$/; // `.` and `..` would be folders of the address

/** The id; what the server could not take for one is refused here. */
export function checkId(id: string): string {
  if (id.length <= 128 && ID.test(id)) return id;
  const detail = `${JSON.stringify(id)} cannot be an id or a collection's name: use letters, digits and . _ ~ -`;
  throw new SamefaceError("invalid_request", detail);
}
