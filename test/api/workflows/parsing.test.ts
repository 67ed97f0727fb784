import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

/** What users send is parsed only for those who may save it, and never at the cost of everybody else. */
const service = await keep(shareService())
const other = await service.otherTeam()
const { cookie: builder } = await service.signUp('BUILDER')
const viewer = await service.token('VIEWER')

const ATTACK = `${'('.repeat(8)}**${'.**'.repeat(3_200)}${'?:b)'.repeat(8)}`
const set = (id: string, values: object) => ({ id, type: 'SET', config: { values } })
const small = (count: number) =>
  Array.from({ length: count / 100 }, (_, node) =>
    set(
      `n${node}`,
      Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k${at}`, `{{ $input.a + ${at} }}`])),
    ),
  )

let count = 0
const save = (nodes: unknown, as: string, teamId: unknown = service.teamId) =>
  service.call('POST', '/api/workflows', as, { teamId, name: `parsed ${++count}`, nodes })

/** How often /healthz responds, one request after the other, before the promise settles. */
async function countHealthy(until: Promise<unknown>): Promise<number> {
  let pending = true
  const done = until.finally(() => {
    pending = false
  })
  let healthy = 0
  while (pending) {
    expect((await service.request('/healthz')).status).toBe(200)
    if (pending) healthy++
    await new Promise(setImmediate)
  }
  await done
  return healthy
}

test('nothing is parsed for somebody who may not save it', async () => {
  const { body: own } = await save([], builder)
  const bad = [set('a', { text: '{{ 1 + }}' })]
  const settings = { concurrency: { limit: 1, key: '{{ 1 + }}' } }
  const urls = [
    ['POST', '/api/workflows', { teamId: service.teamId, name: 'n', nodes: bad, settings }],
    ['PUT', `/api/workflows/${own.id}`, { nodes: bad, edges: [], settings }],
    ['PUT', `/api/workflows/${own.id}`, { nodes: bad }],
    [
      'POST',
      '/api/workflows/import',
      { teamId: service.teamId, workflow: { format: 'perdure.workflow', formatVersion: 1, nodes: bad } },
    ],
  ] as const
  const removed = await service.signUp('BUILDER')
  await service.store.db.deleteFrom('members').where('userId', '=', removed.id).execute()
  for (const [method, url, json] of urls) {
    expect((await service.call(method, url, builder, json)).status).toBe(400)
    for (const as of [viewer, other.cookie, removed.cookie]) {
      const { status, body } = await service.call(method, url, as, json)
      expect({ status, errors: body.errors }).toEqual({ status: 403, errors: undefined })
    }
  }
  const missing = crypto.randomUUID()
  expect((await save(bad, builder, missing)).status).toBe(404)
  expect((await service.call('PUT', `/api/workflows/${missing}`, builder, { nodes: bad })).status).toBe(404)
})

test('a body that names no team has its graph checked only for somebody who may save one somewhere', async () => {
  const paths = async (as: string) =>
    (await save([set('a', { text: '{{ 1 + }}' })], as, 'x')).body.errors.map(({ path }: Body) => path)
  expect(await paths(builder)).toEqual(['teamId', 'nodes[0].config.values.text'])
  expect(await paths(viewer)).toEqual(['teamId'])
})

test('expressions that would take minutes are refused at once, by node and field', async () => {
  const nodes = Array.from({ length: 100 }, (_, at) => set(`n${at}`, { text: `{{ ${ATTACK} }}` }))
  const refused = save(nodes, builder)
  expect(await countHealthy(refused)).toBeGreaterThan(3)
  const { status, body } = await refused
  expect(status).toBe(400)
  expect(body.errors).toHaveLength(100)
  expect(body.errors[99].path).toBe('nodes[99].config.values.text')
  expect(body.errors[99].message).toMatch(/^\{\{ \(\(\(.*\.\.\. \}\} is too long for the \?\? and \?: in it/)
  for (const as of [viewer, other.cookie]) expect((await save(nodes, as)).status).toBe(403)
})

test('expressions that each are short enough, but too many together, are refused by node and field', {
  tags: 'long',
}, async () => {
  const dear = `{{ ${'('.repeat(8)}a${'+a'.repeat(30)}${'?:b)'.repeat(8)} }}`
  const nodes = Array.from({ length: 10 }, (_, at) => set(`n${at}`, { list: Array(100).fill(dear) }))
  const refused = save(nodes, builder)
  expect(await countHealthy(refused)).toBeGreaterThan(20)
  const { status, body } = await refused
  expect(status).toBe(400)
  expect(body.errors).toEqual([
    {
      path: expect.stringMatching(/^nodes\[0\]\.config\.values\.list\[\d+\]$/),
      message: expect.stringMatching(/^has an expression that would take too long to read/),
    },
  ])
})

test('while a large graph is read, others are served', async () => {
  const saved = save(small(3_000), builder)
  expect(await countHealthy(saved)).toBeGreaterThan(5)
  const { status, body } = await saved
  expect(status).toBe(201)
  const url = `/api/workflows/${body.id}`
  for (const change of [{ nodes: small(2_900) }, { nodes: small(3_000), edges: [] }]) {
    const changed = service.call('PUT', url, builder, change)
    expect(await countHealthy(changed)).toBeGreaterThan(5)
    expect((await changed).status).toBe(200)
  }
  const restored = service.call('POST', `${url}/versions/1/restore`, builder)
  expect(await countHealthy(restored)).toBeGreaterThan(5)
  expect((await restored).status).toBe(200)
})

test('a small graph is saved before another team has saved all its large ones', {
  tags: 'long',
}, async () => {
  const order: string[] = []
  const large = Array.from({ length: 3 }, () => save(small(6_000), builder).then(() => order.push('large')))
  const little = save([set('a', { text: '{{ 1 }}' })], other.cookie, other.teamId)
  await Promise.all([...large, little.then(({ status }) => order.push(`little ${status}`))])
  expect(order.filter((entry) => entry !== 'large')).toEqual(['little 201'])
  expect(order.at(-1)).toBe('large')
})
