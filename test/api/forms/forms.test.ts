import { describe, expect, test } from 'vitest'
import { type Graph, nodeOf } from '../../support/client.ts'
import { submissionOf, useForms } from '../../support/engine/forms.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { until } from '../../support/until.ts'

const running = await keep(shareRunning())
const { open, send, sendParts, follow } = useForms(running)

const FIELDS = {
  properties: {
    name: { type: 'string', title: 'Your <b>name</b>', minLength: 2 },
    mail: { type: 'string', format: 'email' },
    age: { type: 'integer', minimum: 18 },
    size: { enum: ['s', 'm'], show: 'radio' },
    days: { type: 'array', enum: [1, 2, 3], show: 'checkboxes', minItems: 1 },
    agrees: { type: 'boolean', enum: [true] },
    source: { type: 'string', show: 'hidden', default: 'web' },
    secret: { type: 'string', format: 'password', minLength: 3 },
    hint: { show: 'note', description: '<script>alert(1)</script>' },
  },
  required: ['name', 'mail', 'days', 'agrees'],
}

/** An active workflow with a form, and what comes after it. */
async function publish(
  config: Record<string, unknown> = {},
  nodes: Graph['nodes'] = [],
  links: string[] = [],
) {
  const trigger = { id: 'ask', type: 'FORM_TRIGGER', config: { path: 'contact', form: FIELDS, ...config } }
  const id = await running.create({ nodes: [trigger, ...nodes], edges: edges(...links) })
  await running.ask('PUT', `/api/workflows/${id}`, { active: true })
  return { id, path: `/forms/${id}/contact` }
}

async function listRuns(workflowId: string): Promise<{ id: string; trigger: string }[]> {
  const path = `/api/executions?teamId=${running.teamId}&workflowId=${workflowId}&size=100`
  const page = await running.ask<{ content: { id: string; triggerType: string }[] }>('GET', path)
  return page.content.map(({ id, triggerType }) => ({ id, trigger: triggerType }))
}

const RIGHT = {
  name: 'Ada',
  mail: 'ada@example.com',
  days: ['3', '1'],
  agrees: 'true',
  size: 'm',
  source: 'mail',
}

describe('a form', () => {
  test('is a page of text only, which starts one execution however often it is sent', async () => {
    const { id, path } = await publish({ title: 'Contact <i>us</i>', description: 'We "answer"' })
    const shown = await open(`${path}?name=Gr%22ace&secret=x`)
    expect(shown.status).toBe(200)
    expect(shown.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    const page = await shown.text()
    expect(page).not.toMatch(/<script|<b>|<i>/)
    expect(page).toContain('Contact &lt;i&gt;us&lt;/i&gt;')
    expect(page).toContain('value="Gr&quot;ace"')
    expect(page).not.toContain('value="x"')
    const filled = { ...RIGHT, _submission: submissionOf(page), other: '1' }
    const both = await Promise.all([send(`${path}?via=ad`, filled), send(`${path}?via=ad`, filled)])
    expect(both.map(({ status }) => status)).toEqual([303, 303])
    const [first, second] = both.map(({ headers }) => headers.get('location')!)
    expect(second).toBe(first)
    expect((await send(path, filled)).headers.get('location')).toBe(first)
    expect((await follow(first!)).page).toContain('Your answers have arrived.')
    const [run, ...more] = await listRuns(id)
    expect(more).toEqual([])
    expect(run!.trigger).toBe('FORM')
    const { outputData, inputData } = await running.ended(run!.id)
    expect(outputData).toEqual(inputData)
    expect(outputData).toEqual({
      form: { name: 'Ada', mail: 'ada@example.com', days: [3, 1], agrees: true, size: 'm', source: 'mail' },
      query: { via: 'ad' },
      submittedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    const { startedBy } = await running.ask<{ startedBy: unknown }>('GET', `/api/executions/${run!.id}`)
    expect(startedBy).toEqual({ kind: 'FORM', id: null, name: null })
    // Other answers of the same page are another matter.
    const other = await send(path, { ...filled, name: 'Bob' })
    expect(other.headers.get('location')).not.toBe(first)
    expect(await listRuns(id)).toHaveLength(2)
  })

  test('names each fault at its field, and keeps what was typed', async () => {
    const { id, path } = await publish()
    const sent = await send(path, {
      name: 'A',
      mail: '"<x>',
      age: 'old',
      size: 'xl',
      secret: 'ab',
      _submission: 'mine',
    })
    expect(sent.status).toBe(400)
    const page = await sent.text()
    expect(page).toContain('<title>Problem: Form</title>')
    for (const [at, fault] of [
      ['f0', 'must have at least 2 characters'],
      ['f1', 'must have the format email'],
      ['f2', 'must be a number'],
      ['f3', 'must be one of s, m, not &quot;xl&quot;'],
      ['f4', 'is required'],
      ['f5', 'must be ticked'],
      ['f7', 'must have at least 3 characters'],
    ])
      expect(page).toContain(`<p class="wrong" id="${at}-wrong">${fault}</p>`)
    expect(page).toContain('value="&quot;&lt;x&gt;"')
    expect(page).toContain('value="old"')
    expect(page).not.toContain('value="ab"')
    expect(submissionOf(page)).toBe('mine')
    expect(await listRuns(id)).toEqual([])
    expect((await send(path, {}, { 'content-type': 'application/json' })).status).toBe(415)
    expect((await send(path, { name: 'a'.repeat(1_600_000) })).status).toBe(413)
  })

  test('takes files, and names those that do not fit', async () => {
    const form = {
      properties: {
        cv: { type: 'file', accept: ['.txt'], maxBytes: 20 },
        more: { type: 'file', multiple: true },
        name: { type: 'string' },
      },
      required: ['cv'],
    }
    const { id, path } = await publish({ form })
    const file = (name: string, text: string) => new File([text], name, { type: 'text/plain' })
    const wrong = await sendParts(path, [
      ['cv', file('cv.txt', 'x'.repeat(100_000))],
      ['name', 'Ada'],
    ])
    expect(wrong.status).toBe(400)
    const page = await wrong.text()
    expect(page).toContain('a file must have at most 20 bytes')
    expect(page).toContain('value="Ada"')
    expect(await (await sendParts(path, [['cv', file('cv.exe', 'x')]])).text()).toContain(
      'must be a file of the type .txt',
    )
    expect(await (await sendParts(path, [['cv', file('', '')]])).text()).toContain('is required')
    const right = await sendParts(path, [
      ['cv', file('cv.txt', 'my life')],
      ['more', file('a.txt', 'a')],
      ['more', file('b.txt', 'b')],
      ['strange', file('c.txt', 'c')],
    ])
    expect(right.status).toBe(303)
    const [run] = await listRuns(id)
    const { outputData } = await running.ended(run!.id)
    const { cv, more } = (outputData as { form: { cv: { file: { id: string } }; more: object[] } }).form
    expect(cv).toMatchObject({ file: { name: 'cv.txt', bytes: 7 } })
    expect(more).toMatchObject([{ file: { name: 'a.txt' } }, { file: { name: 'b.txt' } }])
    const bytes = await running.request(`/api/executions/${run!.id}/files/${cv.file.id}`, {
      as: running.admin,
    })
    expect(await bytes.text()).toBe('my life')
    const owned = await running.ask<{ content: object[] }>('GET', `/api/executions/${run!.id}/files`)
    expect(owned.content).toHaveLength(3)
  })

  test('is there only while its workflow is active, and its settings are checked', async () => {
    const { id, path } = await publish()
    await running.ask('PUT', `/api/workflows/${id}`, { active: false })
    expect((await open(path)).status).toBe(404)
    expect((await send(path, RIGHT)).status).toBe(404)
    expect((await open(`/forms/${id}/other`)).status).toBe(404)
    const save = async (config: object) => {
      const nodes = [
        { id: 'ask', type: 'FORM_TRIGGER', config: { path: 'a', form: { properties: {} }, ...config } },
      ]
      const { status, body } = await running.call('POST', '/api/workflows', running.admin, {
        ...{ teamId: running.teamId, name: 'A form', nodes, edges: [] },
      })
      return status === 201
        ? []
        : body.errors.map((one: { path: string }) => one.path.replace('nodes[0].config.', ''))
    }
    expect(await save({})).toEqual([])
    expect(await save({ access: 'pasword' })).toEqual(['access'])
    expect(await save({ acces: 'members' })).toEqual(['acces'])
    expect(await save({ access: 'password' })).toEqual(['password'])
    expect(await save({ password: { value: 'x' } })).toEqual(['password'])
    expect(await save({ completion: { show: 'redirect', url: 'http://example.com' } })).toEqual([
      'completion.url',
    ])
    expect(await save({ completion: { show: 'redirect', url: 'javascript:alert(1)' } })).toEqual([
      'completion.url',
    ])
    expect(await save({ completion: { show: 'redirect' } })).toEqual(['completion.url'])
    expect(await save({ form: { properties: { _submission: {} } } })).toEqual(['form'])
  })
})

describe('the last page', () => {
  test('is a text, another address, or the output', async () => {
    const words = await publish({ completion: { title: 'Done <b>', text: 'See\nyou' } })
    const said = (await follow((await send(words.path, RIGHT)).headers.get('location')!)).page
    expect(said).toContain('<h1>Done &lt;b&gt;</h1>')
    expect(said).toContain('See\nyou')
    const away = await publish({ completion: { show: 'redirect', url: 'https://example.com/a?b=1' } })
    const led = await open((await send(away.path, RIGHT)).headers.get('location')!)
    expect(led.headers.get('refresh')).toBe('0; url=https://example.com/a?b=1')
    expect(led.headers.get('referrer-policy')).toBe('same-origin')
    const total = { id: 'sum', type: 'SET', config: { values: { total: '{{ $sum($input.form.days) }}' } } }
    const shown = await publish({ completion: { show: 'output' } }, [total], ['ask -> sum'])
    const output = (await follow((await send(shown.path, RIGHT)).headers.get('location')!)).page
    expect(output).toContain('&quot;total&quot;: 4')
    const stop = { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'secret reason' } }
    const failing = await publish({ completion: { when: 'ended' } }, [stop], ['ask -> stop'])
    const failed = (await follow((await send(failing.path, RIGHT)).headers.get('location')!)).page
    expect(failed).toContain('Something went wrong')
    expect(failed).not.toContain('secret reason')
  })
})

describe('access', () => {
  test('by a password, which is asked before anything of the form is shown or read', async () => {
    const { id, path } = await publish({ access: 'password', password: { value: 'open sesame' } })
    const { nodes } = await running.ask<{ nodes: { config: { password: object } }[] }>(
      'GET',
      `/api/workflows/${id}`,
    )
    expect(nodes[0]!.config.password).toEqual({ credentialId: expect.any(String) })
    const asked = await open(path)
    expect(asked.status).toBe(401)
    const page = await asked.text()
    expect(page).toContain(`action="${path}/password"`)
    expect(page).not.toContain('f0')
    let pulled = 0
    const body = new ReadableStream({
      pull(controller) {
        pulled++
        controller.enqueue(new TextEncoder().encode('name=Ada&'.repeat(1_000)))
        if (pulled === 50) controller.close()
      },
    })
    const unread = await running.request(path, {
      ...{ method: 'POST', as: '', body, duplex: 'half' },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    } as RequestInit)
    expect(unread.status).toBe(401)
    expect(pulled).toBeLessThan(3)
    const wrong = await send(`${path}/password`, { password: 'open' })
    expect(wrong.status).toBe(401)
    expect(await wrong.text()).toContain('This is not the password of the form')
    const right = await send(`${path}/password?via=ad`, { password: 'open sesame' })
    expect([right.status, right.headers.get('location')]).toEqual([303, `${path}?via=ad`])
    const cookie = right.headers.get('set-cookie')!
    expect(cookie).toMatch(new RegExp(`Path=${path};.*HttpOnly`))
    const as = cookie.split(';')[0]!
    expect(await (await open(path, as)).text()).toContain('id="f0"')
    expect((await send(path, RIGHT, { cookie: as })).status).toBe(303)
    expect(await listRuns(id)).toHaveLength(1)
    const other = await publish({ access: 'password', password: { value: 'open sesame' } })
    expect((await open(other.path, as)).status).toBe(401)
    const trigger = { id: 'ask', type: 'FORM_TRIGGER' }
    const config = { path: 'contact', form: FIELDS, access: 'password', password: { value: 'another' } }
    await running.ask('PUT', `/api/workflows/${id}`, { nodes: [{ ...trigger, config }], edges: [] })
    expect((await open(path, as)).status).toBe(401)
  })

  test('by membership, with the session of a member, and never from another page', async () => {
    const { id, path } = await publish({ access: 'members' })
    expect((await open(path)).status).toBe(401)
    const stranger = await running.otherTeam()
    expect((await open(path, stranger.cookie)).status).toBe(403)
    const member = await running.signUp('OPERATOR')
    expect((await open(path, member.cookie)).status).toBe(200)
    const foreign = { cookie: member.cookie, 'sec-fetch-site': 'cross-site' }
    expect((await send(path, RIGHT, foreign)).status).toBe(403)
    const elsewhere = { cookie: member.cookie, origin: 'https://evil.example', host: 'localhost' }
    expect((await send(path, RIGHT, elsewhere)).status).toBe(403)
    expect((await send(path, RIGHT, { cookie: member.cookie, 'sec-fetch-site': 'same-origin' })).status).toBe(
      303,
    )
    const [run] = await listRuns(id)
    const ended = await running.ended(run!.id)
    expect(ended.outputData).toMatchObject({
      user: { id: member.id, email: member.email, name: 'Ada Byron' },
    })
    const { startedBy } = await running.ask<{ startedBy: unknown }>('GET', `/api/executions/${run!.id}`)
    expect(startedBy).toMatchObject({ kind: 'USER', id: member.id })
  })
})

describe('pages in the middle', () => {
  const second = {
    id: 'second',
    type: 'FORM',
    config: {
      title: 'Hello {{ $input.form.name }}',
      form: { properties: { food: { enum: ['a', 'b'] } }, required: ['food'] },
    },
  }
  const third = { id: 'third', type: 'FORM', config: { form: { properties: { wish: { type: 'string' } } } } }
  const last = {
    id: 'last',
    type: 'FORM',
    config: { completion: { title: 'All done', text: 'Bye {{ $nodes.ask.form.name }}' } },
  }
  const links = ['ask -> second', 'second -> third', 'third -> last']

  test('lead on by themselves, each is sent once, and a closed tab comes back to where it was', async () => {
    const { id, path } = await publish({}, [second, third, last], links)
    const progress = (await send(path, RIGHT)).headers.get('location')!
    const { to } = await follow(progress)
    expect(to).toMatch(/^\/form\//)
    const page = await (await open(to!)).text()
    expect(page).toContain('<h1>Hello Ada</h1>')
    const wrong = await send(to!, {})
    expect(wrong.status).toBe(400)
    expect(await wrong.text()).toContain('food: is required')
    const [run] = await listRuns(id)
    const { content } = await running.ask<{ content: { kind: string; resumeUrl: string }[] }>(
      'GET',
      `/api/executions/${run!.id}/waits`,
    )
    expect(content).toMatchObject([{ kind: 'FORM', resumeUrl: `http://127.0.0.1:3000${to}` }])
    const both = await Promise.all([send(to!, { food: 'a' }), send(to!, { food: 'b' })])
    expect(both.map(({ status, headers }) => [status, headers.get('location')])).toEqual([
      [303, progress],
      [303, progress],
    ])
    const { to: next } = await follow(progress)
    expect(next).not.toBe(to)
    expect((await open(to!)).headers.get('location')).toBe(progress)
    expect((await send(next!, { wish: '' })).status).toBe(303)
    const said = (await follow(progress)).page
    expect(said).toContain('<h1>All done</h1>')
    expect(said).toContain('Bye Ada')
    const ended = await running.ended(run!.id)
    expect(['a', 'b']).toContain((nodeOf(ended, 'second').outputData as { form: { food: string } }).form.food)
    expect(ended.outputData).toEqual({ form: {}, submittedAt: expect.any(String) })
    // Its addresses are for pages only, and each for its own.
    expect((await open(`${to}x`)).status).toBe(404)
    expect((await open(progress.replace('form-progress', 'form'))).status).toBe(404)
    const token = to!.split('/').at(-1)
    expect((await running.call('POST', `/resume/${token}`, undefined, {})).status).toBe(404)
  })

  test('have a time, after which the execution goes on without them', async () => {
    const late = { ...second, config: { ...second.config, timeoutMs: 300 } }
    const nodes = [late, { id: 'gone', type: 'SET', config: { values: { gone: true } } }]
    const { id, path } = await publish({}, nodes, ['ask -> second', 'second:timeout -> gone'])
    const progress = (await send(path, RIGHT)).headers.get('location')!
    const [run] = await listRuns(id)
    expect((await running.ended(run!.id)).outputData).toEqual({ gone: true })
    expect((await follow(progress)).page).toContain('Your answers have arrived.')
  })

  test('have a one-time address for others, in executions that no form has started too', async () => {
    const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
    const tell = {
      id: 'tell',
      type: 'SET',
      config: { values: { url: '{{ $execution.resumeUrls.second }}' } },
    }
    const page = { ...second, config: { form: second.config.form } }
    const links = edges('start -> tell', 'tell -> second')
    const id = await running.execute(await running.create({ nodes: [start, tell, page], edges: links }))
    const { content } = await until(
      () => running.ask<{ content: { resumeUrl: string }[] }>('GET', `/api/executions/${id}/waits`),
      { holds: (found) => found.content.length > 0 },
    )
    const to = new URL(content[0]!.resumeUrl).pathname
    const progress = (await send(to, { food: 'b' })).headers.get('location')!
    const ended = await running.ended(id)
    expect(nodeOf(ended, 'tell').outputData).toEqual({ url: content[0]!.resumeUrl })
    expect(ended.outputData).toMatchObject({ form: { food: 'b' } })
    expect((await follow(progress)).page).toContain('Your answers have arrived.')
    expect((await send(to, { food: 'a' })).status).toBe(303)
  })
})
