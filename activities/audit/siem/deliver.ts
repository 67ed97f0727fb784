import type { AuditEntryView } from '../../../db/audit/list.ts'
import { type KeptCredential, openKept } from '../../../db/audit/siem/farewell.ts'
import type { ForwarderTarget } from '../../../db/audit/siem/forwarders.ts'
import { listSecretValues, openTeamCredential } from '../../../db/credentials/open.ts'
import { countOpening } from '../../../db/credentials/opens.ts'
import { createExactMask } from '../../../db/redaction/exact.ts'
import { redactText } from '../../../db/redaction/redact.ts'
import type { Store } from '../../../db/scope.ts'
import { unlessAborted } from '../../abort.ts'
import { authorizeWith, type HttpPass } from '../../credentials/authorize.ts'
import { findAccessToken } from '../../credentials/oauth/token.ts'
import type { Outside, Outsides } from '../../egress/outside.ts'
import { toEcs } from './ecs.ts'
import { frameSyslog, writeSyslog } from './syslog.ts'
import { sendSyslog } from './tlssyslog.ts'

/** What sending entries to receivers needs. `host` is the service's own name, see nameSender. */
export type SiemCarrier = { store: Store; outside: Outsides; host: string }

/** How long one delivery may take. */
export const DELIVERY_MS = 30_000

/** The bytes of an answer that are read, and thrown away. */
const MAX_ANSWER_BYTES = 1024 * 1024

/**
 * Sends entries to the receiver of a team, once, by the team's egress rules, and resolves when it has taken them all: for
 * HTTPS that is any 2xx, for syslog see sendSyslog. Throws an Error whose message is fit for the team's ADMINs, and has no
 * secrets; any part of the entries may have arrived then.
 */
export async function deliverEntries(
  { store, outside, host }: SiemCarrier,
  teamId: string,
  target: ForwarderTarget & { id: string; keptCredential?: KeptCredential | null },
  entries: AuditEntryView[],
  stopped: AbortSignal,
): Promise<void> {
  const secrets = new Set<string>()
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(DELIVERY_MS)])
  const send = async () => {
    const ways = await outside.forTeam(teamId)
    if (target.type === 'HTTPS') {
      const body = JSON.stringify(entries.map((entry) => toEcs(entry, host)))
      // What only tells of the forwarder's own use does not count as another one, or there would be no end of it.
      const counts = entries.some((entry) => !tellsOf(target.id, entry))
      const { credentialId, keptCredential: kept = null } = target
      const place = { teamId, id: credentialId, forwarderId: target.id, counts, kept }
      const pass = await openPass(store, ways, place, secrets)
      return post(ways, target.url!, pass, body, signal)
    }
    const frames = entries.map((entry) => frameSyslog(writeSyslog(entry, host, 'kept')))
    const { host: receiver, port, caCertificate } = target
    return sendSyslog({ host: receiver!, port: port!, caCertificate }, frames, ways.dial, signal)
  }
  try {
    // A token server need not heed the signal.
    await unlessAborted(send(), signal)
  } catch (error) {
    const isLate = signal.aborted && !stopped.aborted
    const message = isLate
      ? `The receiver has not taken the entries within ${DELIVERY_MS / 1_000} s`
      : error instanceof Error
        ? error.message
        : String(error)
    const known = createExactMask(secrets)
    // Without its cause, which may name what is secret.
    throw new Error(redactText(known.start(known.excerpt(message)), { secrets }))
  }
}

/** Whether an entry is about the use of a credential by this forwarder. */
function tellsOf(forwarderId: string, { action, details }: AuditEntryView): boolean {
  return action === 'CREDENTIAL_USED' && (details as { forwarderId?: unknown })?.forwarderId === forwarderId
}

/**
 * The pass with which the request is signed in, if it needs one; its use is counted for the audit before. Adds to
 * `secrets` the texts that must not be told.
 */
async function openPass(
  store: Store,
  { http }: Outside,
  { teamId, id, forwarderId, counts, kept }: Signing,
  secrets: Set<string>,
): Promise<HttpPass> {
  if (id === null) return {}
  const opened = kept ? openKept(store, { teamId, id }, kept) : await openTeamCredential(store, teamId, id)
  const opener = { kind: 'FORWARDER', id: forwarderId } as const
  if (counts) await countOpening(store, { teamId, credentialId: opened.id, opener })
  for (const value of listSecretValues(opened)) secrets.add(value)
  if (opened.broken) throw new Error(`The credential ${opened.name} cannot be used: ${opened.broken}`)
  return authorizeWith(opened, {
    tell: (secret) => void secrets.add(secret),
    async findToken(credential, refused) {
      const token = await findAccessToken({ store, http }, credential, { refused })
      if (token !== null) secrets.add(token)
      return token
    },
  })
}

type Signing = {
  teamId: string
  id: string | null
  forwarderId: string
  counts: boolean
  kept: KeptCredential | null
}

async function post(
  { http }: Outside,
  url: string,
  pass: HttpPass,
  body: string,
  signal: AbortSignal,
): Promise<void> {
  const { status } = await http.request({
    ...pass,
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json' },
    body,
    timeoutMs: DELIVERY_MS,
    maxBytes: MAX_ANSWER_BYTES,
    // A redirected request could reach another receiver, or lose its body.
    redirects: 'none',
    signal,
  })
  if (status < 200 || status > 299) throw new Error(`${new URL(url).host} answered with ${status}`)
}
