import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { ENDED, type ExecutionBody } from '../support/client.ts'
import type { Installation } from '../support/engine/installation.ts'

/** Longer than any execution takes, also one whose worker is lost more than once. */
const END_MS = 240_000

/** Repeats a request while there is no answer or a 503; resolves to the text of an answer that is wanted. */
export async function repeatAsk(ask: () => Promise<Response>, wanted: number[]): Promise<string> {
  for (const giveUp = Date.now() + 120_000; ; await sleep(100)) {
    const response = await ask().catch(() => undefined)
    const text = await response?.text().catch(() => undefined)
    if (response && text !== undefined && wanted.includes(response.status)) return text
    const again = response === undefined || text === undefined || response.status === 503
    if (!again || Date.now() > giveUp) throw new Error(`${response?.status} ${text}`)
  }
}

/** The executions once they have ended, or as they are when that takes too long. */
export async function readEnds(host: Installation, ids: string[]): Promise<Map<string, ExecutionBody>> {
  const giveUp = Date.now() + END_MS
  const ends = new Map<string, ExecutionBody>()
  for (const id of ids)
    for (;;) {
      const execution = await host.read(id)
      ends.set(id, execution)
      if (ENDED.includes(execution.status) || Date.now() > giveUp) break
      await sleep(200)
    }
  return ends
}

/** Writes the rows of all executions anew from their histories. */
export function rebuildAll(host: Installation): void {
  const env = { ...process.env, DATA_DIR: host.dataDir, LOG_LEVEL: 'warn' }
  const args = ['--disable-warning=ExperimentalWarning', 'worker/cli.ts', 'rebuild', '--all']
  execFileSync(process.execPath, args, { env, stdio: 'inherit' })
}
