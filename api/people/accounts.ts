import { Hono } from 'hono'
import * as v from 'valibot'
import { Fault } from '../../db/fault.ts'
import { changePassword, readAccount, registerUser, updateAccount } from '../../db/people/accounts.ts'
import { MEMBER_ROLES } from '../../db/people/members.ts'
import { findPasswordFault, MAX_PASSWORD_BYTES } from '../../db/people/strength.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, documentAs } from '../http/fields.ts'
import { idSchema, messageResponse, timeSchema } from '../http/responses.ts'
import { readSession } from './session.ts'

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
const CreatedAccountSchema = v.pipe(v.object(personEntries), v.title('NewAccount'))
const AccountSchema = v.pipe(
  v.object({
    ...personEntries,
    instanceAdmin: v.pipe(v.boolean(), v.description('Whether the user may call /api/admin')),
    createdAt: timeSchema,
    teams: membershipsSchema,
  }),
  v.title('Account'),
)

function checkSignUp({ signUp, openByDefault, exposure }: ApiDeps): void {
  if (signUp !== 'open') throw new Fault('FORBIDDEN', 'Sign-up is closed on this service')
  const why = openByDefault?.signUp && exposure?.why()
  if (why) throw new Fault('FORBIDDEN', `Sign-up is closed since ${why}. To open it, set SIGNUP=open`)
}

/** The routes with which people create, read and change their own account. */
export function createAccountRoutes(deps: ApiDeps) {
  const { store } = deps
  return new Hono<AppEnv>()
    .post(
      '/api/auth/register',
      accept({
        id: 'register',
        tag: 'Authentication',
        summary: 'Create an account',
        description:
          'Only if sign-up is open: by the setting SIGNUP, or by default while only this machine can reach ' +
          'the service (else 403). The new account belongs to no team: create one, ' +
          'or have an ADMIN add you to theirs. Too many sign-ups from one address are throttled (429).',
        role: 'public',
        json: NewAccount,
        responses: { 201: { description: 'The account', schema: CreatedAccountSchema } },
        faults: [403, 409],
      }),
      async (c) => {
        checkSignUp(deps)
        return c.json(await registerUser(store, { ...c.req.valid('json'), ip: c.get('ip') }), 201)
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
          'Changes the fields that are given and keeps the rest. A new e-mail requires `currentPassword`.',
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
        example: { currentPassword: 'the old password', newPassword: 'correct horse battery staple' },
        responses: { 200: messageResponse('Password changed') },
      }),
      async (c) => {
        const scope = c.get('scope')
        const session = await readSession(store, c)
        // If the caller uses an SDK token, changePassword refuses, whatever the cookie says.
        await changePassword(scope, session?.id ?? '', c.req.valid('json'))
        c.get('log').info({ userId: scope.userId }, 'a password was changed')
        return c.json({ message: 'Password changed' })
      },
    )
}
