import { DefaultLogger, Runtime } from '@temporalio/worker'
import type { Logger } from 'pino'

let installed = false

/**
 * Forwards the log of Temporal's core to ours, and leaves signals to the process, which drains before it
 * stops. To be called before the first connection; further calls do nothing.
 */
export function installRuntime(log: Logger): void {
  if (installed) return
  installed = true
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      const say = level === 'ERROR' ? log.error.bind(log) : log.warn.bind(log)
      say(meta ?? {}, message)
    }),
    telemetryOptions: { logging: { forward: {}, filter: 'WARN' } },
  })
}
