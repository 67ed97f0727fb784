import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import type { CredentialType } from '../../../db/credentials/types.ts'
import { startAnthropic } from '../../support/servers/models/anthropic.ts'
import { useModels } from '../../support/servers/models/asking.ts'
import { startGoogle } from '../../support/servers/models/google.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'

const models = useModels()
const TOOLS = [{ name: 'find', description: '', parameters: {} }]
/** For more than the sixty answers that are always the same. */
const RUNS = process.env.GARBAGE_RUNS

const KNOWN = ['ModelAnswer', 'ModelRefused', 'ModelUnavailable']

/** What becomes of an event: another value in the place of one of its own, or other bytes. */
const fault = fc.record({
  event: fc.nat(12),
  at: fc.nat(60),
  value: fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(-1, 1e300, '', '__proto__', 'error', null)),
  kind: fc.constantFrom('value', 'value', 'value', 'cut', 'twice', 'none', 'bytes'),
})

function spoil(raw: string, { at, value, kind }: { at: number; value: unknown; kind: string }): string {
  if (kind === 'none') return ''
  if (kind === 'twice') return raw + raw
  if (kind === 'cut') return raw.slice(0, at)
  if (kind === 'bytes') return `${raw.slice(0, at)}\u0000\n${raw.slice(at)}`
  const fields = [...raw.matchAll(/"\w+":("(?:[^"\\]|\\.)*"|-?[\d.]+|null|true|false|\[\]|\{\})/g)]
  const field = fields[at % Math.max(1, fields.length)]
  if (!field) return raw
  const start = field.index + field[0].length - field[1]!.length
  return raw.slice(0, start) + JSON.stringify(value) + raw.slice(start + field[1]!.length)
}

const VENDORS = {
  OPENAI: startOpenAi,
  OPENAI_COMPATIBLE: startOpenAi,
  AZURE_OPENAI: startOpenAi,
  ANTHROPIC: startAnthropic,
  GOOGLE_AI: startGoogle,
} satisfies Partial<Record<CredentialType, unknown>>

test.each(Object.entries(VENDORS))(
  '%s: an answer in which something is wrong is read, or fails as answers do',
  async (type, start) => {
    const server = await start({ text: '' })
    const address: Record<string, string> =
      type === 'AZURE_OPENAI' ? { endpoint: server.origin } : { baseUrl: server.url }
    const counts = { failed: 0, came: 0 }
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(fault, { minLength: 1, maxLength: 3 }), async (faults) => {
          const spoils = new Map(faults.map((one) => [one.event, (raw: string) => spoil(raw, one)]))
          server.say({
            reasoning: 'hmm',
            text: 'one two three',
            tools: [{ name: 'find', args: { q: 'x' } }],
            spoil: (raw, event) => spoils.get(event)?.(raw) ?? raw,
          })
          const request = { messages: [{ role: 'user' as const, content: 'hi' }], tools: TOOLS }
          const context = { models: { silenceMs: 5_000 } }
          const said: string[] = []
          const onText = (text: string) => said.push(text)
          const come = await models
            .ask(type as CredentialType, { apiKey: 'some-key', ...address }, request, { context, onText })
            .catch((error) => error)
          const { outcome } = models.metered.at(-1)!
          if (come instanceof Error) {
            expect(come).toBeInstanceOf(NodeFailure)
            expect(KNOWN).toContain((come as NodeFailure).type)
            counts.failed++
            return
          }
          expect(said.join('')).toBe(come.text)
          expect(outcome!.status).toBe('SUCCESS')
          for (const tokens of Object.values(outcome!.usage ?? {}))
            expect(Number.isSafeInteger(tokens)).toBe(true)
          for (const call of come.toolCalls) {
            expect(typeof call.name).toBe('string')
            expect(typeof call.id).toBe('string')
            expect(call.arguments).toBeTypeOf('object')
          }
          expect(JSON.parse(JSON.stringify(come))).toEqual(come)
          counts.came++
        }),
        RUNS ? { numRuns: Number(RUNS) } : { numRuns: 60, seed: 14 },
      )
      expect(Math.min(counts.failed, counts.came)).toBeGreaterThan(5)
    } finally {
      await server.stop()
    }
  },
)
