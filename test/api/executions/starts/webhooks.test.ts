import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { CALL_MARK, makeCallMark } from '../../../../db/operation/callmark.ts'
import { keep } from '../../../support/keep.ts'
import { makeKeys, shareService } from '../../../support/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: responses are read field by field
type Body = any

let count = 0

const service = await keep(shareService())
const workflowId = await create([
  { id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } },
  { id: 'in-get', type: 'WEBHOOK_TRIGGER', config: { path: 'orders', method: 'GET' } },
  { id: 'put', type: 'WEBHOOK_TRIGGER', config: { path: 'put', method: 'PUT' } },
  { id: 'off', type: 'WEBHOOK_TRIGGER', config: { path: 'off' }, disabled: true },
  {
    id: 'secret',
    type: 'WEBHOOK_TRIGGER',
    config: { path: 'secret', secretHeader: { name: 'X-Hook-Key', value: 'open sesame' } },
  },
])
await activate(workflowId, true)

async function create(nodes: object[]): Promise<string> {
  const json = { teamId: service.teamId, name: `hooks ${++count}`, nodes, edges: [] }
  const answer = await service.request('/api/workflows', { method: 'POST', as: service.admin, json })
  expect(answer.status).toBe(201)
  return ((await answer.json()) as Body).id
}

async function activate(id: string, active: boolean) {
  const answer = await service.request(`/api/workflows/${id}`, {
    method: 'PUT',
    as: service.admin,
    json: { active },
  })
  expect(answer.status).toBe(200)
}

async function fire(path: string, init: RequestInit = { method: 'POST' }) {
  const answer = await service.request(`/hooks/${path}`, init)
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: (text ? JSON.parse(text) : null) as Body }
}

/** Fires a webhook and returns the input of the execution that it started. */
async function inputOf(path: string, init?: RequestInit): Promise<Body> {
  const { status, body } = await fire(`${workflowId}/${path}`, init)
  expect(status, JSON.stringify(body)).toBe(202)
  const answer = await service.request(`/api/executions/${body.executionId}`, { as: service.admin })
  return ((await answer.json()) as Body).inputData
}

const post = (body: string | Uint8Array, type?: string): RequestInit => ({
  method: 'POST',
  body,
  headers: type ? { 'content-type': type } : {},
})

test('a request starts an execution with its body, query, headers and method as the input', async () => {
  const { status, body, headers } = await fire(`${workflowId}/orders?a=1&b=2&b=3&__proto__=x`, {
    method: 'POST',
    body: '{"n":[1,null]}',
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'X-Shop': 'Main',
      Cookie: 'perdure_session=x',
      Authorization: 'Bearer x',
    },
  })
  expect(status).toBe(202)
  expect(body).toEqual({
    executionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    status: 'PENDING',
    startedAt: expect.stringMatching(/Z$/),
  })
  expect(headers.get('location')).toBe(`/api/executions/${body.executionId}`)
  const answer = await service.request(`/api/executions/${body.executionId}`, { as: service.admin })
  expect(await answer.json()).toMatchObject({ trigger: 'WEBHOOK', status: 'PENDING', workflowId })
  const row = await service.store.db
    .selectFrom('executions')
    .select(['triggerNodeId', 'startedByKind', 'startedById', 'inputData'])
    .where('id', '=', body.executionId)
    .executeTakeFirstOrThrow()
  expect(row).toEqual({
    triggerNodeId: 'in',
    startedByKind: 'SYSTEM',
    startedById: null,
    inputData: {
      body: { n: [1, null] },
      query: { a: '1', b: ['2', '3'] },
      headers: { 'content-type': 'application/json; charset=utf-8', 'x-shop': 'Main' },
      method: 'POST',
    },
  })
})

const inParts = new FormData()
for (const [name, value] of ['a 1', 'a \u20ac', '__proto__ x'].map((field) => field.split(' '))) {
  inParts.append(name!, value!)
}
inParts.append('file', new File([new Uint8Array([0xff, 0, 1])], 'a.bin', { type: 'image/png' }))

test('a call of a workflow reaches only hooks, and its mark is no part of their input', async () => {
  const marked = (path: string, mark = makeCallMark(service.store.keys)) =>
    service.call('POST', path, undefined, {}, { [CALL_MARK]: mark })
  const { status, body } = await marked(`/hooks/${workflowId}/orders`)
  expect(status).toBe(202)
  const { body: execution } = await service.call('GET', `/api/executions/${body.executionId}`, service.admin)
  expect(Object.keys(execution.inputData.headers)).not.toContain(CALL_MARK)
  expect((await marked('/resume/nothing')).status).toBe(404)
  for (const path of [
    '/api/auth/logout',
    '/api/auth/login',
    '/API/x',
    '/',
    '/nothing',
    '/hooks',
    '//hooks/a/b',
  ]) {
    const refused = await marked(path)
    expect([path, refused.status]).toEqual([path, 403])
    expect(refused.body.message).toBe('A workflow may call only /hooks and /resume of its own service')
  }
  // Another installation has other keys, and is a caller as any.
  expect((await marked('/api/auth/logout', makeCallMark(makeKeys()))).status).toBe(200)
})

test.each([
  ['JSON of any kind', post('[1]', 'application/vnd.api+json'), [1]],
  ['a form', post('a=1&b=2&b=3&c=', 'application/x-www-form-urlencoded'), { a: '1', b: ['2', '3'], c: '' }],
  [
    'a form in parts',
    { method: 'POST', body: inParts },
    {
      a: ['1', '\u20ac'],
      file: { filename: 'a.bin', contentType: 'image/png', base64: '/wAB' },
    },
  ],
  ['text', post('<a/>', 'application/xml'), '<a/>'],
  ['bytes', post(new Uint8Array([0xff, 0, 1]), 'application/octet-stream'), { base64: '/wAB' }],
  ['nothing', { method: 'POST' }, null],
])('a body of %s', async (_what, init, expected) => {
  expect((await inputOf('orders', init)).body).toEqual(expected)
})

test('each method of a path has its own trigger', async () => {
  expect(await inputOf('orders', { method: 'GET' })).toMatchObject({ method: 'GET', body: null })
  const wrong = await fire(`${workflowId}/orders`, { method: 'PUT' })
  expect(wrong.status).toBe(405)
  expect(wrong.headers.get('allow')).toBe('POST, GET')
  expect(wrong.body).toMatchObject({
    status: 405,
    error: 'Method Not Allowed',
    path: `/hooks/${workflowId}/orders`,
  })
  expect((await fire(`${workflowId}/put`, { method: 'POST' })).status).toBe(405)
  expect((await fire(`${workflowId}/put`, { method: 'PUT' })).status).toBe(202)
  expect((await fire(`${workflowId}/put`, { method: 'HEAD' })).status).toBe(405)
})

test('a webhook with a secret demands it, and the secret never reaches the execution', async () => {
  const send = (headers: Record<string, string>) => fire(`${workflowId}/secret`, { method: 'POST', headers })
  expect((await send({})).status).toBe(401)
  expect((await send({ 'x-hook-key': 'open' })).status).toBe(401)
  expect((await send({ 'x-hook-key': 'open sesame!' })).status).toBe(401)
  expect(
    (await inputOf('secret', { method: 'POST', headers: { 'x-hook-key': 'open sesame', 'x-b': 'c' } }))
      .headers,
  ).toEqual({
    'x-b': 'c',
  })
})

test('unknown, disabled and inactive webhooks respond 404', async () => {
  expect((await fire('00000000-0000-4000-8000-000000000000/orders')).status).toBe(404)
  expect((await fire(`${workflowId}/nothing`)).status).toBe(404)
  expect((await fire(`${workflowId}/off`)).status).toBe(404)
  expect((await fire(`${workflowId}/orders/more`)).status).toBe(404)
  expect((await fire('no-uuid/orders')).status).toBe(400)
  const id = await create([{ id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } }])
  expect((await fire(`${id}/orders`)).status).toBe(404)
  await activate(id, true)
  expect((await fire(`${id}/orders`)).status).toBe(202)
  await activate(id, false)
  expect((await fire(`${id}/orders`)).status).toBe(404)
})

test('refuses broken JSON, prototype keys and bodies over 1.5 MB, even if they are chunked', async () => {
  const path = `${workflowId}/orders`
  expect((await fire(path, post('{', 'application/json'))).status).toBe(400)
  expect((await fire(path, post('{"__proto__":{}}', 'application/json'))).status).toBe(400)
  expect((await fire(path, post('x'.repeat(1_500_001), 'text/plain'))).status).toBe(413)
  expect((await fire(path, post('x'.repeat(1_499_000), 'text/plain'))).status).toBe(202)
  const chunks = new ReadableStream({
    pull(controller) {
      controller.enqueue(new Uint8Array(100_000))
    },
  })
  const init = { method: 'POST', body: chunks, duplex: 'half' } as RequestInit
  expect((await fire(path, init)).status).toBe(413)
})

test('two hundred concurrent requests start two hundred executions', async () => {
  const id = await create([{ id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'many' } }])
  await activate(id, true)
  const answers = await Promise.all(Array.from({ length: 200 }, () => fire(`${id}/many`)))
  expect(new Set(answers.map(({ body }) => body.executionId)).size).toBe(200)
  const list = await service.request(`/api/executions?workflowId=${id}&status=PENDING`, { as: service.admin })
  expect(await list.json()).toMatchObject({ totalElements: 200, totalPages: 10 })
})

const BODY = '{"amount": 1,  "text": "\u00e4"}'
const sign = (text: string, secret = 'key', algorithm = 'sha256', encoding: 'hex' | 'base64' = 'hex') =>
  createHmac(algorithm, secret).update(text).digest(encoding)

/**
 * Creates an active webhook with a signature. Returns a function that fires it and returns the response's
 * status.
 */
async function signed(signature: object) {
  const config = { path: 'in', signature: { secret: 'key', ...signature } }
  const id = await create([{ id: 'in', type: 'WEBHOOK_TRIGGER', config }])
  await activate(id, true)
  return async (headers: Record<string, string>, body = BODY) => {
    const type = { 'content-type': 'application/json' }
    return (await fire(`${id}/in`, { method: 'POST', headers: { ...type, ...headers }, body })).status
  }
}

test("GitHub's signature must be of the body as it was sent, with the right key", async () => {
  const send = await signed({ header: 'X-Hub-Signature-256', prefix: 'sha256=' })
  expect(await send({ 'X-Hub-Signature-256': `sha256=${sign(BODY)}` })).toBe(202)
  expect(await send({ 'x-hub-signature-256': `sha256=${sign(BODY).toUpperCase()}` })).toBe(202)
  for (const wrong of [
    sign(BODY),
    `sha256=${sign(`${BODY} `)}`,
    `sha256=${sign(JSON.stringify(JSON.parse(BODY)))}`,
    `sha256=${sign(BODY, 'other')}`,
    `sha256=${sign(BODY).slice(2)}`,
    `sha256=${sign(BODY)}x`,
    `sha256=${sign(BODY)}00`,
    `sha1=${sign(BODY, 'key', 'sha1')}`,
    'sha256=',
    '',
  ]) {
    expect([wrong, await send({ 'X-Hub-Signature-256': wrong })]).toEqual([wrong, 401])
  }
  expect(await send({})).toBe(401)
  // The signature is checked before the body is parsed.
  expect(await send({ 'X-Hub-Signature-256': 'sha256=' }, '{')).toBe(401)
  expect(await send({ 'X-Hub-Signature-256': `sha256=${sign('{')}` }, '{')).toBe(400)
})

test('signatures may be in base64, of other algorithms, and of an empty body', async () => {
  const send = await signed({ header: 'X-Shopify-Hmac-Sha256', encoding: 'base64', algorithm: 'sha512' })
  expect(await send({ 'X-Shopify-Hmac-Sha256': sign(BODY, 'key', 'sha512', 'base64') })).toBe(202)
  expect(await send({ 'X-Shopify-Hmac-Sha256': sign(BODY, 'key', 'sha512') })).toBe(401)
  expect(await send({ 'X-Shopify-Hmac-Sha256': `${sign(BODY, 'key', 'sha512', 'base64')}!` })).toBe(401)
  expect(await send({ 'X-Shopify-Hmac-Sha256': sign('', 'key', 'sha512', 'base64') }, '')).toBe(202)
})

test("Stripe's signature includes a recent timestamp, and may have several values", async () => {
  const send = await signed({
    header: 'Stripe-Signature',
    prefix: 'v1=',
    timestampHeader: 'Stripe-Signature',
  })
  const now = Math.floor(Date.now() / 1_000)
  const at = (seconds: number, secret?: string) => sign(`${seconds}.${BODY}`, secret)
  expect(await send({ 'Stripe-Signature': `t=${now},v1=${at(now)},v0=x` })).toBe(202)
  expect(await send({ 'Stripe-Signature': `t=${now},v1=${at(now, 'old')},v1=${at(now)}` })).toBe(202)
  for (const wrong of [
    `t=${now - 301},v1=${at(now - 301)}`,
    `t=${now + 400},v1=${at(now + 400)}`,
    `t=${now},v1=${at(now - 1)}`,
    `v1=${at(now)}`,
    `t=x,v1=${sign(`x.${BODY}`)}`,
    `t=,v1=${sign(`.${BODY}`)}`,
  ]) {
    expect([wrong, await send({ 'Stripe-Signature': wrong })]).toEqual([wrong, 401])
  }
  const own = await signed({ header: 'X-Sig', timestampHeader: 'X-Time', toleranceSeconds: 10 })
  expect(await own({ 'X-Sig': at(now), 'X-Time': String(now) })).toBe(202)
  expect(await own({ 'X-Sig': at(now - 20), 'X-Time': String(now - 20) })).toBe(401)
  expect(await own({ 'X-Sig': at(now) })).toBe(401)
})

test('a signed delivery that is sent again starts nothing, and its signature is not kept', async () => {
  const type = { 'content-type': 'application/json' }
  const now = String(Math.floor(Date.now() / 1_000))
  const signatures = [
    { header: 'X-Sig', secret: 'key', timestampHeader: 'X-Time' },
    { header: 'X-Hub-Signature-256', secret: 'key', prefix: 'sha256=', deliveryHeader: 'X-GitHub-Delivery' },
    { header: 'X-Sig', secret: 'key', timestampHeader: 'X-Time', deliveryHeader: 'X-Id' },
  ]
  const nodes = signatures.map((signature, i) => {
    const config = { path: `in${i}`, signature, responseMode: i === 1 ? 'lastNode' : 'immediate' }
    return { id: `in${i}`, type: 'WEBHOOK_TRIGGER', config: { ...config, responseTimeoutMs: 100 } }
  })
  const id = await create(nodes)
  await activate(id, true)
  const send = (at: number, headers: Record<string, string>, body = BODY) =>
    fire(`${id}/in${at}`, { method: 'POST', headers: { ...type, ...headers }, body })
  const stamped = (time: string) => ({ 'X-Sig': sign(`${time}.${BODY}`), 'X-Time': time })
  const [first, ...rest] = await Promise.all(Array.from({ length: 8 }, () => send(0, stamped(now))))
  for (const again of rest) {
    expect(again).toMatchObject({ status: 202, body: { executionId: first!.body.executionId } })
  }
  const later = await send(0, stamped(String(Number(now) - 1)))
  expect(later.body.executionId).not.toBe(first!.body.executionId)
  // Nobody signs the id: with another one, a captured request is still the same delivery.
  const both = (id: string, time: string) => send(2, { ...stamped(time), 'X-Id': id })
  const started = (await both('a', now)).body.executionId
  const earlier = String(Number(now) - 2)
  expect((await both('b', now)).body.executionId).toBe(started)
  expect((await both('a', earlier)).body.executionId).toBe(started)
  expect((await both('c', earlier)).body.executionId).not.toBe(started)
  const delivered = (delivery: string, body = BODY) =>
    send(1, { 'X-Hub-Signature-256': `sha256=${sign(body)}`, 'X-GitHub-Delivery': delivery }, body)
  const one = await delivered('one')
  // There is no worker here, so the request that waits is not answered in time; a repeated one does not wait.
  expect(one.status).toBe(504)
  expect(await delivered('one')).toMatchObject({ status: 202, body: { executionId: one.body.executionId } })
  expect((await delivered('two')).status).toBe(504)
  expect((await delivered(' ')).status).toBe(401)
  const stored = await service.request(`/api/executions/${one.body.executionId}`, { as: service.admin })
  const text = await stored.text()
  expect(JSON.parse(text).inputData.headers).toMatchObject({ 'x-github-delivery': 'one' })
  expect(text).not.toContain(sign(BODY))
})

test('the key of a signature is in a credential, and shown to nobody', async () => {
  const signature = { header: 'X-Sig', secret: 'very secret' }
  const id = await create([{ id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'in', signature } }])
  const read = async (role: 'OPERATOR' | 'BUILDER') => {
    const answer = await service.request(`/api/workflows/${id}`, { as: await service.token(role) })
    return ((await answer.json()) as Body).nodes[0].config.signature
  }
  const shown = { header: 'X-Sig', credentialId: expect.any(String), algorithm: 'sha256', encoding: 'hex' }
  expect(await read('BUILDER')).toEqual(shown)
  expect(await read('OPERATOR')).toEqual(shown)
})

const REFUSED = expect.stringMatching(
  /^cannot be set by a workflow; it may set allow, cache-control, .* and headers of your own that begin with X-$/,
)

test('configs of WEBHOOK_TRIGGER and RESPOND_TO_WEBHOOK are checked when a workflow is saved', async () => {
  const nodes = [
    {
      id: 'in',
      type: 'WEBHOOK_TRIGGER',
      config: {
        path: 'in',
        responseMode: 'never',
        responseTimeoutMs: 300_001,
        signature: { header: 'X Sig', secret: '', algorithm: 'md5' },
      },
    },
    {
      id: 'r',
      type: 'RESPOND_TO_WEBHOOK',
      config: {
        status: 199,
        headers: {
          'Set-Cookie': 'perdure_session=x',
          'Content-Length': '1',
          'X A': 'b',
          'X-B': 'a\nb',
          'X-C': 'c',
        },
      },
    },
  ]
  const json = { teamId: service.teamId, name: 'faulty hooks', nodes, edges: [] }
  const answer = await service.request('/api/workflows', { method: 'POST', as: service.admin, json })
  expect(answer.status).toBe(400)
  const { errors } = (await answer.json()) as Body
  expect(Object.fromEntries(errors.map(({ path, message }: Body) => [path, message]))).toEqual({
    'nodes[0].config.responseMode': 'must be immediate, lastNode or responseNode, not "never"',
    'nodes[0].config.responseTimeoutMs': 'must be at most 300000, not 300001',
    'nodes[0].config.signature.header': 'must be the name of a header',
    'nodes[0].config.signature.secret': 'must not be empty',
    'nodes[0].config.signature.algorithm': 'must be sha256, sha1 or sha512, not "md5"',
    'nodes[1].config.status': 'must be at least 200, not 199',
    'nodes[1].config.headers.Set-Cookie': REFUSED,
    'nodes[1].config.headers.Content-Length': REFUSED,
    'nodes[1].config.headers.X A': 'is not the name of a header',
    'nodes[1].config.headers.X-B': 'has characters that a header cannot have',
  })
})

test('a workflow may set the headers that describe its answer, and none that a browser or proxy acts on', async () => {
  const save = async (names: string[]) => {
    const headers = Object.fromEntries(names.map((name) => [name, 'v']))
    const nodes = [{ id: 'r', type: 'RESPOND_TO_WEBHOOK', config: { headers } }]
    const name = `headers ${crypto.randomUUID()}`
    return service.call('POST', '/api/workflows', service.admin, { teamId: service.teamId, name, nodes })
  }
  const allowed = `Content-Type content-disposition Content-Language Cache-Control ETag Last-Modified Location
    Retry-After Link Vary X-Order X-Hub-Challenge X-Real-Estate X-Requested-By WebHook-Allowed-Origin ce-type`
  expect((await save(allowed.split(/\s+/))).status).toBe(201)
  const refused = `NEL Report-To Reporting-Endpoints Service-Worker-Allowed Clear-Site-Data Set-Cookie
    Set-Cookie2 Access-Control-Allow-Origin Access-Control-Allow-Credentials Content-Security-Policy
    Content-Security-Policy-Report-Only Strict-Transport-Security Public-Key-Pins Alt-Svc Refresh Origin-Agent-Cluster
    Cross-Origin-Opener-Policy Permissions-Policy Document-Policy Supports-Loading-Mode Speculation-Rules
    Accept-CH Critical-CH Content-Encoding Content-Length Transfer-Encoding Connection Server-Timing SourceMap
    WWW-Authenticate Proxy-Authenticate Upgrade Trailer Date Server Set-Login Activate-Storage-Access
    No-Vary-Search Use-As-Dictionary X-Frame-Options X-Content-Type-Options X-XSS-Protection X-Accel-Redirect
    X-Accel-Buffering X-Forwarded-For X-Forwarded-Host X-Sendfile X-Lighttpd-Send-File X-Real-IP X-Request-Id
    X-RateLimit-Limit X-DNS-Prefetch-Control X-Permitted-Cross-Domain-Policies X-WebKit-CSP X-Reproxy-URL
    X-Content-Security-Policy X-UA-Compatible X-HTTP-Method-Override x-litespeed-location X-Original-URL`.split(
    /\s+/,
  )
  const { status, body } = await save(refused)
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: Body) => path)).toEqual(
    refused.map((name) => `nodes[0].config.headers.${name}`),
  )
})

test('an active workflow with responseMode responseNode needs a RESPOND_TO_WEBHOOK', async () => {
  const hook = { id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'in', responseMode: 'responseNode' } }
  const respond = { id: 'r', type: 'RESPOND_TO_WEBHOOK', config: {} }
  const other = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const activated = async (nodes: object[], edges: object[]) => {
    const json = { teamId: service.teamId, name: `answers ${++count}`, nodes, edges }
    const made = await service.request('/api/workflows', { method: 'POST', as: service.admin, json })
    expect(made.status).toBe(201)
    const { id } = (await made.json()) as Body
    const put = { method: 'PUT', as: service.admin, json: { active: true } }
    const answer = await service.request(`/api/workflows/${id}`, put)
    return answer.status === 200 ? 200 : ((await answer.json()) as Body).errors
  }
  const fault = {
    path: 'nodes[0].config.responseMode',
    message: 'the webhook "in" must lead to a RESPOND_TO_WEBHOOK node that is not disabled',
  }
  const fromHook = { source: 'in', target: 'r' }
  expect(await activated([hook, respond], [fromHook])).toBe(200)
  expect(await activated([hook], [])).toEqual([fault])
  expect(await activated([hook, { ...respond, disabled: true }], [fromHook])).toEqual([fault])
  expect(await activated([hook, other, respond], [{ source: 'start', target: 'r' }])).toEqual([fault])
  expect(await activated([{ ...hook, disabled: true }, other], [])).toBe(200)
})
