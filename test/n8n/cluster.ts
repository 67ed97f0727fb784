import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { superviseChild } from '../../worker/local/children.ts'
import { findFree } from '../../worker/local/ports.ts'
import { describePostgres } from '../../worker/local/programs.ts'

/** Starts the embedded PostgreSQL in a temporary folder. */
export async function openCluster(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'perdure-cases-'))
  // Under root PostgreSQL runs as another user, which must be able to enter the folder.
  chmodSync(dataDir, 0o711)
  const say = (line: string) => console.error(`[n8n] ${line}`)
  const { program, cluster } = await describePostgres({
    dataDir,
    durable: false,
    say,
    port: await findFree(),
  })
  const lost = (name: string, why: string) => say(`${name} ${why}`)
  const child = superviseChild(program, { started() {}, lost, back() {} })
  await child.ready
  return {
    url: cluster.url,
    async stop() {
      await child.stop()
      for (const folder of [cluster.folder, dataDir]) rmSync(folder, { recursive: true, force: true })
    },
  }
}
