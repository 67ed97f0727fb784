import type { NodeContext } from '../../nodes/kit/node.ts'

/**
 * Works out what a step of a connector is: a function of what it is given, and of files. Asked again with the same, it
 * gives the same. Throws a NodeFailure (InvalidInput) for what cannot be.
 */
// biome-ignore lint/suspicious/noExplicitAny: tables are checked by their tests
export type Maker = (given: any, context: NodeContext) => unknown
