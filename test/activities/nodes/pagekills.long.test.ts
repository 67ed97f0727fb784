import { expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'

const host = await keep(startInstallation())
const patient = { timeout: 60_000 }

const seen: { page: number; key: unknown }[] = []
let holds = true
const world = await keep(
  startWorld({
    '/pages': ({ request, body, response }) => {
      const { page } = JSON.parse(body)
      seen.push({ page, key: request.headers['idempotency-key'] })
      // The worker that waits for this one is killed.
      if (page === 4 && holds) return
      const items = page > 6 ? [] : [page]
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ items }))
    },
  }),
)

test('killed within the pages, the worker goes on at the one that is missing, under the same key', {
  tags: 'long',
  timeout: 200_000,
}, async () => {
  const config = {
    ...{ url: `${world.url}/pages`, method: 'POST', body: { size: 1 } },
    pagination: {
      parameters: [{ in: 'body', name: 'page', value: '{{ $pageCount + 1 }}' }],
      items: '{{ $response.body.items }}',
      untilEmpty: true,
    },
  }
  const workflow = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'work', type: 'HTTP_REQUEST', config },
    ],
    edges: edges('start -> work'),
  })
  const id = await host.execute(workflow)
  await expect.poll(() => seen.length, patient).toBe(4)
  const was = host.kill('service')
  holds = false
  await host.recovered('service', was)
  const { status, outputData } = nodeOf(await host.ended(id, 120_000), 'work')
  expect([status, outputData]).toEqual(['SUCCESS', { items: [1, 2, 3, 4, 5, 6], pages: 7, more: false }])
  expect(seen.map(({ page }) => page)).toEqual([1, 2, 3, 4, 4, 5, 6, 7])
  // Only the one whose answer is not known was sent again, and the other side can tell.
  expect(new Set(seen.map(({ key }) => key)).size).toBe(7)
})
