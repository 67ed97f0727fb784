// The workflows that Temporal may be asked for, by name: the entry of the bundle.
export { fire } from './fire.ts'
export { runGraph } from './run.ts'
