import { type CDPSession, chromium, type Page } from 'playwright-core'
import { FLAGS } from '../../support/browser.ts'
import { CHROMIUM } from '../../support/programs.ts'
import { BENCH_ADMIN, type Stand } from '../stand.ts'

const NODES = 300
const STEPS = 120
/** The work of the page for one frame: its scripts, and what they make the browser lay out. */
const WORK = [
  'FunctionCall',
  'EventDispatch',
  'FireAnimationFrame',
  'RunMicrotasks',
  'TimerFire',
  'UpdateLayoutTree',
  'Layout',
]
const KINDS = new Set(WORK)

type Event = { name: string; ph: string; ts: number; dur?: number; tdur?: number; tid: number; pid: number }

/**
 * How long scripts and layout take in each frame while a node is dragged, the canvas is zoomed and moved, among 300
 * nodes. It is the time of the processor, since others may use the machine.
 */
export async function measureCanvas(stand: Stand): Promise<void> {
  const { id } = await stand.ask<{ id: string }>('POST', '/api/workflows', makeGraph(stand.teamId))
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS })
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 720 } })
    await page.goto(`${stand.url}/#/workflows/${id}/edit`)
    await page.getByLabel('E-mail').fill(BENCH_ADMIN.email)
    await page.getByLabel('Password').fill(BENCH_ADMIN.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    const node = page.locator('.react-flow__node[data-id="n0"]')
    await node.waitFor()
    await page.waitForTimeout(1_000)
    const box = (await node.boundingBox())!
    const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 }
    report(
      'drag one node',
      await trace(page, async () => {
        await page.mouse.move(at.x, at.y)
        await page.mouse.down()
        await walk((step) => page.mouse.move(at.x + step * 2, at.y + Math.sin(step / 8) * 40))
        await page.mouse.up()
      }),
    )
    await page.keyboard.press('Control+z')
    const middle = { x: 760, y: 380 }
    await page.mouse.move(middle.x, middle.y)
    report(
      'zoom',
      await trace(page, async () => {
        await page.keyboard.down('Control')
        await walk((step) => page.mouse.wheel(0, step < STEPS / 2 ? -20 : 20))
        await page.keyboard.up('Control')
      }),
    )
    report('pan', await trace(page, () => walk((step) => page.mouse.wheel(step % 40 < 20 ? 15 : -15, 4))))
  } finally {
    await browser.close()
  }
}

async function walk(move: (step: number) => Promise<unknown>): Promise<void> {
  for (let step = 0; step < STEPS; step += 1) await move(step)
}

/** The milliseconds of work in each frame. */
async function trace(page: Page, act: () => Promise<void>): Promise<number[]> {
  const session = await page.context().newCDPSession(page)
  const events: Event[] = []
  session.on('Tracing.dataCollected', ({ value }) => {
    for (const one of value) events.push(one as unknown as Event)
  })
  const categories =
    'devtools.timeline,devtools.timeline.frame,disabled-by-default-devtools.timeline,v8.execute'
  await session.send('Tracing.start', { categories, transferMode: 'ReportEvents' })
  await act()
  await endTrace(session)
  await session.detach()
  return sumFrames(events)
}

async function endTrace(session: CDPSession): Promise<void> {
  const done = new Promise<void>((resolve) => session.once('Tracing.tracingComplete', () => resolve()))
  await session.send('Tracing.end')
  await done
}

/** Adds up what is outermost on the page's thread between two frames that it begins. */
function sumFrames(events: Event[]): number[] {
  const work = events.filter(({ name, ph }) => ph === 'X' && KINDS.has(name))
  const busiest = Map.groupBy(work, ({ pid, tid }) => `${pid} ${tid}`)
  const [, own = []] = [...busiest].toSorted(([, a], [, b]) => b.length - a.length)[0] ?? []
  const [thread] = own
  if (!thread) return []
  const begins = events
    .filter(({ name, pid }) => name === 'BeginMainThreadFrame' && pid === thread.pid)
    .map(({ ts }) => ts)
    .toSorted((a, b) => a - b)
  const frames = new Map<number, number>()
  let until = 0
  let frame = 0
  for (const { ts, dur = 0, tdur = dur } of own.toSorted((a, b) => a.ts - b.ts)) {
    if (ts < until) continue
    until = ts + dur
    while (frame < begins.length && begins[frame]! <= ts) frame += 1
    frames.set(frame, (frames.get(frame) ?? 0) + tdur / 1_000)
  }
  return [...frames.values()]
}

function report(what: string, frames: number[]): void {
  const sorted = frames.toSorted((a, b) => a - b)
  const at = (part: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1)
  console.log(
    `${what.padEnd(14)} ${String(frames.length).padStart(4)} frames: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, most ${at(1)} ms`,
  )
}

/** Ten rows of thirty, one after the other, with a loop and notes among them. */
function makeGraph(teamId: string) {
  const nodes = Array.from({ length: NODES }, (_, at) => ({
    ...{ id: `n${at}`, type: at === 0 ? 'MANUAL_TRIGGER' : 'NO_OP' },
    position: { x: (at % 30) * 260, y: Math.floor(at / 30) * 140 },
  }))
  const edges = nodes.slice(1).map(({ id }, at) => ({ source: `n${at}`, target: id }))
  const loop = { id: 'loop', type: 'FOR_EACH', config: { items: [1] }, position: { x: 0, y: 1_500 } }
  const inside = { id: 'inside', type: 'NO_OP', parentId: 'loop', position: { x: 28, y: 56 } }
  const notes = Array.from({ length: 20 }, (_, at) => ({
    ...{ id: `note${at}`, text: `## Part ${at}\nSome **words** about it.`, colour: 'blue' },
    ...{ position: { x: at * 390 - 30, y: -60 }, size: { width: 360, height: 220 } },
  }))
  return { teamId, name: 'Large', nodes: [...nodes, loop, inside], edges, settings: { notes } }
}
