import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../change.ts'
import { demandChat } from '../chat/agents.ts'
import { type Db, json, type Tx } from '../connection.ts'
import { readStartable } from '../executions/starts/startable.ts'
import { Fault } from '../fault.ts'
import { demandRoom, findOwned } from '../owned.ts'
import { readOwner } from '../owners.ts'
import { describeChange } from '../redaction/difference.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'

export const WIDGET_POSITIONS = ['bottom-right', 'bottom-left'] as const

/** How a widget looks, and what it says before the first message. Colours are `#rrggbb`. */
type WidgetTheme = {
  colours: { accent: string; background: string; text: string }
  title: string
  welcomeText: string
  position: (typeof WIDGET_POSITIONS)[number]
}

/** How many messages a visitor, and all of them together, may post in a day (UTC). */
type WidgetLimits = { perVisitor: number; perDay: number }

export type Widget = {
  id: string
  /** The key in the snippet on a page. It is not secret: all who see the page can read it. */
  key: string
  teamId: string
  name: string
  /** Null once the workflow is deleted: the widget is then disabled. */
  workflowId: string | null
  allowedOrigins: string[]
  enabled: boolean
  theme: WidgetTheme
  limits: WidgetLimits
  collectEmail: boolean
  createdAt: Date
  updatedAt: Date
}

type Settable<T> = { [K in keyof T]?: T[K] | undefined }

/** The given keys of `theme`, its `colours` and `limits` are changed, the others stay. */
export type WidgetPatch = {
  name?: string | undefined
  workflowId?: string | undefined
  allowedOrigins?: string[] | undefined
  enabled?: boolean | undefined
  theme?:
    | (Settable<Omit<WidgetTheme, 'colours'>> & { colours?: Settable<WidgetTheme['colours']> | undefined })
    | undefined
  limits?: Settable<WidgetLimits> | undefined
  collectEmail?: boolean | undefined
}

/** What a key looks like. */
export const WIDGET_KEY = /^wk_[\w-]{24}$/

/** How many widgets a team may have. */
export const MAX_WIDGETS = 100

const PLAIN_THEME: WidgetTheme = {
  colours: { accent: '#1f5fd0', background: '#ffffff', text: '#1b1f24' },
  title: 'Chat with us',
  welcomeText: 'Hello! How can we help?',
  position: 'bottom-right',
}
const USUAL_LIMITS: WidgetLimits = { perVisitor: 50, perDay: 1_000 }

/** The widgets of a team, the oldest first (OPERATOR). */
export async function listWidgets(scope: Scope, teamId: string): Promise<Widget[]> {
  await demandTeam(scope, teamId, 'OPERATOR')
  const rows = await scope.store.db
    .selectFrom('widgets')
    .selectAll()
    .where('teamId', '=', teamId)
    .orderBy('createdAt')
    .orderBy('id')
    .execute()
  return rows.map(showWidget)
}

/** One widget (OPERATOR). Throws NOT_FOUND. */
export async function readWidget(scope: Scope, id: string): Promise<Widget> {
  const row = await find(scope.store.db, id)
  demand(scope, row.teamId, 'OPERATOR')
  return showWidget(row)
}

/**
 * Adds a widget (BUILDER). Throws NOT_FOUND if the team has no such workflow, UNPROCESSABLE if it could not be chatted
 * with even if it were active, and CONFLICT if there are too many.
 */
export async function createWidget(
  scope: Scope,
  { teamId, ...input }: WidgetPatch & { teamId: string; name: string; workflowId: string },
): Promise<Widget> {
  await demandTeam(scope, teamId, 'BUILDER')
  await demandAgentOf(scope, teamId, input.workflowId)
  return change(scope, 'WIDGET_CREATED', teamId, async (tx) => {
    await demandRoom(tx, 'widgets', teamId, MAX_WIDGETS)
    const row = await tx
      .insertInto('widgets')
      .values({
        id: uuid(),
        teamId,
        key: makeWidgetKey(),
        name: input.name,
        workflowId: input.workflowId,
        allowedOrigins: input.allowedOrigins ?? [],
        enabled: input.enabled ?? true,
        ...merge({ theme: PLAIN_THEME, limits: USUAL_LIMITS }, input),
        collectEmail: input.collectEmail ?? false,
      })
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(rethrowGone)
    return { result: showWidget(row), resourceId: row.id, details: describe(showWidget(row)) }
  })
}

/** Changes what is given (BUILDER). Throws as createWidget, and CONFLICT if one without a workflow is to be enabled. */
export async function updateWidget(scope: Scope, id: string, patch: WidgetPatch): Promise<Widget> {
  const teamId = await readOwner(scope.store, 'widgets', id)
  demand(scope, teamId, 'BUILDER')
  if (patch.workflowId !== undefined) await demandAgentOf(scope, teamId, patch.workflowId)
  return change(scope, 'WIDGET_UPDATED', teamId, async (tx) => {
    const before = showWidget(await lock(tx, id))
    const workflowId = patch.workflowId ?? before.workflowId
    const enabled = patch.enabled ?? before.enabled
    if (enabled && workflowId === null)
      throw new Fault('CONFLICT', 'The workflow of the widget is deleted: give it another one first')
    const after = {
      name: patch.name ?? before.name,
      workflowId,
      allowedOrigins: patch.allowedOrigins ?? before.allowedOrigins,
      enabled,
      ...merge(before, patch),
      collectEmail: patch.collectEmail ?? before.collectEmail,
    }
    const row = await tx
      .updateTable('widgets')
      .set({ ...after, updatedAt: sql<Date>`now()` })
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(rethrowGone)
    const result = showWidget(row)
    const told = describeChange(describe(before), describe(result))
    if (told.changed.length === 0) return { result: before, unchanged: true }
    return { result, resourceId: id, details: { name: result.name, ...told } }
  })
}

/** Deletes a widget with the sessions of its visitors (BUILDER). Throws NOT_FOUND. */
export async function deleteWidget(scope: Scope, id: string): Promise<void> {
  const teamId = await readOwner(scope.store, 'widgets', id)
  await change(scope, 'WIDGET_DELETED', teamId, async (tx) => {
    const known = showWidget(await lock(tx, id))
    // The sessions go with it, and note by a trigger that their executions are to go too.
    await tx.deleteFrom('widgets').where('id', '=', id).execute()
    return { result: undefined, resourceId: id, details: describe(known) }
  })
}

/** Gives a widget another key (BUILDER): the old one opens no chat, and continues none. Throws NOT_FOUND. */
export async function rotateWidgetKey(scope: Scope, id: string): Promise<Widget> {
  const teamId = await readOwner(scope.store, 'widgets', id)
  return change(scope, 'WIDGET_KEY_ROTATED', teamId, async (tx) => {
    await lock(tx, id)
    const row = await tx
      .updateTable('widgets')
      .set({ key: makeWidgetKey(), updatedAt: sql<Date>`now()` })
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirstOrThrow()
    return { result: showWidget(row), resourceId: id, details: { name: row.name } }
  })
}

function makeWidgetKey(): string {
  return `wk_${randomBytes(18).toString('base64url')}`
}

/** Throws NOT_FOUND unless the team has the workflow, and UNPROCESSABLE unless it is one to chat with. */
async function demandAgentOf(scope: Scope, teamId: string, workflowId: string): Promise<void> {
  const workflow = await readStartable(scope.store, workflowId, (owner) => owner === teamId)
  if (!workflow) throw new Fault('NOT_FOUND', 'The team has no such workflow')
  demandChat(workflow)
}

function merge(known: Pick<Widget, 'theme' | 'limits'>, { theme, limits }: WidgetPatch) {
  const { perVisitor, perDay } = { ...known.limits, ...chosen(limits) }
  const colours = { ...known.theme.colours, ...chosen(theme?.colours) }
  return { theme: json({ ...known.theme, ...chosen(theme), colours }), perVisitor, perDay }
}

function chosen<T extends object>(given: T | undefined): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given ?? {}).filter(([, value]) => value !== undefined)) as never
}

const select = (db: Db, id: string) => db.selectFrom('widgets').selectAll().where('id', '=', id)

const find = (db: Db, id: string) => findOwned(select(db, id), 'widget')

const lock = (tx: Tx, id: string) => findOwned(select(tx, id).forUpdate(), 'widget')

/** A widget as the API shows it to its team. */
export function showWidget({
  perVisitor,
  perDay,
  theme,
  collectEmail,
  createdAt,
  updatedAt,
  ...row
}: Awaited<ReturnType<typeof find>>): Widget {
  const { id, key, teamId, name, workflowId, allowedOrigins, enabled } = row
  const limits = { perVisitor, perDay }
  const shown = { id, key, teamId, name, workflowId, allowedOrigins, enabled, limits, collectEmail }
  return { ...shown, theme: theme as WidgetTheme, createdAt, updatedAt }
}

/** The audit's description of a widget. Its key is not secret, but is not needed there. */
function describe({ name, workflowId, allowedOrigins, enabled, theme, limits, collectEmail }: Widget) {
  return { name, workflowId, allowedOrigins, enabled, theme, limits, collectEmail }
}

function rethrowGone(error: unknown): never {
  const gone = (error as { code?: string }).code === '23503'
  throw gone ? new Fault('NOT_FOUND', 'The team has no such workflow') : error
}
