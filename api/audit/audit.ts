import { Hono } from 'hono'
import * as v from 'valibot'
import { ACCOUNT_ACTS, ACTS, ROLES } from '../../db/acts.ts'
import { listAudit } from '../../db/audit/list.ts'
import { listPublicKeys } from '../../db/audit/proofs/publickeys.ts'
import { verifyTeam } from '../../db/audit/verify/verifyteam.ts'
import { VERDICTS } from '../../db/audit/verify/walk.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, InTeam, uuidField } from '../http/fields.ts'
import { checkTimeRange, paging, queryInteger, timeRange } from '../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema } from '../http/responses.ts'

/** Everything that an entry can say was done, in the words of the audit. */
const AUDIT_ACTIONS = [...new Set([...Object.keys(ACTS), ...Object.keys(ACCOUNT_ACTS)])]

const AUDIT_OUTCOMES = ['SUCCESS', 'FAILURE', 'DENIED'] as const

const action = v.picklist(AUDIT_ACTIONS, `must be one of ${AUDIT_ACTIONS.join(', ')}`)
const hashSchema = v.pipe(
  v.string(),
  v.regex(/^[\da-f]{64}$/),
  v.examples(['9f2c3a5be1d04c7788a6f0e4b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4']),
)

const AuditEntrySchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    userId: v.pipe(
      v.nullable(idSchema),
      v.description('The person behind the act: who has signed in, or has made the SDK token'),
    ),
    userName: v.pipe(
      v.nullable(v.string()),
      v.description('The name of whoever did it, at that time: of the person, or of the SDK token'),
    ),
    action: v.pipe(
      v.picklist(AUDIT_ACTIONS),
      v.description('What was done. Names are added, and never taken away or given to something else'),
      v.examples(['WORKFLOW_CREATED']),
    ),
    resourceType: v.pipe(v.string(), v.examples(['WORKFLOW'])),
    resourceId: v.nullable(idSchema),
    details: v.pipe(v.unknown(), v.description('What was done. Secrets and personal data are masked')),
    createdAt: timeSchema,
    seq: v.pipe(v.number(), v.integer(), v.description('Its number in the chain, from 1')),
    outcome: v.picklist(AUDIT_OUTCOMES),
    actor: v.object({
      kind: v.picklist(['USER', 'SDK_TOKEN', 'SYSTEM', 'ANONYMOUS']),
      id: v.nullable(idSchema),
      role: v.nullable(v.picklist(ROLES)),
    }),
    ip: v.nullable(v.string()),
    userAgent: v.nullable(v.string()),
    requestId: v.pipe(v.nullable(v.string()), v.description('The `X-Request-Id` of the request')),
    hash: v.pipe(hashSchema, v.description('Its hash, which the next entry links to')),
    prevHash: v.pipe(hashSchema, v.description('The hash of the entry before it')),
  }),
  v.title('AuditEntry'),
)

/** The query parameters that choose entries. */
const auditFilter = {
  action: v.optional(action),
  userId: v.pipe(
    v.optional(uuidField),
    v.description('Only what this person has done, SDK tokens of theirs included'),
  ),
  resourceType: v.optional(boundedString(50)),
  resourceId: v.optional(uuidField),
  outcome: v.optional(v.picklist(AUDIT_OUTCOMES, `must be one of ${AUDIT_OUTCOMES.join(', ')}`)),
}

const AuditQuery = v.pipe(
  v.object({ ...paging, size: v.optional(queryInteger(1, 100), '50'), ...auditFilter, ...timeRange }),
  checkTimeRange(),
)

const VerifyQuery = v.pipe(
  v.object({
    seq: v.pipe(
      v.optional(queryInteger(1, Number.MAX_SAFE_INTEGER)),
      v.description('The number of an entry that you have noted, with its hash: `last` of an earlier answer'),
    ),
    hash: v.optional(v.pipe(v.string(), v.regex(/^[\da-fA-F]{64}$/, 'must be 64 hexadecimal digits'))),
  }),
  v.forward(
    v.check(({ seq, hash }) => hash === undefined || seq !== undefined, 'is required with hash'),
    ['seq'],
  ),
  v.forward(
    v.check(({ seq, hash }) => seq === undefined || hash !== undefined, 'is required with seq'),
    ['hash'],
  ),
)

const numberSchema = v.pipe(v.number(), v.integer())
const VerificationSchema = v.pipe(
  v.object({
    valid: v.boolean(),
    entriesVerified: v.pipe(countSchema, v.description('How many entries were read and checked')),
    verifiedAt: timeSchema,
    firstEntry: v.optional(
      v.pipe(timeSchema, v.description('The time of the first entry, if the chain is valid')),
    ),
    lastEntry: v.optional(
      v.pipe(timeSchema, v.description('The time of the last entry, if the chain is valid')),
    ),
    brokenAtTimestamp: v.optional(
      v.pipe(timeSchema, v.description('The time of the entry that is wrong, or of the last one before it')),
    ),
    problem: v.optional(
      v.pipe(
        v.object({ kind: v.picklist(VERDICTS), seq: v.nullable(numberSchema) }),
        v.description('What is wrong first, and at which entry, if the chain is not valid'),
      ),
    ),
    intactFrom: v.pipe(numberSchema, v.description('The first entry that is not purged; 1 if none were')),
    erased: v.pipe(
      countSchema,
      v.description('How many entries are without details, because the operator has erased them'),
    ),
    breaks: v.pipe(
      v.array(v.object({ seq: numberSchema, at: timeSchema })),
      v.description('The entries with which the operator has reopened the chain after it was tampered with'),
    ),
    noted: v.optional(
      v.pipe(
        v.picklist(['found', 'missing', 'purged']),
        v.description('Whether the entry that you have noted is there. What was purged cannot be looked up'),
      ),
    ),
    last: v.optional(
      v.pipe(
        v.object({ seq: numberSchema, hash: v.string() }),
        v.description('The last entry. Keep it elsewhere, and send it next time'),
      ),
    ),
  }),
  v.title('AuditVerification'),
)

const PublicKeysSchema = v.pipe(
  v.object({
    keys: v.array(
      v.object({
        keyId: v.string(),
        algorithm: v.literal('Ed25519'),
        publicKey: v.pipe(v.string(), v.description('PEM (SPKI)')),
        current: v.boolean(),
      }),
    ),
  }),
  v.title('AuditPublicKeys'),
)

/** The routes that read a team's audit chain, and what proves it. */
export function createAuditRoutes({ store, verify }: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/audit/public-key',
      accept({
        id: 'readAuditPublicKeys',
        tag: 'Audit',
        summary: 'Read the public keys of the audit',
        description:
          'Checkpoints of audit chains are signed with Ed25519. The current key is the first one; the others have ' +
          'signed before it. Note them somewhere else, so that nobody can give you others later.',
        role: 'public',
        responses: { 200: { description: 'The keys', schema: PublicKeysSchema } },
      }),
      async (c) => c.json({ keys: await listPublicKeys(store) }),
    )
    .get(
      '/api/audit/team/:teamId',
      accept({
        id: 'listAuditEntries',
        tag: 'Audit',
        summary: "List a team's audit entries",
        description:
          'Newest first. An entry is there as soon as the act that it is about, and only then. What was purged is ' +
          'not listed.',
        role: 'ADMIN',
        params: InTeam,
        query: AuditQuery,
        responses: {
          200: { description: 'A page of entries', schema: pageSchema('AuditEntryPage', AuditEntrySchema) },
        },
      }),
      async (c) => c.json(await listAudit(c.get('scope'), c.req.valid('param').teamId, c.req.valid('query'))),
    )
    .get(
      '/api/audit/team/:teamId/verify',
      accept({
        id: 'verifyAudit',
        tag: 'Audit',
        summary: "Verify a team's audit chain",
        description:
          'Computes every hash of the chain anew, and checks every link and signature, the head, the checkpoints and ' +
          'what was purged. A broken chain is a 200 too. `seq` and `hash` are an entry that you have noted before: ' +
          'only with it a chain that somebody has cut back to an older, intact state is found out. A long chain takes ' +
          'its time, some seconds for each 100,000 entries.',
        role: 'ADMIN',
        params: InTeam,
        query: VerifyQuery,
        responses: { 200: { description: 'What was found', schema: VerificationSchema } },
      }),
      async (c) => {
        const { seq, hash } = c.req.valid('query')
        const noted = seq === undefined || hash === undefined ? undefined : { seq, hash }
        const { signal } = c.req.raw
        return c.json(
          await verifyTeam(c.get('scope'), c.req.valid('param').teamId, noted, { verify, signal }),
        )
      },
    )
}
