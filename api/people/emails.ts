import { Hono } from 'hono'
import * as v from 'valibot'
import { readAccount } from '../../db/people/accounts.ts'
import { confirmEmail, resendConfirmation, vouchForEmail } from '../../db/people/emails.ts'
import type { AppEnv } from '../env.ts'
import { accept, SMALL_BODY } from '../http/accept.ts'
import { boundedString, uuidField } from '../http/fields.ts'
import { messageResponse } from '../http/responses.ts'
import { AccountSchema, emailEntries, emailField, personEntries } from './accounts.ts'

const Proof = v.object({
  token: v.pipe(boundedString(200), v.description('What the link in the mail has after `token=`')),
})
const Voucher = v.object({
  email: emailField,
  userId: v.optional(
    v.pipe(uuidField, v.description('The account that is meant, if several want this e-mail')),
  ),
})
const ConfirmedUserSchema = v.pipe(v.object({ ...personEntries, ...emailEntries }), v.title('ConfirmedUser'))

/** The routes with which e-mail addresses are confirmed. */
export function createEmailRoutes() {
  return new Hono<AppEnv>()
    .post(
      '/api/auth/email/confirm',
      accept({
        id: 'confirmEmail',
        tag: 'Authentication',
        summary: 'Confirm your own e-mail',
        description:
          'With the token of the link that was mailed to it, which works once, within 24 hours. You must be ' +
          'signed in to the account that asked for it. The response is 409 if another account has confirmed ' +
          'the e-mail in the meantime.',
        role: 'session',
        json: Proof,
        ...SMALL_BODY,
        example: { token: 'Yd0rXvJ8cO3mC1o5q2ZbU7aT9sWkLfHg' },
        responses: { 200: { description: 'The account', schema: AccountSchema } },
        faults: [409],
      }),
      async (c) => {
        await confirmEmail(c.get('scope'), c.req.valid('json').token)
        return c.json(await readAccount(c.get('scope')))
      },
    )
    .post(
      '/api/auth/email/resend',
      accept({
        id: 'resendConfirmation',
        tag: 'Authentication',
        summary: 'Ask for another mail to confirm your e-mail',
        description:
          'It goes to the `pendingEmail`, if there is one. One a minute and five in an hour are sent to an ' +
          'address (429). The response is 409 if there is nothing to confirm, or if the service sends no mail.',
        role: 'session',
        responses: { 200: messageResponse('The mail is on its way') },
        faults: [409],
      }),
      async (c) => {
        await resendConfirmation(c.get('scope'))
        return c.json({ message: 'The mail is on its way' })
      },
    )
    .post(
      '/api/admin/users/confirm',
      accept({
        id: 'confirmUser',
        tag: 'Operation',
        summary: "Confirm a user's e-mail",
        description:
          'On your word, without a mail. If the user wants to change to this e-mail, the change takes effect. ' +
          'The response is 404 if nobody has or wants it, and 409 if several accounts do, or if another ' +
          'account has confirmed it.',
        role: 'instance',
        json: Voucher,
        example: { email: 'ada@example.com' },
        responses: { 200: { description: 'The user', schema: ConfirmedUserSchema } },
        faults: [404, 409],
      }),
      async (c) => c.json(await vouchForEmail(c.get('scope'), c.req.valid('json'))),
    )
}
