import { Hono } from 'hono'
import * as v from 'valibot'
import { addMember, changeRole, listMembers, removeMember } from '../db/members.ts'
import { accept, InTeam, uuid } from './accept.ts'
import { email } from './accounts.ts'
import { id, LOCATION, said, time } from './answers.ts'
import type { AppEnv } from './app.ts'
import { MEMBER_ROLES } from './roles.ts'

const role = v.picklist(MEMBER_ROLES, 'must be ADMIN, BUILDER or OPERATOR')

const OneMember = v.object({ teamId: uuid, userId: uuid })
const NewMember = v.object({ email, role })
const MemberPatch = v.object({ role })

const MemberAnswer = v.pipe(
  v.object({
    userId: id,
    firstName: v.pipe(v.string(), v.examples(['Ada'])),
    lastName: v.pipe(v.string(), v.examples(['Byron'])),
    email: v.pipe(v.string(), v.examples(['ada@example.com'])),
    role: v.picklist(MEMBER_ROLES),
    joinedAt: time,
  }),
  v.title('Member'),
)

const ONE = { teamId: '$request.path.teamId', userId: '$response.body#/userId' }

/** Who belongs to a team, in which role. The last ADMIN stays. */
export function createMemberRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/teams/:teamId/members',
      accept({
        id: 'listMembers',
        tag: 'Teams',
        summary: "List a team's members",
        description: 'Those who joined first first.',
        role: 'ADMIN',
        params: InTeam,
        responses: { 200: { description: 'The members', schema: v.array(MemberAnswer) } },
      }),
      async (c) => c.json(await listMembers(c.get('scope'), c.req.valid('param').teamId)),
    )
    .post(
      '/api/teams/:teamId/members',
      accept({
        id: 'addMember',
        tag: 'Teams',
        summary: 'Add a member',
        description: 'By the e-mail of an account: 404 where there is none, 409 for a member.',
        role: 'ADMIN',
        params: InTeam,
        json: NewMember,
        responses: {
          201: {
            description: 'The member',
            schema: MemberAnswer,
            headers: LOCATION,
            links: { changeRole: { parameters: ONE }, removeMember: { parameters: ONE } },
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
        summary: 'Give a member another role',
        description: 'The last ADMIN keeps theirs (409).',
        role: 'ADMIN',
        params: OneMember,
        json: MemberPatch,
        responses: { 200: { description: 'The member as it is now', schema: MemberAnswer } },
        faults: [409],
      }),
      async (c) => {
        const { teamId, userId } = c.req.valid('param')
        return c.json(await changeRole(c.get('scope'), teamId, userId, c.req.valid('json').role))
      },
    )
    .delete(
      '/api/teams/:teamId/members/:userId',
      accept({
        id: 'removeMember',
        tag: 'Teams',
        summary: 'Remove a member',
        description: 'Revokes the SDK tokens they made in the team. The last ADMIN stays (409).',
        role: 'ADMIN',
        params: OneMember,
        responses: { 200: said('Member removed') },
        faults: [409],
      }),
      async (c) => {
        const { teamId, userId } = c.req.valid('param')
        await removeMember(c.get('scope'), teamId, userId)
        return c.json({ message: 'Member removed' })
      },
    )
}
