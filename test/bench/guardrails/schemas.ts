import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fitText, type KnownSchemas } from '../../../activities/jsonschema/texts.ts'
import { isObject } from '../../../workflows/json.ts'
import { checkTextSchema } from '../../../workflows/jsonschema/textschema.ts'
import { describeTimes } from './times.ts'

type Group = {
  description: string
  schema: unknown
  tests: { description: string; data: unknown; valid: boolean }[]
}

const REMOTE = 'http://localhost:1234'

/** Holds the tests of JSON Schema's own suite, of the draft 2020-12, against what a check says. */
export async function measureSchemas(data: string | undefined): Promise<string[]> {
  const folder = join(data ?? '', 'json-schema')
  if (data === undefined || !existsSync(folder))
    return ['  left out: there is no --data DIR with json-schema in it']
  const remotes = readRemotes(join(folder, 'remotes'))
  const lines: string[] = []
  const times: number[] = []
  let all = 0
  let right = 0
  let foreign = 0
  for (const name of listJson(join(folder, 'draft2020-12'))) {
    for (const group of readJson(join(folder, 'draft2020-12', name)) as Group[]) {
      const refers = JSON.stringify(group.schema).includes(REMOTE)
      const faults = isObject(group.schema) ? checkTextSchema(group.schema) : []
      if (refers || faults.length > 0) foreign += group.tests.length
      for (const { description, data: value, valid } of group.tests) {
        const began = performance.now()
        const fit = await fitText(group.schema, JSON.stringify(value), refers ? remotes : {})
        times.push(performance.now() - began)
        const said = 'misfits' in fit ? fit.misfits.length === 0 : undefined
        all++
        if (said === valid) right++
        else
          lines.push(
            `  wrong: ${name}: ${group.description}: ${description}: ${JSON.stringify(fit).slice(0, 200)}`,
          )
      }
    }
  }
  return [
    `  ${right} of ${all} tests are right`,
    `  ${foreign} of them refer to schemas from elsewhere, which the suite hands over; a request with such a schema is refused`,
    `  a test takes ${describeTimes(times)}`,
    ...lines,
  ]
}

const listJson = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.json'))
const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

function readRemotes(folder: string): KnownSchemas {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.json'),
  )
  return Object.fromEntries(names.map((name) => [`${REMOTE}/${name}`, readJson(join(folder, name))]))
}
