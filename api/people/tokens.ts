import { Hono } from 'hono'
import * as v from 'valibot'
import type { Role } from '../../db/acts.ts'
import { createToken, listTokens, revokeToken, type SdkToken } from '../../db/people/tokens.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, documentAs, InTeam, instantField, uuidField } from '../http/fields.ts'
import { idSchema, LOCATION_HEADER, messageResponse, timeSchema } from '../http/responses.ts'

const SPELLING = {
  ADMIN: 'Admin',
  BUILDER: 'Builder',
  OPERATOR: 'Operator',
  VIEWER: 'Viewer',
} as const satisfies Record<Role, string>

// Responses spell a token's role as the specification does (`Admin`). Requests may use any case, because the
// roles of members are in capitals; the document shows one spelling, since generators take two for one name.
const TokenRole = v.pipe(
  v.string('must be a string'),
  documentAs<string>({ type: 'string', enum: Object.values(SPELLING) }),
  v.toUpperCase(),
  v.picklist(Object.keys(SPELLING) as Role[], 'must be Admin, Builder, Operator or Viewer'),
)

const OneToken = v.object({ teamId: uuidField, id: uuidField })
const NewToken = v.object({
  name: boundedString(100),
  role: TokenRole,
  expiresAt: v.optional(
    v.pipe(
      v.nullable(instantField),
      v.description('A time in the future. Without it the token is valid until it is revoked'),
    ),
  ),
})

const token = {
  id: idSchema,
  name: v.pipe(v.string(), v.examples(['CI'])),
  role: v.picklist(Object.values(SPELLING)),
  hint: v.pipe(
    v.string(),
    v.description('The beginning and the end of the token'),
    v.examples(['sdk_Ab3d…x9Zk']),
  ),
  createdAt: timeSchema,
  lastUsedAt: v.nullable(timeSchema),
  expiresAt: v.nullable(timeSchema),
}

const TokenSchema = v.pipe(v.object(token), v.title('SdkToken'))
const CreatedTokenSchema = v.pipe(
  v.object({
    ...token,
    token: v.pipe(
      v.string(),
      v.description('The token itself. No other response shows it'),
      v.examples([`sdk_${'x'.repeat(38)}`]),
    ),
  }),
  v.title('NewSdkToken'),
)

/** The routes of a team's SDK tokens. */
export function createTokenRoutes() {
  return new Hono<AppEnv>()
    .post(
      '/api/teams/:teamId/sdk-tokens',
      accept({
        id: 'createSdkToken',
        tag: 'SDK tokens',
        summary: 'Create an SDK token',
        description:
          "Its rights are those of its role or of its creator's current role in the team, whichever is lower. " +
          'A token that an SDK token creates is revoked with it, and expires no later.',
        role: 'ADMIN',
        params: InTeam,
        json: NewToken,
        example: { name: 'CI', role: 'Operator' },
        responses: {
          201: {
            description: 'The new token, which only this response shows',
            schema: CreatedTokenSchema,
            headers: LOCATION_HEADER,
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
        return c.json({ ...describeToken(made), token }, 201)
      },
    )
    .get(
      '/api/teams/:teamId/sdk-tokens',
      accept({
        id: 'listSdkTokens',
        tag: 'SDK tokens',
        summary: "List a team's SDK tokens",
        description: 'The newest first, without the tokens themselves.',
        role: 'ADMIN',
        params: InTeam,
        responses: { 200: { description: 'The SDK tokens', schema: v.array(TokenSchema) } },
      }),
      async (c) => c.json((await listTokens(c.get('scope'), c.req.valid('param').teamId)).map(describeToken)),
    )
    .delete(
      '/api/teams/:teamId/sdk-tokens/:id',
      accept({
        id: 'revokeSdkToken',
        tag: 'SDK tokens',
        summary: 'Revoke an SDK token',
        description: 'Requests with the token get 401 from then on.',
        role: 'ADMIN',
        params: OneToken,
        responses: { 200: messageResponse('SDK token revoked') },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        await revokeToken(c.get('scope'), teamId, id)
        return c.json({ message: 'SDK token revoked' })
      },
    )
}

function describeToken({ role, createdAt, lastUsedAt, expiresAt, ...token }: SdkToken) {
  return {
    ...token,
    role: SPELLING[role],
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    expiresAt: expiresAt?.toISOString() ?? null,
  }
}
