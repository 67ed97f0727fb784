import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import * as v from 'valibot'
import { setPassword } from '../../db/people/accounts.ts'
import { vouchForEmail } from '../../db/people/emails.ts'
import { addMember } from '../../db/people/members.ts'
import { readTeam } from '../../db/people/teams.ts'
import { createUser } from '../../db/people/users.ts'
import type { Config } from '../config.ts'
import { type CommandArguments, readChoice, readOption, readUuid, UsageError } from './arguments.ts'
import { asOperator, createOperatorScope } from './operator.ts'

/** `user add`: creates an account, even if SIGNUP is closed, and adds it to the team of `--team`. */
export async function runUserAdd(config: Config, args: CommandArguments): Promise<void> {
  const { words, options } = args
  const email = words[0]!
  if (!v.is(v.pipe(v.string(), v.email()), email)) throw new UsageError(`${email} is not an e-mail address`)
  const inTeam = options.team !== undefined || options.role !== undefined
  const teamId = inTeam ? readUuid(readOption(args, 'team')) : null
  const role = inTeam
    ? readChoice('--role', readOption(args, 'role'), ['ADMIN', 'BUILDER', 'OPERATOR'])
    : 'OPERATOR'
  const firstName = String(options['first-name'] ?? email.split('@')[0])
  const lastName = String(options['last-name'] ?? '')
  const password = await readPassword(args)
  await asOperator(config, async (store) => {
    const team = teamId ? createOperatorScope(store, teamId) : null
    // Throws if there is no such team, before the account is created.
    if (team) await readTeam(team, teamId!)
    const instanceAdmin = options['instance-admin'] === true
    const user = await createUser(
      createOperatorScope(store),
      { email, firstName, lastName, ...password },
      { instanceAdmin },
    )
    if (team) await addMember(team, teamId!, { email, role })
    console.log(`Created ${user.email}: ${user.id}`)
    showPassword(password)
  })
}

/** `user passwd`: sets a new password for a person who has lost theirs. */
export async function runUserPasswd(config: Config, args: CommandArguments): Promise<void> {
  const password = await readPassword(args)
  await asOperator(config, async (store) => {
    const user = await setPassword(createOperatorScope(store), args.words[0]!, password.password)
    console.log(`${user.email} has a new password, and all their sessions have ended`)
    showPassword(password)
  })
}

/** `user confirm`: confirms an e-mail address that its user has, or wants to change to. */
export async function runUserConfirm(config: Config, args: CommandArguments): Promise<void> {
  const userId = args.options.user === undefined ? undefined : readUuid(readOption(args, 'user'))
  await asOperator(config, async (store) => {
    const user = await vouchForEmail(createOperatorScope(store), { email: args.words[0]!, userId })
    console.log(`${user.email} is confirmed: ${user.id}`)
  })
}

type Password = { password: string; madeUp: boolean }

async function readPassword({ options }: CommandArguments): Promise<Password> {
  if (options['password-stdin'] !== true)
    return { password: randomBytes(15).toString('base64url'), madeUp: true }
  return { password: (await text(process.stdin)).replace(/\r?\n$/, ''), madeUp: false }
}

function showPassword({ password, madeUp }: Password): void {
  if (madeUp) console.log(`Password: ${password} (shown only once)`)
}
