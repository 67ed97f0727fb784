import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createParser } from 'eventsource-parser'
import { findFree } from '../../../worker/local/ports.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import { median, percentile } from '../load.ts'
import { BENCH_ADMIN, type Stand } from '../stand.ts'

const WORDS = 20
const PACE_MS = 25
const IN_FLIGHT = [1, 20]

/** What is measured in turn: `open` begins a reply, and returns the response that streams it. */
type Way = { name: string; what: string; open: (id: string) => Promise<Response> }

/**
 * Measures how much later than the vendor has sent its first byte a client has the first byte of the reply, and how much
 * later each word: `chat [rounds] [seconds]`. Vendor, service and client are on this machine.
 */
export async function measureChat(stand: Stand, args: string[]): Promise<void> {
  const rounds = Number(args[0] ?? 5)
  const seconds = Number(args[1] ?? 4)
  const sent = new Map<string, number[]>()
  const vendor = await startVendor(sent)
  const another = await startAnotherApi(stand)
  try {
    const ways = await createWays(stand, vendor, another.url)
    const times = new Map(
      ways.flatMap(({ name }) =>
        IN_FLIGHT.map((n) => [`${name} at ${n}`, { first: [], words: [] } as Times]),
      ),
    )
    for (const way of ways) await measure(way, sent, 2, 1)
    for (let round = 1; round <= rounds; round++) {
      for (const inFlight of IN_FLIGHT) {
        for (const way of ways) {
          const { first, words } = await measure(way, sent, inFlight, seconds)
          const all = times.get(`${way.name} at ${inFlight}`)!
          all.first.push(...first)
          all.words.push(...words)
        }
      }
      console.error(`[bench] round ${round} of ${rounds}`)
    }
    print(ways, times)
    console.log(`
${rounds} rounds of all in turn, each ${seconds} s. Times are in ms: from the first byte that the vendor sends of its answer until
the client has the first word ("first"), and for each word from the vendor's write until the client has it ("word").
A reply has ${WORDS} words, one each ${PACE_MS} ms. direct: the client reads the vendor itself.`)
  } finally {
    await another.stop()
    await vendor.stop()
  }
}

type Times = { first: number[]; words: number[] }

/** Says a word each PACE_MS, and notes when: first the beginning of the answer, then each word. */
async function startVendor(sent: Map<string, number[]>) {
  return startOpenAi(({ body }) => {
    const id = String((body.messages as { content: unknown }[]).at(-1)!.content)
    const times: number[] = []
    sent.set(id, times)
    return {
      text: Array.from({ length: WORDS }, (_, n) => `word${n} `),
      async before(event) {
        if (event > 1 && event <= WORDS) await sleep(PACE_MS)
        if (event <= WORDS) times.push(performance.now())
      },
    }
  })
}

async function createWays(stand: Stand, vendor: { url: string }, otherUrl: string): Promise<Way[]> {
  const { ask, teamId } = stand
  const { id: credentialId } = await ask<{ id: string }>('POST', '/api/credentials', {
    teamId,
    name: 'vendor',
    type: 'OPENAI_COMPATIBLE',
    data: { baseUrl: vendor.url, apiKey: 'sk-only-for-the-bench' },
  })
  const config = { credentialId, model: 'm', prompt: '{{ $input.message }}', output: 'text' }
  const { id: workflowId } = await ask<{ id: string }>('POST', '/api/workflows', {
    teamId,
    name: 'chat',
    nodes: [
      { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
      { id: 'reply', type: 'LLM', config },
    ],
    edges: [{ source: 'chat', target: 'reply' }],
  })
  await ask('PUT', `/api/workflows/${workflowId}`, { active: true })
  const json = { 'content-type': 'application/json' }
  const signedIn = await fetch(`${stand.url}/api/auth/login`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify(BENCH_ADMIN),
  })
  const headers = { ...json, cookie: signedIn.headers.getSetCookie()[0]!.split(';')[0]! }
  const chat = async (url: string, content: string) => {
    const send = (path: string, body: object) =>
      fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    const made = await send('/api/agent-chat/sessions', { workflowId, teamId })
    const { id } = (await made.json()) as { id: string }
    return send(`/api/agent-chat/sessions/${id}/messages`, { content })
  }
  return [
    {
      name: 'direct',
      what: 'no service between',
      open: (content) =>
        fetch(`${vendor.url}/chat/completions`, {
          method: 'POST',
          headers: json,
          body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content }] }),
        }),
    },
    { name: 'one', what: 'API and worker in one process', open: (content) => chat(stand.url, content) },
    { name: 'two', what: 'an API of its own, over PostgreSQL', open: (content) => chat(otherUrl, content) },
  ]
}

let count = 0

async function measure(
  way: Way,
  sent: Map<string, number[]>,
  inFlight: number,
  seconds: number,
): Promise<Times> {
  const end = performance.now() + seconds * 1_000
  const times: Times = { first: [], words: [] }
  async function repeat(): Promise<void> {
    while (performance.now() < end) {
      const id = `${way.name}-${++count}`
      const got = await read(await way.open(id))
      const [begun, ...words] = sent.get(id)!
      sent.delete(id)
      if (got.length !== WORDS) throw new Error(`${way.name}: ${got.length} of ${WORDS} words came`)
      times.first.push(got[0]! - begun!)
      times.words.push(...got.map((at, n) => at - words[n]!))
    }
  }
  await Promise.all(Array.from({ length: inFlight }, repeat))
  return times
}

/** When each word came. */
async function read(response: Response): Promise<number[]> {
  const got: number[] = []
  let text = ''
  const parser = createParser({
    onEvent({ data }) {
      if (data === '[DONE]') return
      const event = JSON.parse(data)
      if (event.type === 'error') throw new Error(event.message)
      text += event.type === 'chunk' ? event.content : (event.choices?.[0]?.delta?.content ?? '')
      const now = performance.now()
      while (got.length < WORDS && text.includes(`word${got.length} `)) got.push(now)
    },
  })
  for await (const part of response.body!.pipeThrough(new TextDecoderStream())) parser.feed(part)
  return got
}

/** Starts a process that is only an API, beside that of the stand. */
async function startAnotherApi({ dataDir, databaseUrl, temporalAddress }: Stand) {
  const port = await findFree()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      fileURLToPath(new URL('../../../worker/api.ts', import.meta.url)),
    ],
    {
      env: {
        ...process.env,
        DATA_DIR: dataDir,
        DATABASE_URL: databaseUrl,
        TEMPORAL_ADDRESS: temporalAddress,
        PORT: String(port),
        LOG_LEVEL: 'warn',
        RATE_LIMITS: 'off',
        CHAT_STREAMS_PER_USER: '1000',
        CHAT_STREAMS_PER_TEAM: '1000',
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  )
  const ended = once(child, 'exit')
  const isUp = () =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await isUp())) {
    if (child.exitCode !== null) throw new Error('the second API has ended')
    await sleep(50)
  }
  return {
    url,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

function print(ways: Way[], times: Map<string, Times>): void {
  const round = (value: number) => Math.round(value * 10) / 10
  const rows = ways.flatMap(({ name, what }) =>
    IN_FLIGHT.map((inFlight) => {
      const { first, words } = times.get(`${name} at ${inFlight}`)!
      const row = {
        what,
        'first p50': round(median(first)),
        'first p99': round(percentile(first, 0.99)),
        'word p50': round(median(words)),
        'word p99': round(percentile(words, 0.99)),
        replies: first.length,
      }
      return [`${name} at ${inFlight}`, row]
    }),
  )
  console.table(Object.fromEntries(rows))
  const p50 = median(times.get('one at 1')!.first)
  console.log(
    `first byte in one process, alone, p50: ${round(p50)} ms; aim < 30: ${p50 < 30 ? 'met' : 'not met'}`,
  )
}
