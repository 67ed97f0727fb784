import type { Context } from 'hono'
import { Hono } from 'hono'
import * as v from 'valibot'
import { writeExchange } from '../../activities/credentials/oauth/grants.ts'
import { askTokenServer } from '../../activities/credentials/oauth/tokenserver.ts'
import { beginConnect, type Connecting, finishConnect, takeConnect } from '../../db/credentials/connects.ts'
import { Fault } from '../../db/fault.ts'
import { demandPerson } from '../../db/scope.ts'
import { noteRefused } from '../audit/refusals.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString } from '../http/fields.ts'
import { readSession } from '../people/session.ts'
import { CONNECT_PAGE_POLICY, renderConnectPage } from './page.ts'

const CALLBACK = '/api/oauth2/callback'

/** The parameters that the authorization server adds. An invalid one counts as missing: the page says so. */
const Answer = v.object({
  state: v.optional(v.fallback(boundedString(500), '')),
  code: v.optional(v.fallback(boundedString(8_192), '')),
  error: v.optional(v.fallback(boundedString(1_000), 'unknown')),
  iss: v.optional(v.fallback(boundedString(2_000), 'unknown')),
})

const ConnectSchema = v.pipe(
  v.object({
    url: v.pipe(
      v.string(),
      v.description('Where the browser of this session is to go now'),
      v.examples(['https://accounts.example.com/authorize?response_type=code&client_id=perdure']),
    ),
  }),
  v.title('ConnectUrl'),
)

/** The routes with which a person connects a credential of the type OAUTH2. */
export function createOAuthRoutes(deps: ApiDeps) {
  const redirectUri = `${deps.publicUrl.replace(/\/$/, '')}${CALLBACK}`
  return new Hono<AppEnv>()
    .post(
      '/api/credentials/:id/connect',
      accept({
        id: 'connectCredential',
        tag: 'Credentials',
        summary: 'Begin to connect an OAuth 2 credential',
        description:
          'Responds with the address of the authorization server to which your browser goes. The server sends it ' +
          `back to \`${CALLBACK}\` of this service, in the same session and within 10 minutes, and the credential ` +
          'has its tokens then. It is 409 unless the credential has `authorizationUrl` and `tokenUrl`.',
        role: 'BUILDER',
        person: true,
        of: 'credentials',
        params: ById,
        responses: { 200: { description: 'Where to go', schema: ConnectSchema } },
        faults: [409],
      }),
      async (c) => {
        const session = await demandSession(deps, c)
        const begun = await beginConnect(c.get('scope'), c.req.valid('param').id, session)
        const { authorizationUrl, clientId, scope, audience } = begun.grant.data as Record<string, string>
        const url = new URL(authorizationUrl!)
        url.hash = ''
        const asked = {
          response_type: 'code',
          client_id: clientId,
          redirect_uri: redirectUri,
          scope,
          audience,
          state: begun.state,
          code_challenge: begun.challenge,
          code_challenge_method: 'S256',
        }
        for (const [name, value] of Object.entries(asked)) if (value) url.searchParams.set(name, value)
        return c.json({ url: url.href })
      },
    )
    .get(
      CALLBACK,
      accept({
        id: 'finishConnect',
        tag: 'Credentials',
        summary: 'Come back from an authorization server',
        description:
          'The redirect URI of every OAuth 2 client: the authorization server sends the browser here. Responds with ' +
          'a page that says whether the credential is connected, and else what to do.',
        role: 'public',
        query: Answer,
        responses: {
          200: { description: 'The credential is connected', type: 'text/html' },
          ...Object.fromEntries(
            PAGES.map((status) => [status, { description: 'It is not, and why', type: 'text/html' }]),
          ),
        },
      }),
      async (c) => {
        try {
          const { name, warning } = await comeBack(deps, c, c.req.valid('query'), redirectUri)
          return respond(c, 200, 'Connected', [`The credential “${name}” is connected.`, ...warning])
        } catch (error) {
          const status = error instanceof Fault ? STATUSES[error.code] : undefined
          if (!status) throw error
          await noteRefused(deps, c, error)
          return respond(c, status, 'Not connected', [(error as Fault).message])
        }
      },
    )
}

type Back = v.InferOutput<typeof Answer>

/** The faults that this page tells; all others are told as everywhere. */
const STATUSES: Partial<Record<Fault['code'], 401 | 403 | 404 | 409>> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
}
const PAGES = [401, 403, 404, 409]

/** The errors that an authorization server may send instead of a code (RFC 6749, 4.1.2.1). */
const REFUSALS: Record<string, string> = {
  access_denied: 'The access was denied there',
  invalid_request: 'The authorization server misses something in the request',
  invalid_scope: 'The authorization server does not know the scope of the credential, or does not give it',
  unauthorized_client: 'The authorization server does not give codes to this client',
  unsupported_response_type: 'The authorization server does not give codes',
  server_error: 'The authorization server failed',
  temporarily_unavailable: 'The authorization server is overloaded, or closed for now',
}

async function comeBack(
  deps: ApiDeps,
  c: Context<AppEnv>,
  back: Back,
  redirectUri: string,
): Promise<{ name: string; warning: string[] }> {
  const sessionId = await demandSession(deps, c)
  const scope = c.get('scope')
  if (!back.state)
    throw new Fault(
      'CONFLICT',
      'The authorization server has sent you back without the state that it was given',
    )
  const connecting = await takeConnect(scope, back.state, sessionId)
  demandIssuer(connecting, back.iss)
  if (back.error !== undefined) {
    const why = Object.hasOwn(REFUSALS, back.error)
      ? REFUSALS[back.error]
      : 'The authorization server refused, with an error that is not in the standard'
    throw new Fault('CONFLICT', `${why}. The credential is as it was before`)
  }
  if (!back.code)
    throw new Fault('CONFLICT', 'The authorization server has sent you back with neither a code nor an error')
  const { grant, verifier } = connecting
  const outside = await deps.outside?.forTeam(grant.teamId)
  if (!outside) throw new Fault('UNAVAILABLE', 'This process reaches no token server')
  const got = await askTokenServer(
    outside.http,
    writeExchange(grant.data, { code: back.code, verifier, redirectUri }),
    c.req.raw.signal,
  )
  if ('refused' in got)
    throw new Fault('CONFLICT', `The service ${got.refused}. Connect the credential again`)
  await finishConnect(scope, connecting, got)
  const isLasting = got.refreshToken !== null || got.expiresInS === null
  const warning = isLasting
    ? []
    : [
        'The server gave no refresh token, so it must be connected again when its access token ends. Many servers give one for the scope offline_access, or with access_type=offline&prompt=consent in the authorizationUrl.',
      ]
  return { name: grant.name, warning }
}

/** The id of the caller's session. Throws UNAUTHENTICATED or, for an SDK token, FORBIDDEN. */
async function demandSession(deps: ApiDeps, c: Context<AppEnv>): Promise<string> {
  const scope = await c
    .get('authenticate')()
    .catch((error) => {
      if (!(error instanceof Fault) || error.code !== 'UNAUTHENTICATED') throw error
      throw new Fault(
        'UNAUTHENTICATED',
        'You are not signed in here any more. Sign in, go back to the credential, and connect it again',
      )
    })
  demandPerson(scope)
  c.set('scope', scope)
  const session = await readSession(deps.store, c)
  if (!session) throw new Fault('UNAUTHENTICATED', 'Sign in, and connect the credential again')
  return session.id
}

/** Throws CONFLICT if another server than the credential's says that it has answered (RFC 9207). */
function demandIssuer({ grant }: Connecting, iss: string | undefined): void {
  if (iss === undefined) return
  const { issuer, authorizationUrl, tokenUrl } = grant.data as Record<string, string>
  const origin = URL.parse(iss)?.origin
  const isOwn =
    issuer === undefined
      ? [authorizationUrl, tokenUrl].some((url) => url !== undefined && URL.parse(url)?.origin === origin)
      : iss === issuer
  if (!isOwn)
    throw new Fault(
      'CONFLICT',
      `Another authorization server than that of the credential has answered. If it is the right one, set the credential's issuer to what the server calls itself`,
    )
}

function respond(c: Context<AppEnv>, status: 200 | 401 | 403 | 404 | 409, title: string, lines: string[]) {
  return c.html(renderConnectPage(title, lines), status, { 'Content-Security-Policy': CONNECT_PAGE_POLICY })
}
