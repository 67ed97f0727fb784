import { Hono } from 'hono'
import * as v from 'valibot'
import { MODEL_CHECKS, readGuardrailSettings, updateGuardrailSettings } from '../../db/guardrails/settings.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, uuidField } from '../http/fields.ts'
import { idSchema, timeSchema } from '../http/responses.ts'

const MOST_DOLLARS = 1_000_000

const modelField = (description: string) =>
  v.pipe(v.optional(v.nullable(boundedString(200)), null), v.description(description))

const SettingsInput = v.pipe(
  v.object({
    credentialId: v.pipe(
      v.optional(v.nullable(uuidField), null),
      v.description('A credential of the team that is for models; null: none is asked'),
    ),
    model: modelField("The vendor's name of the model that judges texts; of Azure that of the deployment"),
    monthlyCostCap: v.pipe(
      v.optional(
        v.nullable(
          v.pipe(
            v.number('must be a number'),
            v.finite('must be a number'),
            v.minValue(0, 'must not be negative'),
            v.maxValue(MOST_DOLLARS, `must be at most ${MOST_DOLLARS}`),
            v.check((value) => Number(value.toFixed(10)) === value, 'must have at most 10 decimal places'),
          ),
        ),
        null,
      ),
      v.description(
        'The most US dollars that these models may take in a calendar month (UTC); needed by credentialId',
      ),
    ),
    checks: v.pipe(
      v.optional(
        v.pipe(
          v.array(v.picklist(MODEL_CHECKS, `must be one of ${MODEL_CHECKS.join(', ')}`), 'must be an array'),
          v.maxLength(MODEL_CHECKS.length, `must have at most ${MODEL_CHECKS.length} entries`),
        ),
        [],
      ),
      v.description(
        'For which checks the model is asked, beside the detectors: `injection` for detectPromptInjection, `content` ' +
          'for filterContent',
      ),
    ),
  }),
  // Also where another field is wrong, so that everything is named at once.
  v.rawCheck(({ dataset, addIssue }) => {
    const given = dataset.value as Record<string, unknown>
    if (typeof given !== 'object' || given === null) return
    const has = (key: string) => given[key] !== undefined && given[key] !== null
    const asksFor = Array.isArray(given.checks) && given.checks.length > 0
    const demand = (key: string, isNeeded: boolean, by: string) => {
      if (!isNeeded || has(key)) return
      const path = { type: 'object', origin: 'value', input: given, key, value: given[key] } as const
      addIssue({ message: `is needed by ${by}`, path: [path] })
    }
    const asks = ['model', 'checks'].filter((key) => (key === 'checks' ? asksFor : has(key)))
    demand('credentialId', asks.length > 0, asks.join(' and '))
    demand('monthlyCostCap', has('credentialId'), 'credentialId')
    demand('model', asksFor, 'checks')
  }),
)

const SettingsSchema = v.pipe(
  v.object({
    teamId: idSchema,
    credentialId: v.nullable(idSchema),
    model: v.pipe(v.nullable(v.string()), v.examples(['gpt-4o-mini'])),
    monthlyCostCap: v.pipe(v.nullable(v.number()), v.description('US dollars in a calendar month (UTC)')),
    checks: v.array(v.picklist(MODEL_CHECKS)),
    spentThisMonth: v.pipe(
      v.number(),
      v.minValue(0),
      v.description(
        'US dollars. Calls under way, and those of which nobody knows what they cost, are in it with what they can ' +
          'cost at most',
      ),
    ),
    updatedAt: v.nullable(timeSchema),
  }),
  v.title('GuardrailSettings'),
)

/** The routes with which a team says whether a model helps its guardrails, and which. */
export function createGuardrailSettingsRoutes() {
  const responses = { 200: { description: 'The settings', schema: SettingsSchema } }
  const query = v.object({ teamId: uuidField })
  return new Hono<AppEnv>()
    .get(
      '/api/guardrails/settings',
      accept({
        id: 'readGuardrailSettings',
        tag: 'Guardrails',
        summary: "Read the model of a team's guardrails",
        description: 'A team that has set up none has null everywhere: no text of it leaves the service.',
        role: 'BUILDER',
        query,
        responses,
      }),
      async (c) => {
        const { teamId } = c.req.valid('query')
        return c.json({ teamId, ...(await readGuardrailSettings(c.get('scope'), teamId)) })
      },
    )
    .put(
      '/api/guardrails/settings',
      accept({
        id: 'updateGuardrailSettings',
        tag: 'Guardrails',
        summary: "Set up a model for a team's guardrails",
        description:
          'Replaces the settings: what is left out or null is none. The texts of checks that ask the model are sent to ' +
          'its provider with the credential. Each call is in the usage of the team, without its text. Before a call ' +
          'is sent, what it can cost is counted; at the cap, and where the model has no known price, the checks that ' +
          'need the model cannot be made.',
        role: 'ADMIN',
        query,
        json: SettingsInput,
        example: { monthlyCostCap: 5, checks: [] },
        responses,
      }),
      async (c) => {
        const { teamId } = c.req.valid('query')
        const settings = c.req.valid('json')
        return c.json({ teamId, ...(await updateGuardrailSettings(c.get('scope'), teamId, settings)) })
      },
    )
}
