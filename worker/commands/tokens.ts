import { Fault } from '../../db/fault.ts'
import { findUser } from '../../db/people/accounts.ts'
import { listMembers } from '../../db/people/members.ts'
import { listAllTeams, readTeam } from '../../db/people/teams.ts'
import { createToken } from '../../db/people/tokens.ts'
import type { Scope, Store } from '../../db/scope.ts'
import type { Config } from '../config.ts'
import { type CommandArguments, readChoice, readOption, readUuid, UsageError } from './arguments.ts'
import { asOperator, createOperatorScope } from './operator.ts'

/**
 * `token create`: prints only the token on stdout, for `TOKEN=$(npx perdure token create)`. The default team
 * is the oldest one, the default role BUILDER; if a default is used, stderr says so.
 */
export async function runTokenCreate(config: Config, args: CommandArguments): Promise<void> {
  const { words, options } = args
  const wanted = words[0] === undefined ? undefined : readUuid(words[0])
  const name = options.name === undefined ? 'cli' : readOption(args, 'name')
  if (name.length > 100) throw new UsageError('--name must have at most 100 characters')
  const roleText = options.role === undefined ? 'BUILDER' : readOption(args, 'role')
  const role = readChoice('--role', roleText, ['ADMIN', 'BUILDER', 'OPERATOR', 'VIEWER'])
  const expiresAt = options.expires === undefined ? null : new Date(readOption(args, 'expires'))
  if (expiresAt && Number.isNaN(expiresAt.getTime()))
    throw new UsageError('--expires must be an ISO 8601 time, such as 2027-01-31T12:00:00Z')
  const made = await asOperator(config, async (store) => {
    const teamId = wanted ?? (await findFirstTeam(store))
    const team = createOperatorScope(store, teamId)
    const { name: teamName } = await readTeam(team, teamId)
    const maker = await findMaker(team, teamId, args)
    const token = await createToken(createOperatorScope(store, teamId, maker), teamId, {
      name,
      role,
      expiresAt,
    })
    return { ...token, teamName }
  })
  if (!wanted || options.role === undefined)
    console.error(`An SDK token of the team ${JSON.stringify(made.teamName)}, role ${role}, shown only once:`)
  console.log(made.token)
}

async function findFirstTeam(store: Store): Promise<string> {
  const [first] = await listAllTeams(store)
  if (!first)
    throw new Fault('NOT_FOUND', 'There is no team yet: `npx perdure migrate` creates the first one')
  return first.id
}

/** Finds the user that the token belongs to: it can do no more than that user can. */
async function findMaker(team: Scope, teamId: string, args: CommandArguments): Promise<string> {
  const members = await listMembers(team, teamId)
  if (args.options.user === undefined) return members.find(({ role }) => role === 'ADMIN')!.userId
  const { id, email } = await findUser(team.store, readOption(args, 'user'))
  if (!members.some(({ userId }) => userId === id))
    throw new UsageError(`${email} is not a member of the team`)
  return id
}
