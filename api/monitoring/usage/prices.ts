import { Hono } from 'hono'
import * as v from 'valibot'
import { readModelPrices, updateModelPrices } from '../../../db/monitoring/usage/prices.ts'
import type { AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { boundedString, documentAs, InTeam, instantField } from '../../http/fields.ts'
import { timeSchema } from '../../http/responses.ts'

const MOST_PRICES = 500
const MOST_DOLLARS = 1_000_000

/** The types of credentials that models are called with. */
const PROVIDERS = ['OPENAI', 'ANTHROPIC', 'AZURE_OPENAI', 'GOOGLE_AI', 'OPENAI_COMPATIBLE', 'DEMO'] as const

const dollars = v.pipe(
  v.number('must be a number'),
  v.finite('must be a number'),
  v.minValue(0, 'must not be negative'),
  v.maxValue(MOST_DOLLARS, `must be at most ${MOST_DOLLARS}`),
  v.check((value) => Number(value.toFixed(10)) === value, 'must have at most 10 decimal places'),
)
const optionalDollars = v.pipe(
  v.optional(v.nullable(dollars), null),
  v.description('Null: as inputPerMillion'),
)

const priceFields = {
  provider: v.pipe(
    v.optional(v.nullable(v.picklist(PROVIDERS, `must be one of ${PROVIDERS.join(', ')}, or null`)), null),
    v.description('The type of the credential that the model is called with; null for any'),
  ),
  model: v.pipe(
    boundedString(200),
    documentAs<string>({ type: 'string', minLength: 1, maxLength: 200, pattern: '^[^\\u0000*]*\\*?$' }),
    v.check((name) => !name.slice(0, -1).includes('*'), 'may have * only at its end'),
    v.description("The model's name; with `*` at its end, how the name begins"),
    v.examples(['gpt-4o', 'llama3*']),
  ),
  inputPerMillion: v.pipe(dollars, v.description('US dollars for a million tokens of input')),
  cachedInputPerMillion: optionalDollars,
  cacheWritePerMillion: optionalDollars,
  outputPerMillion: v.pipe(dollars, v.description('US dollars for a million tokens of output')),
}
const validFrom = v.pipe(
  v.optional(v.nullable(instantField), null),
  v.description('The price counts for calls that begin from then on; null for all'),
)

const PriceList = v.object({
  prices: v.pipe(
    v.array(v.object({ ...priceFields, validFrom }, 'must be an object'), 'must be an array'),
    v.maxLength(MOST_PRICES, `must have at most ${MOST_PRICES} entries`),
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return
      const seen = new Map<string, number>()
      for (const [index, { provider, model, validFrom }] of dataset.value.entries()) {
        const key = JSON.stringify([provider, model, validFrom?.getTime() ?? null])
        const first = seen.get(key)
        if (first === undefined) seen.set(key, index)
        else {
          const message = `is the same model, provider and time as prices[${first}]`
          addIssue({ message, path: [pathItem(dataset.value, index)] })
        }
      }
    }),
  ),
})

const pathItem = (input: unknown[], key: number) =>
  ({ type: 'array', origin: 'value', input, key, value: input[key] }) as const

const PriceListSchema = v.pipe(
  v.object({
    prices: v.array(
      v.object({
        provider: v.nullable(v.picklist(PROVIDERS)),
        model: v.pipe(v.string(), v.examples(['llama3*'])),
        inputPerMillion: v.number(),
        cachedInputPerMillion: v.nullable(v.number()),
        cacheWritePerMillion: v.nullable(v.number()),
        outputPerMillion: v.number(),
        validFrom: v.nullable(timeSchema),
      }),
    ),
  }),
  v.title('ModelPrices'),
)

/** The routes with which a team reads and changes its own prices of models, at both of their addresses. */
export function createPriceRoutes() {
  const ofTeam = { read: 'readModelPrices', update: 'updateModelPrices' }
  const ofMonitoring = { read: 'readMonitoringPrices', update: 'updateMonitoringPrices' }
  return new Hono<AppEnv>()
    .route('/', createRoutesAt('/api/teams/:teamId/model-prices', ofTeam))
    .route('/', createRoutesAt('/api/monitoring/teams/:teamId/prices', ofMonitoring))
}

function createRoutesAt<const P extends string>(path: P, ids: { read: string; update: string }) {
  const responses = { 200: { description: 'The prices', schema: PriceListSchema } }
  return new Hono<AppEnv>()
    .get(
      path,
      accept({
        id: ids.read,
        tag: 'Monitoring',
        summary: "Read a team's own prices of models",
        description: 'Models that are not in the list have the price of the price list, if that knows them.',
        role: 'member',
        params: InTeam,
        responses,
      }),
      async (c) => c.json({ prices: await readModelPrices(c.get('scope'), c.req.valid('param').teamId) }),
    )
    .put(
      path,
      accept({
        id: ids.update,
        tag: 'Monitoring',
        summary: "Change a team's own prices of models",
        description:
          'Replaces the list. For a call counts the price of its exact name before one for how the name begins, of ' +
          'which the longest counts; then one for its provider before one for any; then the one with the latest ' +
          '`validFrom`. The prices count for calls that begin after the change; what earlier calls cost stays ' +
          'as it is.',
        role: 'ADMIN',
        params: InTeam,
        json: PriceList,
        example: {
          prices: [
            { provider: 'OPENAI_COMPATIBLE', model: 'llama3*', inputPerMillion: 0, outputPerMillion: 0 },
          ],
        },
        responses,
      }),
      async (c) => {
        const { prices } = c.req.valid('json')
        const { teamId } = c.req.valid('param')
        return c.json({ prices: await updateModelPrices(c.get('scope'), teamId, prices) })
      },
    )
}
