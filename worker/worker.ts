import { fileURLToPath } from 'node:url'
import { endWithGuard, guard, isGuarded } from './guard.ts'

// A process that is only a worker; any number may run. Needs DATABASE_URL, TEMPORAL_ADDRESS and PERDURE_KEYS. A
// small process beside it notes if it runs out of memory.
if (isGuarded()) {
  endWithGuard()
  const { runService } = await import('./service/service.ts')
  await runService('worker')
} else await guard(fileURLToPath(import.meta.url))
