import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import type { Guardrails } from '../../activities/guardrails/request.ts'
import { checkRuleConfig } from '../../activities/guardrails/rules/check.ts'
import { tryRule } from '../../activities/guardrails/rules/trial.ts'
import { THREADS_BUSY } from '../../activities/threads.ts'
import { Fault, invalid, missing } from '../../db/fault.ts'
import {
  createRule,
  deleteRule,
  listRules,
  MAX_ENABLED_RULES,
  MAX_RULES,
  type RuleConfigs,
  type RuleKind,
  readRule,
  updateRule,
} from '../../db/guardrails/rules.ts'
import { describeIssues } from '../../workflows/problem.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { createSeats } from '../executions/seats.ts'
import { accept } from '../http/accept.ts'
import { ById, documentAs, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { LOCATION_HEADER, messageResponse, pageSchema } from '../http/responses.ts'
import { NewRule, RULE_CONFIGS, RulePatch, RuleSchema, TrialSchema, TriedRule } from './rulefields.ts'

const MAX_SAMPLES = 20
const MAX_SAMPLE = 100_000
const TESTS_AT_ONCE = 2

const OfTeam = v.object({ teamId: uuidField })

const RuleTest = v.pipe(
  v.object({
    ruleId: v.optional(v.pipe(uuidField, v.description('A rule of the team, enabled or not'))),
    rule: v.optional(v.pipe(TriedRule, v.description('A rule that need not be stored'))),
    samples: v.pipe(
      v.array(
        v.pipe(
          v.string('must be a string'),
          documentAs<string>({ type: 'string', maxLength: MAX_SAMPLE }),
          v.check((text) => text.length <= MAX_SAMPLE, `must have at most ${MAX_SAMPLE} UTF-16 units`),
        ),
        'must be a list',
      ),
      v.minLength(1, 'must not be empty'),
      v.maxLength(MAX_SAMPLES, `must have at most ${MAX_SAMPLES} texts`),
    ),
  }),
  v.forward(
    v.partialCheck(
      [['ruleId'], ['rule']],
      ({ ruleId, rule }) => (ruleId === undefined) !== (rule === undefined),
      'is needed, or else ruleId; not both',
    ),
    ['rule'],
  ),
)

const EXAMPLE_RULE = { kind: 'KEYWORD_LIST', config: { keywords: ['Project Zebra'] } }
const BY_ID = { id: '$response.body#/id' }

const one = { 200: { description: 'The rule', schema: RuleSchema } }

/** The rules that a team makes for its texts. Checks apply the enabled ones. */
export function createRuleRoutes(deps: Pick<ApiDeps, 'guardrails'>) {
  return new Hono<AppEnv>()
    .route('/', createRuleListRoutes(deps))
    .route('/', createRuleTestRoutes(deps))
    .route('/', createOneRuleRoutes(deps))
}

function createRuleListRoutes({ guardrails }: Pick<ApiDeps, 'guardrails'>) {
  return new Hono<AppEnv>()
    .get(
      '/api/guardrails/rules',
      accept({
        id: 'listGuardrailRules',
        tag: 'Guardrails',
        summary: "List a team's rules",
        description: 'Sorted by name.',
        role: 'member',
        query: v.object({ teamId: uuidField, ...paging }),
        responses: {
          200: { description: 'One page', schema: pageSchema('GuardrailRulePage', RuleSchema) },
        },
      }),
      async (c) => c.json(await listRules(c.get('scope'), c.req.valid('query'))),
    )
    .post(
      '/api/guardrails/rules',
      accept({
        id: 'createGuardrailRule',
        tag: 'Guardrails',
        summary: 'Create a rule',
        description:
          'Checks with `applyCustomRules` apply the enabled rules of the team. ' +
          `A team has at most ${MAX_RULES} rules, of which ${MAX_ENABLED_RULES} are enabled.`,
        role: 'BUILDER',
        query: OfTeam,
        json: NewRule,
        example: { name: 'No project names', ...EXAMPLE_RULE, severity: 'HIGH', action: 'BLOCKED' },
        responses: {
          201: {
            description: 'The rule',
            schema: RuleSchema,
            headers: LOCATION_HEADER,
            links: {
              readGuardrailRule: { parameters: BY_ID },
              updateGuardrailRule: { parameters: BY_ID },
              deleteGuardrailRule: { parameters: BY_ID },
            },
          },
        },
        faults: [409, 503],
      }),
      async (c) => {
        const { teamId } = c.req.valid('query')
        const input = c.req.valid('json')
        await demandConfig(guardrails, teamId, input.kind, input.config)
        const rule = await createRule(c.get('scope'), teamId, input)
        return c.json(rule, 201, { Location: `/api/guardrails/rules/${rule.id}` })
      },
    )
}

function createRuleTestRoutes({ guardrails }: Pick<ApiDeps, 'guardrails'>) {
  const seats = createSeats('tests of rules', { ofTeam: TESTS_AT_ONCE })
  return new Hono<AppEnv>().post(
    '/api/guardrails/rules/test',
    accept({
      id: 'testGuardrailRule',
      tag: 'Guardrails',
      summary: 'Try out a rule',
      description:
        'Applies a rule, stored or not, to samples, each as a check would. Nothing is stored. A sample that the rule ' +
        `cannot be applied to is a 200 with its \`error\`. A team may have ${TESTS_AT_ONCE} tests under way; one takes ` +
        'at most some 40 s.',
      role: 'BUILDER',
      query: OfTeam,
      json: RuleTest,
      example: { rule: EXAMPLE_RULE, samples: ['When does project zebra begin?'] },
      responses: { 200: { description: 'What came of it', schema: TrialSchema } },
      faults: [404, 503],
    }),
    async (c) => {
      const { teamId } = c.req.valid('query')
      const { ruleId, rule: given, samples } = c.req.valid('json')
      const { kind, config } = given ?? (await readOwnRule(c, ruleId!, teamId))
      const deps = demandGuardrails(guardrails)
      if (given) await demandConfig(guardrails, teamId, kind, config)
      const asker = { team: teamId, workflow: teamId }
      const tried = {
        ...{ id: '', version: 0, name: '', kind, config: JSON.stringify(config) },
        ...({ severity: 'LOW', action: 'LOGGED' } as const),
      }
      const length = samples.reduce((sum, text) => sum + text.length, 0)
      const giveBack = seats.take(c.get('scope').userId ?? '', teamId)
      try {
        const work = () => tryRule(deps, asker, tried, samples)
        return c.json({ results: await whileFree(() => deps.pool.hold(teamId, length, work)) })
      } finally {
        giveBack()
      }
    },
  )
}

function createOneRuleRoutes({ guardrails }: Pick<ApiDeps, 'guardrails'>) {
  return new Hono<AppEnv>()
    .get(
      '/api/guardrails/rules/:id',
      accept({
        id: 'readGuardrailRule',
        tag: 'Guardrails',
        summary: 'Read a rule',
        role: 'member',
        of: 'guardrailRules',
        params: ById,
        responses: one,
      }),
      async (c) => c.json(await readRule(c.get('scope'), c.req.valid('param').id)),
    )
    .put(
      '/api/guardrails/rules/:id',
      accept({
        id: 'updateGuardrailRule',
        tag: 'Guardrails',
        summary: 'Change a rule',
        description:
          'Changes the fields that are given and keeps the others. Checks that begin later apply it.',
        role: 'BUILDER',
        of: 'guardrailRules',
        params: ById,
        json: RulePatch,
        example: { enabled: false },
        responses: one,
        faults: [409, 503],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const { config: given, ...patch } = c.req.valid('json')
        const { kind, teamId } = await readRule(c.get('scope'), id)
        const config = given === undefined ? undefined : readConfig(kind, given)
        if (config) await demandConfig(guardrails, teamId, kind, config)
        return c.json(await updateRule(c.get('scope'), id, { ...patch, config }))
      },
    )
    .delete(
      '/api/guardrails/rules/:id',
      accept({
        id: 'deleteGuardrailRule',
        tag: 'Guardrails',
        summary: 'Delete a rule',
        description: 'Checks that begin later do without it.',
        role: 'BUILDER',
        of: 'guardrailRules',
        params: ById,
        responses: { 200: messageResponse('Rule deleted') },
      }),
      async (c) => {
        await deleteRule(c.get('scope'), c.req.valid('param').id)
        return c.json({ message: 'Rule deleted' })
      },
    )
}

/** A rule of this team. Another team's rule counts as missing, even if the caller may read it. */
async function readOwnRule(c: Context<AppEnv>, id: string, teamId: string) {
  const scope = c.get('scope')
  const rule = await readRule(scope, id).catch((error) => {
    throw error instanceof Fault && error.code === 'FORBIDDEN' ? missing('rule') : error
  })
  if (rule.teamId !== teamId) throw missing('rule')
  return rule
}

function readConfig(kind: RuleKind, given: object): RuleConfigs[RuleKind] {
  const parsed = v.safeParse(RULE_CONFIGS[kind] as v.GenericSchema, given)
  if (parsed.success) return parsed.output as RuleConfigs[RuleKind]
  throw invalid(describeIssues(parsed.issues, 'config'))
}

function demandGuardrails(guardrails: Guardrails | undefined): Guardrails {
  if (guardrails) return guardrails
  throw new Fault('UNAVAILABLE', 'This process applies no rules', { retryAfter: 5 })
}

/** Throws INVALID unless what a rule looks for can be compiled. */
async function demandConfig(
  guardrails: Guardrails | undefined,
  team: string,
  kind: RuleKind,
  config: RuleConfigs[RuleKind],
): Promise<void> {
  const { pool } = demandGuardrails(guardrails)
  const problems = await whileFree(() => checkRuleConfig(pool, { team, workflow: team }, kind, config))
  if (problems.length > 0) throw invalid(problems)
}

async function whileFree<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Error) || error.name !== THREADS_BUSY) throw error
    throw new Fault('UNAVAILABLE', `${error.message}: try again`, { retryAfter: 1 })
  }
}
