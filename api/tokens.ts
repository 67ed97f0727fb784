import { Hono } from 'hono'
import * as v from 'valibot'
import type { Role } from '../db/acts.ts'
import { createToken, listTokens, revokeToken, type Token } from '../db/tokens.ts'
import { accept, InTeam, shown, text, uuid } from './accept.ts'
import { id, LOCATION, said, time } from './answers.ts'
import type { AppEnv } from './app.ts'
import { instant } from './query.ts'

const SPELLING = { ADMIN: 'Admin', BUILDER: 'Builder', OPERATOR: 'Operator', VIEWER: 'Viewer' } as const

// Answered as the spec spells a token's roles; taken in any case, as a team's roles are written in capitals.
const TokenRole = v.pipe(
  v.string('must be a text'),
  shown<string>({ type: 'string', enum: [...Object.values(SPELLING), ...Object.keys(SPELLING)] }),
  v.toUpperCase(),
  v.picklist(Object.keys(SPELLING) as Role[], 'must be Admin, Builder, Operator or Viewer'),
)

const OneToken = v.object({ teamId: uuid, id: uuid })
const NewToken = v.object({
  name: text(100),
  role: TokenRole,
  expiresAt: v.optional(
    v.pipe(
      v.nullable(instant),
      v.description('In the future; without it the token lives until it is revoked'),
    ),
  ),
})

const token = {
  id,
  name: v.pipe(v.string(), v.examples(['CI'])),
  role: v.picklist(Object.values(SPELLING)),
  hint: v.pipe(v.string(), v.description('Its beginning and end'), v.examples(['sdk_Ab3d…x9Zk'])),
  createdAt: time,
  lastUsedAt: v.nullable(time),
  expiresAt: v.nullable(time),
}
const TokenAnswer = v.pipe(v.object(token), v.title('SdkToken'))
const NewTokenAnswer = v.pipe(
  v.object({
    ...token,
    token: v.pipe(v.string(), v.description('Shown this once'), v.examples([`sdk_${'x'.repeat(38)}`])),
  }),
  v.title('NewSdkToken'),
)

/** A team's SDK tokens. */
export function createTokenRoutes() {
  return new Hono<AppEnv>()
    .post(
      '/api/teams/:teamId/sdk-tokens',
      accept({
        id: 'createSdkToken',
        tag: 'SDK tokens',
        summary: 'Create an SDK token',
        description: "What it may do is the lesser of its role and its maker's present role in the team.",
        role: 'ADMIN',
        params: InTeam,
        json: NewToken,
        example: { name: 'CI', role: 'Operator' },
        responses: {
          201: {
            description: 'The token, shown this once',
            schema: NewTokenAnswer,
            headers: LOCATION,
            links: {
              revokeSdkToken: {
                parameters: { teamId: '$request.path.teamId', id: '$response.body#/id' },
              },
            },
          },
        },
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const { token, ...made } = await createToken(c.get('scope'), teamId, c.req.valid('json'))
        c.header('Location', `/api/teams/${teamId}/sdk-tokens/${made.id}`)
        return c.json({ ...describe(made), token }, 201)
      },
    )
    .get(
      '/api/teams/:teamId/sdk-tokens',
      accept({
        id: 'listSdkTokens',
        tag: 'SDK tokens',
        summary: 'List the SDK tokens',
        role: 'ADMIN',
        params: InTeam,
        responses: { 200: { description: 'The newest first', schema: v.array(TokenAnswer) } },
      }),
      async (c) => c.json((await listTokens(c.get('scope'), c.req.valid('param').teamId)).map(describe)),
    )
    .delete(
      '/api/teams/:teamId/sdk-tokens/:id',
      accept({
        id: 'revokeSdkToken',
        tag: 'SDK tokens',
        summary: 'Revoke an SDK token',
        role: 'ADMIN',
        params: OneToken,
        responses: { 200: said('SDK token revoked') },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        await revokeToken(c.get('scope'), teamId, id)
        return c.json({ message: 'SDK token revoked' })
      },
    )
}

function describe({ role, createdAt, lastUsedAt, expiresAt, ...token }: Token) {
  return {
    ...token,
    role: SPELLING[role],
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    expiresAt: expiresAt?.toISOString() ?? null,
  }
}
