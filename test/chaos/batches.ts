import { setTimeout as sleep } from 'node:timers/promises'
import { startInstallation } from '../support/engine/installation.ts'
import { startOpenAi } from '../support/servers/models/openai.ts'
import { repeatAsk } from './ends.ts'

// A batch whose service is killed with SIGKILL again and again: `npm run chaos -- batches <cases> <kills>`. Each case must
// be judged once in the results; it prints how often the judge was asked besides.

type Batch = { id: string; status: string; totalCases: number; completedCases: number; passedCases: number }
type Result = { testCaseIndex: number; status: string; relevanceScore: number | null }

const [, , , cases = '2000', kills = '10'] = process.argv
const total = Number(cases)
const PACE_MS = 20

const asked = new Map<number, number>()
const judge = await startOpenAi(async ({ body }) => {
  const number = Number(/case-(\d+)-/.exec(JSON.stringify(body.messages))?.[1])
  asked.set(number, (asked.get(number) ?? 0) + 1)
  await sleep(PACE_MS)
  return { text: JSON.stringify({ explanation: 'As asked', score: 1 + (number % 5) }) }
})
const host = await startInstallation({ RATE_LIMITS: 'off', LOG_LEVEL: 'warn', EGRESS_ALLOW: '127.0.0.0/8' })
let failed = true
try {
  failed = !(await run())
} finally {
  await host.stop()
  await judge.stop()
}
process.exit(failed ? 1 : 0)

async function run(): Promise<boolean> {
  const { ask, teamId } = host
  const data = { apiKey: 'k', baseUrl: judge.url }
  const kept = { teamId, name: 'Judge', type: 'OPENAI_COMPATIBLE', data }
  const { id: judgeCredentialId } = await ask<{ id: string }>('POST', '/api/credentials', kept)
  const path = `/api/workflows/${await host.create({ nodes: [], edges: [] })}/batch-eval`
  const testCases = Array.from({ length: total }, (_, at) => ({
    input: { of: `case-${at}-` },
    output: `A ${at}`,
  }))
  const chosen = {
    judgeProvider: 'custom',
    judgeModel: 'm',
    judgeCredentialId,
    evalDimensions: ['relevance'],
  }
  const request = { ...chosen, testCases, concurrency: 10 }
  const text = await repeatAsk(() => host.post(path, request, { 'idempotency-key': 'chaos' }), [200])
  const { id } = JSON.parse(text) as Batch
  const read = () => ask<Batch>('GET', `${path}/${id}`)
  for (let kill = 1; kill <= Number(kills); kill++) {
    const wanted = (total * kill) / (Number(kills) + 1)
    while ((await read()).completedCases < wanted) await sleep(50)
    const was = host.kill('service')
    console.log(`kill ${kill}: ${asked.size} cases were asked about`)
    await host.recovered('service', was)
  }
  let run = await read()
  for (; run.status === 'RUNNING'; run = await read()) await sleep(250)
  const results = await ask<Result[]>('GET', `${path}/${id}/results`)
  const faults = results.filter(
    ({ testCaseIndex: at, status, relevanceScore }) =>
      status !== 'COMPLETED' || relevanceScore !== 1 + (at % 5),
  )
  const asks = [...asked.values()].reduce((sum, n) => sum + n, 0)
  console.log(`${run.status}: ${run.completedCases} of ${run.totalCases} cases, ${results.length} results`)
  console.log(
    `${asks} asks, ${asks - total} beyond one for each case; ${faults.length} cases are not as they should be`,
  )
  return (
    run.status === 'COMPLETED' &&
    run.completedCases === total &&
    results.length === total &&
    faults.length === 0
  )
}
