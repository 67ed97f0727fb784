import { Hono, type MiddlewareHandler } from 'hono'
import * as v from 'valibot'
import { Fault } from '../../db/fault.ts'
import { changePassword, readAccount, registerUser, updateAccount } from '../../db/people/accounts.ts'
import { rememberPerson } from '../../db/people/devices.ts'
import { MEMBER_ROLES } from '../../db/people/members.ts'
import { findPasswordFault, MAX_PASSWORD_BYTES } from '../../db/people/strength.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept, SMALL_BODY } from '../http/accept.ts'
import { boundedString, documentAs } from '../http/fields.ts'
import { idSchema, messageResponse, timeSchema } from '../http/responses.ts'
import { keepDevice, readDevice } from './device.ts'
import { readOrigin } from './session.ts'

const personName = v.pipe(boundedString(100), v.trim(), v.nonEmpty('must not be empty'), v.examples(['Ada']))

/** An e-mail address. Its domain must have a dot, and its local part must not be quoted. */
export const emailField = v.pipe(
  boundedString(320),
  v.trim(),
  v.rfcEmail('must be an e-mail address'),
  v.regex(/@.+\.[^.]{2,}$/, 'must be an e-mail address'),
  documentAs<string>({ type: 'string', format: 'email', maxLength: 320 }),
  v.examples(['ada@example.com']),
)

/** A present password, to sign in or to confirm a change. The rules for new passwords do not apply to it. */
export const passwordField = v.pipe(
  v.string('must be a string'),
  v.minLength(1, 'must not be empty'),
  v.maxBytes(MAX_PASSWORD_BYTES, `must have at most ${MAX_PASSWORD_BYTES} bytes`),
)

const newPassword = v.pipe(
  v.string('must be a string'),
  documentAs<string>({ type: 'string', format: 'password', minLength: 12, maxLength: MAX_PASSWORD_BYTES }),
  v.rawCheck(({ dataset, addIssue }) => {
    const message = dataset.typed && findPasswordFault(dataset.value)
    if (message) addIssue({ message })
  }),
  v.description('At least 12 characters, and not easy to guess (leaked, repetitive or personal)'),
  v.examples(['correct horse battery staple']),
)

const NewAccount = v.object({
  firstName: personName,
  lastName: v.pipe(personName, v.examples(['Byron'])),
  email: emailField,
  password: newPassword,
})
const AccountPatch = v.object({
  firstName: v.optional(personName),
  lastName: v.optional(personName),
  email: v.optional(emailField),
  pendingEmail: v.optional(
    v.pipe(
      v.nullable(v.string('must be a string or null')),
      v.description('null withdraws the change to another e-mail. Any other value is ignored'),
    ),
  ),
  currentPassword: v.optional(v.pipe(passwordField, v.description('Required to change the e-mail'))),
})
const Passwords = v.object({ currentPassword: passwordField, newPassword })

/** The fields of a person, in responses. */
export const personEntries = {
  id: idSchema,
  firstName: v.pipe(v.string(), v.examples(['Ada'])),
  lastName: v.pipe(v.string(), v.examples(['Byron'])),
  email: v.pipe(v.string(), v.examples(['ada@example.com'])),
}

export const membershipsSchema = v.array(
  v.object({
    teamId: idSchema,
    teamName: v.pipe(v.string(), v.examples(['Default'])),
    role: v.picklist(MEMBER_ROLES),
  }),
)

/** The facts about a person's e-mail, in responses. */
export const emailEntries = {
  emailConfirmed: v.pipe(
    v.boolean(),
    v.description('Whether the e-mail is confirmed. Without that the account can be in no team of others'),
  ),
  pendingEmail: v.pipe(
    v.nullable(v.string()),
    v.description('The e-mail that takes the place of `email` once it is confirmed'),
  ),
}

const CreatedAccountSchema = v.pipe(v.object(personEntries), v.title('NewAccount'))
/** The caller's own account, in responses. */
export const AccountSchema = v.pipe(
  v.object({
    ...personEntries,
    ...emailEntries,
    instanceAdmin: v.pipe(v.boolean(), v.description('Whether the user may call /api/admin')),
    createdAt: timeSchema,
    teams: membershipsSchema,
  }),
  v.title('Account'),
)

/** Runs before `accept`, so that no body is read, and no password estimated, while sign-up is closed. */
function demandSignUp({ signUp, openByDefault, exposure }: ApiDeps): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const why = openByDefault?.signUp && exposure?.why()
    if (signUp !== 'open' || why) {
      await c.get('countRequest')()
      if (!why) throw new Fault('FORBIDDEN', 'Sign-up is closed on this service')
      throw new Fault('FORBIDDEN', `Sign-up is closed since ${why}. To open it, set SIGNUP=open`)
    }
    await next()
  }
}

/** Says the same to those whose e-mail has an account already: its owner learns that by mail. */
const MAILED = 'Look into your mailbox: a mail with what to do next is on its way'

/** The routes with which people create, read and change their own account. */
export function createAccountRoutes(deps: ApiDeps) {
  const { store } = deps
  return new Hono<AppEnv>()
    .post(
      '/api/auth/register',
      demandSignUp(deps),
      accept({
        id: 'register',
        tag: 'Authentication',
        summary: 'Create an account',
        description:
          'Only if sign-up is open: by the setting SIGNUP, or by default while only this machine can reach ' +
          'the service (else 403). The new account belongs to no team: create one, ' +
          'or have an ADMIN add you to theirs once the e-mail is confirmed. If the service sends mail, the answer is a ' +
          '202, whether or not the e-mail has an account: a link is mailed to it, which opens the account at the first ' +
          'sign-in (`emailToken`), or its owner is told. Otherwise it is a 201, or a 409 if the e-mail has an account. ' +
          'Too many sign-ups from one address are throttled (429).',
        role: 'public',
        json: NewAccount,
        ...SMALL_BODY,
        responses: {
          201: { description: 'The account, if the service sends no mail', schema: CreatedAccountSchema },
          202: { ...messageResponse(MAILED), description: 'A mail is on its way, if the service sends some' },
        },
        faults: [403, 409],
      }),
      async (c) => {
        const input = { ...c.req.valid('json'), ip: c.get('ip') }
        const user = await registerUser(store, input, readOrigin(c))
        return user ? c.json(user, 201) : c.json({ message: MAILED }, 202)
      },
    )
    .get(
      '/api/auth/me',
      accept({
        id: 'readAccount',
        tag: 'Authentication',
        summary: 'Read your own account',
        role: 'session',
        responses: { 200: { description: 'The account with its teams', schema: AccountSchema } },
      }),
      async (c) => c.json(await readAccount(c.get('scope'))),
    )
    .put(
      '/api/auth/me',
      accept({
        id: 'updateAccount',
        tag: 'Authentication',
        summary: 'Change your own account',
        description:
          'Changes the fields that are given and keeps the rest. A new e-mail requires `currentPassword`. It ' +
          'is the `pendingEmail` until it is confirmed; then it takes the place of the old one.',
        role: 'session',
        json: AccountPatch,
        example: { firstName: 'Ada', lastName: 'Lovelace' },
        responses: { 200: { description: 'The changed account', schema: AccountSchema } },
        faults: [409],
      }),
      async (c) => c.json(await updateAccount(c.get('scope'), c.req.valid('json'))),
    )
    .post(
      '/api/auth/password',
      accept({
        id: 'changePassword',
        tag: 'Authentication',
        summary: 'Change your own password',
        description:
          'Ends all your other sessions. Wrong current passwords are throttled as at sign-in (429).',
        role: 'session',
        json: Passwords,
        ...SMALL_BODY,
        example: { currentPassword: 'the old password', newPassword: 'correct horse battery staple' },
        responses: { 200: messageResponse('Password changed') },
      }),
      async (c) => {
        const scope = c.get('scope')
        const person = await changePassword(scope, c.req.valid('json'))
        await keepDevice(deps, c, rememberPerson(await readDevice(store.keys, c), person))
        c.get('log').info({ userId: scope.userId }, 'a password was changed')
        return c.json({ message: 'Password changed' })
      },
    )
}
