import { Hono } from 'hono'
import * as v from 'valibot'
import type { Role } from '../db/acts.ts'
import { createToken, listTokens, revokeToken, type Token } from '../db/tokens.ts'
import { accept, text, uuid } from './accept.ts'
import type { AppEnv } from './app.ts'

const SPELLING = { ADMIN: 'Admin', BUILDER: 'Builder', OPERATOR: 'Operator', VIEWER: 'Viewer' } as const

// Answered as the spec spells a token's roles; taken in any case, as a team's roles are written in capitals.
const TokenRole = v.pipe(
  v.string('must be a text'),
  v.toUpperCase(),
  v.picklist(Object.keys(SPELLING) as Role[], 'must be Admin, Builder, Operator or Viewer'),
)

const InTeam = v.object({ teamId: uuid })
const OneToken = v.object({ teamId: uuid, id: uuid })
const NewToken = v.object({ name: text(100), role: TokenRole })

/** A team's SDK tokens. */
export function createTokenRoutes() {
  return new Hono<AppEnv>()
    .post(
      '/api/teams/:teamId/sdk-tokens',
      accept({ summary: 'Create an SDK token', role: 'ADMIN', params: InTeam, json: NewToken }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const { token, ...made } = await createToken(c.get('scope'), teamId, c.req.valid('json'))
        c.header('Location', `/api/teams/${teamId}/sdk-tokens/${made.id}`)
        return c.json({ ...describe(made), token }, 201)
      },
    )
    .get(
      '/api/teams/:teamId/sdk-tokens',
      accept({ summary: 'List the SDK tokens', role: 'ADMIN', params: InTeam }),
      async (c) => c.json((await listTokens(c.get('scope'), c.req.valid('param').teamId)).map(describe)),
    )
    .delete(
      '/api/teams/:teamId/sdk-tokens/:id',
      accept({ summary: 'Revoke an SDK token', role: 'ADMIN', params: OneToken }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        await revokeToken(c.get('scope'), teamId, id)
        return c.json({ message: 'SDK token revoked' })
      },
    )
}

function describe({ role, createdAt, lastUsedAt, ...token }: Token) {
  return {
    ...token,
    role: SPELLING[role],
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  }
}
