import type { Context } from 'hono'
import { validate as isUuid } from 'uuid'
import { noteRefusal, type Refusal } from '../../db/audit/refusals/refusals.ts'
import { Fault } from '../../db/fault.ts'
import { findEndedSession } from '../../db/people/sessions.ts'
import { findEndedToken } from '../../db/people/tokencallers.ts'
import { accountScope, type Scope } from '../../db/scope.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { findRoute } from '../http/observe.ts'
import { isCounted } from '../http/ratelimit.ts'
import { readBearer, readOrigin, readSession } from '../people/session.ts'

/** Failed sign-ins have entries of their own. */
const SIGN_IN = 'signIn'

/**
 * Notes a request in the audit that was refused because of who has sent it (401, 403): as the use of a token or a
 * session that has ended, else as a denied act. The response does not depend on it: what cannot be noted is logged.
 */
export async function noteRefused(deps: ApiDeps, c: Context<AppEnv>, thrown: unknown): Promise<void> {
  if (!(thrown instanceof Fault) || !isRefusal(thrown) || !isCounted(c)) return
  if (c.get('rule')?.id === SIGN_IN) return
  // The token of a widget's visitor ends with time: that is no attempt to get in.
  if (thrown.code === 'UNAUTHENTICATED' && c.get('widget')) return
  try {
    await noteRefusal(await describeRefused(deps, c, thrown), deps.refusals)
  } catch (error) {
    c.get('log').warn(
      { err: error, route: findRoute(c) },
      'a refused request could not be noted in the audit',
    )
  }
}

function isRefusal({ code }: Fault): boolean {
  return code === 'UNAUTHENTICATED' || code === 'FORBIDDEN'
}

async function describeRefused(deps: ApiDeps, c: Context<AppEnv>, { code }: Fault): Promise<Refusal> {
  const rule = c.get('rule')
  const request = { ...(rule ? { operation: rule.id } : {}), method: c.req.method, route: findRoute(c) }
  // A webhook asks for a secret of its own.
  const isHook = rule?.role === 'public' && c.get('teamId') !== undefined
  const ended = code === 'UNAUTHENTICATED' && !isHook ? await describeEnded(deps, c) : undefined
  if (ended) return { ...ended, details: { ...ended.details, ...request } }
  const scope = await findCaller(deps, c)
  const teamId = c.get('teamId')
  const id = c.req.param('id')
  const has = teamId === undefined ? undefined : (scope.roles.get(teamId) ?? null)
  const details = { ...request, needs: rule?.role ?? null, ...(has === undefined ? {} : { has }) }
  // An anonymous caller may name any team, so it does not count.
  const isKnown = scope.actor.kind !== 'ANONYMOUS' || rule?.role === 'public'
  const resourceId = id !== undefined && isUuid(id) ? id.toLowerCase() : null
  return { act: 'ACCESS_DENIED', scope, teamId: isKnown ? teamId : undefined, resourceId, details }
}

async function findCaller({ store }: ApiDeps, c: Context<AppEnv>): Promise<Scope> {
  const found = await c
    .get('authenticate')()
    .catch(() => null)
  return found ?? accountScope(store, null, readOrigin(c))
}

/** The use of a token that was revoked or has expired, or of a session that has ended; undefined if it is neither. */
async function describeEnded({ store }: ApiDeps, c: Context<AppEnv>): Promise<Refusal | undefined> {
  const origin = readOrigin(c)
  const bearer = readBearer(c)
  if (bearer !== undefined) {
    const token = await findEndedToken(store, bearer)
    if (!token) return undefined
    const { id, name, teamId, userId, ...details } = token
    const scope = accountScope(store, null, origin)
    const actor = { kind: 'SDK_TOKEN', id, name } as const
    return { act: 'REVOKED_TOKEN_USED', scope: { ...scope, actor, userId }, teamId, resourceId: id, details }
  }
  const session = await readSession(store, c)
  const person = session && (await findEndedSession(store, session))
  if (!person) return undefined
  const scope = accountScope(store, person, origin)
  return { act: 'ENDED_SESSION_USED', scope, resourceId: person.id, details: {} }
}
