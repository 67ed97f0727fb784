import { type SelectQueryBuilder, sql } from 'kysely'
import * as v from 'valibot'
import { type Form, listFields, readForm } from '../../../workflows/graph/form.ts'
import { MAX_FILE_BYTES } from '../../../workflows/nodes/files.ts'
import { describeIssues } from '../../../workflows/problem.ts'
import { splitStep, stepKey } from '../../../workflows/run/walk.ts'
import { covers, type Role } from '../../acts.ts'
import { change } from '../../change.ts'
import { chatPrivacyOf, isHiddenFrom } from '../../chat/privacy.ts'
import { json, type Tx } from '../../connection.ts'
import { Fault, invalid, missing } from '../../fault.ts'
import { claimFiles } from '../../files/claim.ts'
import { findFiles } from '../../files/named.ts'
import { type Errand, enqueue } from '../../outbox.ts'
import { countRows, makePage, type Page, type PageRequest } from '../../page.ts'
import type { DB } from '../../schema.ts'
import { demand, demandTeam, type Scope } from '../../scope.ts'
import { type DecidedBy, type Decision, holdExecution, PAUSE_STATUSES, showPlace } from './pauses.ts'

/** The statuses of a pause, except RECEIVED, which is for events. */
export const APPROVAL_STATUSES = PAUSE_STATUSES.filter((status) => status !== 'RECEIVED')
type ApprovalStatus = (typeof APPROVAL_STATUSES)[number]

/**
 * The pause of an APPROVAL node, with its decisions. `mayDecide` says whether the caller can decide it now.
 */
export type Approval = {
  id: string
  teamId: string
  executionId: string
  workflowId: string
  workflowName: string
  nodeId: string
  nodeName: string
  iteration: string | null
  /** The number of the agent's step that waits; null for other nodes. */
  step: number | null
  message: string | null
  approvers: string[]
  form: Form | null
  /** How many must approve; one rejection is enough. */
  required: number
  selfApproval: boolean
  status: ApprovalStatus
  decisions: Decision[]
  deadline: Date | null
  createdAt: Date
  settledAt: Date | null
  mayDecide: boolean
  /** It belongs to another owner's chat: the question, the people and their words are left out. */
  hidden: boolean
}

export type ApprovalQuery = PageRequest & {
  teamId: string
  status: ApprovalStatus
  executionId?: string | undefined
  workflowId?: string | undefined
}

// An approval is EXPIRED from its deadline on, though its row says so only after its run has looked.
const overdue = sql<boolean>`p.status = 'OPEN' and p.deadline <= now()`

/** A team's approvals that have a status, newest first (VIEWER). */
export async function listApprovals(scope: Scope, query: ApprovalQuery): Promise<Page<Approval>> {
  const { teamId, status, executionId, workflowId } = query
  await demandTeam(scope, teamId, 'VIEWER')
  const found = scope.store.db
    .selectFrom('pauses as p')
    .where('p.kind', '=', 'APPROVAL')
    .where('p.teamId', '=', teamId)
    .where((eb) =>
      status === 'OPEN'
        ? eb.and([
            eb('p.status', '=', 'OPEN'),
            eb.or([eb('p.deadline', 'is', null), sql<boolean>`p.deadline > now()`]),
          ])
        : status === 'EXPIRED'
          ? eb.or([eb('p.status', '=', 'EXPIRED'), overdue])
          : eb('p.status', '=', status),
    )
    .$if(executionId !== undefined, (rows) => rows.where('p.executionId', '=', executionId!))
    .$if(workflowId !== undefined, (rows) => rows.where('p.workflowId', '=', workflowId!))
  const total = await countRows(found)
  const rows = await selectApprovals(found)
    .orderBy('p.createdAt', 'desc')
    .orderBy('p.id', 'desc')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  const person = await findPerson(scope)
  return makePage(
    rows.map((row) => showApproval(row, scope, person)),
    total,
    query,
  )
}

/** One approval (VIEWER). Throws NOT_FOUND. */
export async function readApproval(scope: Scope, id: string): Promise<Approval> {
  const row = await findApproval(scope.store.db, id)
  if (!row) throw missing('approval')
  demand(scope, row.teamId, 'VIEWER')
  return showApproval(row, scope, await findPerson(scope))
}

/**
 * Records the decision of one of the approvers. The approval is settled by a rejection or by enough of them
 * having approved: then it returns the errand that makes the run look, which is also in the outbox. Throws
 * NOT_FOUND, FORBIDDEN if the caller is not an approver, CONFLICT if the approval is settled, the caller has
 * approved it before or the execution has ended, and INVALID with all problems of the form.
 */
export async function decideApproval(
  scope: Scope,
  id: string,
  input: Pick<Decision, 'decision'> & { comment?: string | null | undefined; form?: unknown },
): Promise<{ approval: Approval; errand: Errand | null }> {
  const { decision } = input
  const known = await findApproval(scope.store.db, id)
  if (!known) throw missing('approval')
  return change(scope, 'APPROVAL_DECIDED', known.teamId, async (tx, held) => {
    const person = await findPerson(held, tx)
    const refusal = findRefusal(known, held)
    if (refusal) throw new Fault('FORBIDDEN', refusal)
    // The execution is locked before the pause, in the order in which the end of an execution locks them.
    const ended = await holdExecution(tx, known.executionId)
    await tx.selectFrom('pauses').select('id').where('id', '=', id).forUpdate().execute()
    const row = await findApproval(tx, id)
    if (!row) throw missing('approval')
    demandOpen(row)
    if (ended) throw new Fault('CONFLICT', ended)
    if (row.decisions.some(({ by }) => by.id === person.id)) {
      throw new Fault('CONFLICT', 'You have already approved this; another approver must decide')
    }
    const form = checkForm(row.form, input)
    if (row.form) await claimFiles(tx, row, findFiles(form))
    const at = new Date().toISOString()
    const decisions = [...row.decisions, { decision, by: person, at, comment: input.comment ?? null, form }]
    const enough = decision === 'rejected' || decisions.length >= row.required
    const status = enough ? (decision === 'approved' ? 'APPROVED' : 'REJECTED') : 'OPEN'
    const updated = await tx
      .updateTable('pauses')
      .set({ decisions: json(decisions), status, settledAt: enough ? sql<Date>`now()` : null })
      .where('id', '=', id)
      .where('status', '=', 'OPEN')
      .where(sql<boolean>`(deadline is null or deadline > clock_timestamp())`)
      .returning('settledAt')
      .executeTakeFirst()
    if (!updated) throw late()
    const errand = {
      kind: 'SIGNAL',
      subjectId: row.executionId,
      key: stepKey(row.nodeId, row.iteration),
    } as const
    if (enough) await enqueue(tx, errand.kind, [errand.subjectId], errand.key)
    const settled = { ...row, decisions, status, ...updated } as ApprovalRow
    const { executionId, workflowId, nodeId } = row
    const { iteration, step } = splitStep(row.iteration)
    return {
      result: { approval: showApproval(settled, held, person), errand: enough ? errand : null },
      resourceId: id,
      details: {
        decision,
        status,
        executionId,
        workflowId,
        nodeId,
        iteration,
        ...(step === null ? {} : { step }),
        // A comment about a chat is private, too.
        comment: row.privacy ? null : (input.comment ?? null),
      },
    }
  })
}

/**
 * The team of an approval that the caller may decide now, and the most bytes that a file of its form may have: for a file
 * that is sent before the decision. Throws NOT_FOUND, FORBIDDEN, and CONFLICT if the form takes no file or the approval is
 * settled.
 */
export async function demandFileField(scope: Scope, id: string): Promise<{ teamId: string; most: number }> {
  const row = await findApproval(scope.store.db, id)
  if (!row) throw missing('approval')
  demand(scope, row.teamId, 'OPERATOR')
  const refusal = findRefusal(row, scope)
  if (refusal) throw new Fault('FORBIDDEN', refusal)
  demandOpen(row)
  const fields = row.form ? listFields(row.form).filter(([, { type }]) => type === 'file') : []
  if (fields.length === 0) throw new Fault('CONFLICT', 'The form of this approval takes no file')
  return {
    teamId: row.teamId,
    most: Math.max(...fields.map(([, { maxBytes }]) => maxBytes ?? MAX_FILE_BYTES)),
  }
}

function checkForm(form: Form | null, input: { decision: string; form?: unknown }) {
  // Without a form in the config, the approver may add an object of any shape, which is kept as it is.
  if (!form) return (input.form ?? null) as Record<string, unknown> | null
  if (input.decision === 'rejected' && input.form === undefined) return null
  const parsed = v.safeParse(readForm(form), input.form ?? {})
  if (!parsed.success) throw invalid(describeIssues(parsed.issues, 'form'))
  return parsed.output as Record<string, unknown>
}

type ApprovalRow = Awaited<ReturnType<typeof findApproval>> & {}

function findApproval(db: Tx | Scope['store']['db'], id: string) {
  return selectApprovals(
    db.selectFrom('pauses as p').where('p.id', '=', id).where('p.kind', '=', 'APPROVAL'),
  ).executeTakeFirst()
}

function selectApprovals<O>(rows: SelectQueryBuilder<DB & { p: DB['pauses'] }, 'p', O>) {
  return rows
    .innerJoin('executions as e', 'e.id', 'p.executionId')
    .select(['p.id', 'p.teamId', 'p.executionId', 'p.workflowId', 'e.workflowName', 'p.nodeId', 'p.nodeName'])
    .select(['p.iteration', 'p.message', 'p.approvers', 'p.required', 'p.selfApproval', 'p.deadline'])
    .select(['p.createdAt', 'p.settledAt', 'p.approverIds'])
    .select(chatPrivacyOf('e').as('privacy'))
    .select(sql<Form | null>`p.form`.as('form'))
    .select(sql<Decision[]>`p.decisions`.as('decisions'))
    .select(sql<ApprovalStatus>`case when ${overdue} then 'EXPIRED' else p.status end`.as('status'))
    .select((eb) =>
      eb
        .case()
        .when('e.startedByKind', '=', 'SDK_TOKEN')
        .then(eb.selectFrom('sdkTokens as t').select('t.userId').whereRef('t.id', '=', 'e.startedById'))
        .else(eb.ref('e.startedById'))
        .end()
        .as('starterId'),
    )
}

function showApproval(row: ApprovalRow, scope: Scope, person: DecidedBy): Approval {
  const { starterId: _, approverIds: __, privacy, ...rest } = row
  // An approver sees the question, in a chat too.
  const isSecret = isHiddenFrom(scope, row.teamId, privacy) && !isAsked(row, scope)
  // Addresses may be computed from what was said.
  const secrets = { message: null, form: null, approvers: [], decisions: [] }
  const shown = isSecret ? { ...rest, ...secrets, hidden: true } : { ...rest, hidden: false }
  const undecided = row.status === 'OPEN' && !row.decisions.some(({ by }) => by.id === person.id)
  const mayDecide = undecided && findRefusal(row, scope) === undefined
  return { ...shown, ...showPlace(row.iteration), mayDecide }
}

/**
 * Why the caller may not decide; undefined if they may. A role among the approvers includes those above it; a
 * person who is named must be signed in, not use a token.
 */
function findRefusal(row: ApprovalRow, scope: Scope): string | undefined {
  const { roles, userId } = scope
  const { approvers, selfApproval, starterId } = row
  const role = roles.get(row.teamId)
  if (!role || !covers(role, 'OPERATOR')) return 'This needs the role OPERATOR'
  if (!selfApproval && starterId !== null && starterId === userId) {
    return 'You started this execution, so somebody else must decide this approval'
  }
  if (approvers.length > 0) return isAsked(row, scope) ? undefined : 'You are not one of the approvers'
  return isHiddenFrom(scope, row.teamId, row.privacy)
    ? 'The execution is part of a private chat: its owner or an ADMIN must decide'
    : undefined
}

/** Whether the approvers name the caller, or a role that they have. */
function isAsked({ approvers, approverIds, teamId }: ApprovalRow, { roles, actor, userId }: Scope): boolean {
  const role = roles.get(teamId)
  const named = actor.kind === 'USER' && userId !== null && approverIds.includes(userId)
  return (
    named ||
    approvers.some(
      (approver) => !approver.includes('@') && role !== undefined && covers(role, approver as Role),
    )
  )
}

/** The caller; for a token, the person who made it, who could otherwise approve several times by making tokens. */
async function findPerson(
  { store, actor, userId }: Scope,
  db: Tx | Scope['store']['db'] = store.db,
): Promise<DecidedBy> {
  const user =
    userId === null
      ? undefined
      : await db.selectFrom('users').select('email').where('id', '=', userId).executeTakeFirst()
  return { id: userId ?? actor.id, name: actor.name, email: user?.email ?? null }
}

function demandOpen({ status }: ApprovalRow): void {
  if (status === 'OPEN') return
  if (status === 'EXPIRED') throw late()
  if (status === 'ABANDONED') throw new Fault('CONFLICT', 'The execution no longer waits for this approval')
  throw new Fault('CONFLICT', `The approval has been decided already: ${status}`)
}

function late(): Fault {
  return new Fault('CONFLICT', 'The time limit of the approval has passed')
}
