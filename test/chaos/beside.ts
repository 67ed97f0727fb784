import { setTimeout as sleep } from 'node:timers/promises'
import type { Installation } from '../support/engine/installation.ts'
import { type Launched, launch } from '../support/engine/process.ts'

const AGAIN_MS = 500

/** A process of the service beside the installation's own, on the same database and the same Temporal. */
export type Beside = Awaited<ReturnType<typeof startBeside>>

/** Starts `script`, and starts it again whenever it ends. It is ready once it has written `says`. */
export async function startBeside(
  host: Installation,
  { name, script, says, settings = {} }: { name: string; script: string; says: string; settings?: object },
) {
  const { databaseUrl, temporalAddress } = host.holder().addresses
  const env = {
    DATA_DIR: host.dataDir,
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporalAddress,
    SEAL_VERSION: '2',
    RATE_LIMITS: 'off',
    EGRESS_ALLOW: '127.0.0.0/8',
    ...settings,
  }
  let now: Launched = launch([script], env)
  let before = ''
  let isStopping = false
  const isReady = () => now.output().includes(says)
  const keeping = keep()

  async function keep(): Promise<void> {
    for (;;) {
      await now.ended
      if (isStopping) return
      before += now.output()
      await sleep(AGAIN_MS)
      now = launch([script], env)
    }
  }

  async function ready(): Promise<void> {
    for (const giveUp = Date.now() + 120_000; !isReady(); await sleep(50))
      if (Date.now() > giveUp) throw new Error(`${name} is not ready:\n${now.output().slice(-5_000)}`)
  }

  await ready()
  return {
    name,
    /** Whether it is a worker. */
    works: script === 'worker/worker.ts',
    ready,
    /** Sends a signal to the process, and to those that belong to it. */
    signal: (signal: NodeJS.Signals) => now.kill(signal),
    log: () => before + now.output(),
    async stop(): Promise<void> {
      isStopping = true
      now.kill('SIGCONT')
      now.kill('SIGKILL')
      await keeping
    },
  }
}
