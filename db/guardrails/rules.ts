import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../change.ts'
import { type Db, json, type Tx } from '../connection.ts'
import { Fault, invalid } from '../fault.ts'
import { findOwned, guardName, holdTeam } from '../owned.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { describeChange } from '../redaction/difference.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'

export const RULE_KINDS = ['REGEX', 'KEYWORD_LIST', 'JAVASCRIPT', 'LLM_PROMPT'] as const
export type RuleKind = (typeof RULE_KINDS)[number]

/** What a rule looks for, by its kind. */
export type RuleConfigs = {
  /** A pattern of RE2, and its flags, letters of `ims`. */
  REGEX: { pattern: string; flags: string }
  KEYWORD_LIST: { keywords: string[]; wholeWord: boolean; caseSensitive: boolean }
  /** The body of a function that sees `text`. */
  JAVASCRIPT: { code: string }
  /** What a model is to flag. */
  LLM_PROMPT: { instruction: string }
}

/** The action about a text that breaks a rule, and how grave the violation is. */
export type RuleSeverity = 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL'
export type RuleAction = 'BLOCKED' | 'WARNED' | 'LOGGED'

/** A rule as a team writes it. */
export type RuleInput = {
  name: string
  description: string | null
  kind: RuleKind
  enabled: boolean
  severity: RuleSeverity
  action: RuleAction
  config: RuleConfigs[RuleKind]
}

/** A rule as the API shows it. `version` counts its changes. */
export type GuardrailRule = RuleInput & {
  id: string
  teamId: string
  version: number
  createdAt: Date
  updatedAt: Date
}

/** How many rules a team may have, how many of them enabled, and how many bytes of JSON their configs may have together. */
export const MAX_RULES = 500
export const MAX_ENABLED_RULES = 100
const MAX_CONFIG_BYTES = 1_000_000

const COLUMNS = [
  'id',
  'teamId',
  'name',
  'description',
  'enabled',
  'version',
  'createdAt',
  'updatedAt',
] as const
const FIELDS = ['name', 'description', 'kind', 'enabled', 'severity', 'action', 'config'] as const

/** A team's rules in the order of their names (VIEWER). */
export async function listRules(
  scope: Scope,
  query: PageRequest & { teamId: string },
): Promise<Page<GuardrailRule>> {
  await demandTeam(scope, query.teamId, 'VIEWER')
  const total = await countRows(
    scope.store.db.selectFrom('guardrailRules').where('teamId', '=', query.teamId),
  )
  const content = await select(scope.store.db)
    .where('teamId', '=', query.teamId)
    .orderBy('name')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(content, total, query)
}

/** Reads a rule (VIEWER). Throws NOT_FOUND. */
export async function readRule(scope: Scope, id: string): Promise<GuardrailRule> {
  const rule = await findOwned(select(scope.store.db).where('id', '=', id), 'rule')
  demand(scope, rule.teamId, 'VIEWER')
  return rule
}

/**
 * Creates a rule (BUILDER), whose config must have been checked. Throws CONFLICT if the team has the name already, or has
 * all the rules that it may have, and INVALID if their configs are too large together.
 */
export async function createRule(scope: Scope, teamId: string, input: RuleInput): Promise<GuardrailRule> {
  return guardName('guardrail_rules', input.name, () =>
    change(scope, 'GUARDRAIL_RULE_CREATED', teamId, async (tx) => {
      await demandRoom(tx, teamId, undefined, input)
      const id = uuid()
      await tx
        .insertInto('guardrailRules')
        .values({ id, teamId, ...input, config: json(input.config) })
        .execute()
      const result = await select(tx).where('id', '=', id).executeTakeFirstOrThrow()
      const { before: _, ...told } = describeChange({}, input)
      return { result, resourceId: id, details: { name: input.name, ...told } }
    }),
  )
}

/**
 * Changes the given fields and keeps the others (BUILDER); a `config` must be one of the kind. Throws NOT_FOUND, and as
 * createRule.
 */
export async function updateRule(
  scope: Scope,
  id: string,
  patch: { [Field in keyof RuleInput]?: RuleInput[Field] | undefined },
): Promise<GuardrailRule> {
  const { teamId } = await readRule(scope, id)
  return guardName('guardrail_rules', patch.name ?? '', () =>
    change(scope, 'GUARDRAIL_RULE_UPDATED', teamId, async (tx) => {
      await holdTeam(tx, teamId)
      const old = await lockRule(tx, id)
      const known = pickFields(old)
      const fields = pickFields({ ...known, ...dropUndefined(patch) })
      await demandRoom(tx, teamId, id, fields)
      const told = describeChange(known, fields)
      const isChanged = told.changed.length > 0
      await tx
        .updateTable('guardrailRules')
        .set({ ...fields, config: json(fields.config) })
        .$if(isChanged, (query) =>
          query.set({ updatedAt: sql<Date>`now()`, version: sql<number>`version + 1` }),
        )
        .where('id', '=', id)
        .execute()
      const result = await select(tx).where('id', '=', id).executeTakeFirstOrThrow()
      return { result, resourceId: id, details: { name: fields.name, ...told } }
    }),
  )
}

/** Deletes a rule (BUILDER): checks that begin later do without it. Throws NOT_FOUND. */
export async function deleteRule(scope: Scope, id: string): Promise<void> {
  const { teamId } = await readRule(scope, id)
  await change(scope, 'GUARDRAIL_RULE_DELETED', teamId, async (tx) => {
    const old = pickFields(await lockRule(tx, id))
    await tx.deleteFrom('guardrailRules').where('id', '=', id).execute()
    const { after: _, ...told } = describeChange(old, {})
    return { result: undefined, resourceId: id, details: { name: old.name, ...told } }
  })
}

function select(db: Db) {
  return db
    .selectFrom('guardrailRules')
    .select(COLUMNS)
    .select(sql<RuleKind>`kind`.as('kind'))
    .select(sql<RuleSeverity>`severity`.as('severity'))
    .select(sql<RuleAction>`action`.as('action'))
    .select(sql<RuleConfigs[RuleKind]>`config`.as('config'))
}

/** Throws unless the team may have this rule besides its others. */
async function demandRoom(
  tx: Tx,
  teamId: string,
  id: string | undefined,
  { enabled, config }: RuleInput,
): Promise<void> {
  await holdTeam(tx, teamId)
  const others = await tx
    .selectFrom('guardrailRules')
    .select([
      sql<number>`count(*)`.as('all'),
      sql<number>`count(*) filter (where enabled)`.as('enabled'),
      sql<number>`coalesce(sum(octet_length(config::text)), 0)`.as('bytes'),
    ])
    .where('teamId', '=', teamId)
    .$if(id !== undefined, (query) => query.where('id', '<>', id!))
    .executeTakeFirstOrThrow()
  if (others.all >= MAX_RULES)
    throw new Fault('CONFLICT', `The team has ${MAX_RULES} rules already; more are not allowed`)
  if (enabled && others.enabled >= MAX_ENABLED_RULES)
    throw new Fault('CONFLICT', `The team has ${MAX_ENABLED_RULES} enabled rules already: disable one first`)
  const bytes = Number(others.bytes) + Buffer.byteLength(JSON.stringify(config))
  if (bytes <= MAX_CONFIG_BYTES) return
  const message = `would have ${bytes} bytes as JSON with those of the team's other rules; ${MAX_CONFIG_BYTES} are allowed`
  throw invalid([{ path: 'config', message }])
}

const lockRule = (tx: Tx, id: string): Promise<GuardrailRule> =>
  findOwned(select(tx).where('id', '=', id).forUpdate(), 'rule')

const pickFields = (rule: RuleInput): RuleInput =>
  Object.fromEntries(FIELDS.map((field) => [field, rule[field]])) as RuleInput

const dropUndefined = (patch: object) =>
  Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined))
