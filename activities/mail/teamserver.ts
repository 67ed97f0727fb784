import { Readable } from 'node:stream'
import { listSecretValues, openTeamCredential } from '../../db/credentials/open.ts'
import { countOpening } from '../../db/credentials/opens.ts'
import type { Store } from '../../db/scope.ts'
import type { Outside } from '../egress/outside.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { Handover } from '../send/once.ts'
import { type MailAddress, readMailAddresses } from './addresses.ts'
import { smtpFailure } from './failures.ts'
import { type RichLetter, writeLetter } from './letters.ts'
import { type MailLogin, openSmtp, type SmtpSession } from './session.ts'

/** Whose server, and what opens the credential; null for what is only tried. */
export type TeamServerPlace = {
  teamId: string
  credentialId: string
  opener: { kind: 'CHANNEL' | 'REPORT'; id: string } | null
}

/** The SMTP server of a team's credential. A session serves several mails, until one fails. */
export type TeamServer = {
  /** Rejects with a NodeFailure, a MailError or the signal's reason. */
  send(letter: RichLetter, handover: Handover): Promise<void>
  close(): void
}

/**
 * Opens a credential for the mails of a channel or a report, by the team's egress rules. `tell` hears of its secrets.
 * Throws a Fault if it is gone, and a NodeFailure if it names no sender.
 */
export async function openTeamServer(
  store: Store,
  { dial }: Outside,
  { teamId, credentialId, opener }: TeamServerPlace,
  signal: AbortSignal,
  tell: (secret: string) => void,
): Promise<TeamServer> {
  const opened = await openTeamCredential(store, teamId, credentialId)
  if (opener !== null) await countOpening(store, { teamId, credentialId, opener })
  for (const secret of listSecretValues(opened)) tell(secret)
  const login = opened.data as MailLogin & { from?: string }
  const from = findSender(login)
  let session: SmtpSession | undefined
  return {
    async send(letter, handover) {
      const { envelope, bytes } = await writeLetter(letter, from)
      try {
        session ??= await openSmtp(login, dial, signal)
        await session.send(envelope, Readable.from([bytes]), handover)
      } catch (error) {
        // The session is closed by any failure.
        session = undefined
        throw smtpFailure(login.host, error)
      }
    },
    close: () => session?.close(),
  }
}

function findSender({ from, username }: { from?: string; username?: string }): MailAddress {
  const given = [from, username].find((one) => one?.includes('@'))
  const [sender] = given ? readMailAddresses(given) : []
  if (sender) return sender
  throw new NodeFailure('The credential has no `from`, and its user name is no address', {
    type: 'InvalidConfig',
  })
}
