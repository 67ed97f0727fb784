import { Hono } from 'hono'
import * as v from 'valibot'
import { changePassword, readAccount, registerUser, updateAccount } from '../db/accounts.ts'
import { Fault } from '../db/fault.ts'
import { findPasswordFault, MAX_PASSWORD_BYTES } from '../db/strength.ts'
import { accept, shown, text } from './accept.ts'
import { id, said, time } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { MEMBER_ROLES } from './roles.ts'
import { readSession } from './session.ts'

const personName = v.pipe(text(100), v.trim(), v.nonEmpty('must not be empty'), v.examples(['Ada']))

/** An e-mail address as people have them: with a dot in its domain, and no quoting. */
export const email = v.pipe(
  text(320),
  v.trim(),
  v.rfcEmail('must be an e-mail address'),
  v.regex(/@.+\.[^.]{2,}$/, 'must be an e-mail address'),
  shown<string>({ type: 'string', format: 'email', maxLength: 320 }),
  v.examples(['ada@example.com']),
)

/** One that is given to prove who asks. */
export const password = v.pipe(
  v.string('must be a text'),
  v.minLength(1, 'must not be empty'),
  v.maxBytes(MAX_PASSWORD_BYTES, `must have at most ${MAX_PASSWORD_BYTES} bytes`),
)

const newPassword = v.pipe(
  v.string('must be a text'),
  shown<string>({ type: 'string', format: 'password', minLength: 12, maxLength: MAX_PASSWORD_BYTES }),
  v.rawCheck(({ dataset, addIssue }) => {
    const message = dataset.typed && findPasswordFault(dataset.value)
    if (message) addIssue({ message })
  }),
  v.description('At least 12 characters, and none of those that are tried first. No other rules.'),
  v.examples(['correct horse battery staple']),
)

const NewAccount = v.object({
  firstName: personName,
  lastName: v.pipe(personName, v.examples(['Byron'])),
  email,
  password: newPassword,
})
const AccountPatch = v.object({
  firstName: v.optional(personName),
  lastName: v.optional(personName),
  email: v.optional(email),
  currentPassword: v.optional(v.pipe(password, v.description('Needed for another e-mail'))),
})
const Passwords = v.object({ currentPassword: password, newPassword })

/** A person as they are answered, and the teams they are in. */
export const person = {
  id,
  firstName: v.pipe(v.string(), v.examples(['Ada'])),
  lastName: v.pipe(v.string(), v.examples(['Byron'])),
  email: v.pipe(v.string(), v.examples(['ada@example.com'])),
}
export const memberships = v.array(
  v.object({
    teamId: id,
    teamName: v.pipe(v.string(), v.examples(['Default'])),
    role: v.picklist(MEMBER_ROLES),
  }),
)
const NewAccountAnswer = v.pipe(v.object(person), v.title('NewAccount'))
const AccountAnswer = v.pipe(
  v.object({
    ...person,
    instanceAdmin: v.pipe(v.boolean(), v.description('Whether they may use /api/admin')),
    createdAt: time,
    teams: memberships,
  }),
  v.title('Account'),
)

/** People's own accounts: making one, reading it, changing it. */
export function createAccountRoutes(deps: ApiDeps) {
  const { store } = deps
  return new Hono<AppEnv>()
    .post(
      '/api/auth/register',
      accept({
        id: 'register',
        tag: 'Authentication',
        summary: 'Make an account',
        description:
          'Where SIGNUP is open. It belongs to no team: make one, or be added to one. Throttled by address (429).',
        role: 'public',
        json: NewAccount,
        responses: { 201: { description: 'The account', schema: NewAccountAnswer } },
        faults: [403, 409],
      }),
      async (c) => {
        if (deps.signUp !== 'open') throw new Fault('FORBIDDEN', 'Accounts are made by the operator here')
        return c.json(await registerUser(store, { ...c.req.valid('json'), ip: c.get('ip') }), 201)
      },
    )
    .get(
      '/api/auth/me',
      accept({
        id: 'readAccount',
        tag: 'Authentication',
        summary: 'Read the own account',
        role: 'session',
        responses: { 200: { description: 'The account, with its teams', schema: AccountAnswer } },
      }),
      async (c) => c.json(await readAccount(c.get('scope'))),
    )
    .put(
      '/api/auth/me',
      accept({
        id: 'updateAccount',
        tag: 'Authentication',
        summary: 'Change the own account',
        role: 'session',
        json: AccountPatch,
        example: { firstName: 'Ada', lastName: 'Lovelace' },
        responses: { 200: { description: 'The account as it is now', schema: AccountAnswer } },
        faults: [409],
      }),
      async (c) => c.json(await updateAccount(c.get('scope'), c.req.valid('json'))),
    )
    .post(
      '/api/auth/password',
      accept({
        id: 'changePassword',
        tag: 'Authentication',
        summary: 'Change the own password',
        description: 'Ends all other sessions. Wrong current passwords are throttled as at sign-in (429).',
        role: 'session',
        json: Passwords,
        example: { currentPassword: 'the old one', newPassword: 'correct horse battery staple' },
        responses: { 200: said('Password changed') },
      }),
      async (c) => {
        const scope = c.get('scope')
        const session = await readSession(store, c)
        // With an SDK token the cookie counts for nothing, and the verb refuses.
        await changePassword(scope, session?.id ?? '', c.req.valid('json'))
        c.get('log').info({ userId: scope.userId }, 'a password was changed')
        return c.json({ message: 'Password changed' })
      },
    )
}
