import * as v from 'valibot'
import { RECIPIENT_STATES } from '../../db/mail/recipients.ts'

export const WHOM =
  'whether mail reaches each recipient. ASKED: one mail has asked, and its owner has not said yes. NOT_ASKED: it was not ' +
  'sent yet. REFUSED: the owner wants no mail'
export const HELD = "why nothing is sent by the service's own server, whoever gets it; null if it is"

/** The recipients of a report or a channel, with their states, in responses. */
export const mailViewEntries = {
  recipientStates: v.pipe(
    v.array(v.object({ address: v.string(), state: v.picklist(RECIPIENT_STATES) })),
    v.description(`Says ${WHOM}`),
  ),
  held: v.pipe(v.nullable(v.string()), v.description(`Says ${HELD}`)),
}
