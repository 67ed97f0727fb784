import type * as v from 'valibot'
import type { TextKind } from '../expressions/rules.ts'
import type { Path } from '../problem.ts'
import type { NodeKind, Retry } from '../run/plan.ts'
import type { CredentialUse } from '../secrets/uses.ts'

export type NodeType = {
  kind: NodeKind
  summary: string
  /**
   * What a config must be when it is saved. A string with `{{ }}` may take the place of a `computed` value.
   */
  config: v.GenericSchema<unknown, Record<string, unknown>>
  /** The settings that most people set, in their order. The others are options. */
  main?: readonly string[]
  /** Further ones by the value of one setting, '' being its absence. */
  mainBy?: { key: string; keys: Record<string, readonly string[]> }
  /** The handles by which the node may leave, which may depend on its config. `null` is the main handle. */
  handles: (config: Record<string, unknown>) => (string | null)[]
  /**
   * The strings of a config that are one expression, with or without `{{ }}`, by path: `cases[0].condition`;
   * with `code`, a function's body in JavaScript.
   */
  conditions?: (config: Record<string, unknown>) => { path: string; text: string; code?: true }[]
  /**
   * How long the node's code may take, in milliseconds of processor time: a segment has only nodes with little
   * of it. Undefined for nodes without code.
   */
  codeMs?: (config: Record<string, unknown>) => number
  /**
   * The uses that the credentials in the config must have. Undefined: the node takes none. The check is made when a
   * version is saved (db/credentials/references.ts), and again by the call that opens one.
   */
  credentialUses?: readonly CredentialUse[]
  /** Where the config names them; without it at `credentialId`. The schema of each is `credentialField`. */
  credentialPaths?: readonly (readonly string[])[]
  /** Where the config names further ones, and what each must be good for, if that depends on the config. */
  moreCredentials?: (config: Record<string, unknown>) => { path: Path; uses: readonly CredentialUse[] }[]
  /** How the texts at a path of a config are read (`tools[0].url`), if they are no usual ones. */
  texts?: (config: Record<string, unknown>) => (path: string) => TextKind | undefined
  /** The nodes whose outputs it reads without an expression: where the config names them, and their ids. */
  reads?: (config: Record<string, unknown>) => { path: string; id: string }[]
  /**
   * For a node that is pure with most configs: whether it calls the world with this one. Then it is an activity of its own,
   * in the queue of calls to models, and on items one for each.
   */
  calls?: (config: Record<string, unknown>) => boolean
  /** For a node that is pure with most configs: whether it opens or stores files. Then it is an activity of its own. */
  stores?: (config: Record<string, unknown>) => boolean
  /** On items it may work for longer than a segment lasts: then it is an activity of its own. */
  longOnItems?: true
  retry: Required<Retry>
  timeoutMs: number
  /** Its attempts wait in the queue of calls to models and tools of agents. */
  queue?: 'models'
}
