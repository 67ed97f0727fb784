import { Hono } from 'hono'
import * as v from 'valibot'
import { decideApproval, listApprovals, readApproval } from '../db/approvals.ts'
import { accept, ById, text, uuid } from './accept.ts'
import { id, pageOf, time } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { tellTemporal } from './errands.ts'
import { data } from './pins.ts'
import { paging } from './query.ts'

const STATUSES = ['OPEN', 'APPROVED', 'REJECTED', 'EXPIRED', 'ABANDONED'] as const

const ApprovalQuery = v.object({
  teamId: uuid,
  ...paging,
  status: v.optional(v.picklist(STATUSES, `must be one of ${STATUSES.join(', ')}`), 'OPEN'),
  executionId: v.optional(uuid),
  workflowId: v.optional(uuid),
})
const Verdict = v.object({
  decision: v.picklist(['approved', 'rejected'], 'must be approved or rejected'),
  comment: v.nullish(text(2_000, 0)),
  form: v.nullish(data),
})

const DecisionAnswer = v.object({
  decision: v.picklist(['approved', 'rejected']),
  by: v.object({
    id: v.nullable(id),
    name: v.pipe(v.string(), v.examples(['Ada Byron'])),
    email: v.nullable(v.pipe(v.string(), v.examples(['ada@example.com']))),
  }),
  at: time,
  comment: v.nullable(v.string()),
  form: v.nullable(v.record(v.string(), v.unknown())),
})
const ApprovalAnswer = v.pipe(
  v.object({
    id,
    teamId: id,
    executionId: id,
    workflowId: id,
    workflowName: v.string(),
    nodeId: v.pipe(v.string(), v.examples(['approve'])),
    nodeName: v.string(),
    iteration: v.pipe(
      v.nullable(v.string()),
      v.description("Of the loop around it, as in the node's record"),
    ),
    message: v.nullable(v.pipe(v.string(), v.examples(['Pay 1,200 EUR to ACME?']))),
    approvers: v.pipe(
      v.array(v.string()),
      v.description('Roles (each with those above it) and e-mail addresses; of none: OPERATOR'),
      v.examples([['ADMIN', 'ada@example.com']]),
    ),
    form: v.nullable(
      v.pipe(v.record(v.string(), v.unknown()), v.description('JSON Schema of what to fill in')),
    ),
    required: v.pipe(
      v.number(),
      v.integer(),
      v.description('How many must approve; one rejection is enough'),
    ),
    selfApproval: v.pipe(v.boolean(), v.description('Whether the one who started the run may decide')),
    status: v.picklist(STATUSES),
    decisions: v.array(DecisionAnswer),
    deadline: v.nullable(time),
    createdAt: time,
    settledAt: v.nullable(time),
    mayDecide: v.pipe(v.boolean(), v.description('Whether the caller may decide it, now')),
  }),
  v.title('Approval'),
)

/** Approvals: what runs wait for people to decide. */
export function createApprovalRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/approvals',
      accept({
        id: 'listApprovals',
        tag: 'Approvals',
        summary: "List a team's approvals",
        description: 'Those that are open, unless another status is asked for.',
        role: 'member',
        query: ApprovalQuery,
        responses: {
          200: { description: 'The newest first', schema: pageOf('ApprovalPage', ApprovalAnswer) },
        },
      }),
      async (c) => c.json(await listApprovals(c.get('scope'), c.req.valid('query'))),
    )
    .get(
      '/api/approvals/:id',
      accept({
        id: 'readApproval',
        tag: 'Approvals',
        summary: 'Read an approval',
        role: 'member',
        of: 'pauses',
        params: ById,
        responses: { 200: { description: 'The approval', schema: ApprovalAnswer } },
      }),
      async (c) => c.json(await readApproval(c.get('scope'), c.req.valid('param').id)),
    )
    .post(
      '/api/approvals/:id',
      accept({
        id: 'decideApproval',
        tag: 'Approvals',
        summary: 'Approve or reject',
        description:
          'For its approvers (403 for others). Once it is answered 200 the run follows the decision. One that is ' +
          'decided, out of time, or whose run has ended answers 409; a form that is not as asked for answers 400 ' +
          'with all its faults. A rejection needs no form.',
        role: 'OPERATOR',
        of: 'pauses',
        params: ById,
        json: Verdict,
        example: { decision: 'approved', comment: 'Within the budget' },
        responses: { 200: { description: 'The approval as it stands now', schema: ApprovalAnswer } },
        faults: [409],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const { approval, errand } = await decideApproval(c.get('scope'), id, c.req.valid('json'))
        if (errand) await tellTemporal(deps, [errand])
        return c.json(approval)
      },
    )
}
