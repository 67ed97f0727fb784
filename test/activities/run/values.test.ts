import { expect, test } from 'vitest'
import { createRunValues } from '../../../activities/run/values.ts'
import { packOutput } from '../../../db/executions/records/outputs.ts'
import { createRuns } from '../../support/engine/runs.ts'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const runs = createRuns(service)

test('a stored value that could not be read once is read again by the next who asks', async () => {
  const executionId = await runs.addRun()
  const text = 'x'.repeat(50_000)
  const envelope = await packOutput(service.store, executionId, { text }, 2_000)
  let away = true
  const { db } = service.store
  // The connection is lost at the first read.
  const store = new Proxy(service.store, {
    get(target, key) {
      if (key !== 'db' || !away) return Reflect.get(target, key)
      away = false
      return new Proxy(db, {
        get() {
          throw Object.assign(new Error('Connection terminated unexpectedly'), { code: '08006' })
        },
      })
    },
  })
  const values = createRunValues({ store }, executionId)
  await expect(values.open(envelope)).rejects.toThrow('Connection terminated')
  expect(await values.open(envelope)).toEqual({ text })
  expect(values.held()).toBe(envelope.bytes)
})
