import { changePlan, listAllTeams, TEAM_PLANS } from '../../db/people/teams.ts'
import type { Config } from '../config.ts'
import { type CommandArguments, readChoice, readUuid } from './arguments.ts'
import { asOperator, createOperatorScope } from './operator.ts'

/** `team list`: prints one line per team. */
export async function runTeamList(config: Config): Promise<void> {
  const teams = await asOperator(config, listAllTeams)
  for (const { id, plan, memberCount, name } of teams) {
    console.log(`${id}  ${plan.padEnd(10)}  ${String(memberCount).padStart(5)}  ${JSON.stringify(name)}`)
  }
}

/** `team plan`: sets the team plan, which decides the rate limits. */
export async function runTeamPlan(config: Config, { words }: CommandArguments): Promise<void> {
  const teamId = readUuid(words[0]!)
  const plan = readChoice('the plan', words[1]!, TEAM_PLANS)
  await asOperator(config, (store) => changePlan(createOperatorScope(store, teamId), teamId, plan))
  console.log(`The team ${teamId} is now on the plan ${plan}`)
}
