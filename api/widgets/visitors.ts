import type { Context, MiddlewareHandler } from 'hono'
import { validate as isUuid } from 'uuid'
import { Fault, missing } from '../../db/fault.ts'
import { readNetwork } from '../../db/people/network.ts'
import type { Store } from '../../db/scope.ts'
import { findOpenWidget, findVisitorSession, findWidget, type OpenWidget } from '../../db/widgets/visitors.ts'
import type { ApiDeps, AppEnv, WidgetVisitor } from '../env.ts'
import { readBearer } from '../people/session.ts'
import { makeSigned, openSigned } from '../people/signed.ts'

/** For how long a visitor's token, and that of the service's own page, can be used. */
const VISITOR_MS = 2 * 3_600_000
const PAGE_MS = 12 * 3_600_000

/** The header with the token of the service's own page. */
export const PAGE_HEADER = 'X-Widget-Page'

const METHODS = 'GET, POST'
const HEADERS = 'Authorization, Content-Type, Idempotency-Key'
const EXPOSED = 'Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id'

/**
 * Runs for all that visitors ask for: finds the widget and the visitor, lets pages of exactly the widget's origins read
 * the responses, and says what the request counts against. It refuses nothing but a preflight: that is for `guardWidget`.
 */
export function openWidget({ store }: ApiDeps): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    c.header('Vary', 'Origin', { append: true })
    const found = await findWidget(store, c.req.param('key')!)
    const isPreflight =
      c.req.method === 'OPTIONS' && c.req.header('access-control-request-method') !== undefined
    const answerPreflight = async (isAllowed: boolean) => {
      await c.get('countRequest')()
      if (!isAllowed) throw foreign()
      c.header('Access-Control-Allow-Methods', METHODS)
      c.header('Access-Control-Allow-Headers', HEADERS)
      c.header('Access-Control-Max-Age', '600')
      return c.body(null, 204)
    }
    if (!found) {
      // A page whose key was changed must be able to read that nothing is there (404), as any caller without a browser
      // can.
      c.header('Access-Control-Allow-Origin', '*')
      return isPreflight ? answerPreflight(true) : next()
    }
    const { id, open, allowedOrigins } = found
    const visitor = open && (await findVisitor(store, c, open))
    if (open) {
      c.set('widget', { open, visitor, isOwnPage: await isPageOf(store, c, open) })
      c.set('teamId', open.teamId)
    }
    c.set('buckets', [
      ...(visitor ? [{ kind: 'VISITOR', id: visitor.sessionId } as const] : []),
      { kind: 'WIDGET_IP', id: `${id}/${readNetwork(c.get('ip'))}` },
      { kind: 'WIDGET', id },
    ])
    // Also where it is closed: its pages are to learn that.
    const origin = c.req.header('origin')
    const isAllowed = origin !== undefined && allowedOrigins.includes(origin)
    if (isAllowed) {
      c.header('Access-Control-Allow-Origin', origin)
      c.header('Access-Control-Expose-Headers', EXPOSED)
    }
    return isPreflight ? answerPreflight(isAllowed) : next()
  }
}

/**
 * Throws NOT_FOUND unless the widget can be used now, and FORBIDDEN for a request from a page that may not show it: from
 * another origin, from none, or from the service's own without the token that its page was given.
 */
export function guardWidget(deps: ApiDeps) {
  return (c: Context<AppEnv>): void => {
    const { open, visitor, isOwnPage } = readWidgetOf(c)
    const origin = c.req.header('origin')
    if (origin !== undefined && open.allowedOrigins.includes(origin)) return
    // Browsers send no origin when a page reads from its own.
    const isOwn = origin === undefined || isOwnOrigin(deps, c, origin)
    if (!isOwn || !(visitor?.onPage || isOwnPage)) throw foreign()
  }
}

/** The widget of the request. Throws NOT_FOUND. */
function readWidgetOf(c: Context<AppEnv>) {
  const found = c.get('widget')
  if (!found) throw missing('widget')
  return found
}

/** The widget that guardWidget has let the request through to. */
export function readOpenWidget(c: Context<AppEnv>): OpenWidget {
  return readWidgetOf(c).open
}

/** The visitor who asks, if they have shown a token. */
export function readVisitor(c: Context<AppEnv>): WidgetVisitor | undefined {
  return readWidgetOf(c).visitor
}

/** The visitor's session. Throws UNAUTHENTICATED if they have not shown whose it is, or it is gone. */
export async function demandVisitor({ store }: ApiDeps, c: Context<AppEnv>) {
  const { open, visitor } = readWidgetOf(c)
  const session = visitor && (await findVisitorSession(store, open, visitor.sessionId))
  if (!session) throw new Fault('UNAUTHENTICATED', 'The session has ended: begin another one')
  return session
}

/** Throws once the visitor may not read on: the widget is closed, has another key, or the session is gone. */
export async function demandVisitorStill({ store }: ApiDeps, widget: OpenWidget, sessionId: string) {
  const open = await findOpenWidget(store, widget.key)
  if (!open || !(await findVisitorSession(store, open, sessionId))) throw missing('widget')
}

/** Whether the request came from a page that the service itself serves, with that page's token. */
export function isOnPage(c: Context<AppEnv>): boolean {
  const { visitor, isOwnPage } = readWidgetOf(c)
  return (visitor?.onPage ?? false) || isOwnPage
}

/** Signs the token with which a visitor goes on. It ends with the key of the widget. */
export async function makeVisitorToken({ store }: ApiDeps, { key }: OpenWidget, visitor: WidgetVisitor) {
  const expiresAt = new Date(Date.now() + VISITOR_MS)
  const { sessionId, onPage } = visitor
  const claims = { widget: key, page: onPage }
  const signed = { purpose: 'visitor', subject: sessionId, claims, expiresAt } as const
  return { token: await makeSigned(store.keys, signed), expiresAt, expiresIn: VISITOR_MS / 1000 }
}

/** Signs the token by which the service's own page of a widget is known. */
export function makePageToken({ store }: ApiDeps, { id, key }: OpenWidget): Promise<string> {
  const expiresAt = new Date(Date.now() + PAGE_MS)
  return makeSigned(store.keys, { purpose: 'widget page', subject: id, claims: { widget: key }, expiresAt })
}

async function findVisitor({ keys }: Store, c: Context<AppEnv>, { key }: OpenWidget) {
  const bearer = readBearer(c)
  const claims = bearer ? await openSigned(keys, bearer, 'visitor') : null
  if (claims?.widget !== key || claims.sub === undefined || !isUuid(claims.sub)) return undefined
  return { sessionId: claims.sub, onPage: claims.page === true }
}

async function isPageOf({ keys }: Store, c: Context<AppEnv>, { id, key }: OpenWidget): Promise<boolean> {
  const given = c.req.header(PAGE_HEADER)
  const claims = given ? await openSigned(keys, given, 'widget page') : null
  return claims?.sub === id && claims.widget === key
}

function isOwnOrigin({ publicUrl }: ApiDeps, c: Context<AppEnv>, origin: string): boolean {
  return (
    origin === new URL(publicUrl).origin || URL.parse(origin)?.host === c.req.header('host')?.toLowerCase()
  )
}

function foreign(): Fault {
  return new Fault('FORBIDDEN', 'This page may not use the widget')
}
