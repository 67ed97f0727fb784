import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { superviseChild } from '../../../worker/local/children.ts'
import { until } from '../../support/until.ts'

/** Aborts at its first and third start before it is up; is up at all others, until its file is gone. */
const SCRIPT = `
  starts=$(wc -l < starts)
  echo start >> starts
  case $starts in
    0|2) kill -ABRT $$ ;;
  esac
  touch up
  while [ -e up ]; do sleep 0.05; done
  exit 4`

test('each end of a program is told before its next start, whether it was up or not, but not that by a stop', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'children-'))
  onTestFinished(() => rm(cwd, { recursive: true }))
  await writeFile(join(cwd, 'starts'), '')
  const countStarts = async () => (await readFile(join(cwd, 'starts'), 'utf8')).split('\n').length - 1
  const ends: [string | null, number][] = []
  const back: string[] = []
  const child = superviseChild(
    {
      name: 'program',
      command: '/bin/sh',
      args: ['-c', SCRIPT],
      cwd,
      logFile: join(cwd, 'log'),
      stopSignal: 'SIGTERM',
      stopMs: 5_000,
      async ended({ signal }) {
        ends.push([signal, await countStarts()])
      },
      check: () => access(join(cwd, 'up')),
      readyMs: 20_000,
    },
    { started: () => {}, lost: () => {}, back: (name) => back.push(name) },
  )
  try {
    await child.ready
    expect(ends).toEqual([['SIGABRT', 1]])
    await rm(join(cwd, 'up'))
    await until(async () => back.length > 0)
  } finally {
    await child.stop()
  }
  expect(ends).toEqual([
    ['SIGABRT', 1],
    [null, 2],
    ['SIGABRT', 3],
  ])
  expect(await countStarts()).toBe(4)
})

test('a stop does not wait for a check that hangs', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'children-'))
  onTestFinished(() => rm(cwd, { recursive: true }))
  const checked = Promise.withResolvers<void>()
  const child = superviseChild(
    {
      name: 'program',
      command: '/bin/sleep',
      args: ['60'],
      cwd,
      logFile: join(cwd, 'log'),
      stopSignal: 'SIGTERM',
      stopMs: 5_000,
      async check() {
        checked.resolve()
        await new Promise(() => {})
      },
      readyMs: 20_000,
    },
    { started: () => {}, lost: () => {}, back: () => {} },
  )
  await checked.promise
  await child.stop()
  await child.ready
})
