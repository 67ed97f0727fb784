import { findUser } from '../db/accounts.ts'
import { listMembers } from '../db/members.ts'
import type { Scope } from '../db/scope.ts'
import { readTeam } from '../db/teams.ts'
import { createToken } from '../db/tokens.ts'
import type { Config } from './config.ts'
import { asOperator, choose, type Given, openTeam, readId, readOption, UsageError } from './operator.ts'

/** `token create`: prints the token and nothing else, for `TOKEN=$(npx perdure token create ...)`. */
export async function makeToken(config: Config, given: Given): Promise<void> {
  const teamId = readId(given.words[0]!)
  const name = readOption(given, 'name')
  if (name.length > 100) throw new UsageError('--name must have at most 100 characters')
  const role = choose(readOption(given, 'role'), ['ADMIN', 'BUILDER', 'OPERATOR', 'VIEWER'])
  const expiresAt = given.options.expires === undefined ? null : new Date(readOption(given, 'expires'))
  if (expiresAt && Number.isNaN(expiresAt.getTime()))
    throw new UsageError('--expires must be an ISO 8601 time')
  const made = await asOperator(config, async (store) => {
    const team = openTeam(store, teamId)
    await readTeam(team, teamId)
    const maker = await findMaker(team, teamId, given)
    return createToken(openTeam(store, teamId, maker), teamId, { name, role, expiresAt })
  })
  console.log(made.token)
}

/** Whose token it is: it can do no more than they can. */
async function findMaker(team: Scope, teamId: string, given: Given): Promise<string> {
  const members = await listMembers(team, teamId)
  if (given.options.user === undefined) return members.find(({ role }) => role === 'ADMIN')!.userId
  const { id, email } = await findUser(team.store, readOption(given, 'user'))
  if (!members.some(({ userId }) => userId === id)) throw new UsageError(`${email} is no member of the team`)
  return id
}
