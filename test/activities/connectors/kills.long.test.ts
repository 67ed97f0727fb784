import { expect, test } from 'vitest'
import { createCalendar } from '../../support/connectors/calendar.ts'
import { createDrive } from '../../support/connectors/drive.ts'
import { createRepository } from '../../support/connectors/github.ts'
import { type Asked, type Reply, startVendor } from '../../support/connectors/vendor.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf } from '../../support/running.ts'

const host = await keep(startInstallation())

/** A vendor that does the first request for which `holds` is true, and never answers it. */
async function startHanging(holds: (asked: Asked) => boolean, answer: (asked: Asked) => Reply) {
  let hung = false
  const arrived = Promise.withResolvers<void>()
  const vendor = await startVendor(host, (asked) => {
    const reply = answer(asked)
    if (hung || !holds(asked)) return reply
    hung = true
    arrived.resolve()
    return new Promise<Reply>(() => {})
  })
  await keep(Promise.resolve(vendor))
  return { ...vendor, arrived: arrived.promise }
}

/** Executes an action, kills the service while its request is under way, and waits for the end. */
async function killWithin(vendor: Awaited<ReturnType<typeof startHanging>>, config: object) {
  const id = await host.execute(await host.create(vendor.graph(config) as never))
  await vendor.arrived
  await host.recovered('service', host.kill('service'))
  return nodeOf(await host.ended(id, 120_000), 'act')
}

test('a request that must not be repeated is not sent again after the worker was killed', {
  tags: 'long',
}, async () => {
  const vendor = await startHanging(
    () => true,
    () => ({ json: { id: 'rec1' } }),
  )
  const { status, errorMessage } = await killWithin(vendor, {
    ...{ connector: 'airtable', action: 'createRecord' },
    input: { base: 'app1', table: 'People', fields: { Name: 'Ada' } },
  })
  expect(status).toBe('FAILED')
  expect(errorMessage).toContain('no answer came that says so')
  expect(vendor.asked).toHaveLength(1)
})

test('an action of three requests goes on at the one that is missing, with the same id: one file is there', {
  tags: 'long',
}, async () => {
  for (const method of ['POST', 'PATCH']) {
    const drive = createDrive()
    const vendor = await startHanging((asked) => asked.method === method, drive.answer)
    const { status, outputData, retryCount } = await killWithin(vendor, {
      ...{ connector: 'google-drive', action: 'createText' },
      input: { name: 'note.txt', text: 'the text' },
    })
    expect(status).toBe('SUCCESS')
    expect(retryCount).toBeGreaterThan(0)
    expect(outputData).toMatchObject({ id: 'id-1', name: 'note.txt' })
    expect([...drive.files.values()].map(({ id, content }) => [id, content])).toEqual([['id-1', 'the text']])
    expect(vendor.asked.filter(({ path }) => path.endsWith('/generateIds'))).toHaveLength(1)
  }
})

test('an event and a commit are there once after the worker was killed', { tags: 'long' }, async () => {
  const calendar = createCalendar()
  const dates = await startHanging(({ method }) => method === 'POST', calendar.answer)
  const event = await killWithin(dates, {
    ...{ connector: 'google-calendar', action: 'createEvent' },
    input: { summary: 'Plan', start: '2026-01-31', end: '2026-02-01' },
  })
  expect(event.status).toBe('SUCCESS')
  expect([...calendar.events.values()]).toEqual([event.outputData])

  const repository = createRepository({ 'a.txt': 'old' })
  const github = await startHanging(({ method }) => method === 'PUT', repository.answer)
  const { status, outputData } = await killWithin(github, {
    ...{ connector: 'github', action: 'editFile' },
    input: { owner: 'ada', repo: 'notes', path: 'a.txt', text: 'new', message: 'Once' },
  })
  expect(status).toBe('SUCCESS')
  expect(outputData).toMatchObject({ content: { path: 'a.txt' }, commit: { message: 'Once' } })
  expect(repository.commits).toEqual(['Once'])
})
