import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const FRIEND = 'https://app.example.com'
const SHOP = 'https://shop.example.com'

const service = await keep(startService({ corsOrigins: [FRIEND] }))
const { teamId, admin, call, request } = service

test('an origin that may use the API with cookies may not use a widget, unless it is one of its own', async () => {
  const credential = await call('POST', '/api/credentials', admin, {
    teamId,
    name: 'm',
    type: 'DEMO',
    data: {},
  })
  const config = { credentialId: credential.body.id, model: 'demo', prompt: 'x' }
  const nodes = [
    { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
    { id: 'llm', type: 'LLM', config },
  ]
  const edges = [{ source: 'chat', target: 'llm' }]
  const workflow = await call('POST', '/api/workflows', admin, { teamId, name: 'Agent', nodes, edges })
  await call('PUT', `/api/workflows/${workflow.body.id}`, admin, { active: true })
  const widget = await call('POST', '/api/widgets', admin, {
    ...{ teamId, name: 'Shop', workflowId: workflow.body.id },
    allowedOrigins: [SHOP],
  })
  const path = `/api/public/widgets/${widget.body.key}`
  const preflight = { 'access-control-request-method': 'GET' }
  for (const [origin, status, preflightStatus] of [
    [SHOP, 200, 204],
    [FRIEND, 403, 403],
  ] as const) {
    const read = await request(path, { headers: { origin } })
    const asked = await request(path, { method: 'OPTIONS', headers: { origin, ...preflight } })
    expect([origin, read.status, asked.status]).toEqual([origin, status, preflightStatus])
    for (const { headers } of [read, asked]) {
      expect(headers.get('access-control-allow-origin')).toBe(origin === SHOP ? SHOP : null)
      expect(headers.get('access-control-allow-credentials')).toBeNull()
    }
  }
  await call('POST', `/api/widgets/${widget.body.id}/rotate-key`, admin)
  // Whoever has the old key may read that it holds no more.
  const gone = await request(path, { headers: { origin: SHOP } })
  expect([gone.status, gone.headers.get('access-control-allow-origin')]).toEqual([404, '*'])
  const asked = await request(path, { method: 'OPTIONS', headers: { origin: SHOP, ...preflight } })
  expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
  const own = await request(`/api/widgets?teamId=${teamId}`, { as: admin, headers: { origin: FRIEND } })
  expect(own.headers.get('access-control-allow-origin')).toBe(FRIEND)
})
