import { changePlan, listAllTeams, PLANS } from '../db/teams.ts'
import type { Config } from './config.ts'
import { asOperator, choose, type Given, openTeam, readId } from './operator.ts'

/** `team list`: one line a team. */
export async function printTeams(config: Config): Promise<void> {
  const teams = await asOperator(config, listAllTeams)
  for (const { id, plan, memberCount, name } of teams) {
    console.log(`${id}  ${plan.padEnd(10)}  ${String(memberCount).padStart(5)}  ${JSON.stringify(name)}`)
  }
}

/** `team plan`: the plan decides the rate limit. */
export async function setPlan(config: Config, { words }: Given): Promise<void> {
  const teamId = readId(words[0]!)
  const plan = choose(words[1]!, PLANS)
  await asOperator(config, (store) => changePlan(openTeam(store, teamId), teamId, plan))
  console.log(`The team ${teamId} is on the plan ${plan}`)
}
