import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../../api/app.ts'
import { openBus } from '../../../db/bus.ts'
import { startListener } from '../../../worker/service/listener.ts'
import { MOCK, readAnswers, readTopics } from '../../n8n/cases.ts'
import { compareAll, type Host, type Verdict } from '../../n8n/compare.ts'
import { type Mock, startMock } from '../../n8n/mock.ts'
import { findSetbacks, readRatchet } from '../../n8n/ratchet.ts'
import { canRun } from '../../n8n/sqlstand.ts'
import { findDifference, markVarying } from '../../n8n/varying.ts'
import { type Running, startRunning } from '../../support/running.ts'

let host: Running
let mock: Mock
let base: string
let own: Host | undefined
const closing: (() => Promise<unknown>)[] = []

/** Serves the API over HTTP without the limits of its rates, which hundreds of imports in a minute would pass. */
beforeAll(async () => {
  ;[host, mock] = await Promise.all([startRunning(), startMock()])
  const bus = openBus(host.database.url, { name: 'another' })
  const app = createApp({
    store: host.store,
    bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    rateLimits: false,
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: (errand) => host.engine.carryOut(errand),
  })
  const listener = await startListener(app.fetch, 0, '127.0.0.1')
  base = `http://127.0.0.1:${listener.port}`
  closing.push(() => bus.stop().then(() => listener.stop(1_000)))
})
afterAll(async () => {
  for (const close of closing) await close()
  await host.stop()
  await mock.stop()
})

const cases = readTopics().flatMap((topic) => topic.cases)
const answers = readAnswers()

test('every case has a recorded answer for each of its calls, and every recording a case', () => {
  expect(cases.length).toBeGreaterThanOrEqual(320)
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
  expect(cases.map(({ name, calls }) => `${name} ${calls.length}`)).toEqual(
    cases.map(({ name }) => `${name} ${answers.get(name)?.calls.length}`),
  )
  expect([...answers.keys()].filter((name) => !cases.some((one) => one.name === name))).toEqual([])
  expect(JSON.stringify([...answers.values()])).not.toContain(mock.url)
  expect(JSON.stringify(cases)).toContain(MOCK)
})

test(
  'some imported workflows answer as n8n did wherever they have done so before',
  () => expectSame(12),
  300_000,
)

test(
  'all imported workflows answer as n8n did wherever they have done so before',
  {
    tags: 'long',
    timeout: 900_000,
  },
  () => expectSame(1),
)

/** Compares every `nth` case with what was recorded. */
async function expectSame(nth: number): Promise<void> {
  const send = (path: string, init: RequestInit = {}) => fetch(base + path, init)
  const ask = async <T>(method: string, path: string, json?: unknown): Promise<T> => {
    const headers = { cookie: host.admin, 'content-type': 'application/json' }
    const response = await send(path, {
      method,
      headers,
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} responded with ${response.status}: ${text}`)
    return JSON.parse(text)
  }
  // One for all tests: it keeps the credentials that it has made.
  own ??= { teamId: host.teamId, ask, send }
  const chosen = cases.filter(({ name }, at) => at % nth === 0 && canRun(name))
  const verdicts: Verdict[] = await compareAll(own, mock, chosen, answers)
  expect(verdicts.length).toBe(chosen.length)
  expect(findSetbacks(verdicts, readRatchet())).toEqual([])
}

test('what differs between two recordings is marked, and then only its type counts', () => {
  const marked = markVarying(
    { id: 'a', at: [1, 2], n: null, o: { x: 1 } },
    { id: 'b', at: [1, 9], n: null, o: {} },
  )
  expect(marked).toEqual({
    id: { $varies: 'string' },
    at: [1, { $varies: 'number' }],
    n: null,
    o: { $varies: 'object' },
  })
  expect(findDifference(marked, { id: 'c', at: [1, 7], n: null, o: {} })).toBeUndefined()
  expect(findDifference(marked, { id: 5, at: [1, 7], n: null, o: {} })).toBe('id')
  expect(findDifference(marked, { id: 'c', at: [2, 7], n: null, o: {} })).toBe('at[0]')
  expect(markVarying('at /node_modules/n8n/x.js', 'at /node_modules/n8n/x.js')).toEqual({ $varies: 'any' })
  expect(findDifference({ stack: { $varies: 'any' }, b: 1 }, { b: 1 })).toBeUndefined()
  expect(findDifference({ a: undefined, b: 1 }, { b: 1 })).toBe('a')
  expect(findDifference([{ a: 1 }], [{ a: 1 }, { a: 2 }])).toBe('[1]')
  expect(findDifference([1, 2], [1])).toBe('[1]')
  expect(findDifference('1', 1)).toBe('.')
  expect(findDifference({ a: null }, { a: null, b: null })).toBe('b')
})

test('a case that was equal, or that differs silently for the first time, is a setback', () => {
  const verdict = (name: string, verdict: Verdict['verdict']): Verdict => {
    return { name, verdict, wrong: false, where: 'body', inside: [], problems: [], n8n: null, perdure: null }
  }
  const noted = { silent: ['s'], equal: ['e', 'f'] }
  const now = [
    verdict('s', 'silent'),
    verdict('e', 'reported'),
    verdict('f', 'equal'),
    verdict('n', 'silent'),
    verdict('r', 'reported'),
  ]
  expect(findSetbacks(now, noted)).toEqual([
    'e was equal and is reported: body',
    'n differs, and nothing says so',
  ])
})
