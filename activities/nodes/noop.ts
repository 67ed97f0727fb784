import type { NodeRunner } from './node.ts'

/** NO_OP: passes its input on. */
export const runNoOp: NodeRunner = async ({ input }) => ({ output: input })
