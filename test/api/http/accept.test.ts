import { Hono } from 'hono'
import { pino } from 'pino'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import type { AppEnv } from '../../../api/env.ts'
import { accept, findRule } from '../../../api/http/accept.ts'
import { respondWithError } from '../../../api/http/errors.ts'
import { boundedString, uuidField } from '../../../api/http/fields.ts'
import { queryInteger } from '../../../api/http/query.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())

test('every route of the API has a rule, so that none can forget to say who may call it', () => {
  const routes = new Map<string, boolean>()
  for (const { method, path, handler } of service.app.routes) {
    if (method === 'ALL') continue
    const key = `${method} ${path}`
    routes.set(key, routes.get(key) || findRule(handler) !== undefined)
  }
  expect(routes.size).toBeGreaterThan(5)
  // The console's page and files, and the script of widgets, are public, and not part of the API.
  const unruled = [...routes].filter(([, ruled]) => !ruled).map(([route]) => route)
  expect(unruled).toEqual(['GET /widget.js', 'GET /', 'GET /console/:name'])
})

test('every route that reads a body from a stranger has limits of its own, and a large sign-in is refused unread', async () => {
  const open = service.app.routes.flatMap(({ handler, path, method }) => {
    const rule = findRule(handler)
    return rule?.role === 'public' && method !== 'GET' ? [{ path, rule }] : []
  })
  const loose = open.filter(
    ({ rule }) => rule.json && !(rule.mostBytes! <= 64 * 1024 && rule.mostDepth && rule.mostValues),
  )
  expect(loose.map(({ path }) => path)).toEqual([])
  // Their handlers read the body themselves, bounded and off the thread.
  expect(open.filter(({ rule }) => rule.anyBody).map(({ path }) => path)).toEqual([
    '/resume/:token',
    '/hooks/:workflowId/:path',
    '/hooks-test/:workflowId/:path',
    '/forms/:workflowId/:path',
    '/forms/:workflowId/:path/password',
    '/forms-test/:workflowId/:path',
    '/forms-test/:workflowId/:path/password',
    '/form/:token',
  ])
  const login = (body: string | ReadableStream, more = {}) =>
    service.app.request('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      ...more,
    })
  expect((await login(`{"email":"${'a'.repeat(1_400_000)}"}`)).status).toBe(413)
  let sent = 0
  const endless = new ReadableStream({
    pull(controller) {
      sent++
      controller.enqueue(new Uint8Array(16_384))
    },
  })
  expect((await login(endless, { duplex: 'half' })).status).toBe(413)
  expect(sent).toBeLessThan(10)
  const deep = await login(`{"email":"a","a":${'['.repeat(5)}${']'.repeat(5)}}`)
  expect(await deep.json()).toMatchObject({
    errors: [{ message: 'must not be nested deeper than 4 levels' }],
  })
  const many = await login(`{"email":"a","a":[${'1,'.repeat(200)}1]}`)
  expect(await many.json()).toMatchObject({ errors: [{ message: 'must have at most 100 values' }] })
})

const app = new Hono<AppEnv>()
app.use(async (c, next) => {
  c.set('log', pino({ level: 'silent' }))
  c.set('countRequest', async () => {})
  await next()
})
app.onError((error, c) => respondWithError(c, error))
const rule = {
  id: 'makeThing',
  tag: 'Things',
  responses: {},
  summary: 'A route',
  role: 'public',
  params: v.object({ id: uuidField }),
  query: v.object({ page: v.optional(queryInteger(0, 10), '0'), search: v.optional(boundedString(5)) }),
  json: v.object({
    name: boundedString(5),
    tags: v.optional(v.array(v.object({ key: boundedString(3) })), []),
    note: v.optional(v.number()),
    place: v.optional(v.pipe(v.object({ spot: v.optional(v.nullable(v.object({}))) }), v.title('Place'))),
  }),
} as const
app.post('/things/:id', accept(rule), (c) =>
  c.json({ ...c.req.valid('param'), ...c.req.valid('query'), ...c.req.valid('json') }),
)

type Errors = { errors: { path: string; message: string }[] }

const ID = '0190b5a2-0000-7000-8000-0123456789ab'
const ask = (path: string, json: unknown) =>
  app.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(json),
  })

test('parameters, query and body are parsed together: unknown fields are dropped, defaults filled in', async () => {
  const response = await ask(`/things/${ID.toUpperCase()}?search=%C3%A4&more=1`, { name: 'n', admin: true })
  expect(await response.json()).toEqual({ id: ID, page: 0, search: 'ä', name: 'n', tags: [] })
})

test('all problems are reported at once, each with its path', async () => {
  const response = await ask('/things/1?page=-1&search=abcdef', {
    tags: [{ key: 'a' }, { key: 5 }, {}],
    note: 'x',
  })
  expect(response.status).toBe(400)
  const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
  expect(errors.map((problem) => problem.path)).toEqual([
    'id',
    'page',
    'search',
    'name',
    'tags[1].key',
    'tags[2].key',
    'note',
  ])
  expect(errors[3]!.message).toBe('is required')
})

test('an array is no object, however deep: Valibot would take it for one without keys', async () => {
  const response = await ask(`/things/${ID}`, { name: 'n', place: [null] })
  expect([response.status, ((await response.json()) as Errors).errors]).toEqual([
    400,
    [{ path: 'place', message: 'must be an object' }],
  ])
  const deep = await ask(`/things/${ID}`, { name: 'n', place: { spot: [] }, tags: [[]] })
  const { errors } = (await deep.json()) as Errors
  expect(errors.map(({ path, message }) => [path, message])).toEqual([
    ['tags[0].key', 'is required'],
    ['tags[0]', 'must be an object'],
    ['place.spot', 'must be an object'],
  ])
  expect((await ask(`/things/${ID}`, { name: 'n', place: { spot: {} } })).status).toBe(200)
  expect((await ask(`/things/${ID}`, { name: 'n', tags: Array(200_000).fill([]) })).status).toBe(400)
})

test('a query key that takes one value but is given twice is 400', async () => {
  expect((await ask(`/things/${ID}?page=1&page=2`, { name: 'n' })).status).toBe(400)
  for (const page of ['1e3', ' 1', '0x1', '', '11', '99999999999999999999']) {
    expect([page, (await ask(`/things/${ID}?page=${page}`, { name: 'n' })).status]).toEqual([page, 400])
  }
})

test('a response neither repeats a megabyte of input nor lists a hundred thousand problems', async () => {
  const long = await ask(`/things/${ID}`, { name: 'n', note: 'x'.repeat(1_000_000) })
  expect((await long.text()).length).toBeLessThan(6_000)
  const many = await ask(`/things/${ID}`, { name: 'n', tags: Array(100_000).fill(1) })
  expect(((await many.json()) as { errors: unknown[] }).errors.length).toBe(500)
})
