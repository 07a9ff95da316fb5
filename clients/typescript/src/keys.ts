/** The API keys of a server. */

import type { Key, KeyOptions, KeyWithSecret, Scope } from "./answers.js";
import { type Connection, readPages } from "./connection.js";
import { checkId } from "./ids.js";

/** The keys that the caller's own may manage. */
export class Keys {
  constructor(private readonly connection: Connection) {}

  /** Makes a key within the scopes and collections of your own; its secret is shown this once. */
  async create(name: string, scopes: Scope[], options: KeyOptions = {}): Promise<KeyWithSecret> {
    const json = { name, scopes, ...options };
    return this.connection.ask({ method: "POST", path: "/v1/keys", json, once: true });
  }

  /** Yields all keys by id. */
  list(): AsyncGenerator<Key, void, void> {
    return readPages(this.connection, "/v1/keys");
  }

  /** What the caller may do; without keys, anybody may do everything. */
  async own(): Promise<Key> {
    return this.connection.ask({ method: "GET", path: "/v1/keys/self" });
  }

  /** The key of this id. */
  async get(keyId: string): Promise<Key> {
    return this.connection.ask({ method: "GET", path: pathOf(keyId) });
  }

  /** Gives a key a new secret, which is shown this once; the old one works for `grace_seconds` more. */
  async rotate(keyId: string, options: { grace_seconds?: number } = {}): Promise<KeyWithSecret> {
    return this.connection.ask({ method: "POST", path: `${pathOf(keyId)}/rotate`, json: options, once: true });
  }

  /** Ends a key for good: every worker of the server refuses it within a second. */
  async revoke(keyId: string): Promise<void> {
    await this.connection.send({ method: "DELETE", path: pathOf(keyId), once: true });
  }
}

function pathOf(keyId: string): string {
  return `/v1/keys/${checkId(keyId)}`;
}
