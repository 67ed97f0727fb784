import { Writable } from 'node:stream'
import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { keep } from '../../../support/keep.ts'
import {
  CHAT,
  fillSpan,
  listAttributes,
  toJson,
  toProtobuf,
} from '../../../support/monitoring/usage/spans.ts'
import { startService } from '../../../support/service.ts'

const lines: string[] = []
const log = pino(
  { level: 'trace' },
  new Writable({
    write(line, _encoding, done) {
      lines.push(String(line))
      done()
    },
  }),
)
const service = await keep(startService({ rateLimits: false, log }))
const { db } = service.store

const CANARY = 'canary-7c1d'

/** Where libraries put what people and models have written. */
const TEXTS = [
  'gen_ai.prompt',
  'gen_ai.completion',
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.system_instructions',
  'gen_ai.tool.call.arguments',
  'gen_ai.tool.call.result',
  'gen_ai.tool.definitions',
  'gen_ai.prompt.0.content',
  'gen_ai.completion.0.content',
  'gen_ai.conversation.id',
  'llm.input_messages.0.message.content',
  'llm.output_messages.0.message.content',
  'llm.invocation_parameters',
  'llm.prompts',
  'ai.prompt',
  'ai.prompt.messages',
  'ai.response.text',
  'ai.response.toolCalls',
  'ai.toolCall.args',
  'ai.toolCall.result',
  'input.value',
  'output.value',
  'traceloop.entity.input',
  'traceloop.entity.output',
  'exception.message',
  'exception.stacktrace',
  'url.full',
  'user.id',
]

/** Everything that is stored, of all tables. */
async function dump(): Promise<string> {
  const { rows } = await sql<{ name: string }>`select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`.execute(db)
  const found: string[] = []
  for (const { name } of rows) {
    const all = await sql<{ row: string }>`select t::text as row from ${sql.table(name)} t`.execute(db)
    found.push(...all.rows.map(({ row }) => `${name} ${row}`))
  }
  return found.join('\n')
}

test('messages, prompts and what tools were given are dropped before anything is stored or logged', async () => {
  const token = await service.token('OPERATOR')
  const texts = Object.fromEntries(TEXTS.map((name) => [name, `${CANARY} ${name}`]))
  const link = { traceId: 'ab'.repeat(16), spanId: 'ab'.repeat(8), attributes: listAttributes(texts) }
  const about = (n: number) => ({
    name: `${CANARY} the name`,
    traceState: `canary=${CANARY}`,
    events: [{ name: `${CANARY} event`, attributes: listAttributes(texts) }],
    links: [link],
    status: { code: n % 2, message: `${CANARY} status` },
    unknownField: { deep: [CANARY] },
  })
  const spans = [
    CHAT,
    { ...CHAT, 'gen_ai.operation.name': 'execute_tool' },
    {},
    { ...CHAT, 'gen_ai.usage.input_tokens': CANARY },
  ]
  const sent = spans.map((own, n) => ({
    attributes: { ...own, ...texts, 'error.type': `${CANARY} type` },
    raw: about(n),
  }))
  const batch = toJson(sent, 'a service')
  const [only] = batch.resourceSpans
  only!.resource.attributes.push(...listAttributes(texts), { key: CANARY, value: { stringValue: CANARY } })
  Object.assign(only!.scopeSpans[0]!.scope, { name: CANARY, attributes: listAttributes(texts) })
  const ask = (type: string, body: Uint8Array<ArrayBuffer> | string) =>
    service.request('/api/telemetry/v1/traces', {
      method: 'POST',
      as: token,
      headers: { 'content-type': type },
      body,
    })

  const answers = [
    await ask('application/json', JSON.stringify(batch)),
    await ask('application/x-protobuf', new Uint8Array(toProtobuf(sent))),
    // Refused as a whole, and in a place that is named.
    await ask('application/json', JSON.stringify(batch).slice(0, -20)),
    await ask('application/json', JSON.stringify({ resourceSpans: [{ scopeSpans: CANARY }] })),
    await ask('application/x-protobuf', new Uint8Array(toProtobuf(sent).subarray(0, -20))),
    await ask('text/plain', CANARY),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 400, 400, 415])
  for (const answer of answers) expect(await answer.text()).not.toContain(CANARY)
  const stored = await dump()
  expect(stored).toContain('telemetry_spans')
  expect(stored).toContain('gpt-4o')
  expect(stored.includes(CANARY), 'a text was stored').toBe(false)
  expect(lines.length).toBeGreaterThan(3)
  expect(lines.join('').includes(CANARY), 'a text was logged').toBe(false)
})

test('names are cut to 200 characters, and lose what PostgreSQL cannot store', async () => {
  const token = await service.token('OPERATOR')
  const long = {
    ...CHAT,
    'gen_ai.request.model': `\0${'m'.repeat(5_000)}`,
    'gen_ai.agent.name': '\ud800é"\\',
  }
  const span = fillSpan({ attributes: long })
  const json = await service.call('POST', '/api/telemetry/v1/traces', token, toJson([span], 's'.repeat(300)))
  expect(json.status).toBe(200)
  const { models, services, agents } = (
    await service.call('GET', `/api/monitoring/teams/${service.teamId}/telemetry`, service.admin)
  ).body
  expect(models.map(({ model }: { model: string }) => model)).toContain(`\uFFFD${'m'.repeat(199)}`)
  expect(services.map(({ service }: { service: string }) => service)).toContain('s'.repeat(200))
  expect(agents.map(({ agent }: { agent: string }) => agent)).toEqual(['\uFFFDé"\\'])
})
