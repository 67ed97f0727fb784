import { findFree } from '../../worker/local/ports.ts'
import { startStand } from './stand.ts'

const [what = 'speed', ...rest] = process.argv.slice(2)
if (what === 'alerts') {
  const { measureAlerts } = await import('./monitoring/alerts.ts')
  await measureAlerts(rest)
  process.exit(0)
}
const benches: Record<
  string,
  () => Promise<(stand: Awaited<ReturnType<typeof startStand>>, args: string[]) => Promise<void>>
> = {
  speed: async () => (await import('./speed.ts')).measureSpeed,
  awaited: async () => (await import('./awaited.ts')).measureAwaited,
  list: async () => (await import('./list.ts')).measureList,
  export: async () => (await import('./export.ts')).measureExport,
  neighbour: async () => (await import('./neighbour.ts')).measureNeighbour,
  models: async () => (await import('./neighbour.ts')).measureModels,
  n8n: async () => (await import('./n8n.ts')).compareWithN8n,
  expressions: async () => (await import('./expressions.ts')).measureExpressions,
  chat: async () => (await import('./chat/chat.ts')).measureChat,
  audit: async () => (await import('./audit/audit.ts')).measureAudit,
  'audit-processes': async () => (await import('./audit/processes.ts')).measureProcesses,
  guardrails: async () => (await import('./guardrails/guardrails.ts')).measureGuardrails,
  rollups: async () => (await import('./monitoring/rollups.ts')).measureRollups,
  millions: async () => (await import('./millions/millions.ts')).measureMillions,
  memory: async () => (await import('./memory.ts')).measureMemory,
  strangers: async () => (await import('./strangers/strangers.ts')).measureStrangers,
  canvas: async () => (await import('./console/canvas.ts')).measureCanvas,
}

const load = benches[what]
if (!load) {
  console.error(`Usage: npm run bench [-- ${[...Object.keys(benches), 'alerts'].join(' | ')}]`)
  process.exit(2)
}
const bench = await load()
// Its requests are measured by the service's own thread.
if (what === 'strangers') process.env.BENCH_PROBE_PORT = String(await findFree())
const stand = await startStand()
let stopping: Promise<void> | undefined
const stop = () => (stopping ??= stand.stop())
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => stop().then(() => process.exit(130)))
try {
  await bench(stand, rest)
} finally {
  await stop()
}
