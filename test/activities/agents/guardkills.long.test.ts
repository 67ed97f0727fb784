import { Client, Connection } from '@temporalio/client'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDataConverter } from '../../../activities/temporal/codec.ts'
import { openSealer } from '../../../activities/temporal/sealer.ts'
import { openDatabase } from '../../../db/connection.ts'
import { readKeys } from '../../../worker/keys.ts'
import { CLIENT_OPTIONS } from '../../../worker/temporal.ts'
import { findInHistory, findInStore } from '../../support/agents/stored.ts'
import { type Installation, startInstallation } from '../../support/engine/installation.ts'
import { startJudge, verdict } from '../../support/servers/models/judge.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'

let host: Installation
let vendor: Awaited<ReturnType<typeof startOpenAi>>
let judge: Awaited<ReturnType<typeof startJudge>>
beforeAll(async () => {
  host = await startInstallation()
  vendor = await startOpenAi({ text: '' })
  judge = await startJudge()
}, 240_000)
afterAll(async () => {
  await host?.stop()
  await vendor?.stop()
  await judge?.stop()
}, 60_000)

const keepCredential = async (url: string) => {
  const data = { baseUrl: url, apiKey: 'key-of-the-vendor' }
  const body = { teamId: host.teamId, name: url, type: 'OPENAI_COMPATIBLE', data }
  return (await host.ask<{ id: string }>('POST', '/api/credentials', body)).id
}

/** Looks for a text in the installation's tables, opened blobs, opened history, and logs. */
async function search(id: string, texts: string[]): Promise<Record<string, string[]>> {
  const { databaseUrl, temporalAddress } = host.holder().addresses
  const { db, close } = openDatabase(databaseUrl, { max: 1, name: 'search' })
  const connection = await Connection.connect({ ...CLIENT_OPTIONS, address: temporalAddress })
  try {
    const store = { db, keys: readKeys({ keys: undefined, dataDir: host.dataDir }, false) }
    const log = pino({ level: 'silent' })
    const sealer = await openSealer({ store, binds: true, log, watches: false })
    const client = new Client({ connection, dataConverter: createDataConverter(sealer) })
    const found: Record<string, string[]> = {}
    for (const text of texts) {
      const places = await findInStore(store, id, text)
      if ((await findInHistory({ client, sealer }, id, text)).length > 0) places.push('history')
      for (const name of ['postgres', 'temporal', 'service'] as const)
        if (host.log(name).includes(text)) places.push(`log of ${name}`)
      found[text] = places
    }
    return found
  } finally {
    await connection.close()
    await close()
  }
}

test('a worker that is killed between an answer and its check has left nothing of it: the model is asked again', {
  tags: 'long',
  timeout: 400_000,
}, async () => {
  const prices = [{ model: '*', inputPerMillion: 2, outputPerMillion: 2 }]
  await host.ask('PUT', `/api/teams/${host.teamId}/model-prices`, { prices })
  const settings = {
    credentialId: await keepCredential(judge.url),
    ...{ model: 'judge', monthlyCostCap: 10, checks: [] },
  }
  await host.ask('PUT', `/api/guardrails/settings?teamId=${host.teamId}`, settings)

  const [lost, blocked] = ['a plum of the first answer', 'a pear of the second answer']
  vendor.say((_, number) => ({ text: number === 0 ? lost : blocked }))
  const asked = Promise.withResolvers<void>()
  const isKilled = Promise.withResolvers<void>()
  judge.say(async (call, number) => {
    if (number === 0) {
      asked.resolve()
      await isKilled.promise
    }
    return verdict(call, true)
  })
  const guardrails = { output: { filterContent: true, askModel: true }, refusal: 'No.' }
  const config = {
    ...{ credentialId: await keepCredential(vendor.url), model: 'gpt-test' },
    ...{ instructions: 'Help.', prompt: 'Go.', guardrails },
  }
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'agent', type: 'AI_AGENT', config },
      ],
      edges: [{ source: 'start', target: 'agent' }],
    }),
  )
  await asked.promise
  const was = host.kill('service')
  isKilled.resolve()
  await host.recovered('service', was, 120_000)
  const run = await host.ended(id, 180_000)
  expect(run.status, JSON.stringify(run, null, 1).slice(0, 3_000)).toBe('SUCCESS')
  const agent = run.nodeExecutions.find(({ nodeId }) => nodeId === 'agent')!
  expect(agent.outputData).toEqual({ text: 'No.', blocked: true, violations: ['CONTENT_FILTER'], steps: 1 })
  expect(vendor.calls).toHaveLength(2)
  const found = await search(id, [lost, blocked, 'No.'])
  expect(found).toMatchObject({ [lost]: [], [blocked]: [] })
  expect(found['No.']).toContain('history')
})
