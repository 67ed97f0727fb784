import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { makeChains } from '../../support/chains.ts'
import { onServer } from '../../support/database.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, act, verdicts, entries } = makeChains(service)
const PROGRAM = fileURLToPath(new URL('../../support/audit/writer.ts', import.meta.url))
const ACTS = 200

/** A process that writes; `done` are the acts that it has said were committed. */
function startWriters(teamId: string, numbers: number[]) {
  const key = service.store.keys.byId.get('k1')!.toString('hex')
  const args = [PROGRAM, service.database.url, key, teamId, numbers.join(','), String(ACTS)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const done: string[] = []
  let rest = ''
  let awake = () => {}
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    done.push(...lines)
    awake()
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  const reached = async (count: number) => {
    while (done.length < count)
      await Promise.race([
        new Promise<void>((resolve) => (awake = resolve)),
        ended.then(() => Promise.reject()),
      ])
  }
  return { child: child as ChildProcess, done, ended, reached }
}

test('eight writers of two processes, one of which is killed, make one chain without gaps that has all they were told of', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const teamId = await team(1)
  const [killed, other] = [startWriters(teamId, [0, 1, 2, 3]), startWriters(teamId, [4, 5, 6, 7])]
  await Promise.all([killed.reached(100), other.reached(1)])
  killed.child.kill('SIGKILL')
  expect(await killed.ended).toBeNull()
  expect(await other.ended).toBe(0)
  expect((await act(teamId)).status).toBe(200)
  expect(await verdicts(teamId)).toEqual([])
  const rows = await entries(teamId)
  expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, at) => at + 1))
  expect(new Set(rows.map(({ prev }) => prev.toString('hex'))).size).toBe(rows.length)
  const written = rows.flatMap(({ details }) => (details as { act?: string }).act ?? [])
  expect(new Set(written).size).toBe(written.length)
  expect(other.done).toHaveLength(4 * ACTS)
  expect(killed.done.length).toBeLessThan(4 * ACTS)
  const known = new Set(written)
  expect([...killed.done, ...other.done].filter((one) => !known.has(one))).toEqual([])
})

test('acts whose connections PostgreSQL ends behind the entry, before the commit, leave no gap and no half', async () => {
  const teamId = await team(1)
  // A sequence is not rolled back: it counts the connections that were ended.
  await onServer(
    service.database.url,
    `create sequence ended;
    create function end_some() returns trigger language plpgsql as $$ begin
      if random() < 0.3 then perform nextval('ended'); perform pg_terminate_backend(pg_backend_pid()); end if;
      return null;
    end $$;
    create trigger end_some after insert on audit_entries for each row execute function end_some()`,
  )
  const names = Array.from({ length: 60 }, (_, i) => `name ${i}`)
  const write = async (mine: string[]) => {
    const said: string[] = []
    for (const name of mine) if ((await act(teamId, name)).status === 200) said.push(name)
    return said
  }
  const said = (await Promise.all([0, 1, 2, 3].map((n) => write(names.filter((_, i) => i % 4 === n))))).flat()
  await onServer(service.database.url, 'drop trigger end_some on audit_entries')
  const { rows } = await sql<{ n: number }>`select last_value::int as n from ended`.execute(service.store.db)
  expect(rows[0]!.n).toBeGreaterThan(1)
  expect((await act(teamId, 'the last one')).status).toBe(200)
  expect(await verdicts(teamId)).toEqual([])
  const all = await entries(teamId)
  expect(all.map(({ seq }) => seq)).toEqual(all.map((_, at) => at + 1))
  const written = all.flatMap(({ details }) => (details as { after?: { name?: string } }).after?.name ?? [])
  expect(said.filter((name) => !written.includes(name))).toEqual([])
  expect(new Set(written).size).toBe(written.length)
}, 60_000)
