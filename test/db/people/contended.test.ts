import { expect, test } from 'vitest'
import { openDatabase } from '../../../db/connection.ts'
import { updateTeam } from '../../../db/people/teams.ts'
import { serviceScope } from '../../../db/scope.ts'
import { createVariable } from '../../../db/variables/variables.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, verdicts, entries } = makeChains(service)

test('many who change the rights of one team at once, in two processes, all get their turn, and so do others', async () => {
  const teamId = await team(1)
  const second = openDatabase(service.database.url, { max: 10, name: 'second' })
  try {
    const stores = [service.store, { ...service.store, db: second.db }]
    const actor = { kind: 'SYSTEM', id: null, name: 'writer' } as const
    const scopes = stores.map((store) => serviceScope(store, actor, [[teamId, 'ADMIN']]))
    const rename = async (writer: number) => {
      for (let i = 0; i < 15; i++) await updateTeam(scopes[writer % 2]!, teamId, { name: `${writer} ${i}` })
    }
    const others = async (writer: number) => {
      for (let i = 0; i < 10; i++)
        await createVariable(scopes[writer % 2]!, { teamId, key: `V${writer}_${i}`, value: i })
    }
    const all = [...Array(16).keys()].map(rename)
    await Promise.all([...all, others(0), others(1)])
  } finally {
    await second.close()
  }
  expect(await verdicts(teamId)).toEqual([])
  const actions = (await entries(teamId)).map(({ action }) => action)
  expect(actions.filter((action) => action === 'TEAM_UPDATED')).toHaveLength(16 * 15)
  expect(actions.filter((action) => action === 'VARIABLE_CREATED')).toHaveLength(20)
}, 120_000)
