import { Hono } from 'hono'
import * as v from 'valibot'
import { addMember, changeRole, listMembers, MEMBER_ROLES, removeMember } from '../../db/people/members.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { InTeam, uuidField } from '../http/fields.ts'
import { idSchema, LOCATION_HEADER, messageResponse, timeSchema } from '../http/responses.ts'
import { emailField } from './accounts.ts'

const role = v.picklist(MEMBER_ROLES, 'must be ADMIN, BUILDER or OPERATOR')

const OneMember = v.object({ teamId: uuidField, userId: uuidField })
const NewMember = v.object({ email: emailField, role })
const MemberPatch = v.object({ role })

const MemberSchema = v.pipe(
  v.object({
    userId: idSchema,
    firstName: v.pipe(v.string(), v.examples(['Ada'])),
    lastName: v.pipe(v.string(), v.examples(['Byron'])),
    email: v.pipe(v.string(), v.examples(['ada@example.com'])),
    role: v.picklist(MEMBER_ROLES),
    joinedAt: timeSchema,
  }),
  v.title('Member'),
)

const MEMBER_LINK = { teamId: '$request.path.teamId', userId: '$response.body#/userId' }

/** The members of a team and their roles. A team always keeps at least one ADMIN. */
export function createMemberRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/teams/:teamId/members',
      accept({
        id: 'listMembers',
        tag: 'Teams',
        summary: "List a team's members",
        description: 'In the order in which they joined.',
        role: 'ADMIN',
        params: InTeam,
        responses: { 200: { description: 'The members', schema: v.array(MemberSchema) } },
      }),
      async (c) => c.json(await listMembers(c.get('scope'), c.req.valid('param').teamId)),
    )
    .post(
      '/api/teams/:teamId/members',
      accept({
        id: 'addMember',
        tag: 'Teams',
        summary: 'Add a member',
        description:
          'By the e-mail of their account: 404 if no account has it, 409 if they have not confirmed it or are ' +
          'a member already.',
        role: 'ADMIN',
        params: InTeam,
        json: NewMember,
        responses: {
          201: {
            description: 'The member',
            schema: MemberSchema,
            headers: LOCATION_HEADER,
            links: { changeRole: { parameters: MEMBER_LINK }, removeMember: { parameters: MEMBER_LINK } },
          },
        },
        faults: [409],
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const member = await addMember(c.get('scope'), teamId, c.req.valid('json'))
        c.header('Location', `/api/teams/${teamId}/members/${member.userId}`)
        return c.json(member, 201)
      },
    )
    .put(
      '/api/teams/:teamId/members/:userId',
      accept({
        id: 'changeRole',
        tag: 'Teams',
        summary: "Change a member's role",
        description: 'The last ADMIN of a team cannot get another role (409).',
        role: 'ADMIN',
        params: OneMember,
        json: MemberPatch,
        responses: { 200: { description: 'The changed member', schema: MemberSchema } },
        faults: [409],
      }),
      async (c) => {
        const { teamId, userId } = c.req.valid('param')
        const changed = await changeRole(c.get('scope'), teamId, userId, c.req.valid('json').role)
        return c.json(changed)
      },
    )
    .delete(
      '/api/teams/:teamId/members/:userId',
      accept({
        id: 'removeMember',
        tag: 'Teams',
        summary: 'Remove a member',
        description:
          'Also revokes the SDK tokens that they created in the team. The last ADMIN cannot be removed (409).',
        role: 'ADMIN',
        params: OneMember,
        responses: { 200: messageResponse('Member removed') },
        faults: [409],
      }),
      async (c) => {
        const { teamId, userId } = c.req.valid('param')
        await removeMember(c.get('scope'), teamId, userId)
        return c.json({ message: 'Member removed' })
      },
    )
}
