import { endWithGuard, guard, isGuarded } from '../../../../worker/guard.ts'

// A worker as worker/worker.ts runs it, which also has the nodes of modelcalls.ts.
if (isGuarded()) {
  endWithGuard()
  const { addModelCalls } = await import('./calls.ts')
  addModelCalls()
  const { runService } = await import('../../../../worker/service/service.ts')
  await runService('worker')
} else await guard(process.argv[1]!)
