import { sql } from 'kysely'
import { Pool } from 'undici'
import { openDatabase } from '../../../db/connection.ts'
import { findFree } from '../../../worker/local/ports.ts'
import { launch } from '../../support/engine/process.ts'
import { BENCH_ADMIN, type Stand } from '../stand.ts'

const WRITERS = 8
const ACTS = 100
const ROUNDS = 3

/**
 * Acts of one team over HTTP by eight writers, through one API process and through two, beside the same requests for eight
 * teams, whose chains do not wait for each other, and beside plain INSERTs of as many rows of an entry's size.
 */
export async function measureProcesses(stand: Stand): Promise<void> {
  const port = await findFree()
  const second = launch(['worker/api.ts'], {
    PORT: String(port),
    DATABASE_URL: stand.databaseUrl,
    TEMPORAL_ADDRESS: stand.temporalAddress,
    DATA_DIR: stand.dataDir,
    RATE_LIMITS: 'off',
    LOG_LEVEL: 'info',
  })
  const pools = [stand.url, `http://127.0.0.1:${port}`].map((url) => new Pool(url, { connections: WRITERS }))
  const { db, close } = openDatabase(stand.databaseUrl, { max: WRITERS, name: 'bench' })
  try {
    await second.until(() => second.output().includes('the API is listening'))
    const { headers } = await fetch(`${stand.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(BENCH_ADMIN),
    })
    const cookie = headers.getSetCookie()[0]!.split(';')[0]!
    const send = async <T>(pool: Pool, method: 'POST' | 'PUT', path: string, json: unknown): Promise<T> => {
      const asked = { cookie, 'content-type': 'application/json' }
      const response = await pool.request({ method, path, headers: asked, body: JSON.stringify(json) })
      const text = await response.body.text()
      if (response.statusCode > 201) throw new Error(`${path} responded with ${response.statusCode}: ${text}`)
      return JSON.parse(text) as T
    }
    const create = async (path: string, json: unknown) =>
      (await send<{ id: string }>(pools[0]!, 'POST', path, json)).id
    // Each writer changes a variable of its own, so that only the chain is common.
    const makeVariable = (teamId: string, writer: number) =>
      create('/api/variables', { teamId, key: `v${writer}`, value: 0 })
    const teams: string[] = []
    const common: string[] = []
    const apart: string[] = []
    for (let writer = 0; writer < WRITERS; writer++) {
      teams.push(await create('/api/teams', { name: `Bench ${writer}` }))
      common.push(await makeVariable(teams[0]!, writer))
      apart.push(await makeVariable(teams[writer]!, WRITERS + writer))
    }
    const act = (pool: Pool, id: string, value: number) =>
      send(pool, 'PUT', `/api/variables/${id}`, { value })
    await sql`create table plain_rows (id bigint generated always as identity primary key, team_id uuid, entry json)`.execute(
      db,
    )
    const entry = JSON.stringify({ core: 'x'.repeat(600), details: 'x'.repeat(400) })
    const works: Record<string, (writer: number, at: number) => Promise<unknown>> = {
      'one team, one API process': (writer, at) => act(pools[0]!, common[writer]!, at),
      'one team, two API processes': (writer, at) => act(pools[writer % 2]!, common[writer]!, at),
      'eight teams, two API processes': (writer, at) => act(pools[writer % 2]!, apart[writer]!, at),
      'plain INSERTs, no HTTP': () =>
        sql`insert into plain_rows (team_id, entry) values (${teams[0]}, ${entry}::json)`.execute(db),
    }
    const best: Record<string, number> = {}
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [name, work] of Object.entries(works)) {
        const began = performance.now()
        await Promise.all(
          Array.from({ length: WRITERS }, async (_, writer) => {
            for (let at = 0; at < ACTS; at++) await work(writer, at * 10 + round + 1)
          }),
        )
        const rate = (WRITERS * ACTS * 1_000) / (performance.now() - began)
        // The first round warms up.
        if (round > 0) best[name] = Math.max(best[name] ?? 0, Math.round(rate))
      }
    }
    console.table(
      Object.fromEntries(Object.entries(best).map(([name, rate]) => [name, { 'a second': rate }])),
    )
  } finally {
    await Promise.all(pools.map((pool) => pool.destroy()))
    second.kill('SIGTERM')
    await second.ended
    await close()
  }
}
