// The workflows that Temporal may be asked for, by name: the entry of the bundle.
// Its SDK notes of every promise where it was made, for a query that nobody asks: short, since that is dear. This is
// evaluated once, before errors are frozen (worker/engine.ts).
Error.stackTraceLimit = 4

export { fire } from './fire.ts'
export { runGraph } from './run.ts'
