import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Stand } from '../stand.ts'
import { measureContent } from './content.ts'
import { measureInjection, printInjection } from './injection.ts'
import { listPiiFigures } from './pii/pii.ts'
import { measureSchemas } from './schemas.ts'
import { measureSemantic } from './semantic.ts'
import { measureAdversarial, writeSummary } from './summary.ts'
import { measureHttp, measureReadings } from './times.ts'

/** What is measured of each detector: lines that are printed, of a folder with the data, if there is one. */
const MEASURES: [name: string, measure: (data: string | undefined) => Promise<string[]>][] = [
  ['readings of a text', async () => measureReadings()],
  ['personal data and keys', listPiiFigures],
  ['content', measureContent],
  ['JSON Schema', measureSchemas],
  ['similar meaning', measureSemantic],
  ['texts made to be slow', async () => measureAdversarial()],
]

/**
 * Prints how good and how fast each detector is: `npm run bench -- guardrails --data DIR`. Without the folder, which is not
 * part of the project, what needs it is left out.
 */
export async function measureGuardrails(stand: Stand, args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { data: { type: 'string' } } })
  for (const [name, measure] of MEASURES) {
    console.log(`\n${name}`)
    for (const line of await measure(values.data)) console.log(line)
  }
  const injection = values.data === undefined ? undefined : await measureInjection(values.data)
  if (injection) console.log(['\nprompt injection', ...printInjection(injection)].join('\n'))
  console.log('\nall detectors')
  for (const line of await writeSummary(values.data, injection)) console.log(line)
  console.log('\nall checks over HTTP')
  // This thread has computed for minutes: let it see first that the service has closed its idle connections.
  await sleep(1_000)
  for (const line of await measureHttp(stand)) console.log(line)
}
