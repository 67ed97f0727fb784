import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { purgeMemoryEnds } from '../../db/operation/memoryends.ts'
import { identify } from '../../worker/local/processes.ts'
import { countMemoryKills, noteEnd, watchMemory } from '../../worker/memoryend.ts'
import { launch } from '../support/engine/process.ts'
import { keep } from '../support/keep.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const service = await keep(startService())

const countEnds = async () => (await service.store.db.selectFrom('memoryEnds').selectAll().execute()).length

const runGuarded = (ends: string) =>
  launch(['--max-old-space-size=24', 'test/support/engine/guarded.ts'], {
    DATABASE_URL: service.database.url,
    ENDS: ends,
  })

test.each([
  ['heap', 1, 1],
  ['SIGKILL', 1, 0],
  ['SIGABRT', 1, 0],
  ['0', 0, 0],
  ['3', 3, 0],
])('a guarded program that ends by %s: exit code %i, ends out of memory %i', async (ends, code, noted) => {
  const before = await countEnds()
  const process = runGuarded(ends)
  expect(await process.ended).toBe(code)
  expect((await countEnds()) - before).toBe(noted)
  if (ends === 'heap') expect(process.output()).toContain('JavaScript heap out of memory')
})

test('a guarded program is stopped by the signals of its guard, and ends when that is killed', async () => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const guarded = runGuarded('never')
    const find = () => Number(/pid (\d+)/.exec(guarded.output())?.[1])
    await guarded.until(() => find() > 0)
    expect(identify(find())).not.toBeNull()
    process.kill(guarded.pid, signal)
    await guarded.ended
    await until(() => identify(find()) === null)
  }
})

test('a kill by the kernel for want of memory is told from any other kill', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let kills = 3
  const memory = watchMemory(() => kills)
  onTestFinished(memory.stop)
  const killed = { signal: 'SIGKILL', stderr: '' } as const
  expect(memory.ranOut(killed)).toBe(false)
  kills = 4
  expect(memory.ranOut(killed)).toBe(true)
  expect(memory.ranOut({ signal: 'SIGTERM', stderr: '' })).toBe(false)
  expect(memory.ranOut({ signal: null, stderr: '' })).toBe(false)
  // Another process of the group was killed, a while before somebody kills ours.
  vi.advanceTimersByTime(3_000)
  expect(memory.ranOut(killed)).toBe(false)
})

test('only the last words of an aborted process say that it was out of memory', () => {
  const memory = watchMemory(() => 0)
  const words = 'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n'
  expect(memory.ranOut({ signal: 'SIGABRT', stderr: `x\n${words}----- Native stack trace\n` })).toBe(true)
  expect(memory.ranOut({ signal: 'SIGTRAP', stderr: '# Fatal JavaScript out of memory: x\n' })).toBe(true)
  expect(memory.ranOut({ signal: 'SIGABRT', stderr: '{"msg":"FATAL ERROR: out of memory"}\n' })).toBe(false)
  expect(memory.ranOut({ signal: 'SIGSEGV', stderr: words })).toBe(false)
  memory.stop()
})

test('the kills of the kernel are read from either version of cgroups, and from none', () => {
  const root = mkdtempSync(join(tmpdir(), 'perdure-cgroup-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  const write = (path: string, text: string) => {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), text)
    return join(root, path)
  }
  const two = write('two', '0::/a/b\n')
  const one = write('one', '9:name=systemd:/\n4:cpu,memory:/a/b\n0::/\n')
  expect(countMemoryKills(root, join(root, 'missing'))).toBe(0)
  write('memory/memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 5\n')
  expect(countMemoryKills(root, one)).toBe(5)
  write('memory/a/b/memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 6\n')
  expect(countMemoryKills(root, one)).toBe(6)
  write('memory.events', 'low 0\nhigh 0\nmax 12\noom 1\noom_kill 7\noom_group_kill 0\n')
  expect(countMemoryKills(root, two)).toBe(7)
  write('a/b/memory.events', 'low 0\nhigh 0\nmax 12\noom 1\noom_kill 8\n')
  expect(countMemoryKills(root, two)).toBe(8)
})

test('ends out of memory are forgotten after 30 days', async () => {
  const { db } = service.store
  const [old, recent] = [crypto.randomUUID(), crypto.randomUUID()]
  await noteEnd(service.database.url, recent)
  await noteEnd(service.database.url, recent)
  await db
    .insertInto('memoryEnds')
    .values({ process: old, at: new Date(Date.now() - 31 * 86_400_000) })
    .execute()
  await purgeMemoryEnds(service.store)
  const left = await db.selectFrom('memoryEnds').select('process').execute()
  expect(left.map(({ process }) => process)).toContain(recent)
  expect(left.map(({ process }) => process)).not.toContain(old)
})
