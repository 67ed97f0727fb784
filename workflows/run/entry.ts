// The entry of the bundle: the workflows that Temporal may start, by name.
//
// Temporal's SDK records the stack of every promise, for a query that is never sent. Stacks are expensive, so they are
// kept short. This module is evaluated once, before errors are frozen (worker/engine/engine.ts).
Error.stackTraceLimit = 4

export { fire } from './fire.ts'
export { runGraph } from './run.ts'
