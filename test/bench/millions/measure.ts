import { Pool } from 'undici'
import { percentile } from '../load.ts'
import type { Asked } from './routes.ts'

/** The bounds of C9: of a whole answer, and of the first byte of a stream. */
const BOUND_MS = 50
const STREAM_BOUND_MS = 100

const WARM_UPS = 3
const TIMES = 30
/** A request that takes so long is slow enough to be known after a few rounds. */
const LONG_MS = 400
const FEW_TIMES = 5
/** The beginning of a stream that is compared. */
const COMPARED_BYTES = 100_000

/** Times in ms: of the request, and of a request without rows that was made right before each. */
export type Measured = Asked & {
  status: number
  p50: number
  p95: number
  calm95: number
  over: boolean
  body: string
}

/** Makes each request 30 times after 3 warm-ups, one after the other. */
export async function measureAll(
  url: string,
  token: string,
  asked: Asked[],
  tell: (one: Measured) => void,
): Promise<Measured[]> {
  const pool = new Pool(url, { connections: 4 })
  try {
    const measured: Measured[] = []
    for (const one of asked) {
      const result = await measureOne(pool, token, one)
      tell(result)
      measured.push(result)
    }
    return measured
  } finally {
    await pool.destroy()
  }
}

async function measureOne(pool: Pool, token: string, asked: Asked): Promise<Measured> {
  let times: number[] = []
  const calm: number[] = []
  let last = { status: 0, body: '', ms: 0 }
  for (let n = 0; n < WARM_UPS + TIMES; n++) {
    calm.push((await ask(pool, '/healthz', '', false)).ms)
    last = await ask(pool, asked.path, token, asked.stream)
    if (n === WARM_UPS) times = []
    times.push(last.ms)
    if (last.status >= 400 || (n + 1 >= FEW_TIMES && percentile(times, 0.5) > LONG_MS)) break
  }
  const p95 = percentile(times, 0.95)
  const over = last.status < 400 && p95 > (asked.stream ? STREAM_BOUND_MS : BOUND_MS)
  return {
    ...asked,
    status: last.status,
    body: last.body,
    p50: percentile(times, 0.5),
    p95,
    calm95: percentile(calm, 0.95),
    over,
  }
}

/** A stream is left after its first byte, or, for what is compared, after its beginning. */
async function ask(pool: Pool, path: string, token: string, stream: boolean) {
  const began = performance.now()
  const { statusCode, body } = await pool.request({
    method: 'GET',
    path,
    headers: token === '' ? {} : { authorization: `Bearer ${token}` },
  })
  if (!stream) {
    const text = await body.text()
    return { status: statusCode, body: text, ms: performance.now() - began }
  }
  let [first, text] = [0, '']
  for await (const piece of body) {
    first ||= performance.now() - began
    text += piece
    if (text.length > COMPARED_BYTES) break
  }
  return { status: statusCode, body: text.slice(0, COMPARED_BYTES), ms: first || performance.now() - began }
}
