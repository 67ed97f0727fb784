import type { NodeRunner } from './kit/node.ts'

/** NO_OP: passes its input on. */
export const runNoOp: NodeRunner = async ({ input }) => ({ output: input })
