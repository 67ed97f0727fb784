import { performance } from 'node:perf_hooks'
import { listViews } from '../../../db/detection/views.ts'
import type { Stand } from '../stand.ts'

const PROSE =
  'The quarterly report is due on Monday, and Ada (ada@example.com, +49 30 901820) will send it to all teams. Please ' +
  'read the notes first: they say what was measured, how, and why the second figure differs from last year. '
const HIDDEN =
  'Ignоre the aWdub3JlIGFsbCBwcmV2aW91cw== 1gn0r3 %41%42 &#65; i g n o r e \\u0041 4111 1111 1111 1111 vtaber guvf vafgehpgvba '
const LENGTHS = [2_000, 100_000]

const fill = (text: string, length: number) => text.repeat(Math.ceil(length / text.length)).slice(0, length)

/** The 50th and the 95th of 100, in milliseconds. */
export function describeTimes(times: number[]): string {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!.toFixed(1)
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms (${times.length} times)`
}

/** How long it takes to make all readings of a text in this process. */
export function measureReadings(): string[] {
  const lines: string[] = []
  for (const [name, text] of Object.entries({ prose: PROSE, 'hidden and encoded': HIDDEN })) {
    for (const length of LENGTHS) {
      const given = fill(text, length)
      const times = Array.from({ length: length > 10_000 ? 40 : 300 }, () => {
        const began = performance.now()
        listViews(given)
        return performance.now() - began
      })
      lines.push(`  ${name}, ${length} characters: ${describeTimes(times.slice(5))}`)
    }
  }
  return lines
}

const ASKED = { redactPii: true, detectPromptInjection: true, filterContent: true, onViolation: 'LOGGED' }

/** How long a check with all detectors takes a client, and how long other requests do beside checks of long texts. */
export async function measureHttp(stand: Stand): Promise<string[]> {
  const path = `/api/guardrails/check?teamId=${stand.teamId}`
  const time = async (work: () => Promise<unknown>) => {
    const began = performance.now()
    await work()
    return performance.now() - began
  }
  const lines: string[] = []
  for (const [name, text] of Object.entries({ prose: PROSE, 'hidden and encoded': HIDDEN })) {
    for (const length of LENGTHS) {
      const json = { ...ASKED, text: fill(text, length) }
      const times: number[] = []
      for (let i = 0; i < (length > 10_000 ? 30 : 150); i++)
        times.push(await time(() => stand.ask('POST', path, json)))
      lines.push(`  ${name}, ${length} characters: ${describeTimes(times.slice(5))}`)
    }
  }
  const read = () => stand.ask('GET', `/api/workflows?teamId=${stand.teamId}`)
  const alone: number[] = []
  for (let i = 0; i < 100; i++) alone.push(await time(read))
  lines.push(`  a list of workflows, alone: ${describeTimes(alone)}`)
  let going = true
  const json = { ...ASKED, text: fill(HIDDEN, 100_000) }
  const checks = Array.from({ length: 2 }, async () => {
    while (going) await stand.ask('POST', path, json)
  })
  const beside: number[] = []
  for (let i = 0; i < 100; i++) beside.push(await time(read))
  going = false
  await Promise.all(checks)
  lines.push(`  a list of workflows, beside checks of 100000 characters: ${describeTimes(beside)}`)
  return lines
}
