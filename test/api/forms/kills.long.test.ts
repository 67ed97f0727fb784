import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf } from '../../support/running.ts'

const host = await keep(startInstallation())
const { url } = host.holder().addresses

type Sent = { status: number; to: string | null; again: string | undefined; text: string }

/** Asks as a browser does, which tries again while nothing answers. */
async function browse(path: string, fields?: Record<string, string>): Promise<Sent> {
  for (;;) {
    try {
      const init = fields ? { method: 'POST', body: new URLSearchParams(fields) } : {}
      const response = await fetch(url + path, { redirect: 'manual', ...init })
      const { status, headers } = response
      const again = headers.get('refresh')?.match(/url=(\/.*)$/)?.[1]
      if (status < 500) return { status, to: headers.get('location'), again, text: await response.text() }
    } catch {
      // It is down.
    }
    await sleep(200)
  }
}

/** Goes on as the browser does by itself, to the next page, or to the text of the last one. */
async function follow(path: string): Promise<Sent> {
  for (let at = path; ; ) {
    const seen = await browse(at)
    if (seen.to || !seen.again) return seen
    at = seen.again
  }
}

test('a form of three pages survives kill -9 at each of them: nothing twice, nothing lost', {
  tags: 'long',
  timeout: 240_000,
}, async () => {
  const page = (id: string) => ({
    id,
    type: 'FORM',
    config: { form: { properties: { [id]: { type: 'string' } }, required: [id] } },
  })
  const workflowId = await host.create({
    nodes: [
      {
        id: 'ask',
        type: 'FORM_TRIGGER',
        config: { path: 'a', form: { properties: { name: { type: 'string' } } } },
      },
      page('second'),
      page('third'),
      { id: 'last', type: 'FORM', config: { completion: { text: 'Bye {{ $nodes.ask.form.name }}' } } },
    ],
    edges: edges('ask -> second', 'second -> third', 'third -> last'),
  })
  await host.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
  const killed = async () => {
    const was = host.kill('service')
    await host.recovered('service', was)
  }
  const path = `/forms/${workflowId}/a`
  const shown = await browse(path)
  const submission = /name="_submission" value="([^"]+)"/.exec(shown.text)![1]!
  await killed()
  const filled = { name: 'Ada', _submission: submission }
  const first = browse(path, filled)
  // It dies while the form is being sent, and the person sends it again.
  const dying = killed()
  const { to: progress } = await first
  await dying
  expect((await browse(path, filled)).to).toBe(progress)
  const { to: second } = await follow(progress!)
  await killed()
  expect((await browse(second!)).text).toContain('name="second"')
  const sent = browse(second!, { second: 'two' })
  const again = killed()
  await sent
  await again
  expect((await browse(second!, { second: 'other' })).to).toBe(progress)
  const { to: third } = await follow(progress!)
  expect(third).not.toBe(second)
  await browse(third!, { third: 'three' })
  await killed()
  expect((await follow(progress!)).text).toContain('Bye Ada')
  const list = await host.ask<{ content: { id: string; status: string }[] }>(
    'GET',
    `/api/executions?teamId=${host.teamId}&workflowId=${workflowId}`,
  )
  expect(list.content).toHaveLength(1)
  const ended = await host.ended(list.content[0]!.id, 60_000)
  expect(ended.status).toBe('SUCCESS')
  expect(nodeOf(ended, 'ask').outputData).toMatchObject({ form: { name: 'Ada' } })
  expect(nodeOf(ended, 'second').outputData).toMatchObject({ form: { second: 'two' } })
  expect(nodeOf(ended, 'third').outputData).toMatchObject({ form: { third: 'three' } })
})
