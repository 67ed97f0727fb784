import { Hono } from 'hono'
import * as v from 'valibot'
import { findEgressRuleFault } from '../../activities/egress/egressrules.ts'
import { readTeamEgress, updateTeamEgress } from '../../db/operation/egress.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { documentAs, InTeam, trimmedString } from '../http/fields.ts'
import { timeSchema } from '../http/responses.ts'

const MAX_ENTRIES = 200

const entry = v.pipe(
  trimmedString(260),
  documentAs<string>({ type: 'string', minLength: 1, maxLength: 260 }),
  v.rawCheck(({ dataset, addIssue }) => {
    const message = dataset.typed && dataset.value !== '' && findEgressRuleFault(dataset.value)
    if (message) addIssue({ message })
  }),
  v.examples(['10.1.0.0/16', 'api.example.com', '*.example.com']),
)
const list = v.pipe(
  v.array(entry, 'must be an array'),
  v.maxLength(MAX_ENTRIES, `must have at most ${MAX_ENTRIES} entries`),
)

const TeamEgressRules = v.object({ allow: list, deny: list })
const TeamEgressSchema = v.pipe(
  v.object({
    allow: v.pipe(
      v.array(v.string()),
      v.description('What the team may reach besides what the instance allows: addresses, ranges, hosts'),
    ),
    deny: v.pipe(
      v.array(v.string()),
      v.description('What the team may not reach, whatever allows it: addresses, ranges, hosts'),
    ),
    updatedAt: v.nullable(timeSchema),
  }),
  v.title('TeamEgress'),
)

/** The routes with which the instance's admin reads and changes where the calls of a team may lead. */
export function createEgressRoutes() {
  const responses = { 200: { description: 'The rules of the team', schema: TeamEgressSchema } }
  return new Hono<AppEnv>()
    .get(
      '/api/admin/teams/:teamId/egress',
      accept({
        id: 'readTeamEgress',
        tag: 'Operation',
        summary: 'Read where the calls of a team may lead',
        description: 'These rules are added to those of `EGRESS_ALLOW` and `EGRESS_DENY`.',
        role: 'instance',
        params: InTeam,
        faults: [404],
        responses,
      }),
      async (c) => c.json(await readTeamEgress(c.get('scope'), c.req.valid('param').teamId)),
    )
    .put(
      '/api/admin/teams/:teamId/egress',
      accept({
        id: 'updateTeamEgress',
        tag: 'Operation',
        summary: 'Change where the calls of a team may lead',
        description:
          'Replaces both lists. What either the instance or the team denies is denied, whatever is allowed. The ' +
          'rules hold for HTTP requests, callbacks, databases, mail and the tests of credentials, in all ' +
          'processes within seconds.',
        role: 'instance',
        params: InTeam,
        json: TeamEgressRules,
        example: { allow: ['10.1.0.0/16'], deny: ['*.internal.example.com'] },
        faults: [404],
        responses,
      }),
      async (c) =>
        c.json(await updateTeamEgress(c.get('scope'), c.req.valid('param').teamId, c.req.valid('json'))),
    )
}
