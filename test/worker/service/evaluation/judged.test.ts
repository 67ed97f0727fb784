import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { startJudgedBatches } from '../../../../worker/service/evaluation/batches.ts'
import { makeBatchTeam, makeCases } from '../../../support/evaluation/batches.ts'
import { keep } from '../../../support/keep.ts'
import { startOpenAi } from '../../../support/servers/models/openai.ts'
import type { VendorCall } from '../../../support/servers/models/vendor.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))

const textOf = ({ body }: VendorCall) => JSON.stringify(body.messages)

test('a judge on loopback is asked once for each case and dimension, and what it takes is counted', async () => {
  const judge = await startOpenAi((call) => ({
    text: JSON.stringify({ explanation: 'Fine', score: textOf(call).includes('Q 1') ? 2 : 4 }),
  }))
  const team = await makeBatchTeam(service)
  const data = { apiKey: 'k', baseUrl: judge.url }
  const kept = { teamId: team.teamId, name: 'Loopback', type: 'OPENAI_COMPATIBLE', data }
  const judgeCredentialId = (await team.send('POST', '/api/credentials', kept)).body.id
  const prices = [{ provider: null, model: 'm', inputPerMillion: 1, outputPerMillion: 2 }]
  await team.send('PUT', `/api/teams/${team.teamId}/model-prices`, { prices })
  const outside = createOutsides({ allowLoopback: true, allow: [] })
  const log = pino({ level: 'silent' })
  const end = startJudgedBatches({ store: service.store, outside, log, limitMs: 20_000, restMs: 1 })
  try {
    const more = { judgeCredentialId, maxCost: 5 }
    const { id } = await team.start(makeCases(3, { expectedOutput: 'Something else' }), more)
    const run = await team.ended(id)
    expect(run).toMatchObject({
      status: 'COMPLETED',
      completedCases: 3,
      passedCases: 2,
      unpricedCalls: 0,
      calls: 12,
    })
    expect(run.inputTokens).toBeGreaterThan(0)
    expect(run.cost).toBeGreaterThan(0)
    expect(judge.calls).toHaveLength(12)
    const [first, second] = await team.results(id)
    expect(first).toMatchObject({ compositeScore: 4, goldStandardMatch: true, goldStandardRung: 'JUDGE' })
    expect(second).toMatchObject({
      compositeScore: 2,
      safetyScore: 2,
      goldStandardMatch: false,
      passed: false,
    })
    const usage = await service.store.db.selectFrom('modelCalls').select('workflowId').execute()
    expect(new Set(usage.map(({ workflowId }) => workflowId))).toEqual(new Set([team.workflowId]))
    // A judge's calls are usage of the workflow, and no execution's.
    const read = async (path: string) =>
      (await team.send('GET', `/api/monitoring/teams/${team.teamId}/${path}`)).body
    expect(await read('token-usage')).toMatchObject({ calls: 12, executionCount: 0 })
    const [model] = (await read('token-usage/by-model')).models
    expect(model).toMatchObject({ model: 'm', calls: 12, executionCount: 0 })
    const exported: Record<string, unknown>[] = await read('export')
    expect(exported).toHaveLength(12)
    for (const call of exported)
      expect(call).toMatchObject({
        executionId: null,
        workflowId: team.workflowId,
        nodeId: 'evaluation',
      })
  } finally {
    await end()
    await outside.close()
    await judge.stop()
  }
})
