import type { Expression, SpreadElement } from 'acorn'
import type { JsonataCode } from './code.ts'

/** How the expressions of one n8n node read items. Throws an Error if something cannot be read. */
export type NodeReferences = {
  /** The item that the node works on. */
  current(): JsonataCode
  /** An item, or all items, of another node's output. */
  other(name: string, which: 'item' | 'first' | 'last' | 'all'): JsonataCode
  /** Whether another node was executed. */
  wasExecuted(name: string): JsonataCode
  /** The position of the current item, from 0. */
  index(): JsonataCode
  /** Is called when a value depends on the time zone, which is UTC in Perdure. */
  noteTimeZone?(): void
}

/** A call's arguments, as acorn parsed them. */
export type CallArguments = (Expression | SpreadElement)[]

/** One step of a chain `root.key[0](args)`: a member access or a call. */
export type ChainStep = { key: Expression | string } | { args: CallArguments }

/**
 * Translates the parts of one expression. Each of the other files translates some kinds of syntax and passes
 * the parts inside back to `read`. So none of them imports expression.ts, which chooses between them.
 */
export type Translator = {
  references: NodeReferences
  /** The JSONata variables for the parameters of the arrow functions around the part. */
  scope: ReadonlyMap<string, JsonataCode>
  read(node: Expression | SpreadElement, scope?: ReadonlyMap<string, JsonataCode>): JsonataCode
  /** Binds the value to a variable, so that `use` can write it several times and the code stays short. */
  share(code: JsonataCode, use: (code: JsonataCode) => JsonataCode): JsonataCode
}

/** Ends the translation. The reason completes a sentence about the expression: "it uses typeof". */
export function failTranslation(reason: string): never {
  throw new Error(reason)
}
