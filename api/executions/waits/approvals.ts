import { Hono } from 'hono'
import * as v from 'valibot'
import { readDispositionName } from '../../../activities/files/disposition.ts'
import {
  APPROVAL_STATUSES,
  decideApproval,
  demandFileField,
  listApprovals,
  readApproval,
} from '../../../db/executions/waits/approvals.ts'
import { DECISIONS } from '../../../db/executions/waits/pauses.ts'
import type { StoredFile } from '../../../db/files/store.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { receiveFile } from '../../files/receive.ts'
import { accept } from '../../http/accept.ts'
import { readChunks } from '../../http/body.ts'
import { ById, boundedString, objectField, uuidField } from '../../http/fields.ts'
import { paging } from '../../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema } from '../../http/responses.ts'
import { carryOutErrands } from '../../outbox.ts'
import { createSeats } from '../seats.ts'

const ApprovalListQuery = v.object({
  teamId: uuidField,
  ...paging,
  status: v.optional(v.picklist(APPROVAL_STATUSES, `must be one of ${APPROVAL_STATUSES.join(', ')}`), 'OPEN'),
  executionId: v.optional(uuidField),
  workflowId: v.optional(uuidField),
})
const NewDecision = v.object({
  decision: v.picklist(DECISIONS, 'must be approved or rejected'),
  comment: v.nullish(boundedString(2_000, 0)),
  form: v.nullish(objectField),
})

const DecisionSchema = v.object({
  decision: v.picklist(DECISIONS),
  by: v.object({
    id: v.nullable(idSchema),
    name: v.pipe(v.string(), v.examples(['Ada Byron'])),
    email: v.nullable(v.pipe(v.string(), v.examples(['ada@example.com']))),
  }),
  at: timeSchema,
  comment: v.nullable(v.string()),
  form: v.nullable(v.record(v.string(), v.unknown())),
})
const ApprovalSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    executionId: idSchema,
    workflowId: idSchema,
    workflowName: v.string(),
    nodeId: v.pipe(v.string(), v.examples(['approve'])),
    nodeName: v.string(),
    iteration: v.pipe(
      v.nullable(v.string()),
      v.description("The iteration of the loop around the node, as in the node's record"),
    ),
    step: v.pipe(
      v.nullable(countSchema),
      v.description("The number of the agent's step that waits, as in its record; null for other nodes"),
    ),
    message: v.nullable(v.pipe(v.string(), v.examples(['Pay 1,200 EUR to ACME?']))),
    approvers: v.pipe(
      v.array(v.string()),
      v.description(
        'Roles (each includes the roles above it) and email addresses. If empty, OPERATOR and higher ' +
          'roles may decide',
      ),
      v.examples([['ADMIN', 'ada@example.com']]),
    ),
    form: v.nullable(
      v.pipe(
        v.record(v.string(), v.unknown()),
        v.description('The JSON Schema of the form that an approver fills in'),
      ),
    ),
    required: v.pipe(
      v.number(),
      v.integer(),
      v.description('How many people must approve. A single rejection is final'),
    ),
    selfApproval: v.pipe(
      v.boolean(),
      v.description('Whether the person who started the execution may decide'),
    ),
    status: v.picklist(APPROVAL_STATUSES),
    decisions: v.array(DecisionSchema),
    deadline: v.nullable(timeSchema),
    createdAt: timeSchema,
    settledAt: v.nullable(timeSchema),
    mayDecide: v.pipe(v.boolean(), v.description('Whether the caller may decide the approval at the moment')),
    hidden: v.pipe(
      v.boolean(),
      v.description(
        'Whether it is part of a chat of somebody else, who does not ask the caller: then there are no message, form, ' +
          'approvers and decisions',
      ),
    ),
  }),
  v.title('Approval'),
)

const UploadSchema = v.pipe(
  v.object({
    file: v.object({
      id: idSchema,
      name: v.pipe(v.string(), v.examples(['contract.pdf'])),
      mimeType: v.pipe(v.string(), v.examples(['application/pdf'])),
      bytes: countSchema,
    }),
  }),
  v.title('UploadedFile'),
)

/** How many files for approvals one process takes in at once, and from one person and team. */
const UPLOADS = { ofTeam: 8, ofPerson: 4, ofAll: 200 }

/** The routes of approvals, for which an execution waits until people have decided. */
export function createApprovalRoutes(deps: ApiDeps) {
  const seats = createSeats('uploads', UPLOADS)
  return new Hono<AppEnv>()
    .get(
      '/api/approvals',
      accept({
        id: 'listApprovals',
        tag: 'Approvals',
        summary: "List a team's approvals",
        description: 'Lists open approvals, unless another status is given.',
        role: 'member',
        query: ApprovalListQuery,
        responses: {
          200: { description: 'One page, newest first', schema: pageSchema('ApprovalPage', ApprovalSchema) },
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
        responses: { 200: { description: 'The approval', schema: ApprovalSchema } },
      }),
      async (c) => c.json(await readApproval(c.get('scope'), c.req.valid('param').id)),
    )
    .post(
      '/api/approvals/:id',
      accept({
        id: 'decideApproval',
        tag: 'Approvals',
        summary: 'Decide an approval',
        description:
          'Approves or rejects. Only its approvers may do so (403). After the response, the execution ' +
          'follows the decision, as soon as enough people have approved or one has rejected. The response ' +
          'is 409 if the approval has been decided, its deadline has passed or its execution has ended, ' +
          'and 400 with all problems if the form is not valid. A rejection needs no form. The value of a file is what ' +
          '`sendApprovalFile` has answered.',
        role: 'OPERATOR',
        of: 'pauses',
        params: ById,
        json: NewDecision,
        example: { decision: 'approved', comment: 'Within the budget' },
        responses: { 200: { description: 'The approval with the decision', schema: ApprovalSchema } },
        faults: [409],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const { approval, errand } = await decideApproval(c.get('scope'), id, c.req.valid('json'))
        if (errand) await carryOutErrands(deps, [errand])
        return c.json(approval)
      },
    )
    .post(
      '/api/approvals/:id/files',
      accept({
        id: 'sendApprovalFile',
        tag: 'Approvals',
        summary: 'Send a file for the form of an approval',
        description:
          'The body is the file, of the type that its Content-Type says and with the name in its Content-Disposition ' +
          '(`attachment; filename="contract.pdf"`). The response is the value for the form; a file that no decision ' +
          'names within an hour is deleted. Only those who may decide the approval may send one (403).',
        role: 'OPERATOR',
        of: 'pauses',
        params: ById,
        anyBody: true,
        responses: { 200: { description: 'The file', schema: UploadSchema } },
        faults: [409],
      }),
      async (c) => {
        const scope = c.get('scope')
        const { teamId, most } = await demandFileField(scope, c.req.valid('param').id)
        const leave = seats.take(scope.userId ?? '', teamId)
        try {
          const given = c.req.header('content-length')
          const { body } = await receiveFile(deps.store, teamId, readChunks(c), {
            name: readDispositionName(c.req.header('content-disposition')) ?? '',
            mimeType: c.req.header('content-type') ?? '',
            length: given === undefined ? undefined : Number(given),
            maxBytes: most,
          })
          return c.json(body as { file: StoredFile })
        } finally {
          leave()
        }
      },
    )
}
