import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import * as v from 'valibot'
import { setPassword } from '../db/accounts.ts'
import { addMember } from '../db/members.ts'
import { readTeam } from '../db/teams.ts'
import { createUser } from '../db/users.ts'
import type { Config } from './config.ts'
import { asOperator, choose, type Given, openTeam, readId, readOption, UsageError } from './operator.ts'

/** `user add`: an account, also where SIGNUP is closed; in a team if one is named. */
export async function addUser(config: Config, given: Given): Promise<void> {
  const { words, options } = given
  const email = words[0]!
  if (!v.is(v.pipe(v.string(), v.email()), email)) throw new UsageError(`${email} is not an e-mail address`)
  const inTeam = options.team !== undefined || options.role !== undefined
  const teamId = inTeam ? readId(readOption(given, 'team')) : null
  const role = inTeam ? choose(readOption(given, 'role'), ['ADMIN', 'BUILDER', 'OPERATOR']) : 'OPERATOR'
  const firstName = String(options['first-name'] ?? email.split('@')[0])
  const lastName = String(options['last-name'] ?? '')
  const password = await readPassword(given)
  await asOperator(config, async (store) => {
    const team = teamId ? openTeam(store, teamId) : null
    // Without the team nobody is made.
    if (team) await readTeam(team, teamId!)
    const instanceAdmin = options['instance-admin'] === true
    const user = await createUser(store, { email, firstName, lastName, ...password }, { instanceAdmin })
    if (team) await addMember(team, teamId!, { email, role })
    console.log(`Made ${user.email}: ${user.id}`)
    showPassword(password)
  })
}

/** `user passwd`: for whoever has lost theirs. */
export async function replacePassword(config: Config, given: Given): Promise<void> {
  const password = await readPassword(given)
  await asOperator(config, async (store) => {
    const user = await setPassword(store, given.words[0]!, password.password)
    console.log(`${user.email} has a new password, and all their sessions have ended`)
    showPassword(password)
  })
}

type Password = { password: string; madeUp: boolean }

async function readPassword({ options }: Given): Promise<Password> {
  if (options['password-stdin'] !== true)
    return { password: randomBytes(15).toString('base64url'), madeUp: true }
  return { password: (await text(process.stdin)).replace(/\r?\n$/, ''), madeUp: false }
}

function showPassword({ password, madeUp }: Password): void {
  if (madeUp) console.log(`Password: ${password} (shown this once)`)
}
